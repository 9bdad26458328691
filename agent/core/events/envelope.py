"""What all events have in common: the body, which says what happened, and the envelope, which says where in the log."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from agent.core.models import Frozen, JsonObject


class EventBody(Frozen):
    """The root of all bodies. `type` and `v` are stored beside it; a `terminal` one is the last of its run."""

    type: ClassVar[str]
    v: ClassVar[int] = 1
    terminal: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Event:
    """One immutable fact of a run. `at` is UTC seconds since 1970; `seq` starts at 1 and has no gaps."""

    run_id: str
    seq: int
    epoch: int
    at: float
    body: EventBody
    step_id: str | None = None
    attempt: int | None = None

    @property
    def type(self) -> str:
        """The body's type, as stored."""
        return self.body.type

    @property
    def when(self) -> datetime:
        """`at` as an aware datetime."""
        return datetime.fromtimestamp(self.at, UTC)

    def wire(self) -> JsonObject:
        """The public JSON form, as `/v1/runs/{id}/events` sends it."""
        return {
            "run_id": self.run_id,
            "seq": self.seq,
            "epoch": self.epoch,
            "type": self.type,
            "v": self.body.v,
            "step_id": self.step_id,
            "attempt": self.attempt,
            "data": self.body.model_dump(mode="json"),
            "at": self.when.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that has no place in the log yet. `noted` is when it happened, by `time.monotonic`, where it is appended
    later than that; the log's `at` says so, by the store's clock."""

    body: EventBody
    step_id: str | None = None
    attempt: int | None = None
    noted: float | None = None
