"""`SubAgentWork`: one sub-agent from its start to its end, within the call of its parent.

The loop asks, calls and tells until the model ends with a JSON result. Turns, time and the run's budgets bound it, and
whatever ends it, what is known by then comes back. Every turn and call is in the log of the run, marked with the span,
so that a resumed sub-agent goes on with the turn it was in.
"""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.core.errors import AgentError, BudgetError, ModelError, StaleEpochError, StoreError
from agent.core.events import AssistantTurn, Draft, StepOutput, SubAgentFinished, SubAgentOutcome
from agent.core.fold import SubAgentState
from agent.core.llm.port import ResponseSchema
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult, Uncertainty
from agent.execution.metering import MeteredModels
from agent.execution.outputs import load, step_output
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.execution.tool_gateway import BLOB_CHARS, call_tool
from agent.execution.tool_turns import ToolTurns, assistant_message, is_recorded
from agent.prompts import render
from agent.subagents.base import Called, SubAgent
from agent.tools import Tool, flat_schema

KEPT_SHARE = 0.1
"""Of every budget of the run, for each level above a sub-agent: who waits for it has to answer with what it found."""
ASK_AGAIN = (
    "That was no result: {problem}. Answer with the JSON object alone, as the instructions describe it; call no tool."
)


MOST_OBJECTS = 500
"""Places in a last message at which a JSON object may begin; one with more is no result."""


@dataclass(frozen=True, slots=True)
class _End:
    """How it ended, and with what."""

    outcome: SubAgentOutcome
    result: SubAgentResult
    by_rules: bool = False
    reason: str | None = None
    """Why rules took over."""


class SubAgentWork:
    """Carries out one sub-agent with the tools it was given."""

    def __init__(
        self,
        run: Run,
        site: CallSite,
        span: str,
        agent: SubAgent[Any, Any],
        tools: Mapping[str, Tool],
        *,
        tainted: bool,
    ) -> None:
        self._run = run
        self._parent = site
        self._span = span
        self._agent = agent
        self._tools = tools
        self._turns = ToolTurns(run, tools, self._site, whose="sub-agent", tainted=tainted, seen=agent.seen)
        self._said = 0
        self._rule_calls = 0

    async def carry_out(self) -> SubAgentFinished:
        """Work, and record the end. Only a cancelled run, a lost claim and a failing store raise: nothing has ended
        then, and whoever takes the run up goes on here."""
        started = monotonic()
        limit = min(self._agent.TIMEOUT_SECONDS, max(0.1, self._run.seconds_left - self._leave * self._all_seconds))
        end = await self._in_time(limit)
        result = end.result.model_copy(update={"tainted": self._turns.tainted})
        blob = None
        payload = json.dumps(result.data, ensure_ascii=False)
        if len(payload) > BLOB_CHARS:
            blob = await self._run.engine.journal.put_blob(payload.encode())
            result = result.model_copy(update={"data": {}})
        finished = SubAgentFinished(
            agent_id=self._agent.AGENT_ID,
            span=self._span,
            outcome=end.outcome,
            result=result,
            blob=blob,
            turns=self._said,
            usage=self._state.usage,
            effective="rules" if end.by_rules else "llm",
            fallback_reason=end.reason,
            duration=monotonic() - started,
        )
        await self._emit(finished)
        return finished

    async def _in_time(self, limit: float) -> _End:
        try:
            async with asyncio.timeout(limit):
                return await self._ended()
        except TimeoutError:
            return self._partial("timeout", f"Timed out after {limit:g} s.")

    async def _ended(self) -> _End:
        """The end by the work itself. A defect of a sub-agent is no reason to lose the run, nor what it found."""
        try:
            return await self._work()
        except (StaleEpochError, StoreError):
            raise
        except BudgetError as error:
            return self._partial("budget", f"Stopped: {error.message}.")
        except AgentError as error:
            return self._partial("failed", error.message)
        except Exception as error:  # noqa: BLE001 - the border to a sub-agent's own code
            return self._partial("failed", f"a defect: {type(error).__name__}: {str(error)[:300]}")

    async def _work(self) -> _End:
        if not self._run.works_with_model:
            chosen = self._run.engine.settings.executor_mode == "rules"
            return await self._by_rules(None if chosen else "no model is configured")
        try:
            return await self._converse()
        except ModelError as error:
            return await self._by_rules(error.message)

    async def _converse(self) -> _End:
        """The bounded loop: ask, call, tell; until the model ends with a result that can be read."""
        messages: list[JsonObject] = [self._system(), {"role": "user", "content": self._agent.message()}]
        asked_again = False
        for turn in range(self._agent.MAX_TURNS):
            last = asked_again or turn == self._agent.MAX_TURNS - 1
            said = await self._turn(turn, messages, last=last)
            self._said = turn + 1
            calls = self._turns.calls_of(said)
            if calls and not last:
                messages.append(assistant_message(said, calls))
                messages += await self._turns.carry_out(calls)
                continue
            final = read_final(self._agent.Final, said.text)
            if not isinstance(final, str):
                return _End("done", await self._agent.conclude(final, self._call))
            if turn == self._agent.MAX_TURNS - 1:
                break
            if asked_again:
                return self._partial("output", f"It ended without a readable result: {final}.")
            asked_again = True
            messages.append({"role": "assistant", "content": said.text})
            messages.append({"role": "user", "content": ASK_AGAIN.format(problem=final)})
        return self._partial("turns", f"It used its {self._agent.MAX_TURNS} turns without a result.")

    async def _turn(self, turn: int, messages: list[JsonObject], *, last: bool) -> AssistantTurn:
        """What the model says: as the log has it, else asked now. In the last turn it has no tools to go on with."""
        recorded = self._state.turns
        if turn < len(recorded):
            return recorded[turn]
        site = self._parent
        models = MeteredModels(self._run, site.step_id, site.attempt, span=self._span, leave=self._leave)
        shape: type[BaseModel] = self._agent.Final
        schema = ResponseSchema(f"{self._agent.AGENT_ID}_result", flat_schema(shape)) if last else None
        reply = await models.complete(
            "subagent",
            tuple(messages),
            tier="high",
            tools=() if last else tuple(tool.spec.wire() for tool in self._tools.values()),
            schema=schema,
            keep_message=True,
        )
        return AssistantTurn(
            text=reply.text,
            tool_calls=tuple({"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls),
        )

    async def _by_rules(self, reason: str | None) -> _End:
        result = await self._agent.by_rules(self._call)
        if reason is not None:
            told = Uncertainty(severity="info", message=f"made by rules, not by a model: {reason}")
            result = result.model_copy(update={"uncertainties": (*result.uncertainties, told)})
        return _End("done", result, by_rules=True, reason=reason)

    def _partial(self, outcome: SubAgentOutcome, summary: str) -> _End:
        """What is known by now. It has failed, whatever it found, and that is a doubt too."""
        message = f"{self._agent.AGENT_ID} did not come to its end: {summary}"
        doubt = Uncertainty(severity="notable", message=message)
        result = SubAgentResult(success=False, data=self._agent.partial(), uncertainties=(doubt,), summary=summary)
        return _End(outcome, result)

    def _call(self, tool: str, args: JsonObject) -> Awaitable[Called]:
        """A call by rule, see `Calls`."""
        self._rule_calls += 1
        return self._called(tool, args, self._site(self._rule_calls, by_rules=True))

    async def _called(self, name: str, args: JsonObject, site: CallSite) -> Called:
        tool = self._tools.get(name)
        if tool is None:
            return Called(None, f"{name} is not among this sub-agent's tools")
        returned = await call_tool(self._run, tool, args, site, tainted=self._turns.tainted)
        if not is_recorded(self._run, site):
            await self._run.emit(Draft(returned, site.step_id, site.attempt))
        output: StepOutput = await load(self._run, step_output(returned))
        self._turns.tainted = self._turns.tainted or output.tainted
        self._agent.seen(name, args, output)
        return Called(output.value, output.error)

    def _system(self) -> JsonObject:
        room = self._run.room
        system = room.system_prompt + "\n\n" if room.system_prompt else ""
        prompt = self._agent.PROMPT or f"subagent_{self._agent.AGENT_ID}"
        return {"role": "system", "content": render(prompt, system=system)}

    def _site(self, number: int, *, by_rules: bool = False) -> CallSite:
        parent = self._parent
        return CallSite(parent.step_id, parent.attempt, number, "rules" if by_rules else "plan", self._span)

    @property
    def _state(self) -> SubAgentState:
        """What the log knows of this sub-agent; its start stands there."""
        return self._run.state.subagents[self._span]

    @property
    def _leave(self) -> float:
        return KEPT_SHARE * self._state.started.depth

    @property
    def _all_seconds(self) -> float:
        return self._run.room.budgets.max_seconds

    async def _emit(self, body: SubAgentFinished) -> None:
        await self._run.emit(body, step_id=self._parent.step_id, attempt=self._parent.attempt)


def read_final(shape: type[BaseModel], text: str) -> BaseModel | str:
    """The JSON object a model ended with: alone, fenced, or after some words; or what is wrong with it, in a few
    words. The last object that fits counts."""
    decoder = json.JSONDecoder()
    problem = "it holds no JSON object"
    found: BaseModel | None = None
    place = text.find("{")
    for _ in range(MOST_OBJECTS):
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        try:
            found = shape.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the object"
            problem = f"{where}: {first['msg']}"
        place = text.find("{", end)
    return found if found is not None else problem
