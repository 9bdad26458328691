"""The forms of what is in the queue: its lanes, its workers and its dead letters, as the route sends them.

A field of one is read in `engine/queue_state.py` and added here; `stepgate queue` shows it if it has a column there
(`commands/queue.py`).
"""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from agent.core.models import JsonObject, RunStatus
from agent.core.record_item import RecordItem
from agent.runs.dispatch import Lane
from gateway.features.fleet.engine.queue_state import QueueDepth


class QueueItem(RecordItem):
    """A queue of a lane. `runs@...` and `batch@...` are for processes with the same rooms, files and skills."""

    lane: Lane
    queue: str
    waiting: int
    running: int
    failed: int = Field(description="dead letters")
    oldest_seconds: float = Field(validation_alias="oldest_s", description="age of the oldest job that waits")
    is_served: bool = Field(description="false if jobs wait that no process takes")


class WorkerItem(RecordItem):
    """A process that takes jobs of a lane."""

    name: str = Field(description="host, process id and a mark of the process")
    lane: Lane
    queue: str
    slots: int
    running: int
    started_at: datetime = Field(validation_alias="started")
    silent_seconds: Annotated[float, AfterValidator(lambda seconds: max(0.0, seconds))] = Field(
        validation_alias="silent_s", description="age of its heartbeat"
    )


class DeadLetterItem(RecordItem):
    """A job that was given up."""

    id: int
    lane: Lane
    queue: str
    kind: str
    arguments: JsonObject
    attempts: int
    at: datetime
    reason: str
    run_id: str | None = Field(description="null if it is not of a run, or the run was deleted")
    run_status: RunStatus | None
    owner: str | None = Field(description="whose run it is")
    can_retry: bool = Field(description="false if its run has ended")


def to_queue_item(depth: QueueDepth, *, is_served: bool) -> QueueItem:
    """A queue as it is sent."""
    return QueueItem.model_validate({**asdict(depth), "lane": depth.lane, "is_served": is_served})
