"""`StoppedRun`: what `AgentService.wait_until_stopped` returns."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.events import Event
from agent.core.run_state import RunState


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """The whole log of a run that has ended or waits for a person, and the state after it."""

    events: Sequence[Event]
    state: RunState
