"""`SubAgentWork`: runs one sub-agent from start to end, within the call of its parent.

The loop asks the model and executes its tool calls until the model returns a JSON result. Turns, time and the run's
budgets limit it; at a limit it returns the known findings. Every turn and call is in the run's log under the span, so a
resumed sub-agent continues at its turn.
"""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.core.errors import AgentError, BudgetError, ModelError, StaleEpochError, StoreError
from agent.core.events import AssistantTurn, StepOutput, SubAgentFinished, SubAgentOutcome
from agent.core.models import JsonObject
from agent.core.run_state import SubAgentState
from agent.core.subagent_result import SubAgentResult, Uncertainty
from agent.core.value_faults import describe_first_fault
from agent.execution.approvals import ApprovalPendingError
from agent.execution.arguments import find_argument_problem, parse_text_args
from agent.execution.tool_gateway import BLOB_CHARS, call_tool
from agent.execution.tool_turns import RequestedCall, ToolTurns, build_assistant_message, record_return
from agent.llm.port import ResponseSchema, read_end
from agent.llm.prompts import quote_inline
from agent.run_context.calls import CallSite
from agent.run_context.model_calls import MeteredModels, ModelCall, to_assistant_turn
from agent.run_context.outputs import load_output, to_step_output
from agent.run_context.run import Run
from agent.subagents import CallResult, SubAgent
from agent.tools import Tool, build_flat_schema

RESERVED_SHARE = 0.1
"""The share of every budget of the run that each parent level keeps, because the parents still have to answer."""
ASK_AGAIN = (
    "That was no result: {problem}. Answer with the JSON object alone, as the instructions describe it; call no tool."
)


MAX_OBJECTS = 500
"""Positions in the last message where a JSON object may start. A message with more holds no result."""


@dataclass(frozen=True, slots=True)
class _WorkEnd:
    """The outcome of the work and its result."""

    outcome: SubAgentOutcome
    result: SubAgentResult
    by_rules: bool = False
    reason: str | None = None
    """Why rules replaced the model."""


class SubAgentWork:
    """Runs one sub-agent with its granted tools."""

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
        self._turns = ToolTurns(
            run,
            tools,
            self._make_call_site,
            caller_kind="sub-agent",
            tainted=tainted,
            observer=agent.record_call,
            asks_together=agent.CHANGES_THINGS,
        )
        self._turn_count = 0
        self._rule_calls = 0

    async def run_to_end(self) -> SubAgentFinished:
        """Runs the sub-agent and records its end.

        Raises only if a person must allow a call, the run is cancelled, its claim is lost or the store fails. Then no
        end is recorded, and the process that resumes the run continues here.
        """
        started = monotonic()
        limit = min(
            self._agent.TIMEOUT_SECONDS, max(0.1, self._run.seconds_left - self._reserved_share * self._max_seconds)
        )
        end = await self._run_with_timeout(limit)
        redaction = self._run.redaction
        finished = redaction.redact(
            SubAgentFinished(
                agent_id=self._agent.AGENT_ID,
                span=self._span,
                outcome=end.outcome,
                result=end.result.model_copy(update={"tainted": self._turns.tainted}),
                turns=self._turn_count,
                usage=self._state.usage,
                effective="rules" if end.by_rules else "llm",
                fallback_reason=end.reason,
                duration=monotonic() - started,
            )
        )
        payload = json.dumps(finished.result.data, ensure_ascii=False)
        if len(payload) > BLOB_CHARS:
            blob = await self._run.journal.put_blob(payload.encode(), run_id=self._run.run_id)
            rest = finished.result.model_copy(update={"data": {}})
            finished = redaction.mark_redacted(finished.model_copy(update={"result": rest, "blob": blob}))
        await self._emit(finished)
        return finished

    async def _run_with_timeout(self, limit: float) -> _WorkEnd:
        try:
            async with asyncio.timeout(limit):
                return await self._run_guarded()
        except TimeoutError:
            return self._build_partial_end("timeout", f"Timed out after {limit:g} s.")

    async def _run_guarded(self) -> _WorkEnd:
        """Runs the work. A defect of a sub-agent ends the sub-agent but not the run; the findings stay."""
        try:
            return await self._run_model_or_rules()
        except (StaleEpochError, StoreError, ApprovalPendingError):
            raise
        except BudgetError as error:
            return self._build_partial_end("budget", f"Stopped: {error.message}.")
        except AgentError as error:
            return self._build_partial_end("failed", error.message)
        except Exception as error:  # noqa: BLE001 - the border to a sub-agent's own code
            return self._build_partial_end("failed", f"an internal error: {type(error).__name__}: {str(error)[:300]}")

    async def _run_model_or_rules(self) -> _WorkEnd:
        if not self._run.works_with_model:
            chosen = self._run.engine.settings.executor_mode == "rules"
            return await self._run_by_rules(None if chosen else "no model is configured")
        try:
            return await self._run_turns()
        except ModelError as error:
            return await self._run_by_rules(error.message)

    async def _run_turns(self) -> _WorkEnd:
        """Runs the loop: asks the model and executes its tool calls, until the model returns a valid result."""
        messages: list[JsonObject] = [
            self._build_system_message(),
            {"role": "user", "content": self._agent.build_first_message()},
        ]
        if (done := await self._make_opening_call(messages)) is not None:
            return _WorkEnd("done", done)
        asked_again = False
        for turn in range(self._agent.MAX_TURNS):
            last = asked_again or turn == self._agent.MAX_TURNS - 1
            next_turn = await self._get_next_turn(turn, messages, last=last)
            self._turn_count = turn + 1
            calls = self._turns.parse_calls(next_turn)
            if calls and not last:
                messages.append(build_assistant_message(next_turn, calls))
                messages += await self._turns.execute_calls(calls)
                continue
            final = parse_final(self._agent.Final, next_turn.text)
            if isinstance(final, str):
                final = self._agent.read_prose(next_turn.text) or final
            if not isinstance(final, str):
                result = await self._agent.conclude(final, self._call_by_rule)
                return _WorkEnd("done", result if read_end(next_turn.finish_reason).is_whole else _mark_cut(result))
            if turn == self._agent.MAX_TURNS - 1:
                break
            if asked_again:
                return self._build_partial_end("output", f"It ended without a readable result: {final}.")
            asked_again = True
            messages.append({"role": "assistant", "content": next_turn.text})
            messages.append({"role": "user", "content": ASK_AGAIN.format(problem=quote_inline(final))})
        return self._build_partial_end("turns", f"It used its {self._agent.MAX_TURNS} turns without a result.")

    async def _make_opening_call(self, messages: list[JsonObject]) -> SubAgentResult | None:
        """Makes the call that the agent begins with, if its arguments fit the tool. Returns the result if that is all;
        else `messages` has the call and what it returned."""
        opening = self._agent.build_opening_call()
        tool = self._tools.get(opening.tool) if opening is not None else None
        args = parse_text_args(tool.spec, opening.values) if opening is not None and tool is not None else None
        if tool is None or args is None or find_argument_problem(tool.spec, args) is not None:
            return None
        call = RequestedCall("opening", tool.spec.name, args, json.dumps(args, ensure_ascii=False))
        messages.append(build_assistant_message(AssistantTurn(), [call]))
        messages += await self._turns.execute_calls([call])
        return self._agent.conclude_opening()

    async def _get_next_turn(self, turn: int, messages: list[JsonObject], *, last: bool) -> AssistantTurn:
        """The model's turn, from the log if it is recorded. The last turn has no tools."""
        recorded = self._state.turns
        if turn < len(recorded):
            return recorded[turn]
        site = self._parent
        models = MeteredModels(self._run, site.step_id, site.attempt, span=self._span, leave=self._reserved_share)
        shape: type[BaseModel] = self._agent.Final
        schema = ResponseSchema(f"{self._agent.AGENT_ID}_result", build_flat_schema(shape)) if last else None
        tools = () if last else tuple(tool.spec.to_openai() for tool in self._tools.values())
        call = ModelCall("subagent", tuple(messages), tier="high", tools=tools, schema=schema)
        reply = await models.complete(call, keep_message=True)
        return to_assistant_turn(reply)

    async def _run_by_rules(self, reason: str | None) -> _WorkEnd:
        result = await self._agent.run_by_rules(self._call_by_rule)
        if reason is not None:
            note = Uncertainty(severity="info", message=f"made by rules, not by a model: {reason}")
            # A failed result is told by its summary alone: the reason belongs to it.
            summary = result.summary if result.success else f"{reason}. {result.summary}"
            result = result.model_copy(update={"uncertainties": (*result.uncertainties, note), "summary": summary})
        return _WorkEnd("done", result, by_rules=True, reason=reason)

    def _build_partial_end(self, outcome: SubAgentOutcome, summary: str) -> _WorkEnd:
        """A failed end with the known findings and an uncertainty about them."""
        message = f"{self._agent.AGENT_ID} did not finish: {summary}"
        doubt = Uncertainty(severity="notable", message=message)
        result = SubAgentResult(
            success=False, data=self._agent.build_partial_data(), uncertainties=(doubt,), summary=summary
        )
        return _WorkEnd(outcome, result)

    def _call_by_rule(self, tool: str, args: JsonObject) -> Awaitable[CallResult]:
        """Calls a tool by rules, see `Calls`."""
        self._rule_calls += 1
        return self._call_tool(tool, args, self._make_call_site(self._rule_calls, by_rules=True))

    async def _call_tool(self, name: str, args: JsonObject, site: CallSite) -> CallResult:
        tool = self._tools.get(name)
        if tool is None:
            return CallResult(None, f"{name} is not among this sub-agent's tools")
        returned = await call_tool(self._run, tool, args, site, tainted=self._turns.tainted)
        await record_return(self._run, site, returned)
        output: StepOutput = await load_output(self._run, to_step_output(returned))
        self._turns.tainted = self._turns.tainted or output.tainted
        self._agent.record_call(name, args, output)
        return CallResult(output.value, output.error)

    def _build_system_message(self) -> JsonObject:
        room = self._run.room
        system = room.system_prompt + "\n\n" if room.system_prompt else ""
        prompt = self._agent.PROMPT or f"subagent_{self._agent.AGENT_ID}"
        return {"role": "system", "content": self._agent.PROMPTS.render(prompt, system=system)}

    def _make_call_site(self, number: int, *, by_rules: bool = False) -> CallSite:
        parent = self._parent
        return CallSite(parent.step_id, parent.attempt, number, "rules" if by_rules else "plan", self._span)

    @property
    def _state(self) -> SubAgentState:
        """The recorded state of this sub-agent."""
        return self._run.state.subagents[self._span]

    @property
    def _reserved_share(self) -> float:
        return RESERVED_SHARE * self._state.start.depth

    @property
    def _max_seconds(self) -> float:
        return self._run.room.budgets.max_seconds

    async def _emit(self, body: SubAgentFinished) -> None:
        await self._run.emit(body, step_id=self._parent.step_id, attempt=self._parent.attempt)


def _mark_cut(result: SubAgentResult) -> SubAgentResult:
    """The result with an uncertainty: it is made of a reply that was cut off."""
    doubt = Uncertainty(severity="notable", message="the model's reply was cut off, so that a part may be missing")
    return result.model_copy(update={"uncertainties": (*result.uncertainties, doubt)})


def parse_final(shape: type[BaseModel], text: str) -> BaseModel | str:
    """The JSON object at the end of a model's text, or its problem in a few words.

    The object may stand alone, in a fence, or after prose. The last valid object counts.
    """
    decoder = json.JSONDecoder()
    problem = "it holds no JSON object"
    parsed: BaseModel | None = None
    place = text.find("{")
    for _ in range(MAX_OBJECTS):
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        try:
            parsed = shape.model_validate(value)
        except ValidationError as error:
            problem = describe_first_fault(error, "the object")
        place = text.find("{", end)
    return parsed if parsed is not None else problem
