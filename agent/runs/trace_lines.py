"""The lines of a trace: added complete, or opened and closed later."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypedDict

from agent.core import events as ev
from agent.core.models import JsonObject, TraceStatus, TraceType, Usage

LineKey = tuple[str, str | None, int | None]
"""Identifies a line: its type, then a step's id and attempt, or the id of a call, approval or span and None."""

_LINE_OF_PURPOSE: Final = {"planner": "plan", "translator": "translation", "router": "route"}


class ModelCalls:
    """Filled while a log is read; queried when a line is added or completed."""

    def __init__(self) -> None:
        self._calls: dict[LineKey, tuple[str, Usage]] = {}

    def record(self, event: ev.Event, body: ev.ModelReturned) -> None:
        """Records a model call for the line it belongs to, which is open or added later."""
        key = _build_line_key(event, body)
        if key is not None:
            # The line shows the model that wrote the answer, not the one that checked its claims.
            earlier = self._calls.get(key)
            model = earlier[0] if earlier is not None and body.purpose == "entailment" else body.model
            self._calls[key] = (model, body.usage if earlier is None else earlier[1] + body.usage)

    def get_usage(self, key: LineKey) -> Usage | None:
        """The usage of the calls behind a line so far, or None without calls."""
        call = self._calls.get(key)
        return None if call is None else call[1]

    def take_model(self, kind: str, step_id: str | None, attempt: int | None, span: str | None) -> str | None:
        """The model used last for a line, or None. Forgets the calls of lines that are added once, after their
        calls.
        """
        match kind:
            case "plan" | "translation" | "route":
                call = self._calls.pop((kind, None, None), None)
            case "supervision":
                call = self._calls.pop((kind, step_id, attempt), None)
            case "step" | "completion":
                call = self._calls.get(("step", step_id, attempt))
            case "subagent":
                call = self._calls.get((kind, span, None))
            case _:
                call = None
        return None if call is None else call[0]


def _build_line_key(event: ev.Event, body: ev.ModelReturned) -> LineKey | None:
    kind = _LINE_OF_PURPOSE.get(body.purpose)
    if kind is not None:
        return (kind, None, None)
    if body.span:
        return ("subagent", body.span, None)
    if event.step_id is None:
        return None
    return ("supervision" if body.purpose == "supervisor" else "step", event.step_id, event.attempt)


AGENT_OF_LINE_TYPE: Final[Mapping[TraceType, str]] = {
    "guard": "guardrails",
    "memory": "memory",
    "route": "planner",
    "plan": "planner",
    "approval": "gateway",
    "step": "executor",
    "tool": "executor",
    "completion": "executor",
    "supervision": "supervisor",
    "gate": "verifier",
    "tailor": "tailor",
    "translation": "translator",
    "notice": "gateway",
}
"""The agent id for each type of line. A sub-agent's lines carry its own id."""


class TraceLine(TypedDict):
    """A line as a dictionary, which is completed in place. It has the fields of `TraceStep`, in their order."""

    type: TraceType
    agent_id: str
    model: str | None
    title: str
    status: TraceStatus
    started_at: datetime
    duration: float | None
    step_id: str | None
    attempt: int | None
    detail: JsonObject
    usage: Usage | None
    span: str | None
    parent_span: str | None


class TraceLines:
    """The lines so far. A line is open under its key until it is closed, and keeps its index."""

    def __init__(self) -> None:
        self.calls = ModelCalls()
        self._lines: list[TraceLine] = []
        self._began: list[float] = []
        """When each line started, in seconds of a clock that never goes back."""
        self._latest = 0.0
        self._stage = 0.0
        self._stage_began: datetime | None = None
        self._open: dict[LineKey, int] = {}
        self._agent_of: dict[str, str] = {}

    def list_lines(self) -> list[TraceLine]:
        """Every line, in order of start time."""
        return [self._lines[index] for index in self.sort_by_start(range(len(self._lines)))]

    def sort_by_start(self, indices: Iterable[int]) -> list[int]:
        """These ascending indices of lines in order of start time. Some lines are added only at their end."""
        return sorted(indices, key=self._began.__getitem__)

    def list_running(self) -> list[tuple[LineKey, int, TraceLine]]:
        """The open lines that have not ended: key, index, line."""
        lines = [(key, index, self._lines[index]) for key, index in self._open.items()]
        return [one for one in lines if one[2]["status"] == "running"]

    def set_span_agent(self, span: str, agent_id: str) -> None:
        """Names the sub-agent whose lines carry this span."""
        self._agent_of[span] = agent_id

    def add_line(
        self,
        event: ev.Event,
        kind: TraceType,
        title: str,
        status: TraceStatus = "done",
        detail: JsonObject | None = None,
        *,
        duration: float | None = None,
        usage: Usage | None = None,
        span: str | None = None,
        parent: str | None = None,
    ) -> int:
        """Adds a line for this event, which ends `duration` seconds of work, and returns its index."""
        self._latest = max(self._latest, event.at)
        self._began.append(max(self._latest - (duration or 0.0), self._stage))
        began = event.timestamp - timedelta(seconds=duration) if duration else event.timestamp
        line: TraceLine = {
            "type": kind,
            "agent_id": self._agent_of.get(span or "") or AGENT_OF_LINE_TYPE.get(kind, "gateway"),
            "model": self.calls.take_model(kind, event.step_id, event.attempt, span),
            "title": title,
            "status": status,
            "started_at": began if self._stage_began is None else max(began, self._stage_began),
            "duration": None if duration is None else round(duration, 4),
            "step_id": event.step_id,
            "attempt": event.attempt,
            "detail": detail or {},
            "usage": usage,
            "span": span,
            "parent_span": parent,
        }
        self._lines.append(line)
        return len(self._lines) - 1

    def begin_stage(self) -> None:
        """Has no further line start before the newest one, whose stage of the run is over.

        The times of events in the log differ by the time in which they were written, so the start of a line that is
        known by its end and duration may come out earlier than what was over before.
        """
        self._stage, self._stage_began = self._began[-1], self._lines[-1]["started_at"]

    def open_line(
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
        """The index of the line of `key`, adding it if it is not open. After a crash the same attempt continues
        its line.
        """
        if key not in self._open:
            self._open[key] = self.add_line(event, kind, title, "running", detail, span=span, parent=parent)
        return self._open[key]

    def close_line(
        self,
        event: ev.Event,
        key: LineKey,
        status: TraceStatus,
        detail: JsonObject,
        *,
        duration: float | None = None,
        usage: Usage | None = None,
        keep: bool = False,
    ) -> None:
        """Completes the line of `key`, if it is open. With `keep` it stays open for its verdict (`set_verdict`).
        Without `duration`, uses the time since it was opened.
        """
        index = self._open.get(key) if keep else self._open.pop(key, None)
        if index is None:
            return
        line = self._lines[index]
        seconds = duration if duration is not None else event.at - line["started_at"].timestamp()
        line["status"] = status
        line["duration"] = round(seconds, 4)
        line["detail"] = {**line["detail"], **detail}
        line["usage"] = usage
        line["model"] = self.calls.take_model(line["type"], line["step_id"], line["attempt"], line["span"])

    def set_verdict(self, key: LineKey, status: TraceStatus) -> None:
        """Applies the verdict to a line that was kept open. `done` leaves it as it ended."""
        index = self._open.pop(key, None)
        if index is not None and status != "done":
            self._lines[index]["status"] = status
