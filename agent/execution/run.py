"""`Run`: one claimed run in the hands of this process. Its state is the fold of its log; `emit` is the only way on.

Appends of one run go through one writer, so that events are applied in the order of their seqs and a cancelled
step can never tear the state from the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from agent.core.config import Settings
from agent.core.errors import AgentError, ConflictError, TooLargeError
from agent.core.events import Draft, Event, EventBody
from agent.core.fold import RunState, apply, fold
from agent.core.journal import Claim, ConversationStore, Journal
from agent.core.language import LanguageDetector
from agent.core.llm.tiers import ModelTiers
from agent.core.memory import MemoryStore
from agent.core.models import Room, Usage
from agent.execution.site import CallSite
from agent.skills import SkillLibrary
from agent.tools import Spawner, ToolRegistry

log = logging.getLogger(__name__)

Observer = Callable[[RunState, Event], None]
"""Told of each event once it is durable, with the state after it. It must be quick, and what it raises is logged."""
Group = tuple[Sequence[Draft], asyncio.Future[None]]
"""What one emitter appends together, and whom to tell."""


class SubAgents(Protocol):
    """The sub-agents of this process, as the tool gateway hands them to the tools it calls."""

    def at(self, run: "Run", site: CallSite, *, tainted: bool) -> Spawner:
        """What starts sub-agents within the call at `site`; `tainted` where the call's arguments are."""
        ...


class Purse(Protocol):
    """The budgets of the callers' keys."""

    async def reserve(self, key: str, tokens: int) -> None:
        """Set tokens aside before they are spent. Raises `QuotaError`, `RateLimitError`."""
        ...

    async def settle(self, key: str, reserved: int, usage: Usage) -> None:
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


class Run:
    """One claimed run. Raises `StaleEpochError` from `emit` once another process has claimed it."""

    def __init__(self, engine: Engine, claim: Claim) -> None:
        self.engine = engine
        self.run_id = claim.run_id
        self.epoch = claim.epoch
        self.events: list[Event] = list(claim.events)
        self.state: RunState = fold(claim.run_id, claim.events)
        self.stopping = asyncio.Event()
        """Set when a person cancelled the run: whatever is under way stops now."""
        self.nudged = asyncio.Event()
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
        self._pending: deque[Group] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._followers: set[asyncio.Future[None]] = set()

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
        drafts = [body if isinstance(body, Draft) else Draft(body, step_id, attempt) for body in bodies]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((drafts, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name=f"{self.run_id} writer")
        await asyncio.shield(done)

    async def flush(self) -> None:
        """Wait until everything emitted so far is durable, or has failed."""
        if self._writer is not None:
            await asyncio.wait([self._writer])

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """The events with `seq > after`, as they come, up to the terminal one. Ends early when the run is let go."""
        position = next((i for i, event in enumerate(self.events) if event.seq > after), len(self.events))
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
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._followers.add(waiter)
            try:
                await waiter
            finally:
                self._followers.discard(waiter)

    closed = False
    """Whether this process has let go of the run."""

    def close(self) -> None:
        """Let go: followers see the end of what this process knows."""
        self.closed = True
        self._wake()

    async def _write(self) -> None:
        while self._pending:
            batch = list(self._pending)
            self._pending.clear()
            drafts = [draft for group, _ in batch for draft in group]
            try:
                events = await self.engine.journal.append(self.run_id, self.epoch, drafts)
                self._fold(events)
            except (ConflictError, TooLargeError) as error:
                if len(batch) == 1:
                    _settle(batch, error)
                else:  # one of them does not belong into the log: each by itself, so that it spoils no other
                    for group in batch:
                        await self._write_alone(group)
            except BaseException as error:  # handed to every waiting emitter, none swallows it
                _settle(batch, error)
                if not isinstance(error, Exception):
                    raise
            else:
                _settle(batch, None)
            self._wake()

    async def _write_alone(self, group: Group) -> None:
        try:
            self._fold(await self.engine.journal.append(self.run_id, self.epoch, group[0]))
        except AgentError as error:
            _settle([group], error)
        else:
            _settle([group], None)

    def _fold(self, events: Sequence[Event]) -> None:
        for event in events:
            self.state = apply(self.state, event)
            for observer in self.engine.observers:
                try:
                    observer(self.state, event)
                except Exception:  # whoever looks on must not stop the run
                    log.exception("an observer failed on %s of run %s", event.type, self.run_id)
        self.events.extend(events)

    def _wake(self) -> None:
        for waiter in self._followers:
            if not waiter.done():
                waiter.set_result(None)


def _settle(batch: Sequence[Group], error: BaseException | None) -> None:
    for _, done in batch:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
            done.exception()  # an emitter that was cancelled meanwhile will not look
