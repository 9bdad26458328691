"""The spans of sub-agents in an AG-UI stream: each is ended in its turn, and starts again in the turn that resumes it.

Clients before 1.0 know no sub-agent events; they get custom events.
"""

from collections.abc import Iterator, Sequence

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
)

from agent.core import events as ev


class SubAgentSpans:
    """The sub-agents that are at work in one turn. `is_current`: the client speaks 1.0."""

    def __init__(self, *, is_current: bool) -> None:
        self._is_current = is_current
        self._open: dict[str, ev.SubAgentStarted] = {}
        self._suspended: dict[str, ev.SubAgentStarted] = {}

    def __contains__(self, span: object) -> bool:
        return span in self._open

    def start(self, started: ev.SubAgentStarted) -> Iterator[BaseEvent]:
        """Yields the start of a span."""
        self._open[started.span] = started
        if self._is_current:
            parent = started.parent if started.parent in self._open else None
            yield SubagentStartedEvent(
                subagent_run_id=started.span, name=started.agent_id, parent_subagent_run_id=parent
            )
        else:
            yield CustomEvent(name="subagent_started", value={"id": started.span, "name": started.agent_id})

    def finish(self, finished: ev.SubAgentFinished) -> Iterator[BaseEvent]:
        """Yields the end of an open span."""
        del self._open[finished.span]
        summary = finished.result.summary
        if not self._is_current:
            yield CustomEvent(name="subagent_finished", value={"id": finished.span, "outcome": finished.outcome})
        elif finished.outcome == "done":
            yield SubagentFinishedEvent(subagent_run_id=finished.span, result=summary)
        else:
            yield SubagentErrorEvent(
                subagent_run_id=finished.span, message=summary or finished.outcome, code=finished.outcome
            )

    def suspend(self, interrupts: Sequence[str]) -> Iterator[BaseEvent]:
        """Yields the ends of the spans that wait for the answers to these interrupts, innermost first."""
        for span in reversed([*self._open]):
            if self._is_current:
                outcome = SubagentFinishedSuspendedOutcome(type="suspended", interrupt_ids=list(interrupts) or None)
                yield SubagentFinishedEvent(subagent_run_id=span, outcome=outcome)
            else:
                yield CustomEvent(name="subagent_finished", value={"id": span, "outcome": "suspended"})
        self._open.clear()

    def forget_turn(self) -> None:
        """Notes that an earlier turn has ended: what was open in it has been suspended there."""
        self._suspended.update(self._open)
        self._open.clear()

    def resume(self, body: ev.EventBody) -> Iterator[BaseEvent]:
        """Yields the starts of the suspended spans, once an event is one of theirs."""
        named = {getattr(body, "span", ""), getattr(body, "parent", "")}
        if not named & self._suspended.keys():
            return
        waited, self._suspended = self._suspended, {}
        for started in waited.values():
            yield from self.start(started)

    def end(self) -> Iterator[BaseEvent]:
        """Yields an end for each open span of a run that has ended before its sub-agents, innermost first."""
        for span in reversed([*self._open]):
            if self._is_current:
                yield SubagentErrorEvent(subagent_run_id=span, message="the run ended first", code="ended")
        self._open.clear()
