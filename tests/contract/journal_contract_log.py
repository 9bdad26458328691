"""The log of a run: created, appended to, read, ended."""

import asyncio
import contextlib
from time import monotonic

import pytest
from pydantic import JsonValue

from agent.core.errors import ConflictError, NotFoundError, StaleEpochError, TooLargeError
from agent.core.events import (
    AnswerDelta,
    AnswerFinished,
    EventBody,
    EventDraft,
    GateChecked,
    RunCancelled,
    RunClaimed,
    RunFailed,
    RunSucceeded,
    RunSuspended,
    ToolReturned,
)
from agent.core.failures import AgentFailure
from agent.core.models import RunStatus
from agent.storage.journal import Journal
from tests.contract.journal_stores import (
    LEASE_S,
    StoreFixtures,
    Stores,
    make_end,
    make_note,
    make_run_created,
    new_run,
    read_seqs,
)


class LogContract(StoreFixtures):
    """Events in, events out."""

    async def test_a_new_run_is_claimed_and_holds_its_first_event(self, journal: Journal, stores: Stores) -> None:
        claim = await journal.create_run("run_1", make_run_created("buy  milk\n" * 30), worker="a", lease_s=LEASE_S)
        assert (claim.epoch, [event.seq for event in claim.events]) == (1, [1])
        assert claim.events == tuple(await journal.read_events("run_1"))
        row = await journal.get_run("run_1", owner="local")
        assert (row.status, row.epoch, row.last_seq, row.worker) == ("queued", 1, 1, "a")
        assert (row.room, row.conversation_id, row.hidden) == ("test", "chat-1", False)
        assert row.title == ("buy milk " * 30)[:80]
        assert row.lease_until == stores.clock.now + LEASE_S
        assert row.created_at == row.updated_at == stores.clock.now

    async def test_an_id_is_taken_once(self, journal: Journal) -> None:
        await new_run(journal)
        with pytest.raises(ConflictError, match="run_1"):
            await new_run(journal, worker="b")
        assert (await journal.get_run("run_1", owner="local")).worker == "a"

    async def test_events_come_back_as_they_were_appended(self, journal: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        stores.clock.now += 5
        first = await journal.append(run_id, 1, [make_note("one"), make_note("two")])
        second = await journal.append(run_id, 1, [make_note("three")])
        log = await journal.read_events(run_id)
        assert log[1:] == [*first, *second]
        assert [(event.seq, event.epoch) for event in log] == [(1, 1), (2, 1), (3, 1), (4, 1)]
        assert (log[1].step_id, log[1].attempt, log[1].at) == ("s1", 2, stores.clock.now)
        assert (await journal.get_run(run_id, owner="local")).last_seq == 4

    async def test_what_was_noted_before_it_is_appended_keeps_its_time(self, journal: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        stores.clock.now += 100
        earlier, ahead = (
            make_note(name)._replace(monotonic_at=monotonic() + age) for name, age in (("one", -7.0), ("two", 7.0))
        )
        appended = await journal.append(run_id, 1, [earlier, ahead, make_note("three")])
        assert appended == tuple((await journal.read_events(run_id))[1:])
        one, two, three = (event.at for event in appended)
        assert stores.clock.now - 8 < one <= stores.clock.now - 7
        assert two == three == stores.clock.now, "nothing has happened that is still to come"
        assert (await journal.get_run(run_id, owner="local")).updated_at == stores.clock.now

    async def test_reading_goes_on_from_a_position(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [make_note(str(number)) for number in range(6)])
        assert [event.seq for event in await journal.read_events(run_id, after=3, limit=2)] == [4, 5]
        assert await journal.read_events(run_id, after=7) == []
        assert await journal.read_events(run_id, after=10**30) == []
        assert await journal.read_events("run_unknown") == []

    async def test_half_characters_are_mended_and_what_is_returned_is_what_is_stored(self, journal: Journal) -> None:
        claim = await journal.create_run("run_1", make_run_created("a\ud800b"), worker="a", lease_s=LEASE_S)
        appended = await journal.append("run_1", 1, [make_note("c\udfffd")])
        log = await journal.read_events("run_1")
        assert log == [*claim.events, *appended]
        assert isinstance(log[1].body, GateChecked)
        assert log[1].body.reason == "c\N{REPLACEMENT CHARACTER}d"
        assert (await journal.get_run("run_1", owner="local")).title == "a\N{REPLACEMENT CHARACTER}b"

    async def test_deep_values_are_stored_whole_or_refused_whole(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        kept = await journal.read_events(run_id)
        for levels in range(190, 255):
            deep = EventDraft(ToolReturned(call_id="c", tool="t", output=_nested(levels)))
            with contextlib.suppress(TooLargeError):
                kept += await journal.append(run_id, 1, [make_note("before"), deep])
        assert len(kept) > 1
        assert await journal.read_events(run_id) == kept
        assert [event.seq for event in kept] == list(range(1, len(kept) + 1))

    async def test_a_value_too_deep_to_be_written_is_refused_with_its_whole_append(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        deep = ToolReturned.model_construct(call_id="c", tool="t", output=_nested(400))
        with pytest.raises(TooLargeError, match=r"tool\.returned"):
            await journal.append(run_id, 1, [make_note("before"), EventDraft(deep)])
        await journal.append(run_id, 1, [make_note("after")])
        assert await read_seqs(journal, run_id) == [1, 2]

    async def test_appends_of_many_runs_at_once_stay_apart_and_gapless(self, journal: Journal) -> None:
        runs = [f"run_{number}" for number in range(50)]
        await asyncio.gather(*(new_run(journal, run_id) for run_id in runs))

        async def write(run_id: str) -> None:
            for number in range(5):
                await journal.append(run_id, 1, [make_note(f"{run_id} {number}")])

        await asyncio.gather(*(write(run_id) for run_id in runs))
        for run_id in runs:
            log = await journal.read_events(run_id)
            assert [event.seq for event in log] == list(range(1, 7))
            assert [event.body.reason for event in log if isinstance(event.body, GateChecked)] == [
                f"{run_id} {number}" for number in range(5)
            ]

    async def test_an_older_epoch_is_refused_and_writes_nothing(self, journal: Journal, other: Journal) -> None:
        run_id = await new_run(journal)
        claim = await other.claim(run_id, worker="a", lease_s=LEASE_S)
        assert claim is not None
        with pytest.raises(StaleEpochError, match=run_id):
            await journal.append(run_id, 1, [make_note("from a zombie")])
        appended = await other.append(run_id, claim.epoch, [make_note("from the owner")])
        assert [(event.seq, event.epoch) for event in appended] == [(2, 2)]

    async def test_an_epoch_that_was_never_given_is_refused(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        with pytest.raises(StaleEpochError):
            await journal.append(run_id, 2, [make_note("early")])

    async def test_an_unknown_run_takes_no_events(self, journal: Journal) -> None:
        with pytest.raises(NotFoundError, match="run_unknown"):
            await journal.append("run_unknown", 1, [make_note("lost")])

    async def test_a_refused_append_does_not_spoil_the_others_of_its_moment(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        results = await asyncio.gather(
            journal.append(run_id, 1, [make_note("one")]),
            journal.append(run_id, 9, [make_note("stale")]),
            journal.append("run_unknown", 1, [make_note("lost")]),
            journal.append(run_id, 1, [make_note("two")]),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [tuple, StaleEpochError, NotFoundError, tuple]
        assert await read_seqs(journal, run_id) == [1, 2, 3]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (RunSucceeded(), "succeeded"),
            (RunSucceeded(completeness="partial", reason="a step failed"), "partial"),
            (RunSucceeded(completeness="aborted", reason="harm"), "partial"),
            (RunCancelled(reason="by hand"), "cancelled"),
            (RunFailed(failure=AgentFailure(agent_id="x", error_code="E", message="m", recoverable=False)), "failed"),
        ],
    )
    async def test_a_run_ends_once(self, journal: Journal, body: EventBody, status: RunStatus) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [EventDraft(body)])
        with pytest.raises(ConflictError, match="ended"):
            await journal.append(run_id, 1, [EventDraft(body)])
        row = await journal.get_run(run_id, owner="local")
        assert (row.status, row.worker, row.last_seq) == (status, None, 2)

    async def test_nothing_follows_the_end_within_one_append(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        with pytest.raises(ConflictError):
            await journal.append(run_id, 1, [make_end(), make_note("late")])
        assert await read_seqs(journal, run_id) == [1]

    async def test_the_end_prunes_deltas_and_nothing_else(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.append(
            run_id, 1, [EventDraft(AnswerDelta(text="he")), EventDraft(AnswerDelta(text="y")), make_note("x")]
        )
        assert await read_seqs(journal, run_id) == [1, 2, 3, 4]
        await journal.append(run_id, 1, [EventDraft(AnswerFinished(text="hey")), make_end()])
        assert await read_seqs(journal, run_id) == [1, 4, 5, 6]

    async def test_the_end_prunes_deltas_of_its_own_append(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [EventDraft(AnswerDelta(text="he"))])
        appended = await journal.append(run_id, 1, [EventDraft(AnswerDelta(text="y")), make_note("x"), make_end()])
        assert [event.seq for event in appended] == [3, 4, 5]
        assert await read_seqs(journal, run_id) == [1, 4, 5]

    async def test_an_end_by_a_former_owner_prunes_nothing(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [EventDraft(AnswerDelta(text="hey"))])
        with pytest.raises(StaleEpochError):
            await journal.append(run_id, 7, [make_end()])
        assert await read_seqs(journal, run_id) == [1, 2]
        assert (await journal.get_run(run_id, owner="local")).status == "queued"

    async def test_the_row_follows_claims_and_suspensions(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [EventDraft(RunClaimed(worker="a"))])
        assert (await journal.get_run(run_id, owner="local")).status == "running"
        await journal.append(run_id, 1, [EventDraft(RunSuspended(reason="drain"))])
        assert (await journal.get_run(run_id, owner="local")).status == "queued"


def _nested(levels: int) -> JsonValue:
    value: JsonValue = "deep"
    for _ in range(levels):
        value = [value]
    return value
