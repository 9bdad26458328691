"""`Run`: one claimed run in the hands of this process. Its state is the fold of its log; `emit` is the only way on.

Appends of one run go through one writer, so that events are applied in the order of their seqs and a cancelled
step can never tear the state from the log. `emit` returns once they are durable; `note` does not wait, for what a crash
may take with it because it is found out again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Protocol

from agent.core.codec import encode
from agent.core.config import Settings
from agent.core.errors import ConflictError, TooLargeError
from agent.core.events import Draft, Event, EventBody, RunWaiting
from agent.core.fold import RunState, apply, fold
from agent.core.journal import Claim, ConversationStore, Journal
from agent.core.language import LanguageDetector
from agent.core.llm.tiers import ModelTiers
from agent.core.memory import MemoryStore
from agent.core.models import Room, Usage
from agent.core.progress import RunProgress
from agent.execution.flag import Flag
from agent.execution.site import CallSite
from agent.planning.catalogue import Catalogue
from agent.skills import SkillLibrary
from agent.tools import Spawner, ToolRegistry

log = logging.getLogger(__name__)

Observer = Callable[[RunState, Event], None]
"""Told of each event once it is durable, with the state after it. It must be quick, and what it raises is logged."""
Group = tuple[Sequence[Draft], asyncio.Future[None] | None]
"""What one emitter appends together, and whom to tell; nobody, where it was only noted."""
NOTE_SECONDS = 0.01
"""How long a note waits for something to be appended with."""


class SubAgents(Protocol):
    """The sub-agents of this process, as the tool gateway hands them to the tools it calls."""

    def at(self, run: "Run", site: CallSite, *, tainted: bool) -> Spawner:
        """What starts sub-agents within the call at `site`; `tainted` where the call's arguments are."""
        ...


class Purse(Protocol):
    """The budgets of the callers' keys."""

    async def reserve(self, key: str, expected: Usage, *, run_id: str, epoch: int) -> str:
        """Set what a call may take, in tokens and in money, aside before it is spent, for a run as it is claimed now.
        What `settle` is to be told. Raises `QuotaError`, `RateLimitError`."""
        ...

    async def settle(self, key: str, reservation: str, usage: Usage) -> None:
        """Put what was spent in the place of what was set aside."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """What every run of this process shares."""

    settings: Settings
    journal: Journal
    conversations: ConversationStore
    models: ModelTiers
    registry: ToolRegistry
    skills: SkillLibrary
    memory: MemoryStore
    languages: LanguageDetector
    subagents: SubAgents | None = None
    observers: tuple[Observer, ...] = ()
    purse: Purse | None = None
    catalogues: dict[Hashable, Catalogue] = field(default_factory=dict)
    """Catalogues that were made already, by what they are made of."""
    progress: RunProgress = field(default_factory=RunProgress)
    """Who listens to what the tools of a run say."""


class Run:
    """One claimed run. Raises `StaleEpochError` from `emit` once another process has claimed it."""

    def __init__(self, engine: Engine, claim: Claim) -> None:
        self.engine = engine
        self.run_id = claim.run_id
        self.epoch = claim.epoch
        self.events: list[Event] = list(claim.events)
        self.state: RunState = fold(claim.run_id, claim.events)
        self.stopping = Flag()
        """Set when a person cancelled the run: whatever is under way stops now."""
        self.nudged = Flag()
        """Set when a person has decided: what waited for them may begin."""
        self.hearing = asyncio.Lock()
        """Held while signals are obeyed: each once, and none after the run was put down."""
        self.last_signal = 0
        """The newest signal that was obeyed."""
        self.parked = False
        """Whether the run was put down to wait for a person, and this process holds it no more."""
        self.tool_slots = asyncio.Semaphore(self.room.budgets.max_parallel)
        """Tool calls under way: a skill may ask for many in one turn."""
        self.calls_in_flight = 0
        """Model calls that were admitted and have no usage yet; they count against the budgets."""
        self.subagents_beginning = 0
        """Sub-agents that were admitted and whose start is not in the log yet; they count against the budget."""
        self._deadline: float | None = None
        self._pending: list[Group] = []
        self._writer: asyncio.Task[None] | None = None
        self._unfolded = 0
        """Groups that were emitted and are not in the state yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._lost: BaseException | None = None
        """Why notes, which are in the state, could not be appended: nothing may be built on them."""
        self.following = 0
        """How many follow the run in this process."""
        self._followers: list[asyncio.Future[None]] = []
        self._settlers: list[asyncio.Future[None]] = []

    @property
    def room(self) -> Room:
        """The room the run takes place in."""
        return self.state.room

    @property
    def has_model(self) -> bool:
        """Whether this run may ask a model at all."""
        return self.engine.models.configured

    @property
    def plans_with_model(self) -> bool:
        """Whether plans are asked of a model."""
        return self.has_model and self.engine.settings.planner_mode != "rules"

    @property
    def works_with_model(self) -> bool:
        """Whether skills are carried out, and answers written, by a model."""
        return self.has_model and self.engine.settings.executor_mode != "rules"

    @property
    def rules_are_meant(self) -> bool:
        """Whether rules do what a model would do elsewhere because that is the mode, or because there is no model and
        none was asked for: then nothing has fallen back."""
        mode = self.engine.settings.executor_mode
        return mode == "rules" or (mode == "auto" and not self.has_model)

    @property
    def seconds_left(self) -> float:
        """What is left of the run's wall time in this process, in seconds; not below zero."""
        if self._deadline is None:
            return self.room.budgets.max_seconds
        return max(0.0, self._deadline - monotonic())

    def begin(self) -> None:
        """Start the clock of the wall time: a run that waits for its turn spends none."""
        self._deadline = monotonic() + self.room.budgets.max_seconds

    async def emit(self, *bodies: EventBody | Draft, step_id: str | None = None, attempt: int | None = None) -> None:
        """Append events in one transaction and fold them in. Returns once they are durable.

        The step and attempt apply to bodies; drafts carry their own. Cancelling the caller does not undo it."""
        if self._lost is not None:
            raise self._lost
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((_drafts(bodies, step_id, attempt), done))
        self._unfolded += 1
        self._start_writer()
        await asyncio.shield(done)

    async def note(self, *bodies: EventBody | Draft, step_id: str | None = None, attempt: int | None = None) -> None:
        """Fold events in now, and append them with whatever is emitted next, or `NOTE_SECONDS` later.

        For what is found out again when a crash takes it: how a prompt was understood, what a model replied. Never for
        what a tool did or a person said. Where something emitted is still on its way into the log, this is `emit`: the
        state follows the log's order. Raises `TooLargeError` for what no log can hold, as `emit` does."""
        if self._unfolded or self.state.finished:
            await self.emit(*bodies, step_id=step_id, attempt=attempt)
            return
        if self._lost is not None:
            raise self._lost
        drafts, now = _drafts(bodies, step_id, attempt), time()
        events = [  # as they will be read back; what is refused is refused here, before anything rests on it
            encode(Event(self.run_id, seq, self.epoch, now, draft.body, draft.step_id, draft.attempt))[0]
            for seq, draft in enumerate(drafts, self.state.seq + 1)
        ]
        for event in events:
            self.state = apply(self.state, event)
        noted = monotonic()  # what is told of its time is when it happened, not when it was written down
        self._pending.append(([Draft(event.body, event.step_id, event.attempt, noted) for event in events], None))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NOTE_SECONDS, self._start_writer)

    async def flush(self) -> None:
        """Wait until everything noted so far is durable. Raises why it cannot be, as `emit` does."""
        if self._pending:
            self._start_writer()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        if self._lost is not None:
            raise self._lost

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """The events with `seq > after`, as they come, up to the terminal one. Ends early when the run is let go."""
        position = next((i for i, event in enumerate(self.events) if event.seq > after), len(self.events))
        self.following += 1
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
                await _woken(self._followers)
        finally:
            self.following -= 1

    async def settled(self, after: int = 0) -> None:
        """Wait until the run has ended, waits for a person since an event after `after`, or was let go."""
        while not self.closed and not any(_settles(event, after) for event in reversed(self.events)):
            await _woken(self._settlers)

    closed = False
    """Whether this process has let go of the run."""

    def close(self) -> None:
        """Let go: followers see the end of what this process knows."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        _wake(self._followers)
        _wake(self._settlers)

    def _start_writer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name=f"{self.run_id} writer")

    async def _write(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await self._append(batch)
            except (ConflictError, TooLargeError) as error:
                if len(batch) == 1:
                    self._settle(batch, error)
                else:  # one of them does not belong into the log: each by itself, so that it spoils no other
                    for group in batch:
                        await self._write_alone(group)
            except BaseException as error:  # handed to every waiting emitter, none swallows it
                self._settle(batch, error)
                if not isinstance(error, Exception):
                    raise
            else:
                self._settle(batch, None)
            _wake(self._followers)
        self._writer = None

    async def _write_alone(self, group: Group) -> None:
        try:
            await self._append([group])
        except BaseException as error:  # those after it must hear of theirs all the same
            self._settle([group], error)
            if not isinstance(error, Exception):
                raise
        else:
            self._settle([group], None)

    async def _append(self, batch: Sequence[Group]) -> None:
        if self._lost is not None:  # since these were emitted: they rest on what the log does not hold
            raise self._lost
        drafts = [draft for group, _ in batch for draft in group]
        noted = [done is None for group, done in batch for _ in group]
        self._fold(await self.engine.journal.append(self.run_id, self.epoch, drafts), noted)

    def _fold(self, events: Sequence[Event], noted: Sequence[bool]) -> None:
        for event, known in zip(events, noted, strict=True):
            if not known:  # a note has been folded already
                self.state = apply(self.state, event)
            for observer in self.engine.observers:
                try:
                    observer(self.state, event)
                except Exception:  # whoever looks on must not stop the run
                    log.exception("an observer failed on %s of run %s", event.type, self.run_id)
        self.events.extend(events)
        if any(_settles(event, 0) for event in events):
            _wake(self._settlers)

    def _settle(self, batch: Sequence[Group], error: BaseException | None) -> None:
        """Tell those who wait; where notes are lost, nothing more goes into this run's log from here."""
        for _, done in batch:
            if done is None:
                self._lost = self._lost or error
                continue
            self._unfolded -= 1
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
                done.exception()  # an emitter that was cancelled meanwhile will not look


def _drafts(bodies: Sequence[EventBody | Draft], step_id: str | None, attempt: int | None) -> list[Draft]:
    return [body if isinstance(body, Draft) else Draft(body, step_id, attempt) for body in bodies]


def _settles(event: Event, after: int) -> bool:
    return event.body.terminal or (event.seq > after and isinstance(event.body, RunWaiting))


async def _woken(waiters: list[asyncio.Future[None]]) -> None:
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
