"""The gauges of the queue: read from the database when somebody asks for the metrics."""

import logging
from time import monotonic

from prometheus_client import CollectorRegistry, Gauge

from agent.core.errors import StoreError
from agent.core.throttled_log import ThrottledLog
from agent.runs.dispatch import LANES
from gateway.features.fleet.engine.queue_state import QueueState

log = logging.getLogger(__name__)

CACHE_SECONDS = 5.0
"""How long the figures are kept: every process of a fleet is asked for them, and counting a long queue takes time."""


class QueueGauges:
    """Depth, age and workers of each lane. All processes report the same figures."""

    def __init__(self, registry: CollectorRegistry, state: QueueState) -> None:
        self._state = state
        self._trouble = ThrottledLog(log, "the gauges of the queue cannot be read")
        self._read_at = float("-inf")
        self._depth, self._running, self._oldest, self._workers = (
            # `mostrecent`: of several processes behind one port, the one that read last.
            Gauge(f"stepgate_queue_{name}", text, ("lane",), registry=registry, multiprocess_mode="mostrecent")
            for name, text in (
                ("depth", "Jobs that wait."),
                ("running", "Jobs that are done now."),
                ("oldest_seconds", "Age of the oldest job that waits."),
                ("workers", "Processes that take jobs."),
            )
        )

    async def refresh(self) -> None:
        """Reads the queue, unless that was just done.

        If the store is down, the gauges stay as they are: the other metrics are most wanted then.
        """
        if monotonic() - self._read_at < CACHE_SECONDS:
            return
        self._read_at = monotonic()
        try:
            depths, workers = await self._state.list_depths(), await self._state.list_workers()
        except StoreError as error:
            self._trouble.record_failure(error.message, error.code)
            return
        self._trouble.record_recovery()
        for lane in LANES:
            mine = [depth for depth in depths if depth.lane == lane]
            self._depth.labels(lane).set(sum(depth.waiting for depth in mine))
            self._running.labels(lane).set(sum(depth.running for depth in mine))
            self._oldest.labels(lane).set(max((depth.oldest_s for depth in mine), default=0.0))
            self._workers.labels(lane).set(len({one.name for one in workers if one.queue.partition("@")[0] == lane}))
