"""What the route sends of the queue has every field that is read of it."""

from dataclasses import fields
from datetime import UTC, datetime

from gateway.features.fleet.engine.queue_state import DeadLetter, QueueDepth, QueueWorker
from gateway.features.fleet.forms import DeadLetterItem, QueueItem, WorkerItem, to_queue_item


def list_sources(item: type[QueueItem | WorkerItem | DeadLetterItem]) -> set[str]:
    return {str(field.validation_alias or name) for name, field in item.model_fields.items()}


def test_each_form_has_the_fields() -> None:
    assert list_sources(QueueItem) == {field.name for field in fields(QueueDepth)} | {"lane", "is_served"}
    assert list_sources(WorkerItem) == {field.name for field in fields(QueueWorker)} | {"lane"}
    assert list_sources(DeadLetterItem) == {field.name for field in fields(DeadLetter)} | {"lane", "can_retry"}


def test_a_lane_is_sent_with_whether_it_is_served() -> None:
    item = to_queue_item(QueueDepth("runs", waiting=2, running=1, failed=3, oldest_s=4.5), is_served=False)
    assert item.model_dump() == {
        "lane": "runs", "queue": "runs", "waiting": 2, "running": 1, "failed": 3, "oldest_seconds": 4.5,
        "is_served": False,
    }  # fmt: skip


def test_workers_and_dead_letters_are_sent_with_times_in_utc() -> None:
    worker = WorkerItem.model_validate(QueueWorker("host-1", "runs", slots=4, started=60.0, silent_s=-0.5, running=1))
    assert (worker.lane, worker.silent_seconds) == ("runs", 0.0), "clocks may differ"
    minute = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert worker.started_at == minute
    letter = DeadLetter(7, "runs", "run", {"run_id": "r"}, 3, 60.0, "r", "anna", "failed", "It broke.")
    item = DeadLetterItem.model_validate(letter)
    assert (item.at, item.lane, item.can_retry) == (minute, "runs", False)
