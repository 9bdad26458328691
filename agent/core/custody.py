"""`Custody`: the runs in the hands of this process. Taking them, keeping their leases, putting them down."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from agent.core.context import run_id as current_run
from agent.core.errors import BusyError, ConflictError, LogDamagedError, StaleEpochError, StoreError, StoreNewerError
from agent.core.events import Event, RunCreated
from agent.core.fold import RunState
from agent.core.journal import Claim, Journal
from agent.core.models import JsonObject, Plan
from agent.core.outage import Outage

log = logging.getLogger(__name__)

LET_GO_SECONDS = 5.0
"""How long a stopping gateway waits for cancelled runs to let go; a tool that cannot be stopped is left behind."""


class LiveRun(Protocol):
    """A run in the hands of this process."""

    run_id: str
    state: RunState

    def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """Its events as they come."""
        ...

    async def settled(self, after: int = 0) -> None:
        """Wait until it has ended, waits for a person past `after`, or is let go."""
        ...


Live = TypeVar("Live", bound=LiveRun)


class Executor(Protocol[Live]):
    """Who carries runs out."""

    def open(self, claim: Claim) -> Live:
        """Take up a claim."""
        ...

    async def carry_out(self, run: Live) -> None:
        """Drive the run to its end, or let go of it."""
        ...

    async def let_go(self, run: Live) -> None:
        """Leave a run that was not begun to whoever comes next."""
        ...

    async def cancel(self, run: Live, reason: str) -> None:
        """Stop the run."""
        ...

    async def obey(self, run: Live) -> bool:
        """Take up what was said to the run since it was last looked at; False when it has just been put down."""
        ...

    def review(self, claim: Claim, plan: JsonObject) -> Plan:
        """The plan that a person's edit makes. Raises `BadRequestError`."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """How much at a time, and how long a silent worker keeps its runs (seconds)."""

    concurrent: int = 100
    queued: int = 1000
    lease_s: float = 15.0


def worker_name() -> str:
    """This process as a worker: host, pid, and a nonce, for a pid can be used again."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class Custody(Generic[Live]):
    """Who holds what: one process' share of the runs."""

    def __init__(self, journal: Journal, executor: Executor[Live], *, worker: str, limits: ServiceLimits) -> None:
        self._journal = journal
        self._executor = executor
        self._worker = worker
        self._limits = limits
        self._live: dict[str, Live] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._taking: dict[str, asyncio.Task[bool]] = {}
        """Runs that are being created or claimed. They are tasks of their own: a caller that hangs up in between
        must not leave a run behind that nobody carries out."""
        self._dropped: set[str] = set()
        """Runs this process had to let go of because the store failed; taken up again once it works."""
        self._unreadable: set[str] = set()
        self._slots = asyncio.Semaphore(limits.concurrent)
        self._drain: asyncio.Task[int] | None = None
        self.draining = False
        """Whether the gateway is stopping: no new runs."""

    def get(self, run_id: str) -> Live | None:
        """The run, where this process holds it."""
        return self._live.get(run_id)

    @property
    def live_count(self) -> int:
        """How many runs this process holds."""
        return len(self._live)

    def paid(self) -> dict[str, str]:
        """The runs this process holds for API keys: their ids with the keys'."""
        return {run_id: live.state.key for run_id, live in self._live.items() if live.state.key is not None}

    async def create(self, run_id: str, body: RunCreated) -> None:
        """Store a new run and begin with it. Raises `BusyError` when draining or full, `StoreError`."""
        if self.draining:
            raise BusyError("the gateway is stopping and takes no new runs; try again in a moment")
        held = len(self._live) + len(self._taking)
        if held >= self._limits.concurrent + self._limits.queued:
            raise BusyError(f"{held} runs are waiting already; try again later")
        lease_s = self._limits.lease_s
        await self._take(run_id, self._journal.create_run(run_id, body, worker=self._worker, lease_s=lease_s))

    async def take_up(self, run_id: str) -> bool:
        """Claim an unfinished run and go on with it; True also where this process holds it already. `BusyError`."""
        if self.draining:
            raise BusyError("the gateway is stopping; the run goes on after its restart")
        await self._abandoned()
        return run_id in self._live or await self._claim(run_id)

    async def heed(self, run_id: str) -> None:
        """See that a signal to this run is obeyed: where it is carried out here, at once; where nobody holds it, by
        taking it up."""
        live = self._live.get(run_id)
        if live is not None and await self._executor.obey(live):
            return
        if live is not None and (task := self._tasks.get(run_id)) is not None:
            await asyncio.wait([task])
        await self._claim(run_id)

    async def recover(self, *, abandoned: bool = True) -> int:
        """Claim and go on with every run nobody carries out any more; how many there were.

        Without `abandoned`, only with those that this process had to drop. Raises `StoreError`."""
        claimed = 0
        for run_id in [*self._dropped, *(await self._abandoned() if abandoned else ())]:
            if len(self._live) >= self._limits.concurrent or self.draining:
                break
            if run_id not in self._unreadable:
                try:
                    claimed += await self._claim(run_id)
                except (LogDamagedError, StoreNewerError) as error:  # one log must not keep the others from going on
                    self._unreadable.add(run_id)
                    log.error("run %s cannot be taken up: %s", run_id, error.message)  # noqa: TRY400 - no defect
            self._dropped.discard(run_id)
        return claimed

    async def watch(self, *, recover: bool = True) -> None:
        """Renew leases, obey signals from other processes and recover abandoned runs, until cancelled.

        Without `recover`, runs of others are left alone; those this process had to drop are taken up all the same."""
        every = min(1.0, self._limits.lease_s / 3)
        trouble = Outage(log, "the store cannot be used")
        while True:
            await asyncio.sleep(every)
            try:
                if self._live:
                    await self._journal.renew(self._worker, list(self._live), lease_s=self._limits.lease_s)
                    await self._obey_signals()
                if recover or self._dropped:
                    await self.recover(abandoned=recover)
                if self._live or recover or self._dropped:  # else the store was not asked
                    trouble.over()
            except StoreError as error:
                trouble.met(error.message, error.code)
            except Exception:  # whatever it is, the leases of the live runs have to be renewed
                log.exception("a defect in watching the runs")

    def begin_drain(self, seconds: float) -> asyncio.Task[int]:
        """Take no new runs, let the running ones finish for `seconds`, then leave them resumable.

        The task's result is how many were left. Asking again changes nothing."""
        self.draining = True
        if self._drain is None:
            self._drain = asyncio.create_task(self._finish_runs(seconds), name="drain")
        return self._drain

    async def _finish_runs(self, seconds: float) -> int:
        if self._taking:
            await asyncio.wait(self._taking.values())
        tasks = set(self._tasks.values())
        if tasks:
            _, tasks = await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=LET_GO_SECONDS)
            for task in stuck:
                log.warning("run %s does not let go of what it is doing; it is left to its lease", task.get_name())
        return len(tasks)

    async def _abandoned(self) -> list[str]:
        """Unfinished runs nobody holds; what dead processes of this machine held is freed at once."""
        dead = [worker for worker in await self._journal.workers() if is_dead(worker, self._worker)]
        return await self._journal.claimable(dead_workers=dead)

    async def _claim(self, run_id: str) -> bool:
        """Whether the run was ours to take up."""
        if run_id in self._live or run_id in self._taking:
            return False
        return await self._take(run_id, self._journal.claim(run_id, worker=self._worker, lease_s=self._limits.lease_s))

    async def _take(self, run_id: str, claiming: Awaitable[Claim | None]) -> bool:
        """Claim and begin, in a task that outlives the caller. Raises what the claiming raises."""
        task = asyncio.create_task(self._taken(claiming), name=f"{run_id} taking")
        self._taking[run_id] = task
        task.add_done_callback(lambda _: self._taking.pop(run_id, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_report)
            raise

    async def _taken(self, claiming: Awaitable[Claim | None]) -> bool:
        claim = await claiming
        if claim is None:
            return False
        live = self._executor.open(claim)
        if self.draining:  # accepted in the last moment: it is on disk, and goes on after the restart
            await self._executor.let_go(live)
            return True
        self._live[claim.run_id] = live
        task = asyncio.create_task(self._carry_out(live), name=claim.run_id)
        self._tasks[claim.run_id] = task
        task.add_done_callback(lambda _: self._forget(live))
        return True

    async def _carry_out(self, live: Live) -> None:
        current_run.set(live.run_id)
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            await self._executor.let_go(live)
            raise
        try:
            await self._executor.carry_out(live)
        finally:
            self._slots.release()

    def _forget(self, live: Live) -> None:
        if self._live.get(live.run_id) is live:
            del self._live[live.run_id]
            del self._tasks[live.run_id]
        if not live.state.finished and live.state.status != "awaiting_approval" and not self.draining:
            self._dropped.add(live.run_id)

    async def _obey_signals(self) -> None:
        for live in list(self._live.values()):
            if live.state.cancel is None:
                with contextlib.suppress(ConflictError, StaleEpochError):  # it has ended, or goes on elsewhere
                    await self._executor.obey(live)


def _report(task: asyncio.Task[bool]) -> None:
    """Say what became of a run whose caller did not wait for it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a run whose caller is gone could not be taken up: %s", error)


def is_dead(worker: str, own: str) -> bool:
    """Whether `worker` was a process of this machine that no longer runs. False where that cannot be known."""
    host, _, rest = worker.partition(":")
    pid = rest.partition(":")[0]
    if host != own.partition(":")[0] or not pid.isdigit():
        return False
    if int(pid) == os.getpid():  # a restarted container: the same pid, another life
        return worker != own
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
