"""`build_trace`: projects a run's log to its trace. Each event adds, opens or closes a line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from agent.core import events as ev
from agent.core.models import JsonObject, Outcome, PlanStep, TraceStatus, TraceStep, Usage
from agent.runs import trace_details
from agent.runs.trace_details import build_missing_return, build_tool_result, shorten
from agent.runs.trace_lines import TraceLine, TraceLines
from agent.text.language import get_language_name

_STATUS_OF_OUTCOME: Final[Mapping[Outcome, TraceStatus]] = {
    Outcome.SUCCESS: "done",
    Outcome.RETRY: "retried",
    Outcome.REPLAN: "replanned",
    Outcome.ABORT: "failed",
}
_STATUS_OF_GUARD_ACTION: Final[Mapping[str, TraceStatus]] = {"retry_strict": "retried", "block": "refused"}


def build_trace(events: Iterable[ev.Event]) -> tuple[TraceStep, ...]:
    """The ordered trace of a run: what was recalled, planned, tried, called, judged and written."""
    return build_projection(events).list_steps()


def build_projection(events: Iterable[ev.Event]) -> "Projection":
    """The projection after these events."""
    projection = Projection()
    for event in events:
        projection.add_event(event)
    return projection


class Projection:
    """Builds the trace event by event.

    Every tool line that is not running has one entry in the tool results, in the same order.
    """

    def __init__(self) -> None:
        self._lines = TraceLines()
        self._called: dict[int, ev.ToolCalled] = {}
        self._results: dict[int, JsonObject] = {}
        """Both by the index of the call's line."""
        self._rejected: list[str] = []
        self._current_steps: tuple[PlanStep, ...] = ()
        self._known_steps: dict[str, PlanStep] = {}
        """Steps of the current plan and of earlier ones, whose attempts may still end."""
        self._started_steps: set[str] = set()
        self._failure_reasons: dict[str, str] = {}
        """Steps of the current plan that failed, and why."""
        self._unknown: set[tuple[str | None, int | None]] = set()

    def list_steps(self) -> tuple[TraceStep, ...]:
        """The trace so far."""
        return tuple(TraceStep.model_construct(**line) for line in self._lines.list_lines())

    def list_lines(self) -> list[TraceLine]:
        """The trace so far, each step as a dictionary: for a reader that only encodes it."""
        return self._lines.list_lines()

    def list_tool_results(self) -> list[JsonObject]:
        """The result of every tool call that is over, in the order of the tool lines."""
        return [self._results[index] for index in self._lines.sort_by_start(sorted(self._results))]

    def add_event(self, event: ev.Event) -> None:
        """Processes one more event."""
        rule = _RULES.get(type(event.body))
        if rule is not None:
            rule(self, event, event.body)
        elif isinstance(event.body, ev.FeatureEvent) and (line := event.body.describe()) is not None:
            title, detail = line
            self._lines.add_line(event, "notice", title, detail=detail)

    # The rules, in the order of a run.

    def _add_input_guard(self, event: ev.Event, body: ev.InputGuarded) -> None:
        if body.findings:
            self._lines.add_line(event, "guard", "checked the prompt", detail={"findings": list(body.findings)})

    def _add_output_guard(self, event: ev.Event, body: ev.OutputGuarded) -> None:
        status = _STATUS_OF_GUARD_ACTION.get(body.action, "done")
        self._lines.add_line(event, "guard", "checked the answer", status, trace_details.describe_output_guard(body))

    def _add_route(self, event: ev.Event, body: ev.RequestUnderstood) -> None:
        self._add_request_translation(event, body)
        self._lines.add_line(event, "route", f"route: {body.route}", detail={"reason": body.reason})
        self._lines.begin_stage()

    def _add_memory(self, event: ev.Event, body: ev.MemoryRetrieved) -> None:
        self._lines.add_line(event, "memory", "memory retrieval", detail=trace_details.describe_memory(body))
        self._lines.begin_stage()

    def _note_rejected_plan(self, _: ev.Event, body: ev.PlanRejected) -> None:
        self._rejected.append("; ".join(body.problems))

    def _add_question(self, event: ev.Event, body: ev.InputRequested) -> None:
        usage = _drop_empty_usage(self._lines.calls.get_usage(("plan", None, None)))
        self._lines.add_line(event, "plan", "asks the user", detail={"question": body.question}, usage=usage)

    def _add_selection(self, event: ev.Event, body: ev.EntriesSelected) -> None:
        if body.heading:
            usage = _drop_empty_usage(self._lines.calls.get_usage(("plan", None, None)))
            detail: JsonObject = {"entries": body.text}
            self._lines.add_line(event, "plan", f"reads {body.heading}", detail=detail, usage=usage)

    def _add_client_calls(self, event: ev.Event, body: ev.ClientToolsCalled) -> None:
        names = ", ".join(call.tool for call in body.calls)
        calls: JsonObject = {"calls": [call.model_dump(mode="json") for call in body.calls]}
        self._lines.add_line(event, "plan", f"calls tools of the client: {names}", detail=calls)

    def _open_approval(self, event: ev.Event, body: ev.ApprovalRequested) -> None:
        subject = "the plan" if body.call_id is None else body.items[0].tool
        key, title = ("approval", body.approval_id, None), f"asked for approval of {subject}"
        self._lines.open_line(event, key, "approval", title, trace_details.describe_approval(body))

    def _close_approval(self, event: ev.Event, body: ev.ApprovalDecided) -> None:
        status: TraceStatus = "done" if body.decision in ("approved", "answered") else "refused"
        self._lines.close_line(
            event, ("approval", body.approval_id, None), status, trace_details.describe_decision(body)
        )

    def _record_model_call(self, event: ev.Event, body: ev.ModelReturned) -> None:
        self._lines.calls.record(event, body)
        if body.failed_upstreams:
            title, detail = trace_details.describe_failed_upstreams(body)
            self._lines.add_line(event, "notice", title, detail=detail)

    def _add_speculation(self, event: ev.Event, body: ev.StepSpeculative) -> None:
        waiting = ", ".join(body.waiting_for)
        self._lines.add_line(event, "notice", f"{event.step_id} runs before the verdict on {waiting}")

    def _open_tool_call(self, event: ev.Event, body: ev.ToolCalled) -> None:
        detail: JsonObject = {"args": body.args, "effect": body.effect, "key": body.key}
        if body.untrusted:
            detail["from_outside"] = {**body.untrusted}
        key, span = ("tool", body.call_id, None), body.span or None
        index = self._lines.open_line(event, key, "tool", body.tool, detail, span=span)
        self._called[index] = body

    def _add_refused_call(self, event: ev.Event, body: ev.ToolRefused) -> None:
        detail: JsonObject = {"args": body.args, "reason": body.reason}
        index = self._lines.add_line(event, "tool", body.tool, "refused", detail, span=body.span or None)
        refused = build_missing_return(body, "ERR_TOOL_DENIED", body.reason)
        self._results[index] = build_tool_result(refused, event.step_id, event.attempt)

    def _discard_attempt(self, event: ev.Event, body: ev.StepDiscarded) -> None:
        self._lines.close_line(event, ("step", event.step_id, event.attempt), "discarded", {"reason": body.reason})
        self._interrupt(event, body.reason, (event.step_id, event.attempt))

    def _add_gate(self, event: ev.Event, body: ev.GateChecked) -> None:
        status: TraceStatus = "done" if body.passed else "failed"
        self._lines.add_line(event, "gate", body.gate, status, {"reason": body.reason})

    def _add_claim(self, event: ev.Event, body: ev.RunClaimed) -> None:
        if body.resumed:
            self._lines.add_line(event, "notice", "the run was resumed", detail={"epoch": event.epoch})

    def _add_reason(self, event: ev.Event, body: ev.RunSuspended | ev.CancelRequested) -> None:
        self._lines.add_line(event, "notice", body.reason)

    def _end(self, event: ev.Event, _: ev.EventBody) -> None:
        self._interrupt(event, "the run ended first")
        self._add_skipped_steps(event)

    def _add_plan(self, event: ev.Event, body: ev.PlanProposed) -> None:
        plan = body.plan
        self._current_steps, self._failure_reasons = plan.steps, {}
        self._known_steps |= {step.id: step for step in plan.steps}
        count = len(plan.steps)
        title = f"{'new plan' if plan.version else 'plan'}: {count} step{'s' if count != 1 else ''}"
        usage = _drop_empty_usage(self._lines.calls.get_usage(("plan", None, None)))
        detail = trace_details.describe_plan(body, self._rejected)
        self._lines.add_line(event, "plan", title, detail=detail, duration=body.duration, usage=usage)
        self._rejected = []

    def _add_intents(self, event: ev.Event, body: ev.IntentClassified) -> None:
        usage = _drop_empty_usage(self._lines.calls.get_usage(("route", None, None)))
        status: TraceStatus = "done" if body.task_plan is not None or body.question else "failed"
        title, detail = trace_details.describe_intents(body)
        self._lines.add_line(event, "route", title, status, detail, duration=body.duration, usage=usage)

    def _add_answer_check(self, event: ev.Event, body: ev.AnswerChecked) -> None:
        status: TraceStatus = "failed" if body.action == "say_not_in_documents" and body.failure else "done"
        status = "retried" if body.action == "retry_strict" else status
        title = f"tailor: {body.passed} of {body.claims} sentences are supported by the documents"
        self._lines.add_line(
            event, "tailor", title, status, trace_details.describe_answer_check(body), duration=body.duration
        )

    def _add_request_translation(self, event: ev.Event, body: ev.RequestUnderstood) -> None:
        if body.translated:
            title = f"translated the request from {get_language_name(body.language)}"
            self._add_translation(event, title, None, {"question": shorten(body.question)}, body.duration)
        elif body.fallback_reason is not None:
            title = f"the request ({get_language_name(body.language)}) was not translated"
            self._add_translation(event, title, body.fallback_reason, {}, body.duration)

    def _add_answer_translation(self, event: ev.Event, body: ev.AnswerTranslated) -> None:
        language = get_language_name(body.language)
        if body.text is not None:
            self._add_translation(event, f"translated the answer into {language}", None, {}, body.duration)
        elif body.fallback_reason is not None:
            title = f"the answer was not translated into {language}"
            self._add_translation(event, title, body.fallback_reason, {}, body.duration)

    def _add_translation(
        self, event: ev.Event, title: str, problem: str | None, detail: JsonObject, seconds: float
    ) -> None:
        usage = _drop_empty_usage(self._lines.calls.get_usage(("translation", None, None)))
        with_reason = {**detail, "reason": problem} if problem is not None else detail
        status: TraceStatus = "failed" if problem is not None else "done"
        self._lines.add_line(event, "translation", title, status, with_reason, duration=seconds, usage=usage)

    def _open_attempt(self, event: ev.Event, body: ev.StepStarted) -> None:
        step_id = event.step_id or ""
        step = self._known_steps.get(step_id)
        title, intent = (step.title, step.intent) if step else (step_id, "")
        self._started_steps.add(step_id)
        key = ("step", event.step_id, event.attempt)
        self._lines.open_line(event, key, _get_line_type(step), title, trace_details.describe_attempt(body, intent))

    def _add_skipped_steps(self, event: ev.Event) -> None:
        """Adds a line for each planned step that never started, with the failed step that caused it."""
        failed = dict(self._failure_reasons)
        for step in self._current_steps:  # steps are listed after their dependencies
            if step.id in self._started_steps:
                continue
            ground = next((name for name in step.depends_on if name in failed), None)
            if ground is not None:
                failed[step.id] = failed[ground]
            detail = trace_details.describe_skipped_step(
                step, failed.get(step.id, "the run ended before it could start")
            )
            self._lines.add_line(event._replace(step_id=step.id), _get_line_type(step), step.title, "skipped", detail)

    def _close_tool_call(self, event: ev.Event, body: ev.ToolReturned) -> None:
        # A call whose arguments were invalid has no intent and therefore no open line yet.
        key = ("tool", body.call_id, None)
        index = self._lines.open_line(event, key, "tool", body.tool, {}, span=body.span or None)
        self._results[index] = build_tool_result(body, event.step_id, event.attempt)
        status: TraceStatus = "done" if body.error_code is None else "failed"
        self._lines.close_line(event, key, status, trace_details.describe_tool_return(body), duration=body.duration)

    def _open_subagent(self, event: ev.Event, body: ev.SubAgentStarted) -> None:
        key, parent = ("subagent", body.span, None), body.parent or None
        self._lines.set_span_agent(body.span, body.agent_id)
        self._lines.open_line(
            event,
            key,
            "subagent",
            body.agent_id,
            trace_details.describe_subagent_start(body),
            span=body.span,
            parent=parent,
        )

    def _close_subagent(self, event: ev.Event, body: ev.SubAgentFinished) -> None:
        """Closes a sub-agent's line. Interrupts the calls that it was still waiting for."""
        self._interrupt(event, f"{body.agent_id} ended first", span=body.span)
        key, usage = ("subagent", body.span, None), _drop_empty_usage(body.usage)
        status: TraceStatus = "done" if body.result.success else "failed"
        self._lines.close_line(
            event, key, status, trace_details.describe_subagent_end(body), duration=body.duration, usage=usage
        )

    def _close_unknown_call(self, event: ev.Event, body: ev.StepUnknown) -> None:
        self._unknown.add((event.step_id, event.attempt))
        self._failure_reasons[event.step_id or ""] = f"{event.step_id} has an unknown outcome"
        key = ("tool", body.call_id, None)
        index = self._lines.open_line(event, key, "tool", body.tool, {"key": body.key})
        lost = build_missing_return(body, "ERR_TOOL_UNKNOWN_OUTCOME", body.message)
        self._results[index] = build_tool_result(lost, event.step_id, event.attempt)
        self._lines.close_line(event, key, "unknown", {"message": body.message})

    def _interrupt(
        self,
        event: ev.Event,
        reason: str,
        only: tuple[str | None, int | None] | None = None,
        *,
        span: str | None = None,
    ) -> None:
        """Ends lines that are still running: all of them, those of one attempt, or the calls of one sub-agent. A side
        effect that is interrupted has an unknown outcome.
        """
        for key, index, line in self._lines.list_running():
            if only not in (None, (line["step_id"], line["attempt"])):
                continue
            if span is not None and (line["type"] == "subagent" or line["span"] != span):
                continue
            status: TraceStatus = "discarded"
            called = self._called.get(index)
            if called is not None:
                status = "unknown" if called.effect == "effect" else "discarded"
                code = "ERR_TOOL_UNKNOWN_OUTCOME" if status == "unknown" else "ERR_CANCELLED"
                lost = build_missing_return(called, code, f"{called.tool} did not return: {reason}")
                self._results[index] = build_tool_result(lost, line["step_id"], line["attempt"])
            self._lines.close_line(event, key, status, {"reason": reason}, usage=self._get_interrupted_usage(line))

    def _get_interrupted_usage(self, line: TraceLine) -> Usage | None:
        """The cost of an interrupted line. A sub-agent's calls count on the sub-agent's line."""
        if line["span"] is None:
            return self._lines.calls.get_usage(("step", line["step_id"], line["attempt"]))
        return self._lines.calls.get_usage(("subagent", line["span"], None)) if line["type"] == "subagent" else None

    def _close_attempt(self, event: ev.Event, body: ev.StepFinished) -> None:
        key = ("step", event.step_id, event.attempt)
        status: TraceStatus = "done" if body.output.error_code is None else "failed"
        if (event.step_id, event.attempt) in self._unknown:
            status = "unknown"
        usage = self._lines.calls.get_usage(key)
        self._lines.close_line(
            event, key, status, trace_details.describe_output(body), duration=body.duration, usage=usage, keep=True
        )

    def _add_verdict(self, event: ev.Event, body: ev.StepJudged) -> None:
        outcome, step_id = body.verdict.outcome, event.step_id or ""
        status = _STATUS_OF_OUTCOME[outcome]
        if status == "done":
            self._failure_reasons.pop(step_id, None)
        else:
            self._failure_reasons[step_id] = f"{event.step_id} failed: {body.verdict.reason}"
        usage = self._lines.calls.get_usage(("supervision", event.step_id, event.attempt))
        title, detail = f"{event.step_id}: {outcome.value}", trace_details.describe_verdict(body)
        self._lines.add_line(event, "supervision", title, "done", detail, duration=body.duration, usage=usage)
        self._lines.set_verdict(("step", event.step_id, event.attempt), status)


def _get_line_type(step: PlanStep | None) -> Literal["step", "completion"]:
    return "completion" if step is not None and step.is_completion else "step"


def _drop_empty_usage(usage: Usage | None) -> Usage | None:
    """The usage, or None if it has no model calls."""
    return usage if usage is not None and usage.model_calls else None


_RULES: Final[Mapping[type[ev.EventBody], Callable[[Projection, ev.Event, Any], None]]] = {
    ev.InputGuarded: Projection._add_input_guard,
    ev.OutputGuarded: Projection._add_output_guard,
    ev.RequestUnderstood: Projection._add_route,
    ev.IntentClassified: Projection._add_intents,
    ev.MemoryRetrieved: Projection._add_memory,
    ev.PlanRejected: Projection._note_rejected_plan,
    ev.PlanProposed: Projection._add_plan,
    ev.InputRequested: Projection._add_question,
    ev.ClientToolsCalled: Projection._add_client_calls,
    ev.ApprovalRequested: Projection._open_approval,
    ev.ApprovalDecided: Projection._close_approval,
    ev.ModelReturned: Projection._record_model_call,
    ev.EntriesSelected: Projection._add_selection,
    ev.StepStarted: Projection._open_attempt,
    ev.StepSpeculative: Projection._add_speculation,
    ev.ToolCalled: Projection._open_tool_call,
    ev.ToolReturned: Projection._close_tool_call,
    ev.ToolRefused: Projection._add_refused_call,
    ev.SubAgentStarted: Projection._open_subagent,
    ev.SubAgentFinished: Projection._close_subagent,
    ev.StepFinished: Projection._close_attempt,
    ev.StepJudged: Projection._add_verdict,
    ev.StepDiscarded: Projection._discard_attempt,
    ev.StepUnknown: Projection._close_unknown_call,
    ev.GateChecked: Projection._add_gate,
    ev.AnswerChecked: Projection._add_answer_check,
    ev.AnswerTranslated: Projection._add_answer_translation,
    ev.RunClaimed: Projection._add_claim,
    ev.RunSuspended: Projection._add_reason,
    ev.CancelRequested: Projection._add_reason,
    ev.RunSucceeded: Projection._end,
    ev.RunFailed: Projection._end,
    ev.RunCancelled: Projection._end,
}
"""The change of the trace for each type of event. A table instead of `match`: to compare with a Pydantic class takes
ten times as long as with a plain one, and an event was compared with up to thirty.
"""
