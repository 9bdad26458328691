"""`project`: a run's log to its trace. Each kind of event has a line of its own, or begins or completes one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from agent.core import events as ev
from agent.core.language import name_of
from agent.core.models import JsonObject, Outcome, PlanStep, TraceStatus, TraceStep, Usage
from agent.core.trace import details
from agent.core.trace.details import no_return, shorten, tool_result
from agent.core.trace.lines import Lines

_JUDGED: Final[Mapping[Outcome, TraceStatus]] = {
    Outcome.SUCCESS: "done",
    Outcome.RETRY: "retried",
    Outcome.REPLAN: "replanned",
    Outcome.ABORT: "failed",
}
_GUARDED: Final[Mapping[str, TraceStatus]] = {"retry_strict": "retried", "block": "refused"}


def project(events: Iterable[ev.Event]) -> tuple[TraceStep, ...]:
    """The ordered trace of a run: what was recalled, planned, tried, called, judged and written, with timings."""
    return projected(events).steps()


def projected(events: Iterable[ev.Event]) -> "Projection":
    """The projection after these events."""
    projection = Projection()
    for event in events:
        projection.add(event)
    return projection


class Projection:
    """Builds the trace event by event; open lines are completed when their end comes.

    Every tool line that is not running has one entry in the tool results, in the same order."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._called: dict[int, ev.ToolCalled] = {}
        self._results: dict[int, JsonObject] = {}
        """Both by the index of the call's line."""
        self._rejected: list[str] = []
        self._in_force: tuple[PlanStep, ...] = ()
        self._planned: dict[str, PlanStep] = {}
        """Steps of this plan and of earlier ones, whose attempts may still end."""
        self._begun: set[str] = set()
        self._failed: dict[str, str] = {}
        """Steps of the plan in force that did not serve their purpose, and why."""
        self._unknown: set[tuple[str | None, int | None]] = set()

    def steps(self) -> tuple[TraceStep, ...]:
        """The trace so far."""
        return self._lines.all()

    def tool_results(self) -> list[JsonObject]:
        """What became of every tool call that is over, in the order of the tool lines."""
        return [self._results[index] for index in self._lines.order() if index in self._results]

    def add(self, event: ev.Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one case an event
        """One more event."""
        body = event.body
        match body:
            case ev.InputGuarded() if body.findings:
                self._lines.add(event, "guard", "checked the prompt", detail={"findings": list(body.findings)})
            case ev.OutputGuarded():
                status = _GUARDED.get(body.action, "done")
                self._lines.add(event, "guard", "checked the answer", status, details.guarded_answer(body))
            case ev.RequestUnderstood():
                self._request_language(event, body)
                self._lines.add(event, "route", f"route: {body.route}", detail={"reason": body.reason})
            case ev.MemoryRetrieved():
                self._lines.add(event, "memory", "memory retrieval", detail=details.memory(body))
            case ev.PlanRejected():
                self._rejected.append("; ".join(body.problems))
            case ev.PlanProposed():
                self._plan(event, body)
            case ev.ApprovalRequested():
                asked = "the plan" if body.call_id is None else body.items[0].tool
                key, title = ("approval", body.approval_id, None), f"asked for approval of {asked}"
                self._lines.begin(event, key, "approval", title, details.approval(body))
            case ev.ApprovalDecided():
                status = "done" if body.decision in ("approved", "answered") else "refused"
                self._lines.close(event, ("approval", body.approval_id, None), status, details.decision(body))
            case ev.ModelReturned():
                self._lines.calls.note(event, body)
            case ev.StepStarted():
                self._started(event, body)
            case ev.StepSpeculative():
                waiting = ", ".join(body.waiting_for)
                self._lines.add(event, "notice", f"{event.step_id} runs ahead of the verdict on {waiting}")
            case ev.ToolCalled():
                detail: JsonObject = {"args": body.args, "effect": body.effect, "key": body.key}
                key, span = ("tool", body.call_id, None), body.span or None
                index = self._lines.begin(event, key, "tool", body.tool, detail, span=span)
                self._called[index] = body
            case ev.ToolReturned():
                self._returned(event, body)
            case ev.ToolRefused():
                detail = {"args": body.args, "reason": body.reason}
                index = self._lines.add(event, "tool", body.tool, "refused", detail, span=body.span or None)
                refused = no_return(body, "ERR_TOOL_DENIED", body.reason)
                self._results[index] = tool_result(refused, event.step_id, event.attempt)
            case ev.SubAgentStarted():
                self._delegated(event, body)
            case ev.SubAgentFinished():
                self._handed_back(event, body)
            case ev.StepFinished():
                self._finished(event, body)
            case ev.StepJudged():
                self._judged(event, body)
            case ev.StepDiscarded():
                self._lines.close(event, ("step", event.step_id, event.attempt), "discarded", {"reason": body.reason})
                self._interrupt(event, body.reason, (event.step_id, event.attempt))
            case ev.StepUnknown():
                self._of_unknown_outcome(event, body)
            case ev.GateChecked():
                status = "done" if body.passed else "failed"
                self._lines.add(event, "gate", body.gate, status, {"reason": body.reason})
            case ev.AnswerChecked():
                self._tailored(event, body)
            case ev.AnswerTranslated():
                self._answer_language(event, body)
            case ev.RunClaimed(resumed=True):
                self._lines.add(event, "notice", "the run was resumed", detail={"epoch": event.epoch})
            case ev.RunSuspended() | ev.CancelRequested():
                self._lines.add(event, "notice", body.reason)
            case body if body.terminal:
                self._interrupt(event, "the run ended first")
                self._left_out(event)
            case _:
                return

    def _plan(self, event: ev.Event, body: ev.PlanProposed) -> None:
        plan = body.plan
        self._in_force, self._failed = plan.steps, {}
        self._planned |= {step.id: step for step in plan.steps}
        count = len(plan.steps)
        title = f"{'new plan' if plan.version else 'plan'}: {count} step{'s' if count != 1 else ''}"
        usage = _counted(self._lines.calls.usage(("plan", None, None)))
        detail = details.plan(body, self._rejected)
        self._lines.add(event, "plan", title, detail=detail, duration=body.duration, usage=usage)
        self._rejected = []

    def _tailored(self, event: ev.Event, body: ev.AnswerChecked) -> None:
        status: TraceStatus = "failed" if body.action == "say_not_in_documents" and body.failure else "done"
        status = "retried" if body.action == "retry_strict" else status
        title = f"tailor: {body.passed} of {body.claims} sentences rest on the documents"
        self._lines.add(event, "tailor", title, status, details.checked_answer(body), duration=body.duration)

    def _request_language(self, event: ev.Event, body: ev.RequestUnderstood) -> None:
        if body.translated:
            title = f"translated the request from {name_of(body.language)}"
            self._translation(event, title, None, {"question": shorten(body.question)}, body.duration)
        elif body.fallback_reason is not None:
            title = f"the request ({name_of(body.language)}) was not translated"
            self._translation(event, title, body.fallback_reason, {}, body.duration)

    def _answer_language(self, event: ev.Event, body: ev.AnswerTranslated) -> None:
        language = name_of(body.language)
        if body.text is not None:
            self._translation(event, f"translated the answer into {language}", None, {}, body.duration)
        elif body.fallback_reason is not None:
            title = f"the answer was not translated into {language}"
            self._translation(event, title, body.fallback_reason, {}, body.duration)

    def _translation(
        self, event: ev.Event, title: str, problem: str | None, detail: JsonObject, seconds: float
    ) -> None:
        usage = _counted(self._lines.calls.usage(("translation", None, None)))
        shown = {**detail, "reason": problem} if problem is not None else detail
        status: TraceStatus = "failed" if problem is not None else "done"
        self._lines.add(event, "translation", title, status, shown, duration=seconds, usage=usage)

    def _started(self, event: ev.Event, body: ev.StepStarted) -> None:
        step_id = event.step_id or ""
        step = self._planned.get(step_id)
        title, intent = (step.title, step.intent) if step else (step_id, "")
        self._begun.add(step_id)
        key = ("step", event.step_id, event.attempt)
        self._lines.begin(event, key, _line_type(step), title, details.attempt(body, intent))

    def _left_out(self, event: ev.Event) -> None:
        """Say of the steps that were planned and never begun that they were skipped, and over which failed step."""
        failed = dict(self._failed)
        for step in self._in_force:  # a plan's steps come after what they depend on
            if step.id in self._begun:
                continue
            ground = next((name for name in step.depends_on if name in failed), None)
            if ground is not None:
                failed[step.id] = failed[ground]
            detail = details.never_begun(step, failed.get(step.id, "the run ended before it could begin"))
            self._lines.add(replace(event, step_id=step.id), _line_type(step), step.title, "skipped", detail)

    def _returned(self, event: ev.Event, body: ev.ToolReturned) -> None:
        # A call refused before its intent, because its arguments did not fit, has no open line yet.
        key = ("tool", body.call_id, None)
        index = self._lines.begin(event, key, "tool", body.tool, {}, span=body.span or None)
        self._results[index] = tool_result(body, event.step_id, event.attempt)
        status: TraceStatus = "done" if body.error_code is None else "failed"
        self._lines.close(event, key, status, details.returned(body), duration=body.duration)

    def _delegated(self, event: ev.Event, body: ev.SubAgentStarted) -> None:
        key, parent = ("subagent", body.span, None), body.parent or None
        self._lines.name_span(body.span, body.agent_id)
        self._lines.begin(event, key, "subagent", body.agent_id, details.delegated(body), span=body.span, parent=parent)

    def _handed_back(self, event: ev.Event, body: ev.SubAgentFinished) -> None:
        """A sub-agent's end; calls it was still waiting for count no more."""
        self._interrupt(event, f"{body.agent_id} ended first", span=body.span)
        key, usage = ("subagent", body.span, None), _counted(body.usage)
        status: TraceStatus = "done" if body.result.success else "failed"
        self._lines.close(event, key, status, details.handed_back(body), duration=body.duration, usage=usage)

    def _of_unknown_outcome(self, event: ev.Event, body: ev.StepUnknown) -> None:
        self._unknown.add((event.step_id, event.attempt))
        self._failed[event.step_id or ""] = f"{event.step_id} has an unknown outcome"
        key = ("tool", body.call_id, None)
        index = self._lines.begin(event, key, "tool", body.tool, {"key": body.key})
        lost = no_return(body, "ERR_TOOL_UNKNOWN_OUTCOME", body.message)
        self._results[index] = tool_result(lost, event.step_id, event.attempt)
        self._lines.close(event, key, "unknown", {"message": body.message})

    def _interrupt(
        self,
        event: ev.Event,
        reason: str,
        only: tuple[str | None, int | None] | None = None,
        *,
        span: str | None = None,
    ) -> None:
        """End the lines still running: all of them, one attempt's, or the calls of one sub-agent. A side effect under
        way may have happened."""
        for key, index, line in self._lines.running():
            if only not in (None, (line.step_id, line.attempt)):
                continue
            if span is not None and (line.type == "subagent" or line.span != span):
                continue
            status: TraceStatus = "discarded"
            called = self._called.get(index)
            if called is not None:
                status = "unknown" if called.effect == "effect" else "discarded"
                code = "ERR_TOOL_UNKNOWN_OUTCOME" if status == "unknown" else "ERR_CANCELLED"
                lost = no_return(called, code, f"{called.tool} did not return: {reason}")
                self._results[index] = tool_result(lost, line.step_id, line.attempt)
            self._lines.close(event, key, status, {"reason": reason}, usage=self._spent(line))

    def _spent(self, line: TraceStep) -> Usage | None:
        """What a line that was interrupted has cost; the calls of a sub-agent stand on the sub-agent's line."""
        if line.span is None:
            return self._lines.calls.usage(("step", line.step_id, line.attempt))
        return self._lines.calls.usage(("subagent", line.span, None)) if line.type == "subagent" else None

    def _finished(self, event: ev.Event, body: ev.StepFinished) -> None:
        key = ("step", event.step_id, event.attempt)
        status: TraceStatus = "done" if body.output.error_code is None else "failed"
        if (event.step_id, event.attempt) in self._unknown:
            status = "unknown"
        usage = self._lines.calls.usage(key)
        self._lines.close(event, key, status, details.output(body), duration=body.duration, usage=usage, keep=True)

    def _judged(self, event: ev.Event, body: ev.StepJudged) -> None:
        outcome, step_id = body.verdict.outcome, event.step_id or ""
        status = _JUDGED[outcome]
        if status == "done":
            self._failed.pop(step_id, None)
        else:
            self._failed[step_id] = f"{event.step_id} failed: {body.verdict.reason}"
        usage = self._lines.calls.usage(("supervision", event.step_id, event.attempt))
        title, detail = f"{event.step_id}: {outcome.value}", details.verdict(body)
        self._lines.add(event, "supervision", title, "done", detail, duration=body.duration, usage=usage)
        self._lines.judge(("step", event.step_id, event.attempt), status)


def _line_type(step: PlanStep | None) -> Literal["step", "completion"]:
    return "completion" if step is not None and step.is_completion else "step"


def _counted(usage: Usage | None) -> Usage | None:
    """What a line shows of its model calls: nothing where none was made."""
    return usage if usage is not None and usage.model_calls else None
