"""The gauges of the queue while its database is away."""

import pytest
from prometheus_client import CollectorRegistry

from agent.core.errors import StoreError
from gateway.features.fleet import queue_gauges
from gateway.features.fleet.engine.queue_state import QueueDepth, QueueState, QueueWorker


class _State(QueueState):
    """A queue whose database goes away."""

    def __init__(self) -> None:
        self.is_away = False

    async def list_depths(self) -> list[QueueDepth]:
        if self.is_away:
            raise StoreError("the database cannot be reached")
        return [QueueDepth("runs@1", waiting=3)]

    async def list_workers(self) -> list[QueueWorker]:
        return []


async def test_the_gauges_stay_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_gauges, "CACHE_SECONDS", 0.0)
    registry, state = CollectorRegistry(), _State()
    gauges = queue_gauges.QueueGauges(registry, state)
    await gauges.refresh()
    state.is_away = True
    await gauges.refresh()
    assert registry.get_sample_value("stepgate_queue_depth", {"lane": "runs"}) == 3
