"""The one way to a tool: validation, intent before the call, time limit, retries by effect class, output cap.

A call never raises for what a tool does wrong: the failure comes back as data (`ToolReturned.error_code`), for
the supervisor and the model to act on.
"""

import asyncio
import json
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache, partial
from time import monotonic
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.exceptions import ValidationError as SchemaViolation
from pydantic import JsonValue, ValidationError

from agent.core.content import within
from agent.core.errors import AgentError, StaleEpochError, ToolError, ToolInputError, ToolOutputError, ToolTimeoutError
from agent.core.events import Draft, StepUnknown, ToolCalled, ToolReturned
from agent.core.fold import CallState
from agent.core.models import JsonObject
from agent.execution.approvals import allowed
from agent.execution.arguments import known_args
from agent.execution.release import released_content, released_line, released_result, without_secrets
from agent.execution.run import Run
from agent.execution.shield import restored_args
from agent.execution.site import CallSite
from agent.execution.tool_models import model_at
from agent.tools import Foreseeing, Tool, ToolContext, ToolResult, ToolSpec

log = logging.getLogger(__name__)

MARGIN_CHARS = 10_000
"""What is read beyond a cut, so that no secret is halved by it before it is found; longer than any key."""
BLOB_CHARS = 16_000
"""Results longer than this lie in `blobs`; the event keeps the first part of the text."""


async def call_tool(
    run: Run,
    tool: Tool,
    args: JsonObject,
    site: CallSite,
    before: tuple[Draft, ...] = (),
    *,
    tainted: bool = False,
) -> ToolReturned:
    """Call `tool` once for `site`, or take the recorded return of an earlier process. `tainted` says that something
    in the arguments came from outside. Arguments the tool does not know are left out, and told in the return.

    Emits `before` and the intent, but not the return: the caller commits it together with what follows from it.
    Raises `ApprovalPendingError` where a person must allow the call first.
    A side effect that began before a crash is reconciled by the tool, or reported as `step.unknown`.
    """
    args, dropped = known_args(tool.spec, args)
    returned = await _called(run, tool, args, site, before, tainted=tainted)
    return returned.model_copy(update={"dropped": dropped}) if dropped else returned


async def _called(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, before: tuple[Draft, ...], *, tainted: bool
) -> ToolReturned:
    """The call, or what the log has of it."""
    earlier = _recorded(run, site)
    if earlier is None:
        return await _first_call(run, tool, args, site, before, tainted=tainted)
    if before:
        await run.emit(*before)
    if earlier.called.tool != tool.spec.name:  # an upgrade has changed what is called here
        why = f"another tool ({earlier.called.tool}) was called in this place before the interruption"
        return await lost_effect(run, site) or _failed(tool.spec, site, ToolError(why), monotonic())
    if earlier.returned is not None:
        return earlier.returned
    args = earlier.called.args  # what was begun under this key, however references are filled in by now
    problem = argument_problem(tool.spec, args)
    if problem is not None:
        return _failed(tool.spec, site, ToolInputError(problem), monotonic())
    if earlier.called.effect == "effect":
        return await _reconcile(run, tool, site, earlier.called)
    return await _carry_out(run, tool, args, site, _context(run, site, earlier.called.key, tainted=tainted))


async def _first_call(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, before: tuple[Draft, ...], *, tainted: bool
) -> ToolReturned:
    """A call that no process has begun yet: checked, allowed, its intent recorded, then made."""
    problem = argument_problem(tool.spec, args)
    if problem is not None:
        if before:
            await run.emit(*before)
        return _failed(tool.spec, site, ToolInputError(problem), monotonic())
    plan_version = run.state.plan.version if run.state.plan else 0
    key = f"{run.run_id}:{plan_version}:{site.step_id}:{site.attempt}:{site.place}"
    context = _context(run, site, key, tainted=tainted)

    async def foreseen() -> ToolReturned | None:
        return await _foreseen(run, tool, args, site, context)

    refused = await allowed(run, tool, args, site, before, tainted=tainted, foreseen=foreseen)
    if refused is not None:
        return refused
    intent = ToolCalled(
        call_id=site.call_id, tool=tool.spec.name, args=args, effect=tool.spec.effect, key=key, span=site.span
    )
    await run.emit(*before, Draft(intent, site.step_id, site.attempt))
    return await _carry_out(run, tool, args, site, context)


async def _foreseen(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, context: ToolContext
) -> ToolReturned | None:
    """What the call would end in now, where its tool knows that it must fail."""
    if not isinstance(tool, Foreseeing):
        return None
    try:
        await tool.foresee(restored_args(run.state, args), context)
    except ToolError as error:
        error.message = without_secrets(run, error.message)
        return _failed(tool.spec, site, error, monotonic())
    return None


async def lost_effect(run: Run, site: CallSite) -> ToolReturned | None:
    """For a call that cannot be taken up because its tool is no longer there: None, unless a side effect had begun.

    That one is recorded as `step.unknown`: whoever sees it as refused would do it again."""
    earlier = _recorded(run, site)
    if earlier is None or earlier.returned is not None or earlier.called.effect != "effect":
        return None
    return await _unknown(run, site, earlier.called)


def _recorded(run: Run, site: CallSite) -> CallState | None:
    """What the log holds of the call at this place."""
    attempt = run.state.step(site.step_id).attempt(site.attempt)
    return attempt.call(site.call_id) if attempt else None


def _context(run: Run, site: CallSite, key: str, *, tainted: bool = False) -> ToolContext:
    conversation = run.state.request.conversation_id
    subagents = run.engine.subagents.at(run, site, tainted=tainted) if run.engine.subagents is not None else None
    return ToolContext(
        run.run_id,
        run.state.owner,
        key,
        conversation,
        tainted,
        subagents,
        model=model_at(run, site),
        retrieval_mode=run.room.retrieval_mode,
        told=partial(_told, run),
    )


def _told(run: Run, line: str) -> None:
    """Pass on what a tool says of its progress, without what may not leave."""
    run.engine.progress.tell(run.run_id, lambda: released_line(run, line))


async def _carry_out(run: Run, tool: Tool, args: JsonObject, site: CallSite, context: ToolContext) -> ToolReturned:
    """Call with a time limit; again after a broken connection, where repeating is harmless."""
    spec = tool.spec
    limit = min(spec.timeout_s or run.engine.settings.tool_timeout_s, max(0.1, run.seconds_left))
    started = monotonic()
    tries = 0
    place = _place(run, spec)
    while True:
        tries += 1
        try:
            async with place, asyncio.timeout(limit):
                result = await tool.call(restored_args(run.state, args), context)
        except TimeoutError:
            error: ToolError = ToolTimeoutError(f"{spec.name} did not finish within {limit:g} s", agent_id=spec.name)
        except ToolError as failure:
            error = failure
        except AgentError as failure:
            error = _own_failure(spec, failure)
        except OSError as failure:
            settings = run.engine.settings
            if tries <= settings.tool_max_retries and spec.effect != "effect":
                await asyncio.sleep(min(settings.tool_retry_backoff_s * 2 ** (tries - 1), run.seconds_left))
                continue
            error = ToolError(f"{spec.name} failed: {failure}", agent_id=spec.name)
        except ValidationError as failure:
            error = ToolOutputError(f"{spec.name} broke its own schema: {failure.error_count()} problems")
        except Exception as failure:  # noqa: BLE001 - the border to foreign code: any defect of a tool is data
            error = ToolError(f"{spec.name} failed with {type(failure).__name__}: {_short(str(failure))}")
        else:
            # Not inside the `try`: that our own store fails is no failure of the tool, which has done its work.
            return await _returned(run, spec, site, result, started, tries)
        error.message = without_secrets(run, error.message)
        return _failed(spec, site, error, started, tries)


def _own_failure(spec: ToolSpec, failure: AgentError) -> ToolError:
    """A failure of a store or an endpoint of the tool's own. That the run is no longer ours, which a sub-agent notices
    when its event is refused, is nobody's failure and is raised again."""
    if isinstance(failure, StaleEpochError):
        raise failure
    return ToolError(f"{spec.name} failed: {failure.message}", agent_id=spec.name)


def _place(run: Run, spec: ToolSpec) -> AbstractAsyncContextManager[object]:
    """A place among the calls under way; none for a tool whose sub-agents' calls need places of their own."""
    return nullcontext() if spec.spawns else run.tool_slots


async def _returned(
    run: Run, spec: ToolSpec, site: CallSite, result: ToolResult, started: float, tries: int
) -> ToolReturned:
    """The result, checked against the schema, without what may not leave, and capped."""
    cap = run.engine.settings.tool_output_chars
    try:
        problem = output_problem(spec, result)
        size = len(json.dumps(result.value, ensure_ascii=False, default=str))
    except (ValueError, TypeError, RecursionError, SchemaError) as error:  # a result or a schema that is none
        problem, size = f"{spec.name} returned what cannot be read: {type(error).__name__}", 0
    if problem is not None:
        problem = without_secrets(run, problem)
        return _failed(spec, site, ToolOutputError(problem, agent_id=spec.name), started, tries)
    truncated = len(result.text) > cap or size > 2 * cap
    if truncated:  # before secrets are looked for: in megabytes that takes seconds
        told = f"the result had {len(result.text):,} characters, the limit is {cap:,} (AGENT_TOOL_OUTPUT_CHARS)"
        clean = await released_result(run, result.text[: cap + MARGIN_CHARS], None, result.sources)
        text = f"{clean.text[:cap]}\n[cut: {told}]"
        value: JsonValue = text
    else:
        clean = await released_result(run, result.text, result.value, result.sources)
        text, value = clean.text, clean.value
    content = await _kept_content(run, result)
    encoded = json.dumps(value, ensure_ascii=False, default=str)
    blob = None
    if len(encoded) + len(text) > BLOB_CHARS:
        payload = json.dumps({"value": value, "text": text}, ensure_ascii=False)
        blob = await run.engine.journal.put_blob(payload.encode())
        value, text = None, text[: BLOB_CHARS // 8]
    try:
        return ToolReturned(
            call_id=site.call_id,
            tool=spec.name,
            output=value,
            text=text,
            blob=blob,
            content_blob=content,
            tainted=spec.tainted or result.tainted,
            truncated=truncated,
            tries=tries,
            duration=monotonic() - started,
            sources=clean.sources,
            span=site.span,
        )
    except ValidationError:  # nested deeper than an event can hold
        broken = ToolOutputError(f"{spec.name} returned a value that is nested too deeply", agent_id=spec.name)
        return _failed(spec, site, broken, started, tries)


async def _kept_content(run: Run, result: ToolResult) -> str | None:
    """The blob with the blocks of a result, as far as they may leave; None where nobody would be handed them: a plan
    goes on with the text, and pictures of its steps would fill the store."""
    settings = run.engine.settings
    if not result.content or not run.state.hidden:
        return None
    room = within(result.content, settings.tool_output_chars, settings.tool_content_bytes)
    return await run.engine.journal.put_blob(json.dumps(await released_content(run, room)).encode())


async def _reconcile(run: Run, tool: Tool, site: CallSite, called: ToolCalled) -> ToolReturned:
    """A side effect whose return was never recorded: ask the tool, else say that nobody knows. Never repeat it."""
    spec, started = tool.spec, monotonic()
    context = _context(run, site, called.key)
    try:
        async with asyncio.timeout(run.engine.settings.tool_timeout_s):
            result = await tool.reconcile(called.key, context)
    except Exception as error:  # noqa: BLE001 - the border to foreign code: whatever it raises, nobody knows
        log.warning("%s could not say what became of %s: %s", spec.name, called.key, _short(str(error)))
        result = None
    if result is not None:
        return await _returned(run, spec, site, result, started, 1)
    return await _unknown(run, site, called)


async def _unknown(run: Run, site: CallSite, called: ToolCalled) -> ToolReturned:
    """Record that nobody knows whether a side effect happened."""
    message = (
        f"{called.tool} was called before an interruption and its result was never recorded; it may or may not have "
        f"happened. It was not repeated (key {called.key}): look at its target before you ask again."
    )
    unknown = StepUnknown(call_id=site.call_id, tool=called.tool, key=called.key, message=message)
    await run.emit(Draft(unknown, site.step_id, site.attempt))
    return ToolReturned(
        call_id=site.call_id, tool=called.tool, error_code="ERR_TOOL_UNKNOWN_OUTCOME", error=message, text=message
    )


def _failed(spec: ToolSpec, site: CallSite, error: ToolError, started: float, tries: int = 1) -> ToolReturned:
    return ToolReturned(
        call_id=site.call_id,
        tool=spec.name,
        error_code=error.code,
        error=error.message,
        tainted=spec.tainted,
        tries=tries,
        duration=monotonic() - started,
        span=site.span,
    )


def argument_problem(spec: ToolSpec, args: JsonObject) -> str | None:
    """What is wrong with the arguments, in one sentence, or None."""
    fault = _first_fault(spec.input_schema, args)
    if fault is None:
        return None
    where = ".".join(str(part) for part in fault.absolute_path) or "arguments"
    return f"{spec.name}: {where}: {_short(fault.message)}"


def output_problem(spec: ToolSpec, result: ToolResult) -> str | None:
    """How the result breaks the tool's output schema, or None."""
    if spec.output_schema is None:
        return None
    fault = _first_fault(spec.output_schema, result.value)
    if fault is None:
        return None
    where = ".".join(str(part) for part in fault.absolute_path) or "result"
    return f"{spec.name} returned something else than it promises: {where}: {_short(fault.message)}"


def _first_fault(schema: JsonObject, instance: object) -> SchemaViolation | None:
    validator = _validator(json.dumps(schema, sort_keys=True))
    return next(iter(validator.iter_errors(instance)), None)


@lru_cache(maxsize=512)
def _validator(schema: str) -> Any:
    return Draft202012Validator(json.loads(schema))


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
