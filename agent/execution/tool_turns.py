"""`ToolTurns`: executes a model's tool calls turn by turn, in skills and sub-agents.

The calls of a turn run concurrently, several changes of a sub-agent one after the other. A call outside the scope, or
one that failed permanently before, is refused and recorded. Refusals and failures raise nothing; they are results for
the model.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from agent.core.concurrent_calls import gather_all
from agent.core.errors import ToolOutcomeUnknownError
from agent.core.events import AssistantTurn, EventDraft, StepOutput, ToolRefused, ToolReturned
from agent.core.failures import OUTCOME_UNKNOWN
from agent.core.models import JsonObject, Source
from agent.execution.approvals import ApprovalPendingError
from agent.execution.arguments import find_argument_problem
from agent.execution.joint_changes import JointDecision, ProposedChange, decide_changes
from agent.execution.repeated_calls import LASTING_ERRORS, UNKNOWN_OUTCOME
from agent.execution.tool_gateway import call_tool, report_lost_effect
from agent.llm.call_forms import read_calls
from agent.llm.call_objects import match_tool_name
from agent.llm.streamed_reply import to_openai_call
from agent.run_context.calls import CallSite
from agent.run_context.outputs import SKILL_CHARS, cut_text, format_data_block, load_output, to_step_output
from agent.run_context.run import Run
from agent.tools import Tool, is_shown_call_by_call
from agent.tools.spec import drop_unset_inputs

MAX_CALLS_A_TURN = 16
"""Calls that run for one turn of a model. A model that asks for more is in a loop."""

ResultObserver = Callable[[str, JsonObject, StepOutput], None]
"""Called with the tool, its arguments and its output, for each call that returned."""


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One tool call of a turn. `args` is None if the model's arguments are not a JSON object."""

    id: str
    name: str
    args: JsonObject | None
    raw: str
    extra: JsonObject = field(default_factory=dict)
    """The provider's own fields, which must be sent back with the result."""


class ToolTurns:
    """The tool calls of one conversation with a model.

    `caller_kind` names the caller in refusals; `site` returns the `CallSite` of the n-th call. `tainted` becomes True
    with the first result of external text; `sources` collects the sources of all results. With `asks_together` a person
    decides once about the changes of a turn.
    """

    def __init__(
        self,
        run: Run,
        tools: Mapping[str, Tool],
        site: Callable[[int], CallSite],
        *,
        caller_kind: str,
        tainted: bool,
        observer: ResultObserver | None = None,
        asks_together: bool = False,
    ) -> None:
        self._run = run
        self._tools = tools
        self._call_site = site
        self._caller_kind = caller_kind
        self._observer = observer
        self._asks_together = asks_together
        self._count = 0
        self._failed: set[str] = set()
        """The ids of the calls that failed or were refused."""
        self._lasting_failures: dict[tuple[str, str], str] = {}
        """Permanent failures by tool and arguments, with the reason."""
        self.tainted = tainted
        self.sources: list[Source] = []

    def parse_calls(self, said: AssistantTurn) -> list[RequestedCall]:
        """The calls of a turn, including those that a small model wrote into its text."""
        if said.tool_calls:
            return [_parse_requested_call(call, self._tools) for call in said.tool_calls]
        read = read_calls(said.text, (), {name: tool.spec.input_schema for name, tool in self._tools.items()})
        return [
            RequestedCall(f"text{number:05}", call.name, call.arguments, json.dumps(call.arguments))
            for number, call in enumerate(read.calls, start=self._count + 1)
        ]

    async def execute_calls(self, calls: list[RequestedCall]) -> list[JsonObject]:
        """Executes a turn's calls. Returns their results as messages, in the order of the calls.

        If a person must allow one of them, raises `ApprovalPendingError` after all other calls are done.
        """
        first = self._count + 1
        self._count += len(calls)
        changes = {place for place, call in enumerate(calls) if self._changes_something(call)}
        if self._asks_together and len(changes) > 1:
            call_results = await self._execute_in_order(calls, first, changes)
        else:
            call_results = await gather_all(self._execute_call(call, first, place) for place, call in enumerate(calls))
        if None in call_results:  # after the others, so that they are not cancelled
            raise ApprovalPendingError
        return [
            {"role": "tool", "tool_call_id": call.id, "content": text}
            for call, text in zip(calls, call_results, strict=True)
        ]

    async def _execute_in_order(self, calls: list[RequestedCall], first: int, changes: set[int]) -> list[str | None]:
        """Executes a turn's calls one after the other. A change may build on those before it, so that none is made
        after one that failed, and nobody is asked about changes of which one cannot be made as it is written. One that
        was rejected before ends none: what a person allows beside it is made.
        """
        proposed: list[ProposedChange] = []
        problem = ""
        for place in sorted(changes)[:MAX_CALLS_A_TURN]:
            call, tool = calls[place], self._tools[calls[place].name]
            args = drop_unset_inputs(tool.spec, call.args or {})
            problem = problem or find_argument_problem(tool.spec, args) or ""
            if not is_shown_call_by_call(tool):
                proposed.append(ProposedChange(tool, args, self._call_site(first + place)))
        decided = JointDecision()
        if proposed and not problem:
            decided = await decide_changes(self._run, proposed, tainted=self.tainted)
        results: list[str | None] = []
        self._failed.clear()
        sites = {place: self._call_site(first + place) for place in range(len(calls))}
        for place, call in enumerate(calls):
            has_failed = any(sites[other].call_id in self._failed - decided.set_aside for other in changes)
            if place in changes and (problem or has_failed):
                why = problem or "a change before it in the same turn was not made"
                results.append(await self._refuse(call, sites[place], why))
            elif (denied := decided.refused.get(sites[place].call_id)) is not None:
                results.append(await self._record_denied(call, sites[place], denied))
            else:
                is_allowed = sites[place].call_id in decided.allowed
                results.append(await self._execute_call(call, first, place, is_allowed=is_allowed))
            if results[-1] is None:  # what follows may build on it
                break
        return results

    async def _record_denied(self, call: RequestedCall, site: CallSite, denied: ToolReturned) -> str:
        """Records a change that is not made. Returns the text for the model."""
        denied = self._run.redaction.redact(denied)
        await record_return(self._run, site, denied)
        self._note_failure(call, self._tools[call.name], denied, site)
        return await self._format_result(denied, call.args or {})

    def _changes_something(self, call: RequestedCall) -> bool:
        return call.name in self._tools and self._tools[call.name].spec.has_side_effect

    async def _execute_call(
        self, call: RequestedCall, first: int, place: int, *, is_allowed: bool = False
    ) -> str | None:
        """Executes or refuses one call. Returns the text for the model, or None if a person's decision is pending.

        `place` is the call's position in its turn, from 0. `is_allowed` says that the turn's changes were decided on.
        """
        site = replace(self._call_site(first + place), is_allowed=is_allowed)
        tool = self._tools.get(call.name)
        if tool is None:
            lost = await report_lost_effect(self._run, site)
            if lost is not None:
                raise _make_unknown_outcome_error(lost)
            allowed = ", ".join(self._tools) or "none"
            return await self._refuse(
                call, site, f"{call.name!r} is not among this {self._caller_kind}'s tools ({allowed})"
            )
        if place >= MAX_CALLS_A_TURN:
            return await self._refuse(call, site, f"at most {MAX_CALLS_A_TURN} calls are made in one turn")
        if call.args is None:
            return f"Error: the arguments are not a JSON object: {cut_text(call.raw, 200)}"
        failure = self._lasting_failures.get(_build_call_key(call))
        if failure is not None and not _has_started(self._run, site):
            return await self._refuse(call, site, f"the same call failed before ({failure})")
        try:
            returned = await call_tool(self._run, tool, call.args, site, tainted=self.tainted)
        except ApprovalPendingError:
            return None
        await record_return(self._run, site, returned)
        if returned.error_code == UNKNOWN_OUTCOME:
            raise _make_unknown_outcome_error(returned)
        self._note_failure(call, tool, returned, site)
        return await self._format_result(returned, call.args)

    def _note_failure(self, call: RequestedCall, tool: Tool, returned: ToolReturned, site: CallSite) -> None:
        """Records a failure. A successful side effect clears the permanent ones, because repeating may now help."""
        if returned.error_code is not None and tool.spec.has_side_effect:
            self._failed.add(site.call_id)
        if returned.error_code in LASTING_ERRORS:
            self._lasting_failures[_build_call_key(call)] = returned.error or returned.error_code
        elif tool.spec.effect != "read" and returned.error_code is None:
            self._lasting_failures.clear()

    async def _refuse(self, call: RequestedCall, site: CallSite, why: str) -> str:
        reason = f"{why}; it was not called"
        self._failed.add(site.call_id)
        if not is_recorded(self._run, site):
            refused = ToolRefused(
                call_id=site.call_id, tool=call.name, args=call.args or {}, reason=reason, span=site.span
            )
            await self._run.emit(EventDraft(refused, site.step_id, site.attempt))
        return f"Refused: {reason}."

    async def _format_result(self, returned: ToolReturned, args: JsonObject) -> str:
        """A result as text for the model: capped, and in a data block if it is tainted."""
        output = await load_output(self._run, to_step_output(returned))
        if self._observer is not None:
            self._observer(returned.tool, args, output)
        self.tainted = self.tainted or output.tainted  # a failure too: others may have written its message
        if returned.error_code is not None:
            return f"Error ({returned.error_code}): {returned.error}"
        self.sources += output.sources
        if not output.tainted:
            return cut_text(output.text, SKILL_CHARS)
        return format_data_block("data", output.text, limit=SKILL_CHARS, source=returned.tool)


def is_recorded(run: Run, site: CallSite) -> bool:
    """Whether the end of this call is in the log: its result, a refusal, or that its outcome is unknown."""
    attempt = run.state.get_step(site.step_id).find_attempt(site.attempt)
    call = attempt.find_call(site.call_id) if attempt else None
    if call is not None:
        return call.result is not None or call.unknown_outcome is not None
    return attempt is not None and site.call_id in attempt.refused_calls


async def record_return(run: Run, site: CallSite, returned: ToolReturned) -> None:
    """Records the end of a call, unless an earlier process did, or its outcome is unknown and recorded as that."""
    if not is_recorded(run, site):
        await run.emit(EventDraft(returned, site.step_id, site.attempt))


def _has_started(run: Run, site: CallSite) -> bool:
    """Whether the intent of this call is in the log."""
    attempt = run.state.get_step(site.step_id).find_attempt(site.attempt)
    return attempt is not None and attempt.find_call(site.call_id) is not None


def _make_unknown_outcome_error(returned: ToolReturned) -> ToolOutcomeUnknownError:
    return ToolOutcomeUnknownError(returned.error or OUTCOME_UNKNOWN, agent_id=returned.tool)


def _build_call_key(call: RequestedCall) -> tuple[str, str]:
    return call.name, json.dumps(call.args, sort_keys=True, ensure_ascii=False)


def build_assistant_message(said: AssistantTurn, calls: list[RequestedCall]) -> JsonObject:
    """The turn as a message of the conversation."""
    return {
        "role": "assistant",
        "content": said.text or None,
        "tool_calls": [to_openai_call(call.id, call.name, call.raw, call.extra) for call in calls],
        **said.provider_fields,
    }


def _parse_requested_call(call: JsonObject, tools: Collection[str]) -> RequestedCall:
    extra, name = call.get("extra"), str(call["name"])
    parsed = _parse_call(str(call["id"]), match_tool_name(name, tools) or name, str(call["arguments"]))
    return replace(parsed, extra=extra) if isinstance(extra, dict) else parsed


def _parse_call(call_id: str, name: str, raw: str) -> RequestedCall:
    try:
        args = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        args = None
    return RequestedCall(call_id, name, args if isinstance(args, dict) else None, raw or "{}")
