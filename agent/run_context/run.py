"""`Run`: one claimed run in this process. Its state is the fold of its log; `emit` and `note` append to it.

`emit` returns after its events are durable; `note`, for events that a resumed run can compute again, does not wait. The
events are appended in order, on one of three paths: by `emit` itself, if the journal can do so at once (`_append_now`);
else by the run's writer task, which puts all pending events into one transaction, so that a cancelled step cannot
separate the state from the log; and notes that no emitted event follows by `NoteTimer`, with those of other runs.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import cached_property
from time import monotonic, time

from agent.core.errors import ConflictError, TooLargeError
from agent.core.event_loop import INLINE_CHARS, SharedEvent
from agent.core.events import Event, EventBody, EventDraft, RunWaiting
from agent.core.models import Room
from agent.core.models.request import read_explicit_tool_calls
from agent.core.run_reducer import apply, fold
from agent.core.run_state import RunState
from agent.llm.profile import ModelProfile, choose_profile
from agent.planning.routing import RunCommand
from agent.policy.guardrails.chosen_values import ChosenValues
from agent.policy.redaction.events import holds_text
from agent.run_context.calls import ReadCalls
from agent.run_context.engine import Engine
from agent.run_context.redaction import RunRedaction
from agent.run_context.run_hooks import RunHooks
from agent.storage.event_codec import encode_body
from agent.storage.journal import Claim, Journal, RunAppend

log = logging.getLogger(__name__)

CACHED_CHOICES = 100
"""Cached lists of allowed tools; one for each room, owner and choice of tools by callers."""
PendingAppend = tuple[Sequence[EventDraft], asyncio.Future[None] | None]
"""The events of one call, and the future of its caller; None for a note."""


class Run:
    """One claimed run. `emit` raises `StaleEpochError` once another process has claimed it."""

    def __init__(self, engine: Engine, claim: Claim) -> None:
        self.engine = engine
        self.run_id = claim.run_id
        self.epoch = claim.epoch
        self.is_new = claim.is_new
        """Whether the run was created by its claim. See `Claim.is_new`."""
        self.events: list[Event] = list(claim.events)
        self.state: RunState = fold(claim.run_id, claim.events)
        self.room: Room = self.state.room
        """The room of the run. It never changes."""
        self.hooks: tuple[RunHooks, ...] = tuple(one for one in engine.extensions.hooks if one.rooms.matches(self.room))
        """The hooks of features that concern the run; `load_feature_data` drops those without rows of the owner."""
        self.feature_data: dict[str, object] = {}
        """What features keep of the owner, by the name of their hooks. Loaded when the run is executed."""
        self.repeated_links: frozenset[str] | None = None
        """The addresses in earlier answers of the conversation that no model made up, once they are loaded."""
        self.chosen_values: dict[str, dict[str, ChosenValues]] = {}
        """By foreign server and call, the server's own values that were sent back to it without a question."""
        self.stop_requested = SharedEvent()
        """Set when a person cancels the run. Stops all work in progress."""
        self.decision_made = SharedEvent()
        """Set when a person has decided, so that waiting calls may start."""
        self.signal_lock = asyncio.Lock()
        """Held while signals are applied, so that each is applied once, and none after the run is parked."""
        self.last_signal = 0
        """The id of the last applied signal."""
        self.parked = False
        """Whether the run waits for a person and this process has released it."""
        self.tool_slots = asyncio.Semaphore(self.room.budgets.max_parallel)
        """Limits concurrent tool calls, because a skill may request many in one turn."""
        self.read_calls = ReadCalls()
        """The results of read-only calls, for identical calls of other steps."""
        self.calls_in_flight = 0
        """Admitted model calls without usage yet. They count against the budgets."""
        self.slow_models: dict[str, str] = {}
        """Models that sent no token within the time limit, and what was said of them. They are not asked again."""
        self.subagents_starting = 0
        """Admitted sub-agents whose start is not in the log yet. They count against the room's limit."""
        self._deadline: float | None = None
        self._pending: list[PendingAppend] = []
        self._writer: asyncio.Task[None] | None = None
        self._unapplied_groups = 0
        """Emitted groups that are not in the state yet."""
        self._append_error: BaseException | None = None
        """Why notes, which the state already holds, could not be appended. All later appends fail with it."""
        self.follower_count = 0
        """Followers of the run in this process."""
        self._follower_waiters: list[asyncio.Future[None]] = []
        self._settled_waiters: list[asyncio.Future[None]] = []
        self.closed = False
        """Whether this process has released the run."""

    @cached_property
    def redaction(self) -> RunRedaction:
        """Redacts every event before the log, and every text before a model."""
        return RunRedaction(self)

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The names of the tools that this run may use. Cached for all runs that are alike in what decides on them."""
        wanted, room, cache = self.state.request.metadata.get("tools"), self.room, self.engine.allowed_tools
        called = tuple(call.tool for call in read_explicit_tool_calls(self.state.request))
        key = (self.engine.registry.version, self.state.owner, room.id, room.tools, repr(wanted), called)
        if key not in cache:
            if len(cache) >= CACHED_CHOICES:
                cache.clear()
            cache[key] = self.engine.registry.list_allowed(room, self.state.owner, wanted, called)
        return cache[key]

    @property
    def journal(self) -> Journal:
        """The journal that holds this run's log."""
        return self.engine.journal

    @property
    def has_model(self) -> bool:
        """Whether this run may call a model."""
        return self.engine.models.is_configured

    @property
    def profile(self) -> ModelProfile:
        """How the run works with its model."""
        return choose_profile(self.engine.settings.model_profile, self.engine.models.find_measured(self.room))

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
        """Whether rules are the configured mode, or no model is configured. Then the use of rules is not a fallback."""
        mode = self.engine.settings.executor_mode
        return mode == "rules" or (mode == "auto" and not self.has_model)

    @property
    def decides_in_rounds(self) -> bool:
        """Whether the planner works in rounds. A room that fixes its tools or its evidence has plans instead."""
        room = self.room
        fixed = room.required_tools or room.gates or room.knowledge or room.routing == "intents"
        return self.profile.decides == "rounds" and self.plans_with_model and self.works_with_model and not fixed

    @property
    def seconds_left(self) -> float:
        """Seconds left of the run's time budget in this process; never negative."""
        if self._deadline is None:
            return self.room.budgets.max_seconds
        return max(0.0, self._deadline - monotonic())

    def list_commands(self) -> list[RunCommand]:
        """The commands that features offer in this run beside the skills."""
        return [command for hooks in self.hooks for command in hooks.list_commands(self)]

    async def load_feature_data(self) -> None:
        """Loads `feature_data`, and drops hooks that do not concern this owner. Raises `StoreError`."""
        concerned = []
        for hooks in self.hooks:
            rows = await hooks.owner_rows.read(self.state.owner) if hooks.owner_rows is not None else ()
            if rows or hooks.owner_rows is None:
                self.feature_data[hooks.name] = hooks.load(self, rows)
                concerned.append(hooks)
        self.hooks = tuple(concerned)

    def start_clock(self) -> None:
        """Starts the clock of the time budget. Time in the queue does not count."""
        self._deadline = monotonic() + self.room.budgets.max_seconds

    async def emit(
        self, *bodies: EventBody | EventDraft, step_id: str | None = None, attempt: int | None = None
    ) -> None:
        """Redacts events, appends them in one transaction and applies them. Returns once they are durable.

        `step_id` and `attempt` apply to bodies; drafts carry their own. Cancelling the caller keeps the append.
        """
        if self._append_error is not None:
            raise self._append_error
        drafts = [EventDraft(*placed) for placed in self._redact(bodies, step_id, attempt)]
        if self._writer is None and not self._is_long and self._append_now(drafts):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((drafts, done))
        self._unapplied_groups += 1
        self._start_writer()
        await asyncio.shield(done)

    async def note(
        self, *bodies: EventBody | EventDraft, step_id: str | None = None, attempt: int | None = None
    ) -> None:
        """Redacts and applies events now, and appends them with the next emitted ones, or `NOTE_SECONDS` later.

        Only for events that a run can compute again after a crash, such as how a prompt was understood or what a model
        replied. Use `emit` for what a tool did or a person decided. While an emitted event is not applied yet, this
        calls `emit`, so that the state follows the log's order. Raises `TooLargeError` as `emit` does.
        """
        if self._unapplied_groups or self.state.is_finished:
            await self.emit(*bodies, step_id=step_id, attempt=attempt)
            return
        if self._append_error is not None:
            raise self._append_error
        noted, now = monotonic(), time()  # the log records when it happened, not when it was written
        pending: list[EventDraft] = []
        for redacted, step, number in self._redact(bodies, step_id, attempt):
            body, data = encode_body(redacted, self.run_id)  # as the log will return it
            pending.append(EventDraft(body, step, number, noted, data))
        for draft in pending:  # after all are encoded: an event that the log rejects must not reach the state
            event = Event(self.run_id, self.state.seq + 1, self.epoch, now, draft.body, draft.step_id, draft.attempt)
            self.state = apply(self.state, event)
        self._pending.append((pending, None))
        self.engine.note_timer.add(self)

    async def note_visibly(
        self, *bodies: EventBody | EventDraft, step_id: str | None = None, attempt: int | None = None
    ) -> None:
        """Notes events that followers watch a run for. Emits them if there are followers, who then see them at once."""
        append = self.emit if self.follower_count else self.note
        await append(*bodies, step_id=step_id, attempt=attempt)

    async def flush(self) -> None:
        """Waits until every noted event is durable. Raises the error of a failed append, as `emit` does."""
        while self._pending or self._writer is not None:
            await asyncio.wait([self._start_writer()])
        if self._append_error is not None:
            raise self._append_error

    async def follow_events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yields the events with `seq > after` as they arrive, until the terminal event or the release of the run."""
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
        """Waits until the run ends, waits for a person after seq `after`, or is released."""
        while not self.closed and not any(_is_settling(event, after) for event in reversed(self.events)):
            await _wait_for_wake(self._settled_waiters)

    def close(self) -> None:
        """Releases the run and ends its followers."""
        self.closed = True
        self.engine.note_timer.discard(self)
        _wake(self._follower_waiters)
        _wake(self._settled_waiters)

    def _redact(
        self, bodies: Sequence[EventBody | EventDraft], step_id: str | None, attempt: int | None
    ) -> list[tuple[EventBody, str | None, int | None]]:
        """The redacted bodies with their steps and attempts, so that no writer can forget to redact."""
        redacted: list[tuple[EventBody, str | None, int | None]] = []
        for one in bodies:
            body, step, number = one[:3] if isinstance(one, EventDraft) else (one, step_id, attempt)
            redacted.append((self.redaction.redact_body(body, step) if holds_text(body) else body, step, number))
        return redacted

    def _append_now(self, drafts: Sequence[EventDraft]) -> bool:
        """Appends these events after the noted ones, without a task, if the journal needs not be waited for. Returns
        False, with nothing changed, if the writer must append them."""
        logs = self.journal.append_now(RunAppend(self.run_id, self.epoch, [*self._list_noted(), *drafts]))
        if logs is None:
            return False
        self.take_appended(logs[0])
        return True

    def list_notes(self) -> RunAppend | None:
        """The events that the run has noted; None if its writer appends them: it is at work, or they are long."""
        if not self._pending or self._writer is not None or self._append_error is not None or self._is_long:
            return None
        return RunAppend(self.run_id, self.epoch, self._list_noted())

    @property
    def _is_long(self) -> bool:
        """Whether events may hold so long a text that encoding them on the event loop would hold it up."""
        return len(self.state.request.prompt) > INLINE_CHARS

    def _list_noted(self) -> list[EventDraft]:
        return [draft for group, _ in self._pending for draft in group]

    def write_pending(self) -> None:
        """Has the writer append what is still pending."""
        if self._pending:
            self._start_writer()

    def take_appended(self, events: Sequence[Event]) -> None:
        """Applies events that were appended without the writer, all noted ones among them."""
        self._pending = []
        self.engine.note_timer.discard(self)
        self._apply_events(events)
        _wake(self._follower_waiters)

    def _start_writer(self) -> asyncio.Task[None]:
        """Has the writer append everything that is pending now. Returns its task."""
        self.engine.note_timer.discard(self)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_pending(), name=f"{self.run_id} writer")
        return self._writer

    async def _write_pending(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await self._append(batch)
            except (ConflictError, TooLargeError) as error:
                if len(batch) == 1:
                    self._resolve_waiters(batch, error)
                else:  # the log rejects one of them: append each alone, so that the others succeed
                    for group in batch:
                        await self._write_group(group)
            except BaseException as error:  # every waiting emitter gets the error
                self._resolve_waiters(batch, error)
                if not isinstance(error, Exception):
                    raise
            else:
                self._resolve_waiters(batch, None)
            _wake(self._follower_waiters)
            if not self._unapplied_groups and self in self.engine.note_timer:
                break  # what was noted meanwhile is appended with what follows, or by the timer
        self._writer = None

    async def _write_group(self, group: PendingAppend) -> None:
        try:
            await self._append([group])
        except BaseException as error:  # the groups after it must still be appended
            self._resolve_waiters([group], error)
            if not isinstance(error, Exception):
                raise
        else:
            self._resolve_waiters([group], None)

    async def _append(self, batch: Sequence[PendingAppend]) -> None:
        if self._append_error is not None:  # these events depend on notes that the log lacks
            raise self._append_error
        drafts = [draft for group, _ in batch for draft in group]
        self._apply_events(await self.journal.append(self.run_id, self.epoch, drafts))

    def _apply_events(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.seq > self.state.seq:  # a note is already in the state
                self.state = apply(self.state, event)
            ending = self.engine.end_observers if event.body.terminal else ()
            for observer in (*self.engine.observers, *ending):
                try:
                    observer(self.state, event)
                except Exception:  # an observer must not stop the run
                    log.exception("an observer failed on %s of run %s", event.type, self.run_id)
        self.events.extend(events)
        if self._settled_waiters and any(_is_settling(event, 0) for event in events):
            _wake(self._settled_waiters)

    def _resolve_waiters(self, batch: Sequence[PendingAppend], error: BaseException | None) -> None:
        """Resolves the waiting emitters. After a lost note, all later appends of this process fail."""
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
                done.exception()  # marks the error as retrieved, because a cancelled emitter does not read it


def _is_settling(event: Event, after: int) -> bool:
    return event.body.terminal or (event.seq > after and type(event.body) is RunWaiting)


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
