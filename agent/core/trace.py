"""The `steps` trace: a projection of a run's log, with what became of every tool call."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from agent.core import events as ev
from agent.core.language import name_of
from agent.core.models import JsonObject, Outcome, TraceStep, Usage

TraceStatus = Literal["running", "done", "failed", "refused", "retried", "replanned", "discarded", "unknown"]
TraceType = Literal[
    "guard", "memory", "route", "plan", "step", "tool", "supervision", "completion", "gate", "translation", "notice",
    "approval", "tailor", "subagent",
]  # fmt: skip
LineKey = tuple[str, str | None, int | None]

SHOWN_CHARS = 2_000
"""How much of a result a trace line shows; the whole stands in the log."""

_STATUS: dict[Outcome, TraceStatus] = {
    Outcome.SUCCESS: "done",
    Outcome.RETRY: "retried",
    Outcome.REPLAN: "replanned",
    Outcome.ABORT: "failed",
}


def project(events: Iterable[ev.Event]) -> tuple[TraceStep, ...]:
    """The ordered trace of a run: what was recalled, planned, tried, called, judged and written, with timings."""
    return projected(events).steps()


def projected(events: Iterable[ev.Event]) -> "Projection":
    """The projection after these events."""
    projection = Projection()
    for event in events:
        projection.add(event)
    return projection


def _tool_result(event: ev.Event, body: ev.ToolReturned) -> JsonObject:
    return {
        "tool": body.tool,
        "call_id": body.call_id,
        "step_id": event.step_id,
        "attempt": event.attempt,
        "ok": body.error_code is None,
        "output": body.output if body.blob is None else shorten(body.text),
        "text": shorten(body.text),
        "error_code": body.error_code,
        "error": body.error,
        "truncated": body.truncated,
        "tainted": body.tainted,
        "duration": round(body.duration, 4),
        "attempts": body.tries,
        "duration_ms": round(body.duration * 1000, 1),
        "implementation": body.implementation,
        **({"span": body.span} if body.span else {}),
    }


def _memory_detail(body: ev.MemoryRetrieved) -> JsonObject:
    detail: JsonObject = {"source": body.source, "messages": len(body.history), "items": len(body.items)}
    if body.items:
        detail["memories"] = [
            {"id": item.id, "text": shorten(item.text, 300), "score": item.score, "source": item.source}
            for item in body.items
        ]
    if body.embedder:
        detail["embedder"] = body.embedder
    if body.fallback_reason:
        detail["fallback_reason"] = body.fallback_reason
    return detail


def _no_result(call_id: str, tool: str, code: str, error: str) -> ev.ToolReturned:
    """What stands in `tool_results` for a call that has no return: refused, interrupted, or of unknown outcome."""
    return ev.ToolReturned(call_id=call_id, tool=tool, error_code=code, error=error)


class Projection:
    """Builds the trace event by event; open lines are completed when their end comes.

    Every tool line that is not running has one entry in the tool results, in the same order."""

    def __init__(self) -> None:
        self._lines: list[TraceStep] = []
        self._open: dict[LineKey, int] = {}
        self._calls: dict[int, ev.ToolCalled] = {}
        self._results: dict[int, JsonObject] = {}
        self._titles: dict[str, tuple[str, str, str]] = {}
        self._usage: dict[tuple[str | None, int | None], Usage] = {}
        self._judging: dict[tuple[str | None, int | None], Usage] = {}
        self._unknown: set[tuple[str | None, int | None]] = set()
        self._delegating: dict[str, Usage] = {}
        self._planning = Usage()
        self._translating = Usage()
        self._rejected: list[str] = []

    def steps(self) -> tuple[TraceStep, ...]:
        """The trace so far."""
        return tuple(self._lines)

    def tool_results(self) -> list[JsonObject]:
        """What became of every tool call that is over, in the order of the tool lines."""
        return [self._results[index] for index in sorted(self._results)]

    def add(self, event: ev.Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one case an event
        """One more event."""
        body = event.body
        match body:
            case ev.InputGuarded() if body.findings:
                self._line(event, "guard", "checked the prompt", detail={"findings": list(body.findings)})
            case ev.RequestUnderstood():
                self._request_language(event, body)
                self._line(event, "route", f"route: {body.route}", detail={"reason": body.reason})
            case ev.MemoryRetrieved():
                self._line(event, "memory", "memory retrieval", detail=_memory_detail(body))
            case ev.PlanRejected():
                self._rejected.append("; ".join(body.problems))
            case ev.PlanProposed():
                self._plan(event, body)
            case ev.ApprovalRequested():
                self._asked(event, body)
            case ev.ApprovalDecided():
                self._decided(event, body)
            case ev.ModelReturned():
                self._model(event, body)
            case ev.StepStarted():
                self._started(event, body)
            case ev.StepSpeculative():
                waiting = ", ".join(body.waiting_for)
                self._line(event, "notice", f"{event.step_id} runs ahead of the verdict on {waiting}")
            case ev.ToolCalled():
                self._called(event, body)
            case ev.ToolReturned():
                self._returned(event, body)
            case ev.ToolRefused():
                refusal = _no_result(body.call_id, body.tool, "ERR_TOOL_DENIED", body.reason)
                self._results[len(self._lines)] = _tool_result(event, refusal)
                detail: JsonObject = {"args": body.args, "reason": body.reason}
                self._line(event, "tool", body.tool, "refused", detail, span=body.span or None)
            case ev.SubAgentStarted():
                self._delegated(event, body)
            case ev.SubAgentFinished():
                self._handed_back(event, body)
            case ev.StepFinished():
                self._finished(event, body)
            case ev.StepJudged():
                self._judged(event, body)
            case ev.StepDiscarded():
                self._close(event, ("step", event.step_id, event.attempt), "discarded", {"reason": body.reason})
                self._interrupt(event, body.reason, (event.step_id, event.attempt))
            case ev.StepUnknown():
                self._of_unknown_outcome(event, body)
            case ev.GateChecked():
                status: TraceStatus = "done" if body.passed else "failed"
                self._line(event, "gate", body.gate, status, {"reason": body.reason})
            case ev.AnswerChecked():
                self._tailored(event, body)
            case ev.AnswerTranslated():
                self._answer_language(event, body)
            case ev.RunClaimed(resumed=True):
                self._line(event, "notice", "the run was resumed", detail={"epoch": event.epoch})
            case ev.RunSuspended() | ev.CancelRequested():
                self._line(event, "notice", body.reason)
            case body if body.terminal:
                self._interrupt(event, "the run ended first")
            case _:
                return

    def _plan(self, event: ev.Event, body: ev.PlanProposed) -> None:
        plan = body.plan
        for step in plan.steps:
            kind = "completion" if step.is_completion else "step"
            self._titles[step.id] = (kind, step.title, step.intent)
        detail: JsonObject = {
            "version": plan.version,
            "origin": plan.origin,
            "steps": [f"{step.id}: {step.title}" for step in plan.steps],
            "requested": body.requested,
            "effective": body.effective,
        }
        if reason := (body.fallback_reason or plan.origin_reason):
            detail["reason"] = reason
        if body.replan_reason:
            detail["replan_reason"] = body.replan_reason
        if self._rejected:
            detail["rejected"] = list(self._rejected)
        if body.adjusted:
            detail["adjusted"] = list(body.adjusted)
        count = len(plan.steps)
        title = f"{'new plan' if plan.version else 'plan'}: {count} step{'s' if count != 1 else ''}"
        usage = self._planning if self._planning.model_calls else None
        self._line(event, "plan", title, detail=detail, duration=body.duration, usage=usage)
        self._planning, self._rejected = Usage(), []

    def _asked(self, event: ev.Event, body: ev.ApprovalRequested) -> None:
        detail: JsonObject = {
            "reason": body.reason,
            "approval_id": body.approval_id,
            "items": [item.model_dump(mode="json") for item in body.items],
        }
        title = (
            "asked for approval of the plan" if body.call_id is None else f"asked for approval of {body.items[0].tool}"
        )
        self._begin(event, ("approval", body.approval_id, None), "approval", title, detail)

    def _decided(self, event: ev.Event, body: ev.ApprovalDecided) -> None:
        status: TraceStatus = "done" if body.decision in ("approved", "answered") else "refused"
        detail: JsonObject = {"decision": body.decision, "by": body.by}
        if body.reason:
            detail["said"] = body.reason
        self._close(event, ("approval", body.approval_id, None), status, detail)

    def _model(self, event: ev.Event, body: ev.ModelReturned) -> None:
        if body.purpose == "planner":
            self._planning += body.usage
        elif body.purpose == "translator":
            self._translating += body.usage
        elif body.span:
            self._delegating[body.span] = self._delegating.get(body.span, Usage()) + body.usage
        elif event.step_id is not None:
            spent = self._judging if body.purpose == "supervisor" else self._usage
            key = (event.step_id, event.attempt)
            spent[key] = spent.get(key, Usage()) + body.usage

    def _tailored(self, event: ev.Event, body: ev.AnswerChecked) -> None:
        """What the tailor's check said; the code stands where sentences failed it as a whole."""
        detail: JsonObject = {"claims": body.claims, "passed": body.passed, "action": body.action}
        if body.problems:
            detail["problems"] = [{"text": shorten(one.text, 300), "reason": one.reason} for one in body.problems]
        if body.rewritten:
            detail["rewritten"] = body.rewritten
        if body.failure is not None:
            detail |= {"error_code": body.failure.error_code, "error": body.failure.message}
        status: TraceStatus = "failed" if body.action == "say_not_in_documents" and body.failure else "done"
        status = "retried" if body.action == "retry_strict" else status
        title = f"tailor: {body.passed} of {body.claims} sentences rest on the documents"
        self._line(event, "tailor", title, status, detail, body.duration)

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
        usage = self._translating if self._translating.model_calls else None
        self._translating = Usage()
        shown = {**detail, "reason": problem} if problem is not None else detail
        self._line(event, "translation", title, "failed" if problem is not None else "done", shown, seconds, usage)

    def _started(self, event: ev.Event, body: ev.StepStarted) -> None:
        kind, title, intent = self._titles.get(event.step_id or "", ("step", event.step_id or "", ""))
        detail: JsonObject = {"intent": intent, "args": body.args}
        if body.feedback:
            detail["feedback"] = body.feedback
        if body.tainted:
            detail["tainted"] = True
        line_type: Literal["step", "completion"] = "completion" if kind == "completion" else "step"
        self._begin(event, ("step", event.step_id, event.attempt), line_type, title, detail)

    def _called(self, event: ev.Event, body: ev.ToolCalled) -> None:
        detail: JsonObject = {"args": body.args, "effect": body.effect, "key": body.key}
        index = self._begin(event, ("tool", body.call_id, None), "tool", body.tool, detail, span=body.span or None)
        self._calls[index] = body

    def _returned(self, event: ev.Event, body: ev.ToolReturned) -> None:
        detail: JsonObject = {"output": shorten(body.text), "tries": body.tries}
        if body.error_code is not None:
            detail = {"error_code": body.error_code, "error": body.error, "tries": body.tries}
        # A call refused before its intent, because its arguments did not fit, has no open line yet.
        key = ("tool", body.call_id, None)
        index = self._begin(event, key, "tool", body.tool, {}, span=body.span or None)
        self._results[index] = _tool_result(event, body)
        self._close(event, key, "done" if body.error_code is None else "failed", detail, body.duration)

    def _delegated(self, event: ev.Event, body: ev.SubAgentStarted) -> None:
        detail: JsonObject = {"task": body.task, "tools": list(body.tools), "depth": body.depth}
        if body.withheld:
            detail["withheld"] = list(body.withheld)
        key = ("subagent", body.span, None)
        self._begin(event, key, "subagent", body.agent_id, detail, span=body.span, parent=body.parent or None)

    def _handed_back(self, event: ev.Event, body: ev.SubAgentFinished) -> None:
        """A sub-agent's end; calls it was still waiting for count no more."""
        self._interrupt(event, f"{body.agent_id} ended first", span=body.span)
        result = body.result
        detail: JsonObject = {
            "outcome": body.outcome,
            "success": result.success,
            "summary": shorten(result.summary),
            "uncertainties": [one.model_dump(mode="json") for one in result.uncertainties],
            "turns": body.turns,
            "effective": body.effective,
        }
        if body.fallback_reason:
            detail["fallback_reason"] = body.fallback_reason
        status: TraceStatus = "done" if result.success else "failed"
        usage = body.usage if body.usage.model_calls else None
        self._close(event, ("subagent", body.span, None), status, detail, body.duration, usage)

    def _of_unknown_outcome(self, event: ev.Event, body: ev.StepUnknown) -> None:
        self._unknown.add((event.step_id, event.attempt))
        key = ("tool", body.call_id, None)
        index = self._begin(event, key, "tool", body.tool, {"key": body.key})
        lost = _no_result(body.call_id, body.tool, "ERR_TOOL_UNKNOWN_OUTCOME", body.message)
        self._results[index] = _tool_result(event, lost)
        self._close(event, key, "unknown", {"message": body.message})

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
        for key, index in list(self._open.items()):
            line = self._lines[index]
            if line.status != "running" or only not in (None, (line.step_id, line.attempt)):
                continue
            if span is not None and (line.type == "subagent" or line.span != span):
                continue
            status: TraceStatus = "discarded"
            called = self._calls.get(index)
            if called is not None:
                status = "unknown" if called.effect == "effect" else "discarded"
                code = "ERR_TOOL_UNKNOWN_OUTCOME" if status == "unknown" else "ERR_CANCELLED"
                lost = _no_result(called.call_id, called.tool, code, f"{called.tool} did not return: {reason}")
                self._results[index] = {
                    **_tool_result(event, lost), "step_id": line.step_id, "attempt": line.attempt
                }  # fmt: skip
            self._close(event, key, status, {"reason": reason}, usage=self._spent(line))

    def _spent(self, line: TraceStep) -> Usage | None:
        """What a line that was interrupted has cost; the calls of a sub-agent stand on the sub-agent's line."""
        if line.span is None:
            return self._usage.get((line.step_id, line.attempt))
        return self._delegating.get(line.span) if line.type == "subagent" else None

    def _finished(self, event: ev.Event, body: ev.StepFinished) -> None:
        output = body.output
        detail: JsonObject = {"output": shorten(output.text)}
        if output.error_code is not None:
            detail = {"error_code": output.error_code, "error": output.error}
        if output.fallback_reason:
            detail["fallback_reason"] = output.fallback_reason
        key = ("step", event.step_id, event.attempt)
        usage = self._usage.get((event.step_id, event.attempt))
        status: TraceStatus = "done" if output.error_code is None else "failed"
        if (event.step_id, event.attempt) in self._unknown:
            status = "unknown"
        self._close(event, key, status, detail, body.duration, usage, keep=True)

    def _judged(self, event: ev.Event, body: ev.StepJudged) -> None:
        verdict = body.verdict
        detail: JsonObject = {"outcome": verdict.outcome.value, "reason": verdict.reason, "by": verdict.by}
        if verdict.suggested_fix:
            detail["suggested_fix"] = verdict.suggested_fix
        if body.rule:
            detail["rule"] = body.rule
        status = _STATUS[verdict.outcome]
        usage = self._judging.pop((event.step_id, event.attempt), None)
        title = f"{event.step_id}: {verdict.outcome.value}"
        self._line(event, "supervision", title, "done", detail, body.duration, usage)
        index = self._open.pop(("step", event.step_id, event.attempt), None)
        if index is not None and status != "done":
            self._lines[index] = self._lines[index].model_copy(update={"status": status})

    def _line(
        self,
        event: ev.Event,
        kind: TraceType,
        title: str,
        status: TraceStatus = "done",
        detail: JsonObject | None = None,
        duration: float | None = None,
        usage: Usage | None = None,
        *,
        span: str | None = None,
        parent: str | None = None,
    ) -> None:
        self._lines.append(
            TraceStep.model_construct(
                type=kind,
                title=title,
                status=status,
                started_at=event.when - timedelta(seconds=duration or 0.0),  # the event is the end of the work
                duration=None if duration is None else round(duration, 4),
                step_id=event.step_id,
                attempt=event.attempt,
                detail=detail or {},
                usage=usage,
                span=span,
                parent_span=parent,
            )
        )

    def _begin(
        self,
        event: ev.Event,
        key: LineKey,
        kind: TraceType,
        title: str,
        detail: JsonObject,
        *,
        span: str | None = None,
        parent: str | None = None,
    ) -> int:
        """The index of the line of `key`; the open one where the same attempt goes on after a crash."""
        if key not in self._open:
            self._open[key] = len(self._lines)
            self._line(event, kind, title, "running", detail, span=span, parent=parent)
        return self._open[key]

    def _close(
        self,
        event: ev.Event,
        key: LineKey,
        status: TraceStatus,
        detail: JsonObject,
        duration: float | None = None,
        usage: Usage | None = None,
        *,
        keep: bool = False,
    ) -> None:
        index = self._open.get(key) if keep else self._open.pop(key, None)
        if index is None:
            return
        line = self._lines[index]
        seconds = duration if duration is not None else event.at - line.started_at.timestamp()
        update = {"status": status, "duration": round(seconds, 4), "detail": {**line.detail, **detail}, "usage": usage}
        self._lines[index] = line.model_copy(update=update)


def shorten(text: str, limit: int = SHOWN_CHARS) -> str:
    """Text as a trace line shows it."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} more characters]"
