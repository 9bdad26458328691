"""`Run`: one claimed run in this process. Its state is the fold of its log; `emit` and `note` append to it.

All appends of a run go through one writer task, so that events are applied in the order of their seqs and a cancelled
step cannot separate the state from the log. `emit` returns once its events are durable. `note` does not wait: it is for
events that a resumed run can find out again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic, time
from typing import Protocol

from agent.core.client_requests import ClientRequests
from agent.core.errors import ConflictError, TooLargeError
from agent.core.events import Event, EventBody, EventDraft, RunWaiting
from agent.core.models import Room, Usage
from agent.core.progress import RunProgress
from agent.core.run_state import RunState, apply, fold
from agent.core.settings import Settings
from agent.llm.tiers import ModelTiers
from agent.memory.store import MemoryStore
from agent.policy.redaction.events import holds_text
from agent.run_context.call_site import CallSite
from agent.run_context.extensions import NO_EXTENSIONS, Extensions
from agent.run_context.ground import GroundSources
from agent.run_context.redaction import RunRedaction
from agent.run_context.shared_event import SharedEvent
from agent.skills import SkillLibrary
from agent.storage.event_codec import encode
from agent.storage.journal import Claim, ConversationStore, Journal
from agent.text.language import LanguageDetector
from agent.tools import SubAgentSpawner, ToolRegistry
from agent.tools.catalogue import Catalogue

log = logging.getLogger(__name__)

Observer = Callable[[RunState, Event], None]
"""Told of each event once it is durable, with the state after it. It must be quick, and what it raises is logged."""
PendingAppend = tuple[Sequence[EventDraft], asyncio.Future[None] | None]
"""What one emitter appends together, and whom to tell; nobody, where it was only noted."""
NOTE_SECONDS = 0.01
"""How long a note waits for something to be appended with."""


class SubAgentSpawners(Protocol):
    """The sub-agents of this process, as the tool gateway hands them to the tools it calls."""

    def spawner_for(self, run: "Run", site: CallSite, *, tainted: bool) -> SubAgentSpawner:
        """Returns what starts sub-agents within the call at `site`; `tainted` if the call's arguments are."""
        ...


class QuotaReservations(Protocol):
    """The budgets of the callers' API keys."""

    async def reserve(self, key: str, expected: Usage, *, run_id: str, epoch: int) -> str:
        """Reserves the expected tokens and cost of a call. Returns the reservation for `record_usage`.

        Raises `QuotaError` and `RateLimitError`.
        """
        ...

    async def record_usage(self, key: str, reservation: str, usage: Usage) -> None:
        """Replaces a reservation by the actual usage."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """What all runs of this process share."""

    settings: Settings
    journal: Journal
    conversations: ConversationStore
    models: ModelTiers
    registry: ToolRegistry
    skills: SkillLibrary
    memory: MemoryStore
    languages: LanguageDetector
    subagents: SubAgentSpawners | None = None
    observers: tuple[Observer, ...] = ()
    quota_reservations: QuotaReservations | None = None
    extensions: Extensions = NO_EXTENSIONS
    """The gates and topics that packages add."""
    ground: GroundSources = field(default_factory=GroundSources)
    """What planners are told without asking."""
    catalogues: dict[Hashable, Catalogue] = field(default_factory=dict)
    """Catalogues that were made already, by what they are made of."""
    progress: RunProgress = field(default_factory=RunProgress)
    """Who listens to what the tools of a run say."""
    client_requests: ClientRequests = field(default_factory=ClientRequests)
    """Who can be asked by the tools of a run."""


class Run:
    """One claimed run. `emit` raises `StaleEpochError` once another process has claimed it."""

    def __init__(self, engine: Engine, claim: Claim) -> None:
        self.engine = engine
        self.run_id = claim.run_id
        self.epoch = claim.epoch
        self.events: list[Event] = list(claim.events)
        self.state: RunState = fold(claim.run_id, claim.events)
        self.stop_requested = SharedEvent()
        """Set when a person cancelled the run: whatever is under way stops now."""
        self.decision_made = SharedEvent()
        """Set when a person has decided: what waited for them may begin."""
        self.signal_lock = asyncio.Lock()
        """Held while signals are obeyed: each once, and none after the run was put down."""
        self.last_signal = 0
        """The newest signal that was obeyed."""
        self.parked = False
        """Whether the run was put down to wait for a person, and this process holds it no more."""
        self.tool_slots = asyncio.Semaphore(self.room.budgets.max_parallel)
        """Tool calls under way: a skill may ask for many in one turn."""
        self.calls_in_flight = 0
        """Model calls that were admitted and have no usage yet; they count against the budgets."""
        self.subagents_starting = 0
        """Sub-agents that were admitted and whose start is not in the log yet; they count against the budget."""
        self._deadline: float | None = None
        self._pending: list[PendingAppend] = []
        self._writer: asyncio.Task[None] | None = None
        self._unapplied_groups = 0
        """Groups that were emitted and are not in the state yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._append_error: BaseException | None = None
        """Why notes, which are in the state, could not be appended: nothing may be built on them."""
        self.follower_count = 0
        """How many follow the run in this process."""
        self._follower_waiters: list[asyncio.Future[None]] = []
        self._settled_waiters: list[asyncio.Future[None]] = []

    @cached_property
    def redaction(self) -> RunRedaction:
        """The redaction that every event passes on its way into the log, and every text on its way to a model."""
        return RunRedaction(self)

    @property
    def room(self) -> Room:
        """The room of the run."""
        return self.state.room

    @property
    def has_model(self) -> bool:
        """Whether this run may ask a model."""
        return self.engine.models.is_configured

    @property
    def plans_with_model(self) -> bool:
        """Whether a model makes the plans."""
        return self.has_model and self.engine.settings.planner_mode != "rules"

    @property
    def works_with_model(self) -> bool:
        """Whether a model executes skills and writes answers."""
        return self.has_model and self.engine.settings.executor_mode != "rules"

    @property
    def is_rules_mode(self) -> bool:
        """Whether rules are the chosen mode, or no model is configured. Then using rules is no fallback."""
        mode = self.engine.settings.executor_mode
        return mode == "rules" or (mode == "auto" and not self.has_model)

    @property
    def seconds_left(self) -> float:
        """The rest of the run's time budget in this process, in seconds; never negative."""
        if self._deadline is None:
            return self.room.budgets.max_seconds
        return max(0.0, self._deadline - monotonic())

    def start_clock(self) -> None:
        """Starts the clock of the time budget. A queued run spends no time."""
        self._deadline = monotonic() + self.room.budgets.max_seconds

    async def emit(
        self, *bodies: EventBody | EventDraft, step_id: str | None = None, attempt: int | None = None
    ) -> None:
        """Redacts events, appends them in one transaction and applies them. Returns once they are durable.

        `step_id` and `attempt` apply to bodies; drafts carry their own. Cancelling the caller does not undo the append.
        """
        if self._append_error is not None:
            raise self._append_error
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((self._to_drafts(bodies, step_id, attempt), done))
        self._unapplied_groups += 1
        self._start_writer()
        await asyncio.shield(done)

    async def note(
        self, *bodies: EventBody | EventDraft, step_id: str | None = None, attempt: int | None = None
    ) -> None:
        """Redacts and applies events now, and appends them with the next emitted ones, or `NOTE_SECONDS` later.

        For events that a crash may lose because they are found out again: how a prompt was understood, what a model
        replied.
        Never for what a tool did or a person decided. While an emitted event is not applied yet, this is `emit`, so
        that the state follows the log's order. Raises `TooLargeError` for what the log cannot hold, as `emit` does.
        """
        if self._unapplied_groups or self.state.is_finished:
            await self.emit(*bodies, step_id=step_id, attempt=attempt)
            return
        if self._append_error is not None:
            raise self._append_error
        drafts, now = self._to_drafts(bodies, step_id, attempt), time()
        events = [  # as they will be read back; what is refused is refused here, before anything rests on it
            encode(Event(self.run_id, seq, self.epoch, now, draft.body, draft.step_id, draft.attempt))[0]
            for seq, draft in enumerate(drafts, self.state.seq + 1)
        ]
        for event in events:
            self.state = apply(self.state, event)
        noted = monotonic()  # the log says when it happened, not when it was written
        self._pending.append(([EventDraft(event.body, event.step_id, event.attempt, noted) for event in events], None))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NOTE_SECONDS, self._start_writer)

    async def flush(self) -> None:
        """Waits until everything noted so far is durable. Raises the reason if it cannot be, as `emit` does."""
        if self._pending:
            self._start_writer()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        if self._append_error is not None:
            raise self._append_error

    async def follow_events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yields the events with `seq > after` as they arrive, up to the terminal one or until the run is released."""
        position = next((i for i, event in enumerate(self.events) if event.seq > after), len(self.events))
        self.follower_count += 1
        try:
            while True:
                while position < len(self.events):
                    event = self.events[position]
                    position += 1
                    if event.seq > after:
                        yield event
                    if event.body.terminal:
                        return
                if self.closed:
                    return
                await _wait_for_wake(self._follower_waiters)
        finally:
            self.follower_count -= 1

    async def wait_until_stopped(self, after: int = 0) -> None:
        """Waits until the run has ended, waits for a person after seq `after`, or was released."""
        while not self.closed and not any(_is_settling(event, after) for event in reversed(self.events)):
            await _wait_for_wake(self._settled_waiters)

    closed = False
    """Whether this process has let go of the run."""

    def close(self) -> None:
        """Releases the run: followers see the end of what this process knows."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        _wake(self._follower_waiters)
        _wake(self._settled_waiters)

    def _to_drafts(
        self, bodies: Sequence[EventBody | EventDraft], step_id: str | None, attempt: int | None
    ) -> list[EventDraft]:
        """Returns the bodies as redacted drafts, so that no writer has to remember to redact."""
        drafts = [body if isinstance(body, EventDraft) else EventDraft(body, step_id, attempt) for body in bodies]
        return self.redaction.redact_drafts(drafts) if any(holds_text(draft.body) for draft in drafts) else drafts

    def _start_writer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_pending(), name=f"{self.run_id} writer")

    async def _write_pending(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await self._append(batch)
            except (ConflictError, TooLargeError) as error:
                if len(batch) == 1:
                    self._resolve_waiters(batch, error)
                else:  # one of them does not belong into the log: each by itself, so that it spoils no other
                    for group in batch:
                        await self._write_group(group)
            except BaseException as error:  # handed to every waiting emitter, none swallows it
                self._resolve_waiters(batch, error)
                if not isinstance(error, Exception):
                    raise
            else:
                self._resolve_waiters(batch, None)
            _wake(self._follower_waiters)
        self._writer = None

    async def _write_group(self, group: PendingAppend) -> None:
        try:
            await self._append([group])
        except BaseException as error:  # those after it must hear of theirs all the same
            self._resolve_waiters([group], error)
            if not isinstance(error, Exception):
                raise
        else:
            self._resolve_waiters([group], None)

    async def _append(self, batch: Sequence[PendingAppend]) -> None:
        if self._append_error is not None:  # since these were emitted: they rest on what the log does not hold
            raise self._append_error
        drafts = [draft for group, _ in batch for draft in group]
        noted = [done is None for group, done in batch for _ in group]
        self._apply_events(await self.engine.journal.append(self.run_id, self.epoch, drafts), noted)

    def _apply_events(self, events: Sequence[Event], noted: Sequence[bool]) -> None:
        for event, known in zip(events, noted, strict=True):
            if not known:  # a note has been folded already
                self.state = apply(self.state, event)
            for observer in self.engine.observers:
                try:
                    observer(self.state, event)
                except Exception:  # an observer must not stop the run
                    log.exception("an observer failed on %s of run %s", event.type, self.run_id)
        self.events.extend(events)
        if any(_is_settling(event, 0) for event in events):
            _wake(self._settled_waiters)

    def _resolve_waiters(self, batch: Sequence[PendingAppend], error: BaseException | None) -> None:
        """Resolves the waiting emitters. If notes were lost, nothing more is appended from this process."""
        for _, done in batch:
            if done is None:
                self._append_error = self._append_error or error
                continue
            self._unapplied_groups -= 1
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
                done.exception()  # an emitter that was cancelled meanwhile will not look


def _is_settling(event: Event, after: int) -> bool:
    return event.body.terminal or (event.seq > after and isinstance(event.body, RunWaiting))


async def _wait_for_wake(waiters: list[asyncio.Future[None]]) -> None:
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiters.append(waiter)
    try:
        await waiter
    finally:
        waiters.remove(waiter)


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
