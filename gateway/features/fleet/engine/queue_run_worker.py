"""`QueueRunWorker`: a `RunWorker` that shares its runs with other processes through a queue.

A gateway with a free slot and an empty lane begins a run itself. Otherwise it stores the run with a job, which any
process takes. A job wakes a run up; the journal's claim decides who executes it.
"""

import asyncio
import logging
from typing import Final, Literal, Protocol

from agent.core.errors import BusyError, LogDamagedError, StoreNewerError
from agent.core.events import (
    ApprovalDecided,
    ModelReturned,
    PlanProposed,
    RunCreated,
    RunSuspended,
    RunWaiting,
    StepFinished,
    StepJudged,
    ToolReturned,
)
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject
from agent.runs.dispatch import DeadJobError, Lane, PostponeJobError
from agent.runs.run_worker import Executor, Live, RunWorker, ServiceLimits
from agent.storage.journal import Journal

log = logging.getLogger(__name__)

MAX_IDLE_CLAIMS: Final = 5
"""How often a run may be claimed without getting further before it is given up: it probably ends its processes."""
_PROGRESS = (ToolReturned, ModelReturned, StepFinished, StepJudged, PlanProposed, ApprovalDecided, RunWaiting)
FENCED_SECONDS = 1.0
"""How soon the job of a run that another process has claimed looks again whether that one has ended it."""
NEWER_SECONDS = 10.0
"""How long the job of a run that a newer version has written waits before a process takes it again, in the hope that it
is a newer one."""

CANCEL_SECONDS: Final = 5.0
"""How long a caller waits for the end of a run that nobody had begun. It ends later where all slots are taken."""


class RunQueue(Protocol):
    """The queue of runs. `gateway/bootstrap_dispatch.py` builds it."""

    slots: int
    """How many runs this process begins by itself; 0 leaves all to others."""

    def get_queue(self, lane: Lane) -> str:
        """The name of a lane's queue for the runs of processes like this one."""
        ...

    async def is_empty(self, queue: str) -> bool:
        """Whether nobody waits in the queue."""
        ...

    async def count_waiting(self, queue: str, most: int) -> int:
        """Counts those that wait in the queue, up to `most`."""
        ...

    async def enqueue_run(self, run_id: str, own_queue: str) -> bool:
        """Puts a job for the run into its queue. Returns False if it is held or has ended."""
        ...

    async def remove_ended_run(self, run_id: str) -> None:
        """Removes the jobs of a run that has ended."""
        ...

    async def read_readiness(self, run_id: str) -> tuple[Literal["free", "held", "waiting", "ended"], float]:
        """Whether the run can be claimed, and the seconds left of its lease."""
        ...

    def stop_fetching(self) -> None:
        """Takes no further jobs."""
        ...

    def count(self, event: Literal["fenced", "dead"]) -> None:
        """Counts for the metrics."""
        ...


class QueueRunWorker(RunWorker[Live]):
    """Executes a share of the runs of a fleet."""

    def __init__(
        self, journal: Journal, executor: Executor[Live], *, worker: str, limits: ServiceLimits, queue: RunQueue
    ) -> None:
        super().__init__(journal, executor, worker=worker, limits=limits)
        self._queue = queue
        self._job_runs: set[str] = set()
        """Runs whose job waits for their end in this process; if they are left unfinished, it wakes them up again."""
        self._dead_runs: set[str] = set()

    async def create_run(self, run_id: str, body: RunCreated) -> None:
        """Stores a new run, and starts it here if a slot is free and nobody waits before it. Raises `BusyError` if
        draining or if too many wait, and `StoreError`.
        """
        lane: Lane = body.lane
        queue = self._queue.get_queue(lane)
        begins_here = lane == "runs" and not self.draining and self._has_free_slot()
        # Others may have taken the slot while the database answered. From here to the claim nothing is awaited.
        if begins_here and await self._queue.is_empty(queue) and self._has_free_slot():
            lease_s = self._limits.lease_s
            await self._claim_and_start(
                run_id, self._journal.create_run(run_id, body, worker=self._worker, lease_s=lease_s, queue=queue)
            )
            return
        most = self._limits.queued
        if await self._queue.count_waiting(queue, most + 1) > most:
            raise BusyError(f"{most} runs wait in the lane {lane!r} already; try again later")
        await self._journal.create_run(run_id, body, worker=None, lease_s=0, queue=queue)

    async def resume_run(self, run_id: str) -> bool:
        """Has an unfinished run continued. Returns False if another process executes it."""
        return run_id in self._live or await self._queue.enqueue_run(run_id, self._queue.get_queue("runs"))

    async def process_signals(self, run_id: str) -> None:
        """Applies the signals of a run that executes here. For a run that nobody holds, the signal has put a job into
        the queue; another process finds the signals of its runs itself.
        """
        live = self._live.get(run_id)
        if live is not None:
            await self._executor.apply_signals(live)

    async def process_cancel(self, run_id: str) -> None:
        """Ends a run that nobody holds, and removes its job: that needs no worker, and there may be none."""
        if run_id in self._live:
            await self.process_signals(run_id)
        elif not self.draining and await self._claim_run(run_id):
            if (task := self._tasks.get(run_id)) is not None:
                await asyncio.wait([task], timeout=CANCEL_SECONDS)
            await self._queue.remove_ended_run(run_id)

    async def recover_runs(self, *, abandoned: bool = True) -> int:
        """Continues the runs that this process had to drop. The sweep of the queue finds those of others."""
        return await super().recover_runs(abandoned=False)

    async def execute_job(self, arguments: JsonObject) -> None:
        """Handles a job: executes its run to the end, or until it waits for a person.

        Raises `PostponeJobError` for a run that another process holds or has taken, or that this one had to leave, so
        that the job stays; `DeadJobError` for a run that was given up; and `StoreError`.
        """
        run_id = str(arguments["run_id"])
        if self.draining:
            raise PostponeJobError("the process is stopping")
        if run_id not in self._live:
            readiness, seconds = await self._queue.read_readiness(run_id)
            if readiness == "held":
                raise PostponeJobError(f"run {run_id} is held by another process", seconds)
            if readiness != "free":
                return
            await self._claim_job_run(run_id)
        if (task := self._tasks.get(run_id)) is not None:
            self._job_runs.add(run_id)
            try:
                await asyncio.wait([task])
            finally:
                self._job_runs.discard(run_id)
        if run_id in self._dead_runs:
            self._dead_runs.discard(run_id)
            raise DeadJobError(f"run {run_id} made no progress in {MAX_IDLE_CLAIMS} claims")
        readiness, _ = await self._queue.read_readiness(run_id)
        if readiness in ("ended", "waiting"):
            return
        if readiness == "held":  # claimed elsewhere meanwhile: only its end may remove the job
            self._queue.count("fenced")
            raise PostponeJobError(f"run {run_id} goes on in another process", FENCED_SECONDS)
        raise PostponeJobError(f"run {run_id} was left unfinished")

    async def _claim_job_run(self, run_id: str) -> None:
        try:
            await self._claim_run(run_id)
        except LogDamagedError as error:  # no process can read it, however often it tries
            self._queue.count("dead")
            raise DeadJobError(error.message) from error
        except StoreNewerError as error:
            log.warning("run %s is left to a process of a newer version: %s", run_id, error.message)
            raise PostponeJobError(error.message, NEWER_SECONDS) from error

    def begin_drain(self, seconds: float) -> asyncio.Task[int]:
        """See `RunWorker.begin_drain`; also takes no further jobs."""
        self._queue.stop_fetching()
        return super().begin_drain(seconds)

    async def _drain_runs(self, seconds: float) -> int:
        """Hands the runs that are left to other processes: those without a job get one."""
        begun_here = {run_id for run_id in self._live if run_id not in self._job_runs}
        left = await super()._drain_runs(seconds)
        for run_id in begun_here if left else ():
            readiness, _ = await self._queue.read_readiness(run_id)
            if readiness == "free":
                await self._queue.enqueue_run(run_id, self._queue.get_queue("runs"))
        return left

    async def _execute_run(self, live: Live) -> None:
        idle = count_idle_claims(live)
        if idle <= MAX_IDLE_CLAIMS:
            await super()._execute_run(live)
            return
        self._dead_runs.add(live.run_id)
        self._queue.count("dead")
        message = (
            f"the run was claimed {idle} times without making progress and is given up; the logs of the processes that "
            "executed it may say why they ended"
        )
        failure = AgentFailure(agent_id="queue", error_code="ERR_RUN_GIVEN_UP", message=message, recoverable=False)
        await self._executor.fail_run(live, failure)

    def _has_free_slot(self) -> bool:
        return len(self._live) + len(self._claiming) < self._queue.slots


def count_idle_claims(live: Live) -> int:
    """Counts how often the run was claimed since it last got further. Claims that ended with a drain do not count."""
    epoch, seq = max(
        ((event.epoch, event.seq) for event in live.events if isinstance(event.body, _PROGRESS)), default=(0, 0)
    )
    suspended = sum(isinstance(event.body, RunSuspended) for event in live.events if event.seq > seq)
    return live.epoch - epoch - suspended
