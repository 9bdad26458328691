"""`AgentService`: start, follow, cancel and read runs. The one way into the engine, for every door."""

import asyncio
import contextlib
import copy
import json
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Generic, Literal, Protocol

from agent.core.audit import UNRECORDED, Act, Action, AuditLog
from agent.core.custody import Custody, Executor, Live, ServiceLimits
from agent.core.errors import (
    FAILURES,
    AgentError,
    AgentFailure,
    BusyError,
    ConflictError,
    FailureKind,
    NotFoundError,
)
from agent.core.events import ApprovalDecided, CancelRequested, Event, RunCreated, RunFailed, RunWaiting
from agent.core.fold import fold
from agent.core.journal import Claim, Journal, RunRow
from agent.core.models import AgentRequest, AgentResponse, JsonObject, Room, RunStatus
from agent.core.principal import Principal
from agent.core.progress import RunProgress
from agent.core.response import respond
from agent.core.rooms import Rooms

log = logging.getLogger(__name__)

Decision = Literal["approve", "reject", "answer"]
_ACTIONS: Mapping[Decision, Action] = {
    "approve": "approval.approve",
    "reject": "approval.reject",
    "answer": "approval.answer",
}
ENDED = frozenset({"succeeded", "failed", "cancelled"})
HEARD_SECONDS = 2.0
"""How long those who decide wait to see the run go on: where another process has to take it up, a second goes by."""
TAIL_SECONDS = 5.0
"""How long a tail of another process's run waits before it reads again, should a wake-up have been missed."""


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


def new_run_id() -> str:
    """An id no run has."""
    return f"run_{secrets.token_hex(16)}"


class Places(Protocol):
    """How many runs of an API key there may be at the same time."""

    async def take(self, key: str, run_id: str, most: int) -> None:
        """Take one of so many places. `RateLimitError` where all of them are taken."""
        ...

    async def free(self, key: str, run_id: str) -> None:
        """Give back the place of a run that was not begun."""
        ...


async def _anything(key: str, request: AgentRequest, room: Room) -> None:
    return


def _as_it_is(request: AgentRequest) -> AgentRequest:
    return request


class AgentService(Generic[Live]):
    """The runs of this gateway."""

    def __init__(
        self,
        journal: Journal,
        executor: Executor[Live],
        rooms: Rooms,
        admit: Callable[[AgentRequest, Room, bool], None],
        *,
        worker: str,
        limits: ServiceLimits | None = None,
        audit: AuditLog = UNRECORDED,
        screen: Callable[[AgentRequest], AgentRequest] = _as_it_is,
        afford: Callable[[str, AgentRequest, Room], Awaitable[None]] = _anything,
        places: Places | None = None,
        progress: RunProgress | None = None,
    ) -> None:
        self.progress = progress or RunProgress()
        """What is said of the runs that this process carries out."""
        self._audit = audit
        self.screened = screen
        """The request as it may be stored: without secrets of this gateway."""
        self._afford = afford
        self._places = places
        self._journal = journal
        self._executor = executor
        self.rooms = rooms
        self._admit = admit
        self._principal = Principal()
        self.custody = Custody(journal, executor, worker=worker, limits=limits or ServiceLimits())

    def of(self, principal: Principal) -> "AgentService[Live]":
        """The same service for one principal: where no owner is named, theirs is meant."""
        mine = copy.copy(self)
        mine._principal = principal
        return mine

    def _of(self, owner: str | None) -> str:
        return owner or self._principal.owner

    def admit(self, request: AgentRequest) -> Room:
        """The room that will serve the request. Raises `RoomUnknownError`, `BadRequestError`, `TooLargeError`."""
        room = self.rooms.get(request.room)
        self._admit(request, room, False)
        return room

    async def start(
        self,
        request: AgentRequest,
        *,
        owner: str | None = None,
        hidden: bool = False,
        run_id: str | None = None,
        key: str | None = None,
    ) -> str:
        """Accept a request: its run is on disk when this returns. The id of the run; `run_id` is for those who have
        written down a `new_run_id` before, `key` the id of the API key that pays.

        Raises what `admit` raises, `RateLimitError` where the key has no tokens left this minute or as many runs as it
        allows, `BusyError` when draining or full, `StoreError` when it cannot be stored."""
        principal = self._principal
        room = self.admit(request)
        request = self.screened(principal.narrowed(request))
        if principal.tools is not None:
            self._admit(request, room, True)
        if (paying := key or principal.key) is not None:
            await self._afford(paying, request, room)
        run_id = run_id or new_run_id()
        body = RunCreated(request=request, room=room, owner=self._of(owner), key=paying, hidden=hidden)
        async with self._placed(principal, run_id):
            await self.custody.create(run_id, body)
        return run_id

    @contextlib.asynccontextmanager
    async def _placed(self, principal: Principal, run_id: str) -> AsyncIterator[None]:
        """A place for a run among those its key allows at the same time; given back where it cannot be begun."""
        key, most = principal.key, principal.parallel_runs
        if self._places is None or key is None or most is None:
            yield
            return
        await self._places.take(key, run_id, most)
        try:
            yield
        except AgentError:
            await self._places.free(key, run_id)
            raise

    async def events(
        self, run_id: str, *, owner: str | None = None, after: int = 0, waits: bool = True, heard: int = 0
    ) -> AsyncGenerator[Event, None]:
        """The events with `seq > after`, replayed and then live, up to the terminal one. `NotFoundError`.

        Without `waits`, only up to where the run itself waits for a person; where it waited up to seq `heard` is past.
        Ends early also while the gateway is draining: the run goes on after the restart."""
        async with contextlib.aclosing(self._all_events(run_id, self._of(owner), after)) as events:
            async for event in events:
                yield event
                if waits or event.seq <= heard or not isinstance(event.body, RunWaiting):
                    continue
                if await self._is_waiting(event):
                    return

    async def _is_waiting(self, event: Event) -> bool:
        """Whether the run still waits where this event said so."""
        later = await self._journal.read(event.run_id, after=event.seq)
        return not any(isinstance(other.body, ApprovalDecided | CancelRequested) for other in later)

    async def _all_events(self, run_id: str, owner: str, after: int) -> AsyncGenerator[Event, None]:
        live = self.custody.get(run_id)
        if live is not None and live.state.owner != owner:
            raise NotFoundError(f"there is no run {run_id!r}")
        if live is not None:
            async for event in live.follow(after):
                after = event.seq
                yield event
                if event.body.terminal:
                    return
        else:
            row = await self._journal.get(run_id, owner=self._of(owner))
            if row.status in ENDED and after >= row.last_seq:
                return
        async for event in self._tail(run_id, after):
            yield event

    async def finished(self, run_id: str, *, owner: str | None = None, heard: int = 0) -> list[Event]:
        """The whole log, once the run has ended, or as far as it goes without a person's word.

        Raises `RunFailedError` for a run that failed, `BusyError` when the gateway stops first, `NotFoundError`."""
        live = self.custody.get(run_id)
        if live is not None and live.state.owner == self._of(owner):
            await live.settled(heard)  # one wake-up, where following it takes one an event
        events = [event async for event in self.events(run_id, owner=self._of(owner), waits=False, heard=heard)]
        last = events[-1].body if events else None
        if isinstance(last, RunFailed):
            raise RunFailedError(last.failure)
        if last is None or not (last.terminal or isinstance(last, RunWaiting)):
            raise BusyError(f"the gateway is stopping; the run goes on after its restart: GET /v1/runs/{run_id}")
        return events

    async def until_over(self, run_id: str, *, owner: str | None = None, waits: bool = True, heard: int = 0) -> None:
        """Return where `events` ends. `NotFoundError`."""
        async with contextlib.aclosing(self.events(run_id, owner=owner, waits=waits, heard=heard)) as events:
            async for _ in events:
                pass

    async def response(self, run_id: str, *, owner: str | None = None, heard: int = 0) -> AgentResponse:
        """The answer, once the run has ended, or the question it waits with. Raises what `finished` raises."""
        return respond(await self.finished(run_id, owner=self._of(owner), heard=heard))

    async def read(self, run_id: str, *, owner: str | None = None, after: int = 0) -> list[Event]:
        """The events so far. `NotFoundError`."""
        await self._journal.get(run_id, owner=self._of(owner))
        return await self._journal.read(run_id, after=after)

    async def blob_value(self, checksum: str) -> dict[str, object] | None:
        """The object a long tool result was stored as; None when it was no object."""
        return (await self.blob_result(checksum))[0]

    async def blob_result(self, checksum: str) -> tuple[dict[str, object] | None, str]:
        """The object a long tool result was stored as, None when it was no object; and its whole text."""
        kept = json.loads(await self._journal.get_blob(checksum))
        value = kept.get("value")
        return value if isinstance(value, dict) else None, kept["text"]

    async def blob_content(self, checksum: str) -> list[JsonObject]:
        """The content blocks that a tool result has beside its text."""
        blocks: list[JsonObject] = json.loads(await self._journal.get_blob(checksum))
        return blocks

    async def get(self, run_id: str, *, owner: str | None = None) -> RunRow:
        """The run's row. `NotFoundError`."""
        return await self._journal.get(run_id, owner=self._of(owner))

    async def list_runs(
        self,
        *,
        owner: str | None = None,
        limit: int = 50,
        before: str | None = None,
        status: RunStatus | None = None,
    ) -> list[RunRow]:
        """Runs, newest first."""
        return await self._journal.list_runs(owner=self._of(owner), limit=limit, before=before, status=status)

    async def cancel(self, run_id: str, *, owner: str | None = None, reason: str = "cancelled by the caller") -> None:
        """Ask the owner of a run to stop it; kept as a signal, so that a crash does not lose it.

        Raises `NotFoundError`, and `ConflictError` for a run that has ended."""
        row = await self._journal.get(run_id, owner=self._of(owner))
        if row.status in ENDED:
            raise ConflictError(f"run {run_id!r} has ended already ({row.status})")
        await self._journal.signal(run_id, "cancel", {"reason": reason})
        if self.custody.get(run_id) is not None or row.status == "awaiting_approval":
            await self.custody.heed(run_id)

    async def decide(
        self,
        run_id: str,
        decision: Decision,
        *,
        owner: str | None = None,
        by: str | None = None,
        reason: str = "",
        approvals: Sequence[str] = (),
        plan: JsonObject | None = None,
    ) -> int:
        """Give a person's word to a run that waits for it: on the named `approvals`, else on all that are open. The
        seq up to which the run had come: follow it with `heard`.

        `plan` is the plan as they have edited it. Raises `NotFoundError`, `ConflictError` when nothing (or none of
        these) is open any more or somebody else has just decided, `BadRequestError` for a plan that cannot be,
        `StoreError` where it cannot be recorded: then nothing was said."""
        row = await self._journal.get(run_id, owner=self._of(owner))
        events = await self._journal.read(run_id)
        waiting = fold(run_id, events).waiting
        if row.status in ENDED or not waiting:
            raise ConflictError(f"run {run_id!r} waits for no approval (it is {row.status})")
        open_ids = [asked.approval_id for asked in waiting]
        void = [name for name in approvals if name not in open_ids]
        if void:
            raise ConflictError(f"{void[0]!r} is not open any more; what is: {', '.join(open_ids)}")
        if plan is not None:
            self._executor.review(Claim(run_id, row.epoch, tuple(events)), plan)
        meant = list(approvals) or open_ids
        who = by or (self._principal.name if owner in (None, self._principal.owner) else self._of(owner))
        word: dict[str, object] = {"approvals": meant, "by": who, "reason": reason, "plan": plan}
        about: JsonObject = {"approvals": [*meant], "plan_edited": plan is not None}
        record = self._audit.entry(Act(_ACTIONS[decision], run_id, owner=row.owner, by=who, detail=about))
        await self._journal.signal(run_id, decision, word, record=record)
        await self.custody.heed(run_id)
        return row.last_seq

    async def taken_up(self, run_id: str, heard: int, *, owner: str | None = None) -> RunRow:
        """The run's row once a word given at seq `heard` is in its log, or after `HEARD_SECONDS`. `NotFoundError`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARD_SECONDS):
                after = heard
                while True:
                    for event in await self._journal.read(run_id, after=after):
                        after = event.seq
                        if isinstance(event.body, ApprovalDecided | CancelRequested) or event.body.terminal:
                            return await self.get(run_id, owner=owner)
                    await self._journal.wait(run_id, after=after, timeout_s=HEARD_SECONDS)
        return await self.get(run_id, owner=owner)

    async def waiting(self, conversation_id: str, *, owner: str | None = None) -> str | None:
        """The newest run of a conversation that waits for a person."""
        rows = await self._journal.list_runs(owner=self._of(owner), status="awaiting_approval", limit=200)
        return next((row.run_id for row in rows if row.conversation_id == conversation_id), None)

    async def resume(self, run_id: str, *, owner: str | None = None) -> None:
        """Claim an unfinished run and go on with it. `ConflictError` when it has ended or another process holds it."""
        row = await self._journal.get(run_id, owner=self._of(owner))
        if row.status in ENDED:
            raise ConflictError(f"run {run_id!r} has ended already ({row.status})")
        if not await self.custody.take_up(run_id):
            raise ConflictError(f"run {run_id!r} is held by {row.worker}; it is being carried out there")

    async def _tail(self, run_id: str, after: int) -> AsyncIterator[Event]:
        """Follow a run through the journal: one of another process, or one that was let go."""
        while True:
            for event in await self._journal.read(run_id, after=after):
                after = event.seq
                yield event
                if event.body.terminal:
                    return
            if self.custody.draining and self.custody.get(run_id) is None:
                return
            await self._journal.wait(run_id, after=after, timeout_s=TAIL_SECONDS)
