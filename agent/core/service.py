"""`AgentService`: start, follow, cancel and read runs. The one way into the engine, for every door."""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from agent.core.errors import (
    FAILURES,
    AgentError,
    AgentFailure,
    BusyError,
    ConflictError,
    FailureKind,
    LogDamagedError,
    NotFoundError,
    StaleEpochError,
    StoreError,
    StoreNewerError,
)
from agent.core.events import Event, RunCreated, RunFailed
from agent.core.fold import RunState
from agent.core.journal import Claim, Journal, RunRow
from agent.core.models import LOCAL_OWNER, AgentRequest, AgentResponse, Room, RunStatus
from agent.core.response import respond
from agent.core.rooms import Rooms

log = logging.getLogger(__name__)

ENDED = frozenset({"succeeded", "failed", "cancelled"})
TAIL_SECONDS = 5.0
"""How long a tail of another process's run waits before it reads again, should a wake-up have been missed."""
LET_GO_SECONDS = 5.0
"""How long a stopping gateway waits for cancelled runs to let go; a tool that cannot be stopped is left behind."""


class LiveRun(Protocol):
    """A run in the hands of this process."""

    run_id: str
    state: RunState

    def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """Its events as they come."""
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


class RunFailedError(AgentError):
    """Raised by `response` for a run that failed; carries the failure as it stands in the log."""

    def __init__(self, failure: AgentFailure) -> None:
        super().__init__(failure.message, agent_id=failure.agent_id, **failure.details)
        self._failure = failure

    @property
    def kind(self) -> FailureKind:
        """The failure's row of the table."""
        return FAILURES.get(self._failure.error_code, FAILURES["ERR_INTERNAL"])

    def failure(self) -> AgentFailure:
        """The failure of the log."""
        return self._failure


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """How much at a time, and how long a silent worker keeps its runs (seconds)."""

    concurrent: int = 100
    queued: int = 1000
    lease_s: float = 15.0


def worker_name() -> str:
    """This process as a worker: host, pid, and a nonce, for a pid can be used again."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class AgentService(Generic[Live]):
    """The runs of this gateway."""

    def __init__(
        self,
        journal: Journal,
        executor: Executor[Live],
        rooms: Rooms,
        admit: Callable[[AgentRequest, Room], None],
        *,
        worker: str,
        limits: ServiceLimits = ServiceLimits(),
    ) -> None:
        self._journal = journal
        self._executor = executor
        self.rooms = rooms
        self._admit = admit
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

    def admit(self, request: AgentRequest) -> Room:
        """The room that will serve the request. Raises `RoomUnknownError`, `BadRequestError`, `TooLargeError`."""
        room = self.rooms.get(request.room)
        self._admit(request, room)
        return room

    async def start(self, request: AgentRequest, *, owner: str = LOCAL_OWNER, hidden: bool = False) -> str:
        """Accept a request: its run is on disk when this returns. The id of the run.

        Raises what `admit` raises, `BusyError` when draining or full, `StoreError` when it cannot be stored."""
        room = self.admit(request)
        if self.draining:
            raise BusyError("the gateway is stopping and takes no new runs; try again in a moment")
        held = len(self._live) + len(self._taking)
        if held >= self._limits.concurrent + self._limits.queued:
            raise BusyError(f"{held} runs are waiting already; try again later")
        run_id = f"run_{secrets.token_hex(16)}"
        body = RunCreated(request=request, room=room, owner=owner, hidden=hidden)
        lease_s = self._limits.lease_s
        await self._take(run_id, self._journal.create_run(run_id, body, worker=self._worker, lease_s=lease_s))
        return run_id

    async def events(self, run_id: str, *, owner: str = LOCAL_OWNER, after: int = 0) -> AsyncGenerator[Event, None]:
        """The events with `seq > after`, replayed and then live, up to the terminal one. `NotFoundError`.

        Ends early only while the gateway is draining: the run goes on after the restart."""
        live = self._live.get(run_id)
        if live is not None and live.state.owner != owner:
            raise NotFoundError(f"there is no run {run_id!r}")
        if live is not None:
            async for event in live.follow(after):
                after = event.seq
                yield event
                if event.body.terminal:
                    return
        else:
            row = await self._journal.get(run_id, owner=owner)
            if row.status in ENDED and after >= row.last_seq:
                return
        async for event in self._tail(run_id, after):
            yield event

    async def finished(self, run_id: str, *, owner: str = LOCAL_OWNER) -> list[Event]:
        """The whole log, once the run has ended.

        Raises `RunFailedError` for a run that failed, `BusyError` when the gateway stops first, `NotFoundError`."""
        events = [event async for event in self.events(run_id, owner=owner)]
        last = events[-1].body if events else None
        if isinstance(last, RunFailed):
            raise RunFailedError(last.failure)
        if last is None or not last.terminal:
            raise BusyError(f"the gateway is stopping; the run goes on after its restart: GET /v1/runs/{run_id}")
        return events

    async def response(self, run_id: str, *, owner: str = LOCAL_OWNER) -> AgentResponse:
        """The answer, once the run has ended. Raises what `finished` raises."""
        return respond(await self.finished(run_id, owner=owner))

    async def read(self, run_id: str, *, owner: str = LOCAL_OWNER, after: int = 0) -> list[Event]:
        """The events so far. `NotFoundError`."""
        await self._journal.get(run_id, owner=owner)
        return await self._journal.read(run_id, after=after)

    async def blob_value(self, checksum: str) -> dict[str, object] | None:
        """The object a long tool result was stored as; None when it was no object."""
        value = json.loads(await self._journal.get_blob(checksum)).get("value")
        return value if isinstance(value, dict) else None

    async def get(self, run_id: str, *, owner: str = LOCAL_OWNER) -> RunRow:
        """The run's row. `NotFoundError`."""
        return await self._journal.get(run_id, owner=owner)

    async def list_runs(
        self,
        *,
        owner: str = LOCAL_OWNER,
        limit: int = 50,
        before: str | None = None,
        status: RunStatus | None = None,
    ) -> list[RunRow]:
        """Runs, newest first."""
        return await self._journal.list_runs(owner=owner, limit=limit, before=before, status=status)

    async def cancel(self, run_id: str, *, owner: str = LOCAL_OWNER, reason: str = "cancelled by the caller") -> None:
        """Ask the owner of a run to stop it; kept as a signal, so that a crash does not lose it.

        Raises `NotFoundError`, and `ConflictError` for a run that has ended."""
        row = await self._journal.get(run_id, owner=owner)
        if row.status in ENDED:
            raise ConflictError(f"run {run_id!r} has ended already ({row.status})")
        await self._journal.signal(run_id, "cancel", {"reason": reason})
        live = self._live.get(run_id)
        if live is not None:
            await self._executor.cancel(live, reason)

    async def resume(self, run_id: str, *, owner: str = LOCAL_OWNER) -> None:
        """Claim an unfinished run and go on with it. `ConflictError` when it has ended or another process holds it."""
        row = await self._journal.get(run_id, owner=owner)
        if row.status in ENDED:
            raise ConflictError(f"run {run_id!r} has ended already ({row.status})")
        if self.draining:
            raise BusyError("the gateway is stopping; the run goes on after its restart")
        await self._abandoned()
        if run_id not in self._live and not await self._claim(run_id):
            raise ConflictError(f"run {run_id!r} is held by {row.worker}; it is being carried out there")

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
        while True:
            await asyncio.sleep(every)
            try:
                if self._live:
                    await self._journal.renew(self._worker, list(self._live), lease_s=self._limits.lease_s)
                    await self._obey_signals()
                if recover or self._dropped:
                    await self.recover(abandoned=recover)
            except StoreError as error:
                log.error("the store cannot be used: %s", error.message)  # noqa: TRY400 - no defect of ours
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

    @property
    def live_count(self) -> int:
        """How many runs this process holds."""
        return len(self._live)

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
        if not live.state.finished and not self.draining:
            self._dropped.add(live.run_id)

    async def _tail(self, run_id: str, after: int) -> AsyncIterator[Event]:
        """Follow a run through the journal: one of another process, or one that was let go."""
        while True:
            for event in await self._journal.read(run_id, after=after):
                after = event.seq
                yield event
                if event.body.terminal:
                    return
            if self.draining and run_id not in self._live:
                return
            await self._journal.wait(run_id, after=after, timeout_s=TAIL_SECONDS)

    async def _obey_signals(self) -> None:
        for live in list(self._live.values()):
            if live.state.cancel is not None:
                continue
            for signal in await self._journal.take_signals(live.run_id):
                if signal.kind == "cancel":
                    with contextlib.suppress(ConflictError, StaleEpochError):  # it has ended, or goes on elsewhere
                        await self._executor.cancel(live, str(signal.payload.get("reason") or "cancelled"))


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
