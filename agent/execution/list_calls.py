"""Runs one attempt of a list step: one call for each item, under one approval of all of them.

Changes are made one after the other, and the first failure ends the step: what was done is in the log and is not done
again. Reading calls run at the same time.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic import JsonValue

from agent.core.concurrent_calls import gather_all
from agent.core.errors import ReferenceMissingError, ToolInputError, ToolOutputError
from agent.core.events import ApprovalItem, EventDraft, StepOutput, ToolReturned
from agent.core.failure_fields import REMARK_FIELDS
from agent.core.json_texts import write_text
from agent.core.models import JsonObject
from agent.core.plan_outcome import REPEATED
from agent.core.plan_references import ITEM, find_lists, find_rivals, resolve_references
from agent.execution.approvals import (
    ApprovalPendingError,
    ask_for_approval,
    build_call_item,
    build_denied_return,
    build_shown_text,
    describe_arguments,
    examine_call,
    explain_call,
    find_earlier_rejection,
    is_as_shown,
    make_tool_fingerprinter,
)
from agent.execution.arguments import (
    find_argument_problem,
    has_untrusted_literal,
    list_text_arg_names,
    load_inputs,
    read_container_args,
)
from agent.execution.decide import Start
from agent.execution.hidden_errors import find_failure_of_item
from agent.execution.repeated_calls import ATTEMPTS, FAILED
from agent.execution.tool_gateway import (
    BLOB_CHARS,
    build_call_context,
    call_tool,
    foresee_failure,
    report_lost_effect,
)
from agent.execution.tool_turns import is_recorded, record_return
from agent.planning.list_steps import FOR_EACH, MAX_ITEMS, split_list_inputs
from agent.policy.approval import compute_digest, get_call_decision
from agent.run_context.calls import CallSite
from agent.run_context.outputs import load_output, load_whole_output, store_output, to_step_output
from agent.run_context.run import Run
from agent.tools import Tool, is_shown_call_by_call
from agent.tools.spec import drop_unset_inputs

_SHOWN_PATHS = 10
"""Paths that an error message names: it may be part of the answer."""
BuildStart = Callable[..., Awaitable[tuple[EventDraft, ...]]]
"""Builds the events of the attempt's start from its arguments and `tainted`."""


class ListCalls:
    """The calls of one attempt of a list step."""

    def __init__(self, run: Run, start: Start) -> None:
        self._run = run
        self._step = start.step
        self._start = start
        self._tainted = run.state.tainted or has_untrusted_literal(run.state, start.step)
        self._refused: dict[int, ToolReturned] = {}
        """The results of the calls that a person rejected before, by their places: these are not asked about again."""

    async def execute(self, build_start: BuildStart) -> StepOutput:
        """The results of all calls, in the order of the items.

        Raises `ReferenceMissingError`, `ToolInputError` for a list or an item that does not fit, and
        `ApprovalPendingError` if a person must allow the calls first.
        """
        run, name = self._run, self._step.tool
        calls = await self._list_calls()
        begin = await build_start({**self._step.args, FOR_EACH: calls}, tainted=self._tainted)
        if name not in run.allowed_tools:
            await run.emit(*begin)
            lost = [await report_lost_effect(run, self._make_site(place)) for place in range(1, len(calls) + 1)]
            unknown = next((one for one in lost if one is not None), None)
            withheld = run.engine.registry.get_withheld_reason(name, run.state.owner)
            message = withheld or f"{name!r} is not allowed in this run"
            return to_step_output(unknown) if unknown else StepOutput(error_code="ERR_TOOL_DENIED", error=message)
        tool = run.engine.registry.get(name)
        self._check_calls(tool, calls)
        denied = await self._check_approval(tool, calls, begin)
        if denied is not None:
            return to_step_output(denied)
        if begin and not run.state.get_step(self._step.id).find_attempt(self._start.attempt):
            await run.emit(*begin)
        return await self._build_output(calls, await self._make_calls(tool, calls))

    async def _list_calls(self) -> list[JsonObject]:
        """The arguments of each call."""
        outputs = await load_inputs(self._run, self._start)
        source, inputs = split_list_inputs(dict(self._step.args))
        resolved = resolve_references({FOR_EACH: source}, outputs.__getitem__)
        items = _read_list(resolved.args[FOR_EACH], self._step.tool)
        if len(items) > MAX_ITEMS:
            message = f"the list has {len(items)} items; at most {MAX_ITEMS} calls are made by one step"
            raise ToolInputError(message, agent_id=self._step.tool)
        self._tainted = self._tainted or resolved.tainted
        tools = self._run.engine.registry
        spec = tools.get(self._step.tool).spec
        calls = []
        for item in items:
            text = write_text(item)
            item_outputs = {**outputs, ITEM: StepOutput(value=item, text=text, tainted=resolved.tainted)}
            filled = resolve_references(inputs, item_outputs.__getitem__, texts=list_text_arg_names(spec))
            self._tainted = self._tainted or filled.tainted
            calls.append(drop_unset_inputs(spec, read_container_args(spec, filled.args)))
        return calls

    def _check_calls(self, tool: Tool, calls: list[JsonObject]) -> None:
        """Raises `ToolInputError` before anything is done if one of the calls cannot be made."""
        if is_shown_call_by_call(tool):
            message = f"{tool.spec.name} shows a person what each call does: plan a step for each call"
            raise ToolInputError(message, agent_id=tool.spec.name)
        for place, args in enumerate(calls, start=1):
            problem = find_argument_problem(tool.spec, args)
            if problem is not None:
                raise ToolInputError(f"item {place} of the list: {problem}", agent_id=tool.spec.name)

    async def _check_approval(
        self, tool: Tool, calls: list[JsonObject], begin: tuple[EventDraft, ...]
    ) -> ToolReturned | None:
        """The result of the calls' rejection; None if they may be made, except for those rejected before."""
        run, site = self._run, self._make_site(1)
        all_items = [
            build_call_item(run, tool, args, self._make_site(place)) for place, args in enumerate(calls, start=1)
        ]
        attempt = run.state.get_step(self._step.id).find_attempt(self._start.attempt)
        earlier = get_call_decision(run.state, attempt, site.call_id)
        items = self._set_aside_rejected(all_items, without_call=site.call_id)
        reason: str | None = None
        if earlier is not None and earlier[0].digest == compute_digest(
            [*items.values()], earlier[0].plan_version, make_tool_fingerprinter(run)
        ):
            request, decision = earlier
            if decision == "approved" and await self._are_shown(tool, items, request.items):
                return None
            if decision in ("rejected", "answered"):
                return build_denied_return(site, tool.spec.name, run.state.decisions[request.approval_id])
            if not decision:
                raise ApprovalPendingError
            reason = request.reason
        else:
            items = self._set_aside_rejected(all_items)
        if calls and not items:
            if attempt is None:
                await run.emit(*begin)
            return self._refused[1]
        examined = {
            place: await examine_call(run, tool, item.args, self._make_site(place), tainted=self._tainted)
            for place, item in items.items()
            if not is_recorded(run, self._make_site(place))
        }
        reason = reason or next((one.reason for one in examined.values() if one.reason is not None), None)
        if reason is None:
            return None
        foreseen = await self._foresee_failure(tool, calls)
        if foreseen is not None:
            if attempt is None:
                await run.emit(*begin)
            return foreseen
        questions = [
            item.model_copy(
                update={
                    **build_shown_text(
                        run,
                        examined[place].egress if place in examined else None,
                        await self._explain(tool, item.args, place),
                    ),
                    **describe_arguments(run, tool, item.args, self._make_site(place)),
                }
            )
            for place, item in items.items()
        ]
        await ask_for_approval(run, tuple(questions), reason, site, begin)
        raise ApprovalPendingError

    async def _explain(self, tool: Tool, args: JsonObject, place: int) -> str:
        context = build_call_context(self._run, self._make_site(place), tainted=self._tainted)
        return await explain_call(self._run, tool, args, context)

    async def _are_shown(self, tool: Tool, items: dict[int, ApprovalItem], asked: tuple[ApprovalItem, ...]) -> bool:
        """Whether each call would still do what the question showed of it."""
        for (place, item), seen in zip(items.items(), asked, strict=True):
            if not seen.shown_sha256 or is_recorded(self._run, self._make_site(place)):
                continue
            if not is_as_shown(seen.shown_sha256, await self._explain(tool, item.args, place)):
                return False
        return True

    def _set_aside_rejected(self, items: list[ApprovalItem], *, without_call: str = "") -> dict[int, ApprovalItem]:
        """The items by their places, without those like which a person rejected one before."""
        self._refused = {}
        for place, item in enumerate(items, start=1):
            site = self._make_site(place)
            before = find_earlier_rejection(self._run, item, site, without_call=without_call)
            if before is not None:
                self._refused[place] = build_denied_return(site, item.tool, before, again=True)
        return {place: item for place, item in enumerate(items, start=1) if place not in self._refused}

    async def _foresee_failure(self, tool: Tool, calls: list[JsonObject]) -> ToolReturned | None:
        """The failure that the tool predicts for one of the calls: nobody is asked about a list that cannot succeed."""
        for place, args in enumerate(calls, start=1):
            site = self._make_site(place)
            if place in self._refused or is_recorded(self._run, site) or self._find_done(tool, args) is not None:
                continue
            failed = await foresee_failure(self._run, tool, args, site, tainted=self._tainted)
            if failed is not None:
                message = f"no call was made: item {place} of the list would fail: {failed.error}"
                return self._run.redaction.redact(failed.model_copy(update={"error": message, "text": message}))
        return None

    async def _make_calls(self, tool: Tool, calls: list[JsonObject]) -> list[ToolReturned]:
        """The results of the calls; of changes, up to the first failure. A call rejected before ends nothing."""
        if tool.spec.effect == "read":
            made = await gather_all(self._make_call(tool, args, place) for place, args in enumerate(calls, start=1))
            return [self._check_result(tool, args, one) for args, one in zip(calls, made, strict=True)]
        returned: list[ToolReturned] = []
        for place, args in enumerate(calls, start=1):
            one = self._find_done(tool, args) or await self._make_call(tool, args, place)
            one = self._check_result(tool, args, one)
            returned.append(one)
            if one.error_code is not None and place not in self._refused:
                break
        return returned

    async def _make_call(self, tool: Tool, args: JsonObject, place: int) -> ToolReturned:
        if place in self._refused:
            return self._refused[place]
        site = self._make_site(place)
        failure = "" if is_recorded(self._run, site) else self._find_lasting_failure(tool, args)
        if failure:
            error = f"{REPEATED}{failure}"
            return ToolReturned(
                call_id=site.call_id, tool=tool.spec.name, error_code="ERR_TOOL_DENIED", error=error, text=error
            )
        returned = await call_tool(self._run, tool, args, site, tainted=self._tainted)
        await record_return(self._run, site, returned)
        return returned

    def _check_result(self, tool: Tool, args: JsonObject, returned: ToolReturned) -> ToolReturned:
        """The result as a failure if its tool returned an error message as a good one."""
        if returned.error_code is not None or tool.spec.always_raises_errors:
            return returned
        step = self._step.model_copy(update={"args": args, "effect": tool.spec.effect})
        message = find_failure_of_item(step, to_step_output(returned))
        update = {"error_code": ToolOutputError.code, "error": message, "text": message}
        return returned.model_copy(update=update) if message else returned

    def _find_done(self, tool: Tool, args: JsonObject) -> ToolReturned | None:
        """The result of the same change, if a list step made it before one of its later items failed."""
        return next((one for one in self._list_earlier(tool, args) if one.error_code is None), None)

    def _find_lasting_failure(self, tool: Tool, args: JsonObject) -> str:
        """The error of the same call, if list steps made it in vain as often as a call is tried; else ""."""
        errors = [one.error or "" for one in self._list_earlier(tool, args) if one.error_code == FAILED]
        return errors[-1] if len(errors) >= ATTEMPTS else ""

    def _list_earlier(self, tool: Tool, args: JsonObject) -> list[ToolReturned]:
        """The results of the same call in list steps of which an item failed."""
        attempts = self._run.state.list_attempts()
        failed = [one for one in attempts if one.output is not None and one.output.error_code and FOR_EACH in one.args]
        calls = [call for one in failed for call in one.calls if call.intent.tool == tool.spec.name]
        return [call.result for call in calls if call.result is not None and call.intent.args == args]

    async def _build_output(self, calls: list[JsonObject], returned: list[ToolReturned]) -> StepOutput:
        """One output: the list of the calls' results, or the failure with what was done before it."""
        failures = {place: one for place, one in enumerate(returned, start=1) if one.error_code is not None}
        tainted = self._tainted or any(one.tainted for one in returned)
        if failures:
            first = next((place for place in failures if place not in self._refused), None)
            named = {**self._refused, **({first: failures[first]} if first else {})}
            reasons = "; ".join(f"item {place} failed: {named[place].error}" for place in sorted(named))
            message = f"{len(returned) - len(failures)} of {len(calls)} calls were made; {reasons}"
            output = to_step_output(failures[first] if first else named[min(named)])
            return output.model_copy(update={"error": message, "text": message, "tainted": tainted})
        outputs = [to_step_output(one) for one in returned]
        loaded = [await load_output(self._run, one) for one in outputs]
        sources = tuple(dict.fromkeys(source for one in outputs for source in one.sources))
        text = "\n".join(f"{place}. {one.text}" for place, one in enumerate(loaded, start=1))
        output = StepOutput(
            # An empty list is no empty result: there was nothing to do.
            value=[one.value if one.value is not None else one.text for one in loaded] or None,
            text=text or "The list is empty: there was nothing to do.",
            tainted=tainted,
            sources=sources,
        )
        if any(one.whole_blob is not None for one in outputs):
            whole = [await load_whole_output(self._run, one) for one in outputs]
            values: list[JsonValue] = [one.value if one.value is not None else one.text for one in whole]
            output = output.model_copy(update={"whole_blob": await store_output(self._run, values, text)})
        if len(text) > BLOB_CHARS:
            update = {
                "blob": await store_output(self._run, output.value, text),
                "value": None,
                "text": text[: BLOB_CHARS // 8],
            }
            output = output.model_copy(update=update)
        return output

    def _make_site(self, place: int) -> CallSite:
        return replace(CallSite(self._step.id, self._start.attempt, place), is_allowed=True)


def _read_list(value: JsonValue, tool: str) -> list[JsonValue]:
    """The list that a value is, or the only one in it if nothing else in it may be meant; [] if all of several are
    empty. Raises `ReferenceMissingError`, which names what may be meant."""
    lists, rivals = find_lists(value), find_rivals(value)
    remarks = {path for path in lists if path.rpartition(".")[2] in REMARK_FIELDS}
    meant = [items for path, items in lists.items() if path not in remarks]
    if not rivals and meant and (len(meant) == 1 or not any(lists.values())):
        return meant[0]
    problem = "for_each refers to a value that is not a list"
    if len(lists) > 1:
        named = ", ".join([*lists][:_SHOWN_PATHS])
        problem = f"for_each refers to an object with several lists; add the path of one of them: {named}"
    elif lists:
        (path,), others = lists, ", ".join(rivals[:_SHOWN_PATHS])
        beside = f" and something else that may be meant ({others})" if others else ", which speaks about the call"
        problem = f"for_each refers to an object with one list ({path}){beside}; add the path of the list that is meant"
    raise ReferenceMissingError(problem, agent_id=tool)
