"""`ScheduleTicker`: starts the runs of schedules at their ticks. Each gateway on a store has one.

A run's id is a hash of its schedule and tick, so a second start of the same tick is a conflict in the journal: a tick
runs once, however many gateways see it and whenever one of them dies. The claim in the store only spares the work.
"""

import asyncio
import contextlib
import hashlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import (
    AgentError,
    AuthError,
    BadRequestError,
    BusyError,
    ConflictError,
    NotFoundError,
    RateLimitError,
    ScopeError,
    StoreError,
)
from agent.core.models import ENDED_STATUSES
from agent.core.principal import Principal
from agent.core.throttled_log import ThrottledLog
from agent.runs.run_intake import RunIntake
from agent.runs.service import AgentService
from gateway.features.protocols.engine import TaskService
from gateway.features.schedules.engine.cron import CronTimes
from gateway.features.schedules.engine.schedule_store import Schedule, ScheduleStore, Tick, TickOutcome
from gateway.features.schedules.engine.service import build_run_request

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
"""How long a schedule that another process has stored may stay unknown."""
HELD_POLL_SECONDS: Final = 0.25
"""How long to wait while due ticks are held by other processes."""
HOLD_SECONDS: Final = 30.0
"""How long a process may take to start a run, before another one takes over."""
GRACE_SECONDS: Final = 60.0
"""How late a tick may be handled and still count as on time. So long a refusal that may pass is tried again."""
RETRY_SECONDS: Final = 5.0
MAX_DUE: Final = 20
STOP_SECONDS: Final = 5.0

Authorize = Callable[[Schedule], Awaitable[Principal]]
"""On whose behalf a schedule runs. Raises `AuthError` or `ScopeError` if its key no longer allows it, and
`RateLimitError`."""


class DeferredTickError(Exception):
    """Raised for a tick that cannot be handled now and is tried again. Only the ticker sees it."""


class ScheduleTicker:
    """Handles the ticks that are due, while entered. `clock` gives UTC seconds; `count` is for the metrics."""

    def __init__(
        self,
        store: ScheduleStore,
        service: AgentService[Any],
        tasks: TaskService,
        intake: RunIntake,
        authorize: Authorize,
        *,
        clock: Callable[[], float] = time.time,
        count: Callable[[TickOutcome, int], None] = lambda outcome, number: None,
    ) -> None:
        self._store = store
        self._service = service
        self._tasks = tasks
        self._intake = intake
        self._authorize = authorize
        self._clock = clock
        self._count = count
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._latest = math.inf
        """The latest time that the clock showed; at the start, later than any."""

    def wake(self) -> None:
        """Makes the ticker look for due ticks now."""
        self._wake.set()

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Handles due ticks while entered. A tick that is being handled at the end is finished."""
        task = asyncio.create_task(self._run(), name="schedules")
        try:
            yield
        finally:
            self._is_stopping = True
            self._wake.set()
            await asyncio.wait([task], timeout=STOP_SECONDS)
            await cancel_and_wait(task)

    async def handle_due(self) -> int:
        """Handles the ticks that are due now, and returns how many of them were handled here.

        Raises `StoreError`, after all of them were tried.
        """
        await self._follow_clock()
        due = await self._store.list_due(MAX_DUE)
        results = await asyncio.gather(*(self._handle_safely(schedule) for schedule in due))
        for result in results:
            if isinstance(result, StoreError):
                raise result
        return sum(map(bool, results))

    async def _follow_clock(self) -> None:
        """Moves next ticks back, at the start and after the clock went back.

        A clock that was wrong for a minute would otherwise silence schedules until the time that it showed. A tick that
        had its run then gets no second one when its time comes, because the run has the same id.
        """
        now = self._clock()
        if now < self._latest - GRACE_SECONDS:
            for schedule in await self._store.list_later(now):
                with contextlib.suppress(BadRequestError, ValueError):  # its tick says what is wrong with it
                    last = await self._store.find_last_time(schedule, now)
                    next_tick = CronTimes(schedule.cron, schedule.timezone).find_next(last)
                    if schedule.next_tick is not None and next_tick < schedule.next_tick:
                        await self._store.move_back(schedule, next_tick)
            self._latest = now
        self._latest = max(self._latest, now)

    async def _run(self) -> None:
        trouble = ThrottledLog(log, "ticks of schedules cannot be handled")
        while not self._is_stopping:
            self._wake.clear()
            wait_s, next_tick = POLL_SECONDS, None
            with trouble.guard():
                if await self.handle_due():
                    continue
                next_tick = await self._store.find_next_tick()
            if next_tick is not None:
                wait_s = min(max(next_tick - self._clock(), HELD_POLL_SECONDS), POLL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()

    async def _handle_safely(self, schedule: Schedule) -> bool | StoreError:
        """Handles a due tick. Returns what `_handle` returns, or the failure of the store: the tick is tried again."""
        try:
            return await self._handle(schedule)
        except StoreError as error:
            return error
        except Exception:  # one schedule must not stop the others
            log.exception("a tick of the schedule %s cannot be handled", schedule.id)
            return False

    async def _handle(self, schedule: Schedule) -> bool:
        """Claims the last tick that has come, handles and records it. Returns False if another process has it."""
        now, first = self._clock(), schedule.next_tick
        if first is None:
            return False
        try:
            times = CronTimes(schedule.cron, schedule.timezone)
            # A tick that was claimed before is finished first: its run may have been started.
            tick = first if schedule.held_until else max(first, times.find_latest(now))
            next_tick, missed = times.find_next(tick), times.count_between(first, tick)
        except (BadRequestError, ValueError) as error:  # such as a time zone that an update of tzdata has removed
            await self._stop(schedule, str(error))
            return True
        if not await self._store.claim(schedule, tick, until=now + HOLD_SECONDS):
            return False
        try:
            outcome, detail = await self._start(schedule, tick, now)
        except DeferredTickError:
            await self._store.defer(schedule, tick, until=now + RETRY_SECONDS)
            return True
        run_id = make_run_id(schedule.id, tick) if outcome == "started" else None
        await self._store.record(schedule, Tick(tick, "cron", outcome, run_id, detail, missed), next_tick=next_tick)
        self._count(outcome, 1)
        self._count("missed", missed)
        if run_id is not None:
            log.info("schedule %s: run %s started at its tick %s", schedule.id, run_id, times.format(tick))
        else:
            log.info("schedule %s: no run at its tick %s (%s): %s", schedule.id, times.format(tick), outcome, detail)
        return True

    async def _stop(self, schedule: Schedule, reason: str) -> None:
        """Disables a schedule that cannot run, unless it was changed meanwhile."""
        if await self._store.stop(schedule, reason):
            log.warning("schedule %s is stopped: %s", schedule.id, reason)

    async def _start(self, schedule: Schedule, tick: float, now: float) -> tuple[TickOutcome, str]:
        """Starts the run of a tick, if it may. Returns what was done, and why not more.

        Raises `DeferredTickError` for what may pass, and `StoreError`.
        """
        if await self._find_status(make_run_id(schedule.id, tick), schedule.owner) is not None:
            return "started", ""  # by a process that died before it could record it
        if schedule.misfire == "skip" and now - tick > GRACE_SECONDS:
            return "missed", "no gateway was running at this time"
        last = schedule.last_run_id
        if schedule.overlap == "skip" and last is not None:
            status = await self._find_status(last, schedule.owner)
            if status is not None and status not in ENDED_STATUSES:
                return "skipped", f"the previous run, {last}, is still running ({status})"
        try:
            return await self._accept(schedule, tick)
        except (AuthError, ScopeError) as error:
            await self._stop(schedule, error.message)
            return "refused", error.message
        except (RateLimitError, BusyError) as error:
            if now - tick < GRACE_SECONDS:
                raise DeferredTickError from error
            return "refused", error.message
        except StoreError:  # the run may have been stored: the next attempt finds out
            raise
        except AgentError as error:
            return "refused", error.message

    async def _accept(self, schedule: Schedule, tick: float) -> tuple[TickOutcome, str]:
        """Passes the schedule's request to the intake, on behalf of its owner."""
        run_id = make_run_id(schedule.id, tick)
        principal = await self._authorize(schedule)
        request = build_run_request(schedule, tick)
        try:
            await self._intake.accept(principal, request, run_id=run_id, webhook=schedule.webhook)
        except ConflictError as error:
            if await self._find_status(run_id, schedule.owner) is not None:
                return "started", ""
            if await self._is_recorded_with_task(schedule, run_id):
                raise DeferredTickError from error
            return "skipped", error.message
        return "started", ""

    async def _is_recorded_with_task(self, schedule: Schedule, run_id: str) -> bool:
        """Whether the task counts this run as begun, although it is not stored: a process died in between."""
        task_id = schedule.work.get("task_id")
        if not isinstance(task_id, str):
            return False
        _, run = await self._tasks.get_task(task_id, owner=schedule.owner)
        return run is not None and run.run_id == run_id

    async def _find_status(self, run_id: str, owner: str) -> str | None:
        try:
            return (await self._service.get_run(run_id, owner=owner)).status
        except NotFoundError:
            return None


def make_run_id(schedule_id: str, tick: float) -> str:
    """The id of the run at a tick, the same in every process."""
    return f"run_{hashlib.sha256(f'{schedule_id} {int(tick)}'.encode()).hexdigest()[:32]}"
