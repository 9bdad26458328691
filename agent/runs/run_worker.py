"""`RunWorker`: the runs that this process executes. Claims them, renews their leases, recovers abandoned runs,
drains.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import BusyError, ConflictError, LogDamagedError, StaleEpochError, StoreError, StoreNewerError
from agent.core.events import ApprovalRequested, Event, RunCreated
from agent.core.failures import AgentFailure
from agent.core.log_context import run_id as current_run
from agent.core.models import JsonObject, Plan
from agent.core.run_state import RunState
from agent.core.throttled_log import ThrottledLog
from agent.runs.dropped_runs import DroppedRuns
from agent.storage.journal import Claim, Journal

log = logging.getLogger(__name__)

CANCEL_GRACE_SECONDS = 5.0
"""How long a stopping gateway waits for cancelled runs; a tool that cannot be stopped is abandoned."""


class LiveRun(Protocol):
    """A run that this process executes."""

    run_id: str
    epoch: int
    state: RunState
    events: list[Event]

    def follow_events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yields its events as they come."""
        ...

    async def wait_until_stopped(self, after: int = 0) -> None:
        """Waits until the run has ended, waits for a person after seq `after`, or is released."""
        ...


Live = TypeVar("Live", bound=LiveRun)


class Executor(Protocol[Live]):
    """Executes runs."""

    def open_run(self, claim: Claim) -> Live:
        """The run for a claim."""
        ...

    async def execute_run(self, run: Live) -> None:
        """Drives the run until it ends or is released."""
        ...

    async def release_run(self, run: Live) -> None:
        """Releases a run that was not started, for another worker."""
        ...

    async def cancel_run(self, run: Live, reason: str) -> None:
        """Stops the run's work; its answer reports the results so far."""
        ...

    async def fail_run(self, run: Live, failure: AgentFailure) -> None:
        """Ends a run that was not started with a failure."""
        ...

    async def apply_signals(self, run: Live) -> bool:
        """Applies the signals the run has received since the last call. Returns False if the run has just been
        released.
        """
        ...

    def require_asked_tools(self, state: RunState, requests: Iterable[ApprovalRequested]) -> None:
        """Raises `ToolUnknownError` if a call that is asked about cannot be made here, as while a feature is off."""
        ...

    def validate_edited_plan(self, claim: Claim, plan: JsonObject) -> Plan:
        """The plan that a person's edit makes. Raises `BadRequestError`."""
        ...

    def validate_steps(self, claim: Claim, plan: JsonObject, *, known: Collection[str], finish: bool) -> Plan:
        """A plan for a run that has not started. Raises `BadRequestError`. `known` are steps with results;
        `finish` adds the completion that the plan needs.
        """
        ...


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """The number of parallel and queued runs, and the lease of a worker in seconds."""

    concurrent: int = 100
    queued: int = 1000
    lease_s: float = 15.0


class WorkerFactory(Protocol[Live]):
    """Makes the worker of this process, such as one that shares its runs with others through a queue."""

    def __call__(
        self, journal: Journal, executor: Executor[Live], *, worker: str, limits: ServiceLimits
    ) -> "RunWorker[Live]":
        """The worker that takes this process's share of the runs."""
        ...


def make_worker_name() -> str:
    """This process's worker name: host, pid and a nonce, because a pid can be reused."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


FOLLOW_SECONDS = 1.0
"""How long a run that has stopped stays in memory for who is about to follow it."""


class RunWorker(Generic[Live]):
    """Executes one process's share of the runs."""

    def __init__(self, journal: Journal, executor: Executor[Live], *, worker: str, limits: ServiceLimits) -> None:
        self._journal = journal
        self._executor = executor
        self._worker = worker
        self._limits = limits
        self._live: dict[str, Live] = {}
        self._ended: dict[str, Live] = {}
        """Runs that stopped less than `FOLLOW_SECONDS` ago."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._claiming: dict[str, asyncio.Task[bool]] = {}
        """Runs that are being created or claimed. Each is a separate task: if its caller disconnects meanwhile, the run
        must still be executed.
        """
        self._watch_s = min(1.0, limits.lease_s / 3)
        """How often leases are renewed and abandoned runs are looked for, in seconds."""
        self._dropped = DroppedRuns(first_s=self._watch_s, longest_s=limits.lease_s)
        self._unreadable_run_ids: set[str] = set()
        self._slots = asyncio.Semaphore(limits.concurrent)
        self._drain: asyncio.Task[int] | None = None
        self.draining = False
        """Whether the gateway is stopping and accepts no new runs."""

    def get_live_run(self, run_id: str) -> Live | None:
        """The run if this process executes it."""
        return self._live.get(run_id)

    def get_followable_run(self, run_id: str) -> Live | None:
        """The run if this process executes it or has just ended it.

        A late follower of a short run would miss the answer deltas in the log, which are pruned at its end.
        """
        return self._live.get(run_id) or self._ended.get(run_id)

    @property
    def live_count(self) -> int:
        """Counts the runs that this process executes."""
        return len(self._live)

    def list_billed_runs(self) -> dict[str, str]:
        """The runs of API keys that this process executes: run ids with their keys."""
        return {
            run_id: live.state.api_key_id for run_id, live in self._live.items() if live.state.api_key_id is not None
        }

    async def create_run(self, run_id: str, body: RunCreated) -> None:
        """Stores a new run and starts it. Raises `BusyError` if draining or full, and `StoreError`."""
        if self.draining:
            raise BusyError("the gateway is stopping and accepts no new runs; try again in a moment")
        live_count = len(self._live) + len(self._claiming)
        if live_count >= self._limits.concurrent + self._limits.queued:
            raise BusyError(f"{live_count} runs are waiting already; try again later")
        lease_s = self._limits.lease_s
        await self._claim_and_start(
            run_id, self._journal.create_run(run_id, body, worker=self._worker, lease_s=lease_s)
        )

    async def resume_run(self, run_id: str) -> bool:
        """Claims an unfinished run and continues it. Returns True also if this process already executes it. Raises
        `BusyError`.
        """
        if self.draining:
            raise BusyError("the gateway is stopping; the run continues after the restart")
        await self._list_abandoned_runs()
        return run_id in self._live or await self._claim_run(run_id)

    async def process_signals(self, run_id: str) -> None:
        """Makes the run apply its signals: at once if it executes here, else by claiming it if no process holds it."""
        live = self._live.get(run_id)
        if live is not None and await self._executor.apply_signals(live):
            return
        if live is not None and (task := self._tasks.get(run_id)) is not None:
            await asyncio.wait([task])
        await self._claim_run(run_id)

    async def process_cancel(self, run_id: str) -> None:
        """Applies a stored cancellation: at once if the run executes here or no process holds it."""
        await self.process_signals(run_id)

    async def recover_runs(self, *, abandoned: bool = True) -> int:
        """Claims and continues every abandoned run. Returns how many.

        Without `abandoned`, only the runs that this process had to drop. Raises `StoreError`.
        """
        claimed = 0
        abandoned_runs = await self._list_abandoned_runs() if abandoned else []
        for run_id in [*self._dropped.list_due(), *(one for one in abandoned_runs if not self._dropped.is_early(one))]:
            if len(self._live) >= self._limits.concurrent or self.draining:
                break
            if run_id not in self._unreadable_run_ids:
                try:
                    claimed += await self._claim_run(run_id)
                except (LogDamagedError, StoreNewerError) as error:  # one unreadable log must not block the others
                    self._unreadable_run_ids.add(run_id)
                    log.error("run %s cannot be resumed: %s", run_id, error.message)  # noqa: TRY400 - no defect
            self._dropped.record_resumed(run_id)
        return claimed

    async def maintain_leases(self, *, recover: bool = True) -> None:
        """Renews leases, applies signals from other processes and recovers abandoned runs, until cancelled.

        Without `recover`, abandoned runs of other processes are left alone; those that this process had to drop are
        resumed.
        """
        # Not `agent.storage.leases.keep_renewed`: one statement renews all runs, and the epoch tells who has lost one.
        trouble = ThrottledLog(log, "the store cannot be used")
        while True:
            await asyncio.sleep(self._watch_s)
            try:
                if self._live:
                    await self._journal.renew_leases(self._worker, list(self._live), lease_s=self._limits.lease_s)
                    await self._apply_signals()
                recovers = recover or bool(self._dropped.list_due())
                if recovers:
                    await self.recover_runs(abandoned=recover)
                if self._live or recovers:  # otherwise the store was not used
                    trouble.record_recovery()
            except StoreError as error:
                trouble.record_failure(error.message, error.code)
            except Exception:  # the leases of live runs must be renewed in any case
                log.exception("maintaining the leases of runs failed")

    def begin_drain(self, seconds: float) -> asyncio.Task[int]:
        """Stops accepting runs, waits `seconds` for running ones, then leaves the rest resumable.

        The task's result is how many were left. Later calls return the same task.
        """
        self.draining = True
        if self._drain is None:
            self._drain = asyncio.create_task(self._drain_runs(seconds), name="drain")
        return self._drain

    async def _drain_runs(self, seconds: float) -> int:
        if self._claiming:
            await asyncio.wait(self._claiming.values())
        tasks = set(self._tasks.values())
        if tasks:
            _, tasks = await asyncio.wait(tasks, timeout=seconds)
        for task in await cancel_and_wait(*tasks, timeout_s=CANCEL_GRACE_SECONDS):
            log.warning("run %s does not stop; another worker resumes it when its lease expires", task.get_name())
        return len(tasks)

    async def _list_abandoned_runs(self) -> list[str]:
        """Unfinished runs without a worker. Runs of dead processes on this machine are freed at once."""
        dead = [worker for worker in await self._journal.list_workers() if is_dead_worker(worker, self._worker)]
        return await self._journal.list_claimable_runs(dead_workers=dead)

    async def _claim_run(self, run_id: str) -> bool:
        """Claims and starts the run. Returns False if another worker has it."""
        if run_id in self._live or run_id in self._claiming:
            return False
        return await self._claim_and_start(
            run_id, self._journal.claim(run_id, worker=self._worker, lease_s=self._limits.lease_s)
        )

    async def _claim_and_start(self, run_id: str, claiming: Awaitable[Claim | None]) -> bool:
        """Claims and starts a run in a task that outlives the caller. Raises what the claim raises."""
        task = asyncio.create_task(self._start_claimed_run(claiming), name=f"{run_id} claim")
        self._claiming[run_id] = task
        task.add_done_callback(lambda _: self._claiming.pop(run_id, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_claim_failure)
            raise

    async def _start_claimed_run(self, claiming: Awaitable[Claim | None]) -> bool:
        claim = await claiming
        if claim is None:
            return False
        if (former := claim.former_worker) is not None:
            log.warning("run %s is taken over from %s, which has ended or fallen silent", claim.run_id, former)
        live = self._executor.open_run(claim)
        if self.draining:  # accepted just before draining: it is on disk and continues after the restart
            await self._executor.release_run(live)
            return True
        self._live[claim.run_id] = live
        task = asyncio.create_task(self._execute_run(live), name=claim.run_id)
        self._tasks[claim.run_id] = task
        task.add_done_callback(lambda _: self._remove_run(live))
        return True

    async def _execute_run(self, live: Live) -> None:
        current_run.set(live.run_id)
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            await self._executor.release_run(live)
            raise
        try:
            await self._executor.execute_run(live)
        finally:
            self._slots.release()

    def _remove_run(self, live: Live) -> None:
        if self._live.get(live.run_id) is live:
            del self._live[live.run_id]
            del self._tasks[live.run_id]
            self._ended[live.run_id] = live
            asyncio.get_running_loop().call_later(FOLLOW_SECONDS, self._ended.pop, live.run_id, None)
        if not live.state.is_finished and live.state.status != "awaiting_approval" and not self.draining:
            self._dropped.add(live.run_id)

    async def _apply_signals(self) -> None:
        for live in list(self._live.values()):
            if live.state.cancel_request is None:
                # It may have ended, or another process may execute it by now.
                with contextlib.suppress(ConflictError, StaleEpochError):
                    await self._executor.apply_signals(live)


def _log_claim_failure(task: asyncio.Task[bool]) -> None:
    """Logs the failure of a claim whose caller did not wait for it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a run whose caller has disconnected could not be started: %s", error)


def is_dead_worker(worker: str, own: str) -> bool:
    """Whether `worker` was a process of this machine that no longer runs. False if that cannot be known."""
    host, _, rest = worker.partition(":")
    pid = rest.partition(":")[0]
    if host != own.partition(":")[0] or not pid.isdigit():
        return False
    if int(pid) == os.getpid():  # a restarted container may reuse the pid
        return worker != own
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
