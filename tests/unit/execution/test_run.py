"""`Run` over a store that waits, refuses and fails: state and log never come apart, and nobody waits for ever."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core import events as ev
from agent.core.errors import AgentError, ConflictError, StaleEpochError, StoreError, StoreFullError, TooLargeError
from agent.core.events import Event, EventDraft
from agent.core.models import ENDED_STATUSES, JsonObject, Usage
from agent.core.run_reducer import _ATTEMPT_RULES, _FIELD_OF_NEWEST, _RULES, _change_attempt, fold
from agent.core.run_state import RunState
from agent.run_context import run as run_module
from agent.run_context.engine import Engine
from agent.run_context.run import Run
from agent.runs.trace_projection import _RULES as _TRACE_RULES
from agent.storage.event_codec import encode
from agent.storage.journal import Claim, RunAppend
from agent.storage.journal_rows import check_terminal_last, derive_status
from agent.storage.journal_sqlite import SqliteJournal, open_in_memory
from gateway.access.run_concurrency import RELEASING_EVENTS
from tests.support.builders import RUN_ID, created, log

AT = 5.0
DEADLINE_S = 5.0
DEEP: JsonObject = json.loads('{"a":' * 300 + "1" + "}" * 300)
"""Deeper than a log takes; validation stops there too, so that bodies with it have to be constructed."""


class Ledger:
    """A journal of one run whose next appends go as `fates` say: `ok`, or the error that is raised."""

    def __init__(self, fates: Sequence[str | Exception] = (), *, turns: int = 1) -> None:
        self.events = log(created())
        self.fates = list(fates)
        self._turns = turns

    def append_now(self, *appends: RunAppend) -> None:
        """Everybody has to wait for this journal."""

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        fate = self.fates.pop(0) if self.fates else "ok"
        if isinstance(fate, Exception):
            raise fate
        check_terminal_last(run_id, drafts)
        if self.events[-1].body.terminal:
            raise ConflictError("it has ended")
        first = len(self.events) + 1
        written = tuple(
            encode(Event(run_id, first + index, epoch, AT, draft.body, draft.step_id, draft.attempt))[0]
            for index, draft in enumerate(drafts)
        )
        self.events += written
        return written


def run_on(ledger: Any) -> Run:
    """A run that was just claimed from this journal. It needs nothing else of the engine."""
    engine = Engine(*[None] * 9)  # type: ignore[arg-type]
    object.__setattr__(engine, "journal", ledger)
    return Run(engine, Claim(RUN_ID, 1, tuple(ledger.events)))


def turn(number: int) -> ev.ModelReturned:
    """A note with a number in it, that is counted where it is folded."""
    return ev.ModelReturned(
        purpose="completion", tier="fast", model="m", usage=Usage(model_calls=1, prompt_tokens=number), duration=0.0
    )


def number_of(event: Event) -> int:
    return event.body.usage.prompt_tokens if isinstance(event.body, ev.ModelReturned) else 0


def run_with_timeout(work: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await work

    with patch.object(run_module, "time", lambda: AT):
        asyncio.run(timed())


FATES = st.sampled_from(
    ["ok", "ok", "ok", StoreError("s"), StoreFullError("f"), StaleEpochError("e"), TooLargeError("t"), OSError("o")]
)
KINDS = st.sampled_from(["note", "emit", "emit", "deep note", "deep emit", "cancelled", "end"])
ACTS = st.lists(st.tuples(KINDS, st.integers(0, 3)), max_size=14)


class Adversary:
    """Does things to a run at once, and remembers what it was promised: acts are numbered from 1, as called."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.noted: set[int] = set()
        self.confirmed: set[int] = set()

    async def act(self, number: int, kind: str) -> None:
        """One act, to its end."""
        place: dict[str, Any] = {"step_id": "s1", "attempt": 1}
        match kind:
            case "note":
                await self.run.note(turn(number))
                self.noted.add(number)
            case "deep note":
                await self.run.note(ev.StepStarted.model_construct(args=DEEP), **place)
            case "deep emit":
                await self.run.emit(ev.StepStarted.model_construct(args=DEEP), **place)
            case "end":
                await self.run.emit(ev.RunSucceeded())
            case _:
                await self.run.emit(turn(number))
                self.confirmed.add(number)
                assert self.run.state.seq > 1

    async def go_on(self, acts: Sequence[tuple[str, int]]) -> bool:
        """Begin with all of them, each with its pause of loop rounds; True when the run can be gone on with."""
        tasks: list[asyncio.Task[None]] = []
        for number, (kind, pause) in enumerate(acts, start=1):
            tasks.append(asyncio.create_task(self.act(number, kind)))
            await asyncio.sleep(0)
            if kind == "cancelled":
                tasks[-1].cancel()
            for _ in range(pause):
                await asyncio.sleep(0)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [one for one in outcomes if isinstance(one, AssertionError)]
        try:
            await self.run.flush()
        except (AgentError, OSError):
            return False
        return True


@settings(max_examples=150)
@given(acts=ACTS, fates=st.lists(FATES, max_size=6), turns=st.integers(0, 4))
def test_state_and_log_never_come_apart(acts: list[tuple[str, int]], fates: list[str | Exception], turns: int) -> None:
    ledger = Ledger(fates, turns=turns)

    async def go() -> None:
        adversary = Adversary(run_on(ledger))
        sound = await adversary.go_on(acts)
        assert adversary.run.events == ledger.events
        numbers = [number_of(event) for event in ledger.events if number_of(event)]
        assert numbers == sorted(set(numbers)), "each once, in the order of the calls"
        assert adversary.confirmed <= set(numbers)
        if sound:
            assert adversary.run.state == fold(RUN_ID, ledger.events)
            assert adversary.noted <= set(numbers)
        else:
            newest = max(numbers, default=0)
            assert {n for n in adversary.noted if n < newest} <= set(numbers), "nothing rests on a lost note"

    run_with_timeout(go())


def test_nothing_is_appended_behind_notes_that_were_lost() -> None:
    ledger = Ledger([StoreFullError("full")], turns=3)

    async def go() -> None:
        run = run_on(ledger)
        await run.note(turn(1))
        noted = asyncio.create_task(run.flush())
        await asyncio.sleep(0)  # the note is on its way
        await asyncio.sleep(0)
        with pytest.raises(StoreFullError):
            await run.emit(turn(2))
        with pytest.raises(StoreFullError):
            await noted

    run_with_timeout(go())
    assert len(ledger.events) == 1
    assert ledger.fates == []


def test_a_defect_of_the_store_leaves_nobody_waiting() -> None:
    ledger = Ledger([TooLargeError("one of them"), OSError("a defect"), "ok"])

    async def go() -> None:
        run = run_on(ledger)
        first, second = await asyncio.gather(run.emit(turn(1)), run.emit(turn(2)), return_exceptions=True)
        assert isinstance(first, OSError)
        assert second is None
        assert run.state == fold(RUN_ID, ledger.events)

    run_with_timeout(go())


def test_a_note_is_folded_as_it_is_read_back() -> None:
    ledger = Ledger()

    async def go() -> None:
        run = run_on(ledger)
        await run.note(ev.InputGuarded(prompt="half a \ud800 character", removed_characters=0))
        assert run.state.prompt == "half a \ufffd character"
        await run.flush()
        assert run.state == fold(RUN_ID, ledger.events)

    run_with_timeout(go())


def test_a_note_behind_the_end_is_refused() -> None:
    ledger = Ledger()

    async def go() -> None:
        run = run_on(ledger)
        await run.emit(ev.RunSucceeded())
        with pytest.raises(ConflictError):
            await run.note(turn(1))
        assert run.state == fold(RUN_ID, ledger.events)

    run_with_timeout(go())


class Recorded:
    """A journal that remembers which runs' events were appended together."""

    def __init__(self, inner: SqliteJournal) -> None:
        self._inner = inner
        self.together: list[set[str]] = []

    def append_now(self, *appends: RunAppend) -> list[tuple[Event, ...]] | None:
        logs = self._inner.append_now(*appends)
        if logs is not None:
            self.together.append({one.run_id for one in appends})
        return logs

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        return await self._inner.append(run_id, epoch, drafts)


async def open_noting_runs(journal: SqliteJournal, ledger: Recorded) -> tuple[Run, Run]:
    """Two runs of one process that have noted something in the same moment."""
    engine = Engine(*[None] * 9)  # type: ignore[arg-type]
    object.__setattr__(engine, "journal", ledger)
    names = ("run_1", "run_2")
    claims = [await journal.create_run(name, created(), worker="w", lease_s=15.0) for name in names]
    first, second = (Run(engine, claim) for claim in claims)
    await first.note(turn(1))
    await second.note(turn(2))
    return first, second


def test_what_several_runs_note_is_appended_in_one_transaction() -> None:
    async def go() -> None:
        store = open_in_memory()
        ledger = Recorded(store.journal)
        first, second = await open_noting_runs(store.journal, ledger)
        await anext(second.follow_events(after=1))
        assert ledger.together == [{"run_1", "run_2"}]
        for run in (first, second):
            assert run.events == await store.journal.read_events(run.run_id)
            assert run.state.usage == fold(run.run_id, run.events).usage
        await store.close()

    run_with_timeout(go())


def test_a_run_that_another_process_holds_keeps_no_other_run_from_its_notes() -> None:
    async def go() -> None:
        store = open_in_memory()
        first, second = await open_noting_runs(store.journal, Recorded(store.journal))
        await store.journal.release(first.run_id, first.epoch)
        assert await store.journal.claim(first.run_id, worker="other", lease_s=15.0) is not None
        await anext(second.follow_events(after=1))
        with pytest.raises(StaleEpochError):
            await first.flush()
        assert len(await store.journal.read_events(first.run_id)) == 1
        assert second.events == await store.journal.read_events(second.run_id)
        await store.close()

    run_with_timeout(go())


def test_the_state_has_one_rule_for_every_type_of_event() -> None:
    assert set(ev.BODY_TYPES.values()) == set(_RULES) | set(_FIELD_OF_NEWEST)
    assert not set(_RULES) & set(_FIELD_OF_NEWEST)
    assert set(_FIELD_OF_NEWEST.values()) <= set(RunState.__dataclass_fields__)


def test_an_attempt_has_a_rule_for_every_type_of_event_that_changes_it() -> None:
    changing = {kind for kind, rule in _RULES.items() if rule is _change_attempt}
    assert set(_ATTEMPT_RULES) == changing | {ev.ApprovalRequested, ev.ApprovalDecided, ev.ModelReturned}


@pytest.mark.parametrize("kind", [kind for kind in ev.BODY_TYPES.values() if kind.terminal])
def test_every_event_that_ends_a_run_is_known_where_ends_are_handled(kind: type[ev.EventBody]) -> None:
    failure = AgentError("it failed").to_failure()
    body = kind.model_validate({"failure": failure} if kind is ev.RunFailed else {"reason": ""})
    status, ended = derive_status([EventDraft(turn(1)), EventDraft(body)])
    assert ended
    assert status in ENDED_STATUSES
    assert kind in RELEASING_EVENTS
    assert kind in _TRACE_RULES
