"""The lines of a trace: added whole, or begun and completed when their end comes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from agent.core import events as ev
from agent.core.models import JsonObject, TraceStatus, TraceStep, TraceType, Usage
from agent.core.trace.calls import LineKey, ModelCalls

AGENTS: Final[Mapping[TraceType, str]] = {
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
"""Who makes the lines of a kind. A sub-agent's lines carry its own id."""


class Lines:
    """The lines so far. What is begun under a key is open under it until it is closed; a line keeps its index."""

    def __init__(self) -> None:
        self.calls = ModelCalls()
        self._lines: list[TraceStep] = []
        self._began: list[float] = []
        """When each line began, in seconds by a clock that never goes back."""
        self._latest = 0.0
        self._open: dict[LineKey, int] = {}
        self._agent_of: dict[str, str] = {}

    def all(self) -> tuple[TraceStep, ...]:
        """Every line, in the order they began."""
        return tuple(self._lines[index] for index in self.order())

    def order(self) -> list[int]:
        """The lines' indices in the order they began: some are made of the event that ends them."""
        return sorted(range(len(self._lines)), key=self._began.__getitem__)

    def running(self) -> list[tuple[LineKey, int, TraceStep]]:
        """The open lines whose end has not come: key, index, line."""
        lines = [(key, index, self._lines[index]) for key, index in self._open.items()]
        return [one for one in lines if one[2].status == "running"]

    def name_span(self, span: str, agent_id: str) -> None:
        """The lines of this span are made by this sub-agent."""
        self._agent_of[span] = agent_id

    def add(
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
        """A line made of this event, which is the end of `duration` seconds of work. Its index."""
        self._latest = max(self._latest, event.at)
        self._began.append(self._latest - (duration or 0.0))
        self._lines.append(
            TraceStep.model_construct(
                type=kind,
                agent_id=self._agent_of.get(span or "") or AGENTS.get(kind, "gateway"),
                model=self.calls.model(kind, event.step_id, event.attempt, span),
                title=title,
                status=status,
                started_at=event.when - timedelta(seconds=duration or 0.0),
                duration=None if duration is None else round(duration, 4),
                step_id=event.step_id,
                attempt=event.attempt,
                detail=detail or {},
                usage=usage,
                span=span,
                parent_span=parent,
            )
        )
        return len(self._lines) - 1

    def begin(
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
            self._open[key] = self.add(event, kind, title, "running", detail, span=span, parent=parent)
        return self._open[key]

    def close(
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
        """Complete the line of `key`, if one is open; with `keep` it is still to be judged (`judge`). `duration` is the
        time since it began where it is not known better."""
        index = self._open.get(key) if keep else self._open.pop(key, None)
        if index is None:
            return
        line = self._lines[index]
        seconds = duration if duration is not None else event.at - line.started_at.timestamp()
        update = {
            "status": status,
            "duration": round(seconds, 4),
            "detail": {**line.detail, **detail},
            "usage": usage,
            "model": self.calls.model(line.type, line.step_id, line.attempt, line.span),
        }
        self._lines[index] = line.model_copy(update=update)

    def judge(self, key: LineKey, status: TraceStatus) -> None:
        """The verdict on a line that was kept: it stays as it ended where that is `done`."""
        index = self._open.pop(key, None)
        if index is not None and status != "done":
            self._lines[index] = self._lines[index].model_copy(update={"status": status})
