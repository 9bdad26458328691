"""Who may write a run: claims, epochs, leases, and two processes that compete."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.errors import StaleEpochError
from agent.storage.journal import Journal
from tests.contract.journal_stores import LEASE_S, StoreFixtures, Stores, make_end, make_note, make_run_created, new_run


class ClaimsContract(StoreFixtures):
    """One run, one writer."""

    @given(
        script=st.lists(st.tuples(st.booleans(), st.sampled_from(["claim", "append", "release", "wait"])), max_size=25)
    )
    @settings(
        max_examples=40,
        # Every example takes a run of its own on the test's store; and each driver's class runs this same method.
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    async def test_two_claimants_leave_a_gapless_log_with_rising_epochs(
        self, stores: Stores, script: Sequence[tuple[bool, str]]
    ) -> None:
        await _two_claimants(stores, script)

    async def test_a_living_lease_keeps_others_away(self, journal: Journal, other: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        assert await other.claim(run_id, worker="b", lease_s=LEASE_S) is None
        assert await other.list_claimable_runs() == []
        stores.clock.pass_lease()
        assert await other.list_claimable_runs() == [run_id]
        claim = await other.claim(run_id, worker="b", lease_s=LEASE_S)
        assert claim is not None
        assert (claim.epoch, list(claim.events)) == (2, await journal.read_events(run_id))
        assert await journal.claim(run_id, worker="a", lease_s=LEASE_S) is None

    async def test_a_run_that_waits_for_a_person_is_left_alone_until_they_speak(
        self, journal: Journal, other: Journal, stores: Stores
    ) -> None:
        run_id = await new_run(journal)
        assert await journal.park(run_id, 1, until=stores.clock() + 100 * LEASE_S, after_signal=0)
        row = await journal.get_run(run_id, owner="local")
        assert (row.status, row.worker) == ("awaiting_approval", None)
        stores.clock.pass_lease()
        assert await other.list_claimable_runs() == []
        await other.send_signal(run_id, "approve", {"approvals": ["apr_1"]})
        assert await other.list_claimable_runs() == [run_id]
        claim = await other.claim(run_id, worker="b", lease_s=LEASE_S)
        assert claim is not None
        assert await other.list_claimable_runs() == [], "held again"

    async def test_a_wait_is_over_when_its_time_is(self, journal: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        assert await journal.park(run_id, 1, until=stores.clock() + LEASE_S / 2, after_signal=0)
        assert await journal.list_claimable_runs() == []
        stores.clock.pass_lease()
        assert await journal.list_claimable_runs() == [run_id]

    async def test_a_run_is_not_put_down_over_a_word_it_has_not_heard(self, journal: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        await journal.send_signal(run_id, "approve", {})
        assert not await journal.park(run_id, 1, until=stores.clock() + LEASE_S, after_signal=0)
        row = await journal.get_run(run_id, owner="local")
        assert (row.status, row.worker) != ("awaiting_approval", None)
        (signal,) = await journal.read_signals(run_id)
        assert await journal.park(run_id, 1, until=stores.clock() + LEASE_S, after_signal=signal.id)

    async def test_who_was_claimed_from_cannot_put_the_run_down(
        self, journal: Journal, other: Journal, stores: Stores
    ) -> None:
        run_id = await new_run(journal)
        stores.clock.pass_lease()
        assert await other.claim(run_id, worker="b", lease_s=LEASE_S) is not None
        assert not await journal.park(run_id, 1, until=stores.clock() + LEASE_S, after_signal=0)

    async def test_a_worker_may_claim_its_own_run_again(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        claim = await journal.claim(run_id, worker="a", lease_s=LEASE_S)
        assert claim is not None
        assert (claim.epoch, claim.former_worker) == (2, None)

    async def test_two_claims_at_once_give_one_owner(self, journal: Journal, other: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        stores.clock.pass_lease()
        claims = await asyncio.gather(
            journal.claim(run_id, worker="b", lease_s=LEASE_S), other.claim(run_id, worker="c", lease_s=LEASE_S)
        )
        assert [claim is None for claim in claims].count(False) == 1

    async def test_finished_and_unknown_runs_are_not_claimed(self, journal: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        await journal.append(run_id, 1, [make_end()])
        stores.clock.pass_lease()
        assert await journal.claim(run_id, worker="a", lease_s=LEASE_S) is None
        assert await journal.claim("run_unknown", worker="a", lease_s=LEASE_S) is None
        assert await journal.list_claimable_runs() == []
        assert await journal.list_workers() == []

    async def test_runs_of_dead_workers_are_free_at_once(self, journal: Journal) -> None:
        await new_run(journal, "run_1", worker="dead")
        await new_run(journal, "run_2", worker="alive")
        assert sorted(await journal.list_workers()) == ["alive", "dead"]
        assert await journal.list_claimable_runs(dead_workers=["dead"]) == ["run_1"]
        claim = await journal.claim("run_1", worker="alive", lease_s=LEASE_S)
        assert claim is not None
        assert claim.former_worker == "dead"
        assert await journal.list_workers() == ["alive"]

    async def test_claimable_runs_come_oldest_first_and_limited(self, journal: Journal, stores: Stores) -> None:
        for number in range(3):
            await new_run(journal, f"run_{3 - number}")
            stores.clock.now += 1
        stores.clock.pass_lease()
        assert await journal.list_claimable_runs(limit=2) == ["run_3", "run_2"]

    async def test_renewing_prolongs_a_lease(self, journal: Journal, other: Journal, stores: Stores) -> None:
        run_id = await new_run(journal)
        stores.clock.now += LEASE_S - 1
        await journal.renew_leases("a", ["run_1"], lease_s=LEASE_S)
        stores.clock.now += LEASE_S - 1
        assert await other.claim(run_id, worker="b", lease_s=LEASE_S) is None

    async def test_a_run_that_is_not_named_is_left_to_its_lease(
        self, journal: Journal, other: Journal, stores: Stores
    ) -> None:
        for run_id in ("run_1", "run_2"):
            await new_run(journal, run_id)
        stores.clock.now += LEASE_S - 1
        await journal.renew_leases("a", ["run_1"], lease_s=LEASE_S)
        await journal.renew_leases("a", [], lease_s=LEASE_S)
        stores.clock.now += LEASE_S - 1
        assert await other.list_claimable_runs() == ["run_2"]
        assert await other.claim("run_1", worker="b", lease_s=LEASE_S) is None
        assert await other.claim("run_2", worker="b", lease_s=LEASE_S) is not None

    async def test_renewing_never_revives_a_run_that_another_claimed(
        self, journal: Journal, other: Journal, stores: Stores
    ) -> None:
        run_id = await new_run(journal)
        stores.clock.pass_lease()
        await other.claim(run_id, worker="b", lease_s=LEASE_S)
        await journal.renew_leases("a", ["run_1"], lease_s=100 * LEASE_S)
        row = await journal.get_run(run_id, owner="local")
        assert (row.worker, row.lease_until) == ("b", stores.clock.now + LEASE_S)

    async def test_a_released_run_is_free_at_once(self, journal: Journal, other: Journal) -> None:
        run_id = await new_run(journal)
        await journal.release(run_id, 1)
        assert await other.list_claimable_runs() == [run_id]
        assert await other.claim(run_id, worker="b", lease_s=LEASE_S) is not None

    async def test_releasing_with_an_older_epoch_changes_nothing(self, journal: Journal) -> None:
        run_id = await new_run(journal)
        await journal.claim(run_id, worker="a", lease_s=LEASE_S)
        await journal.release(run_id, 1)
        assert await journal.list_claimable_runs() == []


_names = itertools.count()


async def _two_claimants(stores: Stores, script: Sequence[tuple[bool, str]]) -> None:
    """Two processes act on one run as the script says. Their results must agree with the log."""
    claimants = {False: await stores.open(), True: await stores.open()}
    run_id = f"run_shared_{next(_names)}"
    epochs = {
        False: (await claimants[False].create_run(run_id, make_run_created(), worker="w0", lease_s=LEASE_S)).epoch,
        True: 0,
    }
    acknowledged = await claimants[False].read_events(run_id)
    for who, action in script:
        journal = claimants[who]
        if action == "wait":
            stores.clock.pass_lease()
        elif action == "release":
            await journal.release(run_id, epochs[who])
        elif action == "claim":
            claim = await journal.claim(run_id, worker=f"w{int(who)}", lease_s=LEASE_S)
            if claim is not None:
                assert claim.epoch > max(epochs.values())
                assert list(claim.events) == acknowledged
                epochs[who] = claim.epoch
        elif epochs[who] == max(epochs.values()):
            acknowledged += await journal.append(run_id, epochs[who], [make_note("a"), make_note("b")])
        else:
            with pytest.raises(StaleEpochError):
                await journal.append(run_id, epochs[who], [make_note("from a zombie")])
    log = await claimants[True].read_events(run_id)
    assert log == acknowledged
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert [event.epoch for event in log] == sorted(event.epoch for event in log)
    for journal in claimants.values():
        await journal.close()
