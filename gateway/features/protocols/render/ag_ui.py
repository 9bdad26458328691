"""Renders the events of a run as AG-UI events (Agent User Interaction Protocol 1.0), by the official Python package.

The protocol's verifier refuses a stream whose first event is not RUN_STARTED, that ends with something open, or that
says anything after its end. `AgUiEvents` therefore keeps what is open and closes it on every path. Clients before 1.0
send no `protocolVersion`; they know neither sub-agent events nor the outcome `cancelled`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    Interrupt,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agent.core import events as ev
from agent.core.models import JsonObject, Usage
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import format_approval_question, format_question
from agent.runs.trace_details import describe_intents
from gateway.features.protocols.render.ag_ui_subagents import SubAgentSpans

PLAN_ACTIVITY = "PLAN"
DECISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["decision"],
    "properties": {
        "decision": {"type": "string", "enum": ["approve", "reject", "answer"]},
        "reason": {"type": "string", "description": "why, or with `answer` what should change"},
    },
}
"""The payload of a `resume` entry that answers an approval."""


class AgUiEvents:
    """Encodes the events of one run as the AG-UI events of one turn.

    A run that waited for a person has several turns: each is a run of the client with its own `run_id`.
    """

    def __init__(self, thread_id: str, run_id: str, *, protocol_version: str | None) -> None:
        self._thread_id = thread_id
        self._client_run_id = run_id
        self._is_current = protocol_version is not None
        self._events: list[ev.Event] = []
        self._open_steps: list[str] = []
        self._subagents = SubAgentSpans(is_current=self._is_current)
        self._open_text: str | None = None
        self._open_reasoning: str | None = None
        self._text_sent = ""
        self._messages = 0
        self._called: set[str] = set()
        self._plan_steps: dict[str, int] = {}
        self._plan_version = 0
        self._pending_calls: list[str] = []

    def start(self, ignored: Sequence[str] = ()) -> Iterator[BaseEvent]:
        """Yields the events that begin the turn. `ignored` are inputs of the client without effect here."""
        version = PROTOCOL_VERSION if self._is_current else None
        yield RunStartedEvent(thread_id=self._thread_id, run_id=self._client_run_id, protocol_version=version)
        yield StateSnapshotEvent(snapshot={"status": "running", "run_id": None, "plan": None})
        if ignored:
            yield CustomEvent(name="ignored_inputs", value=list(ignored))

    def encode_event(self, event: ev.Event) -> Iterator[BaseEvent]:  # noqa: C901, PLR0912, PLR0915 - one case an event
        """Yields what an event of the log adds to the stream, in order."""
        self._events.append(event)
        yield from self._subagents.resume(event.body)
        match event.body:
            case ev.RunCreated():
                yield StateDeltaEvent.model_validate({"delta": [_replace("/run_id", event.run_id)]})
            case ev.RequestUnderstood(route=route, reason=reason):
                yield from self._explain(f"Route {route}: {reason}")
            case ev.IntentClassified() as classified:
                title, _ = describe_intents(classified)
                yield from self._explain(f"{title}. {classified.reason}".removesuffix(". "))
            case ev.PlanProposed() as proposed:
                yield from self._encode_plan(proposed)
            case ev.StepStarted() if event.step_id:
                name = f"{event.step_id}#{event.attempt}"
                self._open_steps.append(name)
                yield StepStartedEvent(step_name=name)
                yield from self._set_step_status(event.step_id, "running")
            case ev.StepJudged(verdict=verdict):
                yield from self._finish_step(event, verdict.outcome.value.lower())
            case ev.StepDiscarded():
                yield from self._finish_step(event, "discarded")
            case ev.StepUnknown():
                yield from self._finish_step(event, "unknown")
            case ev.ToolCalled() as called if called.call_id not in self._called:
                yield from self._encode_call(called.call_id, called.tool, called.args, called.span)
            case ev.ToolRefused() as refused if refused.call_id not in self._called:
                yield from self._encode_call(refused.call_id, refused.tool, refused.args, refused.span)
                yield self._build_result(refused.call_id, f"refused: {refused.reason}")
            case ev.ToolReturned() as returned if returned.call_id in self._called:
                yield self._build_result(returned.call_id, returned.error or returned.text)
            case ev.SubAgentStarted() as started:
                yield from self._subagents.start(started)
            case ev.SubAgentFinished() as finished if finished.span in self._subagents:
                yield from self._subagents.finish(finished)
            case ev.AnswerStarted(restarted=True) if self._text_sent:
                yield from self._close_text()
                self._text_sent = ""
            case ev.AnswerDelta(kind="reasoning", text=text) if text:
                yield from self._add_reasoning(text)
            case ev.AnswerDelta(text=text) if text:
                yield from self._add_text(text)
            case ev.AnswerFinished() as answer:
                yield from self._encode_answer(answer)
            case ev.RunFailed(failure=failure):
                yield from self._close_all()
                yield RunErrorEvent(message=failure.message, code=failure.error_code, usage=self._list_usage())
            case ev.RunCancelled(reason=reason):
                yield from self._encode_cancelled(reason)
            case ev.RunSucceeded() as succeeded:
                yield from self._close_all()
                yield self._build_final_state("awaiting_input" if succeeded.awaits_input else succeeded.completeness)
                outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=self._pending_calls or None)
                yield self._finish(outcome if self._is_current else None)
            case _:
                return

    def encode_question(self) -> Iterator[BaseEvent]:
        """Yields the events that end the turn of a run which waits for a person: an interrupt for each approval."""
        state = self._fold()
        if not self._is_current:  # clients before 1.0 may not know interrupts: the question is a message too
            yield from self._add_text(format_approval_question(state))
        yield from self._close_reasoning()
        yield from self._close_text()
        yield from self._subagents.suspend([request.approval_id for request in state.pending_approvals])
        yield from self._close_all()
        yield self._build_final_state("awaiting_approval")
        waiting = [
            _build_interrupt(request, self._to_wire_id(request.call_id) if request.call_id else None)
            for request in state.pending_approvals
        ]
        yield self._finish(RunFinishedInterruptOutcome(interrupts=waiting))

    def end_earlier_turn(self) -> None:
        """Forgets what was open when the turn before this one ended: that turn has closed it. Sub-agents start again
        with their next event.
        """
        self._subagents.forget_turn()
        for _ in self._close_all():
            pass
        self._text_sent = ""

    def encode_break(self, message: str, code: str) -> Iterator[BaseEvent]:
        """Yields the events that end a stream which cannot be continued here."""
        yield from self._close_all()
        yield RunErrorEvent(message=message, code=code)

    def _fold(self) -> RunState:
        return fold(self._events[0].run_id, self._events)

    def _finish(self, outcome: Any) -> RunFinishedEvent:
        return RunFinishedEvent(
            thread_id=self._thread_id,
            run_id=self._client_run_id,
            outcome=outcome,
            result={"run_id": self._events[0].run_id},
            usage=self._list_usage(),
        )

    def _encode_cancelled(self, reason: str) -> Iterator[BaseEvent]:
        yield from self._close_all()
        if self._is_current:
            yield self._build_final_state("cancelled")
            yield self._finish(RunFinishedCancelledOutcome())
        else:
            yield RunErrorEvent(message=reason, code="cancelled", usage=self._list_usage())

    def _build_final_state(self, status: str) -> StateSnapshotEvent:
        state = self._fold()
        plan = state.plan.to_public_json() if state.plan else None
        return StateSnapshotEvent(snapshot={"status": status, "run_id": state.run_id, "plan": plan})

    def _list_usage(self) -> list[TokenUsage] | None:
        """The tokens of the run by model."""
        used: dict[str, Usage] = {}
        for event in self._events:
            if isinstance(event.body, ev.ModelReturned):
                used[event.body.model] = used.get(event.body.model, Usage()) + event.body.usage
        return [
            TokenUsage(
                model=model,
                input_tokens=usage.prompt_tokens,
                output_tokens=usage.completion_tokens,
                total_tokens=usage.total_tokens,
                cached_input_tokens=usage.cached_tokens or None,
                reasoning_tokens=usage.reasoning_tokens or None,
            )
            for model, usage in used.items()
        ] or None

    def _encode_plan(self, proposed: ev.PlanProposed) -> Iterator[BaseEvent]:
        plan = proposed.plan
        if proposed.replan_reason or proposed.fallback_reason:
            yield from self._explain(proposed.replan_reason or proposed.fallback_reason or "")
        self._plan_steps = {step.id: index for index, step in enumerate(plan.steps)}
        self._plan_version = plan.version
        steps = [{"id": s.id, "tool": s.tool, "intent": s.intent, "status": "pending"} for s in plan.steps]
        yield ActivitySnapshotEvent(
            message_id=self._get_plan_id(), activity_type=PLAN_ACTIVITY, content={"goal": plan.goal, "steps": steps}
        )
        yield StateDeltaEvent.model_validate({"delta": [_replace("/plan", plan.to_public_json())]})

    def _get_plan_id(self) -> str:
        return f"{self._events[0].run_id}-plan-{self._plan_version}"

    def _set_step_status(self, step_id: str, status: str) -> Iterator[BaseEvent]:
        index = self._plan_steps.get(step_id)
        if index is None:  # a step of a plan that was shown in an earlier turn
            return
        patch = {"patch": [_replace(f"/steps/{index}/status", status)]}
        yield ActivityDeltaEvent.model_validate(
            {"message_id": self._get_plan_id(), "activity_type": PLAN_ACTIVITY, **patch}
        )

    def _finish_step(self, event: ev.Event, status: str) -> Iterator[BaseEvent]:
        name = f"{event.step_id}#{event.attempt}"
        if name in self._open_steps:
            self._open_steps.remove(name)
            yield StepFinishedEvent(step_name=name)
        yield from self._set_step_status(event.step_id or "", status)

    def _encode_call(self, call_id: str, tool: str, args: JsonObject, span: str = "") -> Iterator[BaseEvent]:
        self._called.add(call_id)
        call_id = self._to_wire_id(call_id)
        by = span if span in self._subagents and self._is_current else None
        yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=tool, subagent_run_id=by)
        yield ToolCallArgsEvent(tool_call_id=call_id, delta=json.dumps(args, ensure_ascii=False), subagent_run_id=by)
        yield ToolCallEndEvent(tool_call_id=call_id, subagent_run_id=by)

    def _to_wire_id(self, call_id: str) -> str:
        """The id of a call that is unique in the thread: ours repeat in every run."""
        return f"{self._events[0].run_id}-{call_id}"

    def _build_result(self, call_id: str, text: str) -> ToolCallResultEvent:
        call_id = self._to_wire_id(call_id)
        return ToolCallResultEvent(message_id=f"{call_id}-result", tool_call_id=call_id, content=text, role="tool")

    def _explain(self, text: str) -> Iterator[BaseEvent]:
        """Yields one whole reasoning message."""
        yield from self._add_reasoning(text)
        yield from self._close_reasoning()

    def _add_reasoning(self, text: str) -> Iterator[BaseEvent]:
        if self._open_reasoning is None:
            yield from self._close_text()
            self._open_reasoning = self._make_message_id()
            yield ReasoningStartEvent(message_id=self._open_reasoning)
            yield ReasoningMessageStartEvent(message_id=self._open_reasoning, role="reasoning")
        yield ReasoningMessageContentEvent(message_id=self._open_reasoning, delta=text)

    def _close_reasoning(self) -> Iterator[BaseEvent]:
        if self._open_reasoning is not None:
            yield ReasoningMessageEndEvent(message_id=self._open_reasoning)
            yield ReasoningEndEvent(message_id=self._open_reasoning)
            self._open_reasoning = None

    def _add_text(self, text: str) -> Iterator[BaseEvent]:
        yield from self._close_reasoning()
        if self._open_text is None:
            self._open_text = self._make_message_id()
            yield TextMessageStartEvent(message_id=self._open_text, role="assistant")
        self._text_sent += text
        yield TextMessageContentEvent(message_id=self._open_text, delta=text)

    def _close_text(self) -> Iterator[BaseEvent]:
        if self._open_text is not None:
            yield TextMessageEndEvent(message_id=self._open_text)
            self._open_text = None

    def _encode_answer(self, answer: ev.AnswerFinished) -> Iterator[BaseEvent]:
        """Yields the rest of the answer; as a new message where it is not what was streamed."""
        if not answer.text.startswith(self._text_sent):
            yield from self._close_text()
            self._text_sent = ""
        rest = answer.text[len(self._text_sent) :]
        if rest:
            yield from self._add_text(rest)
        yield from self._close_text()
        for call in answer.tool_calls:  # calls of the client's own tools, which the client answers
            function: Any = call.get("function")
            call_id = str(call.get("id"))
            if isinstance(function, Mapping):
                self._pending_calls.append(call_id)
                yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=str(function.get("name")))
                yield ToolCallArgsEvent(tool_call_id=call_id, delta=str(function.get("arguments") or "{}"))
                yield ToolCallEndEvent(tool_call_id=call_id)

    def _close_all(self) -> Iterator[BaseEvent]:
        """Yields an end for everything that is open, innermost first."""
        yield from self._close_reasoning()
        yield from self._close_text()
        yield from self._subagents.end()
        for name in reversed(self._open_steps):
            yield StepFinishedEvent(step_name=name)
        self._open_steps.clear()

    def _make_message_id(self) -> str:
        self._messages += 1
        return f"{self._client_run_id}-message-{self._messages}"


def _replace(path: str, value: object) -> dict[str, object]:
    """One JSON Patch operation."""
    return {"op": "replace", "path": path, "value": value}


def _build_interrupt(asked: ev.ApprovalRequested, tool_call_id: str | None) -> Interrupt:
    return Interrupt(
        id=asked.approval_id,
        reason="approval",
        message=format_question((asked,), "", names_ids=False),
        tool_call_id=tool_call_id,
        response_schema=DECISION_SCHEMA,
        expires_at=datetime.fromtimestamp(asked.expires_at, UTC).isoformat(),
        metadata={"items": [item.model_dump(mode="json") for item in asked.items]},
    )
