"""Shared by all events: the body, which says what happened, and the envelope, which says where in the log.

The envelopes are named tuples: a turn makes some ninety, and a frozen dataclass takes five times as long to make.
"""

from datetime import UTC, datetime
from typing import ClassVar, NamedTuple

from agent.core.models import FrozenModel, JsonObject


class EventBody(FrozenModel):
    """The base class of all bodies. `type` and `v` are stored beside the body. A `terminal` event is the last of its
    run.
    """

    type: ClassVar[str]
    v: ClassVar[int] = 1
    terminal: ClassVar[bool] = False
    withheld_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that readers of the log are not shown."""

    def list_blobs(self) -> tuple[str, ...]:
        """The checksums of the blobs that hold parts of this event."""
        return ()


class Event(NamedTuple):
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
        """The type of the body, as stored."""
        return self.body.type

    @property
    def timestamp(self) -> datetime:
        """`at` as a datetime with time zone."""
        return datetime.fromtimestamp(self.at, UTC)

    def to_public_json(self) -> JsonObject:
        """The public JSON form, as `/v1/runs/{id}/events` sends it."""
        return {
            "run_id": self.run_id,
            "seq": self.seq,
            "epoch": self.epoch,
            "type": self.type,
            "v": self.body.v,
            "step_id": self.step_id,
            "attempt": self.attempt,
            "data": self.body.model_dump(mode="json", exclude=set(self.body.withheld_fields)),
            "at": self.timestamp.isoformat(),
        }


class EventDraft(NamedTuple):
    """An event that has no place in the log yet. `monotonic_at` is when it happened, by `time.monotonic`, if it is
    appended later; the journal converts it to the `at` of the store's clock.
    """

    body: EventBody
    step_id: str | None = None
    attempt: int | None = None
    monotonic_at: float | None = None
    data: str | None = None
    """The body's JSON, if it was encoded already."""
