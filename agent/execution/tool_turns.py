"""`ToolTurns`: the tool calls that a model asks for turn by turn, as skills and sub-agents carry them out.

The calls of a turn run at once. One outside the scope is refused, recorded, and told to the model; what a tool did
wrong is told too, and raises nothing.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.core.errors import ToolError
from agent.core.events import AssistantTurn, Draft, StepOutput, ToolRefused, ToolReturned
from agent.core.models import JsonObject, Source
from agent.execution.approvals import ApprovalPendingError
from agent.execution.outputs import SKILL_CHARS, cap, data_block, load, step_output
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.execution.tool_deltas import written_call
from agent.execution.tool_gateway import call_tool, lost_effect
from agent.tools import Tool

MAX_CALLS_A_TURN = 16
"""Tools called for one turn of a model; one that asks for hundreds is in a loop."""

Seen = Callable[[str, JsonObject, StepOutput], None]
"""Told of each call that returned: the tool, its arguments, what came of it."""


@dataclass(frozen=True, slots=True)
class AskedCall:
    """One tool call of a turn. `args` is None when the model's arguments are no JSON object."""

    id: str
    name: str
    args: JsonObject | None
    raw: str


class ToolTurns:
    """The calls of one conversation with a model. `whose` names the one who calls, as refusals do; `site` says where
    the n-th call stands. `tainted` turns true with the first result from outside; `sources` collects what was found."""

    def __init__(
        self,
        run: Run,
        tools: Mapping[str, Tool],
        site: Callable[[int], CallSite],
        *,
        whose: str,
        tainted: bool,
        seen: Seen | None = None,
    ) -> None:
        self._run = run
        self._tools = tools
        self._site = site
        self._whose = whose
        self._seen = seen
        self._count = 0
        self.tainted = tainted
        self.sources: list[Source] = []

    def calls_of(self, said: AssistantTurn) -> list[AskedCall]:
        """The calls of a turn; also the one that a small model wrote as JSON into its text."""
        calls = [_parse(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in said.tool_calls]
        if calls:
            return calls
        written = written_call(said.text)
        if written is not None and written[0] in self._tools:
            return [_parse(f"text_{self._count + 1}", *written)]
        return []

    async def carry_out(self, calls: list[AskedCall]) -> list[JsonObject]:
        """The turn's calls, at once; their results as messages, in the order of the calls. Raises
        `ApprovalPendingError` once all others are done where a person must allow one of them."""
        first = self._count + 1
        self._count += len(calls)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(call, first, place)) for place, call in enumerate(calls)]
        except BaseExceptionGroup as failures:  # the first cause, as the rest of the engine knows it
            raise failures.exceptions[0] from None
        told = [task.result() for task in tasks]
        if None in told:  # only now: the calls beside it must not be torn off
            raise ApprovalPendingError
        return [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, told, strict=True)
        ]

    async def _one(self, call: AskedCall, first: int, place: int) -> str | None:
        """One call: refused, or carried out; the text the model is told, None while a person has to decide. `place`
        counts within the turn, from 0."""
        site = self._site(first + place)
        tool = self._tools.get(call.name)
        if tool is None:
            lost = await lost_effect(self._run, site)
            if lost is not None:
                raise ToolError(lost.error or "the outcome of a call is unknown", agent_id=call.name)
            allowed = ", ".join(self._tools) or "none"
            return await self._refuse(call, site, f"{call.name!r} is not among this {self._whose}'s tools ({allowed})")
        if place >= MAX_CALLS_A_TURN:
            return await self._refuse(call, site, f"at most {MAX_CALLS_A_TURN} calls are made in one turn")
        if call.args is None:
            return f"Error: the arguments are no JSON object: {cap(call.raw, 200)}"
        try:
            returned = await call_tool(self._run, tool, call.args, site, tainted=self.tainted)
        except ApprovalPendingError:
            return None
        if not is_recorded(self._run, site):
            await self._note(returned, site)
        if returned.error_code == "ERR_TOOL_UNKNOWN_OUTCOME":
            raise ToolError(returned.error or "the outcome of a call is unknown", agent_id=call.name)
        return await self._told(returned, call.args)

    async def _refuse(self, call: AskedCall, site: CallSite, why: str) -> str:
        reason = f"{why}; it was not called"
        if not is_recorded(self._run, site):
            refused = ToolRefused(
                call_id=site.call_id, tool=call.name, args=call.args or {}, reason=reason, span=site.span
            )
            await self._note(refused, site)
        return f"Refused: {reason}."

    async def _told(self, returned: ToolReturned, args: JsonObject) -> str:
        """A result as the model reads it: capped, and marked as data when it came from outside."""
        output = await load(self._run, step_output(returned))
        if self._seen is not None:
            self._seen(returned.tool, args, output)
        ignored = f"[ignored, for {returned.tool} does not know them: {', '.join(returned.dropped)}]\n"
        ignored = ignored if returned.dropped else ""
        if returned.error_code is not None:
            return f"{ignored}Error ({returned.error_code}): {returned.error}"
        self.tainted = self.tainted or output.tainted
        self.sources += output.sources
        if not output.tainted:
            return ignored + cap(output.text, SKILL_CHARS)
        return ignored + data_block("data", output.text, limit=SKILL_CHARS, source=returned.tool)

    async def _note(self, body: ToolRefused | ToolReturned, site: CallSite) -> None:
        await self._run.emit(Draft(body, site.step_id, site.attempt))


def is_recorded(run: Run, site: CallSite) -> bool:
    """Whether the end of this call stands in the log already: an earlier process was here before."""
    attempt = run.state.step(site.step_id).attempt(site.attempt)
    call = attempt.call(site.call_id) if attempt else None
    if call is not None:
        return call.returned is not None or call.unknown is not None
    return attempt is not None and site.call_id in attempt.refused


def assistant_message(said: AssistantTurn, calls: list[AskedCall]) -> JsonObject:
    """The turn as the model is shown it again."""
    return {
        "role": "assistant",
        "content": said.text or None,
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}
            for call in calls
        ],
    }


def _parse(call_id: str, name: str, raw: str) -> AskedCall:
    try:
        args = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        args = None
    return AskedCall(call_id, name, args if isinstance(args, dict) else None, raw or "{}")
