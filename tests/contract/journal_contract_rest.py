"""Everything around the log: lists by owner, signals, blobs, waiting, closing."""

import asyncio
import hashlib

import pytest

from agent.core.errors import ConflictError, NotFoundError
from agent.storage.journal import Journal, SignalKind
from tests.contract.journal_stores import (
    DEADLINE_S,
    StoreFixtures,
    Stores,
    make_end,
    make_note,
    make_run_created,
    new_run,
    read_seqs,
)


class RestContract(StoreFixtures):
    """Rows, signals, blobs, wake-ups."""

    async def test_a_run_of_another_owner_is_as_absent_as_an_unknown_one(self, journal: Journal) -> None:
        await new_run(journal, owner="alice")
        messages = []
        for run_id in ("run_1", "run_2"):
            with pytest.raises(NotFoundError) as caught:
                await journal.get_run(run_id, owner="bob")
            messages.append(caught.value.message.replace(run_id, "RUN"))
        assert messages[0] == messages[1]
        assert await journal.list_runs(owner="bob") == []
        assert [row.run_id for row in await journal.list_runs(owner="alice")] == ["run_1"]
        assert (await journal.get_run("run_1", owner=None)).owner == "alice", "the operator's view"
        assert [row.run_id for row in await journal.list_runs(owner=None)] == ["run_1"]

    async def test_lists_page_from_the_newest_without_hidden_runs(self, journal: Journal, stores: Stores) -> None:
        for number in range(5):
            await new_run(journal, f"run_{number}", hidden=number == 3)
            stores.clock.now += number % 2  # some at the same moment
        pages: list[list[str]] = []
        while not pages or pages[-1]:
            before = pages[-1][-1] if pages else None
            pages.append([row.run_id for row in await journal.list_runs(owner="local", limit=2, before=before)])
        assert pages == [["run_4", "run_2"], ["run_1", "run_0"], []]
        whole = await journal.list_runs(owner="local", include_hidden=True)
        assert [row.run_id for row in whole] == ["run_4", "run_3", "run_2", "run_1", "run_0"]

    async def test_a_conversation_has_an_oldest_and_a_newest_run(self, journal: Journal, stores: Stores) -> None:
        assert await journal.find_conversation_ends("c1", owner="local") is None
        for number, (owner, hidden, talk) in enumerate(
            [("alice", False, "c1"), ("local", True, "c1"), ("local", False, "c1"), ("local", False, "c2")]
        ):
            made = make_run_created(owner=owner, hidden=hidden)
            request = made.request.model_copy(update={"conversation_id": talk})
            body = made.model_copy(update={"request": request})
            await journal.create_run(f"run_{number}", body, worker="a", lease_s=60)
            stores.clock.now += 1
        ends = await journal.find_conversation_ends("c1", owner="local")
        assert ends is not None
        assert [row.run_id for row in ends] == ["run_2", "run_2"], "neither another owner's nor a hidden one"
        made = make_run_created()
        body = made.model_copy(update={"request": made.request.model_copy(update={"conversation_id": "c1"})})
        await journal.create_run("run_9", body, worker="a", lease_s=60)
        ends = await journal.find_conversation_ends("c1", owner="local")
        assert ends is not None
        assert [row.run_id for row in ends] == ["run_2", "run_9"]

    async def test_a_list_pages_only_from_a_run_of_its_owner(self, journal: Journal, stores: Stores) -> None:
        await new_run(journal, "run_1", owner="alice")
        stores.clock.now += 1
        await new_run(journal, "run_2", owner="bob")
        assert await journal.list_runs(owner="alice", before="run_2") == []
        assert [row.run_id for row in await journal.list_runs(owner=None, before="run_2", status="queued")] == ["run_1"]
        assert await journal.list_runs(owner="alice", before="run_unknown") == []

    async def test_lists_can_be_of_one_status(self, journal: Journal) -> None:
        await new_run(journal, "run_1")
        await new_run(journal, "run_2")
        await journal.append("run_2", 1, [make_end()])
        assert [row.run_id for row in await journal.list_runs(owner="local", status="queued")] == ["run_1"]
        assert [row.run_id for row in await journal.list_runs(owner="local", status="succeeded")] == ["run_2"]

    async def test_signals_are_kept_in_order(self, journal: Journal, other: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        await new_run(journal, "run_2")
        await other.send_signal(run_id, "cancel", {"reason": "too slow", "nested": {"a": [1, None]}})
        await other.send_signal("run_2", "answer", {})
        await other.send_signal(run_id, "approve", {})
        first, second = await journal.read_signals(run_id)
        assert (first.kind, second.kind, first.at) == ("cancel", "approve", stores.clock.now)
        assert first.payload == {"reason": "too slow", "nested": {"a": [1, None]}}
        assert await journal.read_signals(run_id, after=first.id) == [second]
        assert await journal.read_signals(run_id) == [first, second]

    async def test_of_many_words_on_one_approval_one_is_taken(self, journal: Journal, other: Journal) -> None:
        run_id = await new_run(journal)
        word: dict[str, object] = {"approvals": ["apr_1", "apr_2"]}
        kinds: list[SignalKind] = ["approve", "reject", "answer", "approve"]
        given = [who.send_signal(run_id, kind, {**word, "by": kind}) for kind in kinds for who in (journal, other)]
        said = await asyncio.gather(*given, return_exceptions=True)
        assert said.count(None) == 1
        assert sum(isinstance(one, ConflictError) for one in said) == len(said) - 1
        assert len(await journal.read_signals(run_id)) == 1
        with pytest.raises(ConflictError, match="apr_2"):
            await other.send_signal(run_id, "reject", {"approvals": ["apr_3", "apr_2"]})
        await other.send_signal(run_id, "reject", {"approvals": ["apr_3"]})
        await other.send_signal(run_id, "cancel", {"reason": "enough"})
        await new_run(journal, "run_2")
        await journal.send_signal("run_2", "approve", word)
        assert [one.kind for one in await journal.read_signals(run_id)][1:] == ["reject", "cancel"]

    async def test_an_unknown_run_takes_no_signals(self, journal: Journal) -> None:
        with pytest.raises(NotFoundError, match="run_unknown"):
            await journal.send_signal("run_unknown", "cancel", {})

    async def test_a_blob_is_stored_once_under_its_checksum(self, journal: Journal, other: Journal) -> None:
        data = bytes(range(256)) * 100
        run_id = await new_run(journal)
        await new_run(journal, "run_2")
        checksum = await journal.put_blob(data, run_id=run_id)
        assert checksum == hashlib.sha256(data).hexdigest()
        assert await other.put_blob(data, run_id="run_2") == checksum
        assert await journal.put_blob(data, run_id=run_id) == checksum
        assert await other.get_blob(checksum) == data

    async def test_a_blob_is_stored_for_a_run(self, journal: Journal) -> None:
        with pytest.raises(NotFoundError, match="run_unknown"):
            await journal.put_blob(b"1", run_id="run_unknown")
        with pytest.raises(NotFoundError):
            await journal.get_blob(hashlib.sha256(b"1").hexdigest())

    async def test_an_unknown_blob_is_not_found(self, journal: Journal) -> None:
        with pytest.raises(NotFoundError):
            await journal.get_blob("0" * 64)

    async def test_waiting_ends_at_once_when_there_is_something_to_read(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        async with asyncio.timeout(DEADLINE_S):
            await journal.wait_for_events(run_id, after=0, timeout_s=10 * DEADLINE_S)

    async def test_waiting_ends_with_its_time(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        async with asyncio.timeout(DEADLINE_S):
            await journal.wait_for_events(run_id, after=1, timeout_s=0.001)
        assert await journal.read_events(run_id, after=1) == []

    async def test_an_append_wakes_those_who_wait(self, journal: Journal, other: Journal) -> None:
        run_id = await new_run(journal)
        waiting = [
            asyncio.create_task(each.wait_for_events(run_id, after=1, timeout_s=10 * DEADLINE_S))
            for each in (journal, other)
        ]
        await journal.append(run_id, 1, [make_note("wake up")])
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*waiting)

    async def test_a_signal_wakes_the_owner(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        waiting = asyncio.create_task(journal.wait_for_events(run_id, after=1, timeout_s=10 * DEADLINE_S))
        async with asyncio.timeout(DEADLINE_S):
            while not waiting.done():
                await journal.send_signal(run_id, "approve", {})
                await asyncio.sleep(0)  # a store may write at once, and nobody else would ever run

    async def test_a_working_store_passes_its_check(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.check_writable()
        assert await read_seqs(journal, run_id) == [1]

    async def test_what_was_acknowledged_is_there_for_the_next_process(self, journal: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [make_note("kept")])
        log = await journal.read_events(run_id)
        await journal.close()
        assert await (await stores.open()).read_events(run_id) == log

    async def test_a_cancelled_caller_leaves_the_log_whole(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        task = asyncio.create_task(journal.append(run_id, 1, [make_note("cancelled")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await journal.append(run_id, 1, [make_note("next")])
        found = await read_seqs(journal, run_id)
        assert found == list(range(1, len(found) + 1))
