"""The queue's part of the composition root: who executes runs, and who does jobs."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from agent.core.settings import Settings
from agent.run_context.run import Run
from agent.runs.dispatch import RUN_JOB, Dispatcher, Lane
from agent.runs.rooms import Rooms
from agent.runs.run_worker import RunWorker, is_dead_worker
from agent.skills import SkillLibrary
from gateway.bootstrap_database import check_queue_settings
from gateway.bootstrap_dispatch import Dispatch
from gateway.feature_host import FeatureHost
from gateway.features.fleet.engine.queue_run_worker import QueueRunWorker
from gateway.features.fleet.engine.queue_state import QueueState
from gateway.features.fleet.parts import get_queue
from gateway.features.fleet.queue_gauges import QueueGauges

if TYPE_CHECKING:
    from gateway.features.fleet.engine.queue import QueueDispatcher


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue of this gateway, with its state for people."""

    dispatch: Dispatch
    state: QueueState


async def build_queue(host: FeatureHost) -> Queue | None:
    """The queue; None where each process executes the runs that it accepts. A command takes no jobs.

    Raises `ConfigError` where the queue cannot be used, and `StoreError`.
    """
    context, settings, name, metrics = host.context, host.settings, host.context.worker, host.context.metrics
    if settings.dispatch == "local":
        return None
    postgres = check_queue_settings(settings, context.store)
    database = postgres.database
    from gateway.features.fleet.engine.queue import QueueDispatcher, QueueOptions  # noqa: PLC0415 - its extra may not be installed
    from gateway.features.fleet.engine.queue_schema import apply_queue_schema  # noqa: PLC0415 - likewise
    from gateway.features.fleet.engine.queue_sweep import QueueSweeper  # noqa: PLC0415 - likewise

    await apply_queue_schema(database)
    options = QueueOptions(
        name,
        compute_digest(settings, host.rooms.rooms, host.rooms.skills),
        tuple(root.resolve() for root in settings.readable_roots),
        lanes=cast("tuple[Lane, ...]", settings.queue_lanes),
        slots=settings.queue_slots,
        lease_s=settings.lease_seconds,
    )
    dispatcher = QueueDispatcher(database, options)
    postgres.journal.jobs = dispatcher.runs
    context.stack.push_async_callback(dispatcher.aclose)
    events = metrics.make_counter(
        "queue_events_total", "Jobs taken over, swept, adopted or given up, and fenced runs.", "event"
    )

    def count_event(event: str) -> None:
        events.labels(event).inc()

    sweeper = QueueSweeper(
        dispatcher,
        database,
        is_dead=lambda worker: is_dead_worker(worker, name),
        count=count_event,
        adopt_s=settings.queue_adopt_seconds,
    )
    if context.recover:
        dispatcher.add_background(sweeper.run)
    state = QueueState(context.statements, context.audit)
    make_worker = partial(QueueRunWorker, queue=_SharedRuns(dispatcher, count_event))
    gauges = QueueGauges(metrics.registry, state)
    return Queue(Dispatch(dispatcher, make_worker, partial(_register_worker, dispatcher), gauges.refresh), state)


def find_dispatch(host: FeatureHost) -> Dispatch | None:
    """How runs reach processes through the queue, if there is one."""
    queue = get_queue(host)
    return queue.dispatch if queue is not None else None


def _register_worker(dispatcher: Dispatcher, worker: RunWorker[Run]) -> None:
    """Has jobs of runs handled by this process's worker."""
    if isinstance(worker, QueueRunWorker):
        dispatcher.register(RUN_JOB, worker.execute_job)


def compute_digest(settings: Settings, rooms: Rooms, skills: SkillLibrary) -> str:
    """A digest of what a run finds in this process: rooms, file roots, foreign MCP servers and skills.

    Rooms in the database are the same everywhere and are left out.
    """
    room_texts = [] if settings.room_store == "database" else sorted(room.model_dump_json() for room in rooms)
    try:
        servers = settings.mcp_servers_path.read_text("utf-8")
    except OSError:
        servers = ""
    parts = {
        "rooms": room_texts,
        "roots": sorted(str(root.resolve()) for root in settings.readable_roots),
        "servers": servers,
        "skills": sorted(f"{skill.name} {hashlib.sha256(skill.read_body().encode()).hexdigest()}" for skill in skills),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _SharedRuns:
    """Implements `RunQueue` on the queue's dispatcher."""

    def __init__(self, dispatcher: "QueueDispatcher", count: Callable[[Literal["fenced", "dead"]], None]) -> None:
        self._dispatcher = dispatcher
        self._runs = dispatcher.runs
        self.slots = dispatcher.options.slots if "runs" in dispatcher.options.lanes else 0
        self.get_queue = dispatcher.get_run_queue
        self.is_empty = self._runs.is_empty
        self.count_waiting = self._runs.count_waiting
        self.enqueue_run = self._runs.enqueue_run
        self.remove_ended_run = self._runs.remove_ended_run
        self.read_readiness = self._runs.read_readiness
        self.stop_fetching = dispatcher.stop_fetching
        self.count = count
