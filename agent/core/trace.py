"""The `steps` trace: a projection of a run's log, with what became of every tool call."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from agent.core import events as ev
from agent.core.language import name_of
from agent.core.models import JsonObject, Outcome, TraceStep, Usage

TraceStatus = Literal["running", "done", "failed", "refused", "retried", "replanned", "discarded", "unknown"]
TraceType = Literal[
    "guard", "memory", "route", "plan", "step", "tool", "supervision", "completion", "gate", "translation", "notice"
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
        self._planning = Usage()
        self._translating = Usage()
        self._rejected: list[str] = []

    def steps(self) -> tuple[TraceStep, ...]:
        """The trace so far."""
        return tuple(self._lines)

    def tool_results(self) -> list[JsonObject]:
        """What became of every tool call that is over, in the order of the tool lines."""
        return [self._results[index] for index in sorted(self._results)]

    def add(self, event: ev.Event) -> None:  # noqa: C901, PLR0912 - one case an event
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
                self._line(event, "tool", body.tool, "refused", {"args": body.args, "reason": body.reason})
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
        count = len(plan.steps)
        title = f"{'new plan' if plan.version else 'plan'}: {count} step{'s' if count != 1 else ''}"
        usage = self._planning if self._planning.model_calls else None
        self._line(event, "plan", title, detail=detail, duration=body.duration, usage=usage)
        self._planning, self._rejected = Usage(), []

    def _model(self, event: ev.Event, body: ev.ModelReturned) -> None:
        if body.purpose == "planner":
            self._planning += body.usage
        elif body.purpose == "translator":
            self._translating += body.usage
        elif event.step_id is not None:
            spent = self._judging if body.purpose == "supervisor" else self._usage
            key = (event.step_id, event.attempt)
            spent[key] = spent.get(key, Usage()) + body.usage

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
        index = self._begin(event, ("tool", body.call_id, None), "tool", body.tool, detail)
        self._calls[index] = body

    def _returned(self, event: ev.Event, body: ev.ToolReturned) -> None:
        detail: JsonObject = {"output": shorten(body.text), "tries": body.tries}
        if body.error_code is not None:
            detail = {"error_code": body.error_code, "error": body.error, "tries": body.tries}
        # A call refused before its intent, because its arguments did not fit, has no open line yet.
        key = ("tool", body.call_id, None)
        index = self._begin(event, key, "tool", body.tool, {})
        self._results[index] = _tool_result(event, body)
        self._close(event, key, "done" if body.error_code is None else "failed", detail, body.duration)

    def _of_unknown_outcome(self, event: ev.Event, body: ev.StepUnknown) -> None:
        self._unknown.add((event.step_id, event.attempt))
        key = ("tool", body.call_id, None)
        index = self._begin(event, key, "tool", body.tool, {"key": body.key})
        lost = _no_result(body.call_id, body.tool, "ERR_TOOL_UNKNOWN_OUTCOME", body.message)
        self._results[index] = _tool_result(event, lost)
        self._close(event, key, "unknown", {"message": body.message})

    def _interrupt(self, event: ev.Event, reason: str, only: tuple[str | None, int | None] | None = None) -> None:
        """End the lines still running: all of them, or one attempt's. A side effect under way may have happened."""
        for key, index in list(self._open.items()):
            line = self._lines[index]
            if line.status != "running" or only not in (None, (line.step_id, line.attempt)):
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
            self._close(event, key, status, {"reason": reason}, usage=self._usage.get((line.step_id, line.attempt)))

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
            )
        )

    def _begin(self, event: ev.Event, key: LineKey, kind: TraceType, title: str, detail: JsonObject) -> int:
        """The index of the line of `key`; the open one where the same attempt goes on after a crash."""
        if key not in self._open:
            self._open[key] = len(self._lines)
            self._line(event, kind, title, "running", detail)
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
