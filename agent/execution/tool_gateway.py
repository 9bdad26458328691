"""The only way to call a tool: validation, intent before the call, time limit, retries by effect class, output cap.

A tool's failure does not raise. It is returned as data (`ToolReturned.error_code`) for the supervisor and the model.
"""

import asyncio
import json
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from time import monotonic

from pydantic import JsonValue, ValidationError

from agent.core.content_blocks import limit_blocks
from agent.core.errors import (
    AgentError,
    StaleEpochError,
    SubAgentFailedError,
    ToolDeniedError,
    ToolError,
    ToolInputError,
    ToolOutcomeUnknownError,
    ToolOutputError,
    ToolTimeoutError,
)
from agent.core.events import EventDraft, StepUnknown, ToolCalled, ToolReturned
from agent.core.failures import OUTCOME_UNKNOWN
from agent.core.models import JsonObject
from agent.core.run_state import CallState
from agent.execution.approvals import ApprovalPendingError, check_approval, explain_call, find_change_since_shown
from agent.execution.arguments import find_argument_problem, find_output_problem, has_literal_from_outside, shorten
from agent.execution.broken_connections import is_broken_connection
from agent.execution.egress_facts import check_redirect
from agent.execution.nested_calls import NestedCalls
from agent.execution.repeated_calls import UNKNOWN_OUTCOME, call_once, find_unknown_outcome
from agent.execution.tool_models import RunModel
from agent.policy.redaction.events import ResultParts
from agent.policy.redaction.inbound import restore_args
from agent.run_context.calls import CallSite
from agent.run_context.message_labels import collect_own_words
from agent.run_context.outputs import store_output
from agent.run_context.run import Run
from agent.tools import PreflightTool, Tool, ToolContext, ToolResult, ToolSpec
from agent.tools.spec import drop_unset_inputs

log = logging.getLogger(__name__)

MARGIN_CHARS = 10_000
"""Characters beyond the cut that are scanned too, so that a cut never splits a secret; longer than any key."""
BLOB_CHARS = 16_000
"""Characters. Longer results go to `blobs`; the event keeps the beginning of the text."""


async def call_tool(
    run: Run,
    tool: Tool,
    args: JsonObject,
    site: CallSite,
    before: tuple[EventDraft, ...] = (),
    *,
    tainted: bool = False,
) -> ToolReturned:
    """Calls `tool` once for `site`, or returns the result that an earlier process recorded.

    Emits `before` and the intent, but not the return: the caller commits it together with its consequences. The return
    is redacted. `tainted` is whether an argument holds external text.

    Raises `ApprovalPendingError` if a person must allow the call first. For a side effect that started before a crash,
    the tool reports the outcome, or the call is recorded as `step.unknown`."""
    args = drop_unset_inputs(tool.spec, args)
    returned = await _call_or_resume(run, tool, args, site, before, tainted=tainted)
    if returned.error is not None:
        returned = run.redaction.redact(returned)
    if tainted and not returned.tainted:  # what a tool makes of a text from outside is no cleaner than the text
        returned = run.redaction.mark_redacted(returned.model_copy(update={"tainted": True}))
    return returned


async def _call_or_resume(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, before: tuple[EventDraft, ...], *, tainted: bool
) -> ToolReturned:
    """Makes the call, or returns its recorded result."""
    earlier = _get_recorded_call(run, site)
    if earlier is None:
        return await _make_first_call(run, tool, args, site, before, tainted=tainted)
    if before:
        await run.emit(*before)
    if earlier.intent.tool != tool.spec.name:  # an upgrade changed the tool at this site
        why = f"another tool ({earlier.intent.tool}) was called in this place before the interruption"
        return await report_lost_effect(run, site) or _build_failed_return(tool.spec, site, ToolError(why), monotonic())
    if earlier.result is not None:
        return earlier.result
    args = earlier.intent.args  # these arguments belong to the key; references may now resolve to others
    problem = find_argument_problem(tool.spec, args)
    if problem is not None:
        return _build_failed_return(tool.spec, site, ToolInputError(problem), monotonic())
    if earlier.intent.effect == "effect":
        return await _reconcile(run, tool, site, earlier.intent)
    context = _build_tool_context(run, site, earlier.intent.key, tainted=tainted)
    if (changed := await find_change_since_shown(run, tool, args, site, context)) is not None:
        return _build_failed_return(tool.spec, site, changed, monotonic())
    return await _execute(run, tool, args, site, context)


async def _make_first_call(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, before: tuple[EventDraft, ...], *, tainted: bool
) -> ToolReturned:
    """Makes a new call: validates it, checks the approval, records the intent, executes it."""
    problem = find_argument_problem(tool.spec, args)
    unknown = None if problem is not None else find_unknown_outcome(run.state, tool.spec, args)
    if problem is not None or unknown is not None:
        if before:
            await run.emit(*before)
        refusal = ToolInputError(problem) if problem is not None else ToolDeniedError(unknown or "")
        return _build_failed_return(tool.spec, site, refusal, monotonic())
    key = _make_key(run, site)
    context = _build_tool_context(run, site, key, tainted=tainted)
    checked = await check_approval(
        run,
        tool,
        args,
        site,
        before,
        tainted=tainted,
        foresee_failure=partial(foresee_failure, run, tool, args, site, tainted=tainted),
        explain=partial(explain_call, run, tool, args, context),
    )
    if checked.refused is not None:
        return checked.refused
    intent = ToolCalled(
        call_id=site.call_id, tool=tool.spec.name, args=args, effect=tool.spec.effect, key=key, span=site.span,
        untrusted=dict(checked.untrusted), claims_read_only=bool(tool.spec.read_claim),
    )  # fmt: skip
    # A call that may be repeated need not be in the log before it is made.
    record = run.note_visibly if tool.spec.effect == "read" else run.emit
    await record(*before, EventDraft(intent, site.step_id, site.attempt))
    return await call_once(run, tool.spec, args, site, partial(_execute, run, tool, args, site, context))


async def foresee_failure(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, *, tainted: bool
) -> ToolReturned | None:
    """The failure of a call that would be made at `site`, if its tool can predict one."""
    if not isinstance(tool, PreflightTool):
        return None
    try:
        await tool.preflight(restore_args(run.state, args), build_call_context(run, site, tainted=tainted))
    except ToolError as error:
        return _build_failed_return(tool.spec, site, error, monotonic())
    return None


def build_call_context(run: Run, site: CallSite, *, tainted: bool) -> ToolContext:
    """What a tool is given of its run, for a call at `site`."""
    return _build_tool_context(run, site, _make_key(run, site), tainted=tainted)


def _make_key(run: Run, site: CallSite) -> str:
    """The idempotency key of a call."""
    plan_version = run.state.plan.version if run.state.plan else 0
    return f"{run.run_id}:{plan_version}:{site.step_id}:{site.attempt}:{site.place}"


async def report_lost_effect(run: Run, site: CallSite) -> ToolReturned | None:
    """Records `step.unknown` for a side effect that started but whose tool is gone. Returns None without one.

    If it were recorded as refused, a later plan would repeat it.
    """
    earlier = _get_recorded_call(run, site)
    if earlier is None or earlier.result is not None or earlier.intent.effect != "effect":
        return None
    return await _record_unknown(run, site, earlier.intent)


def _get_recorded_call(run: Run, site: CallSite) -> CallState | None:
    """The recorded call at this site, or None."""
    attempt = run.state.get_step(site.step_id).find_attempt(site.attempt)
    return attempt.find_call(site.call_id) if attempt else None


def _build_tool_context(run: Run, site: CallSite, key: str, *, tainted: bool = False) -> ToolContext:
    subagents = (
        run.engine.subagents.find_spawner(run, site, tainted=tainted) if run.engine.subagents is not None else None
    )
    build = partial(
        ToolContext,
        run.run_id,
        run.state.owner,
        conversation_id=run.state.request.conversation_id,
        # Who approves one call approves no later request that is made of its words.
        tainted=tainted or has_literal_from_outside(run.state, site.step_id),
        get_own_words=partial(collect_own_words, run),
        subagents=subagents,
        model=RunModel(run, site) if run.works_with_model else None,
        retrieval_mode=run.room.retrieval_mode,
        collections=run.room.collections,
        api_key_id=run.state.api_key_id,
        scopes=run.state.caller_scopes,
        tools=run.state.caller_tools,
        report_progress=partial(_report_progress, run),
        ask_client=partial(run.engine.client_requests.send, run.run_id),
        check_redirect=partial(check_redirect, run, site),
    )
    nested = NestedCalls(run, site, key, build)
    return build(idempotency_key=key, call_tool=nested, note_read=nested.note_read)


def _report_progress(run: Run, line: str) -> None:
    """Publishes a redacted line of progress of a tool."""
    run.engine.progress.publish(run.run_id, lambda: run.redaction.redact_text(line))


async def _execute(run: Run, tool: Tool, args: JsonObject, site: CallSite, context: ToolContext) -> ToolReturned:
    """Calls the tool. What it has read by calling others makes its result text from outside."""
    returned = await _execute_within_limits(run, tool, args, site, context)
    nested = context.call_tool
    return nested.mark(returned) if isinstance(nested, NestedCalls) and nested.reads else returned


async def _execute_within_limits(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, context: ToolContext
) -> ToolReturned:
    """Calls the tool with a time limit. Retries after a broken connection if a repetition is harmless."""
    spec = tool.spec
    limit = min(spec.timeout_s or run.engine.settings.tool_timeout_s, max(0.1, run.seconds_left))
    started = monotonic()
    tries = 0
    error: AgentError
    slot = _get_call_slot(run, spec)
    while True:
        tries += 1
        is_broken = False
        try:
            async with slot, asyncio.timeout(limit):
                result = await tool.call(restore_args(run.state, args), context)
        except TimeoutError:
            error = _make_timeout_error(spec, limit)
        except ToolError as failure:
            error, is_broken = failure, is_broken_connection(failure)
        except AgentError as failure:
            error, is_broken = _wrap_agent_error(spec, failure), is_broken_connection(failure)
        except OSError as failure:
            error, is_broken = ToolError(f"{spec.name} failed: {failure}", agent_id=spec.name), True
        except ValidationError as failure:
            error = ToolOutputError(f"{spec.name} broke its own schema: {failure.error_count()} problems")
        except Exception as failure:  # noqa: BLE001 - the border to foreign code: any defect of a tool is data
            error = _wrap_defect(spec, failure)
            is_broken = is_broken_connection(failure)
        else:
            # Outside the `try`: a failure of our own store is no failure of the tool.
            return await build_return(run, spec, site, result, started, tries)
        if is_broken and tries <= run.engine.settings.tool_max_retries and spec.effect != "effect":
            pause = run.engine.settings.tool_retry_backoff_s * 2 ** (tries - 1)
            await asyncio.sleep(min(pause, run.seconds_left))
            continue
        return _build_failed_return(spec, site, error, started, tries)


def _make_timeout_error(spec: ToolSpec, limit: float) -> ToolError:
    """The error of a call that took longer than `limit` seconds."""
    problem = f"{spec.name} did not finish within {limit:g} s"
    if not spec.leaves_outcome_open:
        return ToolTimeoutError(problem, agent_id=spec.name)
    return ToolOutcomeUnknownError(f"{problem}; {OUTCOME_UNKNOWN}", agent_id=spec.name)


def _wrap_agent_error(spec: ToolSpec, failure: AgentError) -> AgentError:
    """The failure of a tool's own store or endpoint as a tool error, and that of a sub-agent as it is.

    Re-raises `StaleEpochError`: it comes from the event of a sub-agent and means that this process lost the run.
    """
    if isinstance(failure, StaleEpochError):
        raise failure
    if isinstance(failure, SubAgentFailedError):
        return failure
    return ToolError(f"{spec.name} failed: {failure.message}", agent_id=spec.name)


def _wrap_defect(spec: ToolSpec, failure: Exception) -> ToolError:
    """Any other failure of a tool as a tool error.

    Re-raises `ApprovalPendingError`: a sub-agent's call waits for a person, and this call is repeated afterwards.
    """
    if isinstance(failure, ApprovalPendingError):
        raise failure
    return ToolError(f"{spec.name} failed with {type(failure).__name__}: {shorten(str(failure))}")


def _get_call_slot(run: Run, spec: ToolSpec) -> AbstractAsyncContextManager[object]:
    """A slot for one call. Tools that use sub-agents take none, because the calls of their sub-agents do."""
    return nullcontext() if spec.uses_subagents else run.tool_slots


async def build_return(
    run: Run, spec: ToolSpec, site: CallSite, result: ToolResult, started: float, tries: int
) -> ToolReturned:
    """The result: checked against the schema, redacted and capped."""
    cap = run.engine.settings.tool_output_chars
    try:
        problem = find_output_problem(spec, result)
        encoded = json.dumps(result.value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError) as error:  # invalid result or schema
        problem, encoded = f"{spec.name} returned what cannot be read: {type(error).__name__}", ""
    if problem is not None:
        return _build_failed_return(spec, site, ToolOutputError(problem, agent_id=spec.name), started, tries)
    truncated = len(result.text) > cap or len(encoded) > 2 * cap
    if truncated:  # cut before the scan for secrets, which takes seconds for megabytes
        cut_note = f"the result had {len(result.text):,} characters, the limit is {cap:,} (AGENT_TOOL_OUTPUT_CHARS)"
        clean = await run.redaction.redact_result(result.text[: cap + MARGIN_CHARS], None, result.sources)
        text = f"{clean.text[:cap]}\n[cut: {cut_note}]"
        value: JsonValue = text
    else:
        clean = await run.redaction.redact_result(result.text, result.value, result.sources, encoded)
        text, value = clean.text, clean.value
    whole = None if truncated else await run.redaction.store_whole(ResultParts(result.text, result.value, ()), clean)
    content = await _store_content(run, result)
    if value is not result.value:
        encoded = json.dumps(value, ensure_ascii=False, default=str)
    blob = None
    if len(encoded) + len(text) > BLOB_CHARS:
        blob = await store_output(run, value, text)
        run.redaction.note_stored_text(blob, text)
        value, text = None, text[: BLOB_CHARS // 8]
    try:
        returned = ToolReturned(
            call_id=site.call_id,
            tool=spec.name,
            output=value,
            text=text,
            blob=blob,
            content_blob=content,
            whole_blob=whole,
            tainted=spec.tainted or result.tainted,
            truncated=truncated,
            tries=tries,
            duration=monotonic() - started,
            sources=clean.sources,
            span=site.span,
            read_from=spec.read_from,
        )
    except ValidationError:  # the value is nested too deeply for an event
        broken = ToolOutputError(f"{spec.name} returned a value that is nested too deeply", agent_id=spec.name)
        return _build_failed_return(spec, site, broken, started, tries)
    return run.redaction.mark_redacted(returned)


async def _store_content(run: Run, result: ToolResult) -> str | None:
    """Stores the content blocks of a result and returns the blob's id; None if nothing reads them.

    A plan uses only the text, and pictures of its steps would fill the store. Artifacts are kept.
    """
    settings = run.engine.settings
    if not result.content or not (run.state.is_hidden or result.has_artifacts):
        return None
    room = limit_blocks(result.content, settings.tool_output_chars, settings.tool_content_bytes)
    blocks = json.dumps(await run.redaction.redact_content_blocks(room))
    return await run.journal.put_blob(blocks.encode(), run_id=run.run_id)


async def _reconcile(run: Run, tool: Tool, site: CallSite, called: ToolCalled) -> ToolReturned:
    """Resolves a side effect without a recorded return: asks the tool, else records it as unknown. Never repeats it."""
    spec, started = tool.spec, monotonic()
    try:
        async with asyncio.timeout(run.engine.settings.tool_timeout_s):
            result = await tool.reconcile(called.key, _build_tool_context(run, site, called.key))
    except Exception as error:  # noqa: BLE001 - the border to foreign code: whatever it raises, nobody knows
        log.warning("%s could not say what became of %s: %s", spec.name, called.key, shorten(str(error)))
        result = None
    if result is not None:
        return await build_return(run, spec, site, result, started, 1)
    return await _record_unknown(run, site, called)


async def _record_unknown(run: Run, site: CallSite, called: ToolCalled) -> ToolReturned:
    """Records that the outcome of a side effect is unknown."""
    message = (
        f"{called.tool} was called before an interruption and its result was never recorded; it may or may not have "
        f"happened. It was not repeated (key {called.key}): look at its target before you ask again."
    )
    unknown = StepUnknown(call_id=site.call_id, tool=called.tool, key=called.key, message=message)
    await run.emit(EventDraft(unknown, site.step_id, site.attempt))
    return ToolReturned(call_id=site.call_id, tool=called.tool, error_code=UNKNOWN_OUTCOME, error=message, text=message)


def _build_failed_return(
    spec: ToolSpec, site: CallSite, error: AgentError, started: float, tries: int = 1
) -> ToolReturned:
    return ToolReturned(
        call_id=site.call_id,
        tool=spec.name,
        error_code=error.code,
        error=error.message,
        error_stage=str(error.details.get("stage") or ""),
        tainted=spec.tainted,
        read_from=spec.read_from,
        tries=tries,
        duration=monotonic() - started,
        span=site.span,
    )
