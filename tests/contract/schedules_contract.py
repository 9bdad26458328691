"""The contract of schedules and of the outbox of webhooks: one process a tick, one attempt at a time, nothing lost."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from agent.core.errors import BusyError, ConflictError, NotFoundError
from agent.core.events import EventDraft, RunCreated, RunFailed
from agent.core.models import AgentRequest, Room, Webhook
from agent.storage.journal import Journal
from gateway.features.schedules.engine import schedule_store
from gateway.features.schedules.engine.schedule_store import Schedule, ScheduleStore, Tick
from gateway.features.schedules.engine.webhook_outbox import (
    MAX_PER_OWNER,
    ORPHAN_SECONDS,
    WebhookOutbox,
    make_delivery_id,
)
from tests.contract.journal_stores import Clock

HOOK = Webhook(url="https://hooks.example.org/\N{PILE OF POO}", secret_name="hook")


@dataclass(frozen=True)
class Opened:
    """What one process has on the common database."""

    schedules: ScheduleStore
    outbox: WebhookOutbox
    journal: Journal


Stores = tuple[Opened, Opened]


def make_schedule(clock: Clock, name: str = "morning", owner: str = "anna", due: float = -10.0) -> Schedule:
    return Schedule(
        f"sched_{owner}_{name}", owner, name, {"prompt": "report \x00", "room": None, "metadata": {"a": [1]}},
        "0 7 * * *", "UTC", "skip", "run_once", HOOK, "key1", is_enabled=True, next_tick=clock() + due,
        created=clock(), updated=clock(),
    )  # fmt: skip


async def start_run(opened: Opened, run_id: str, owner: str = "anna", *, ends: bool = True) -> None:
    created = RunCreated(request=AgentRequest(prompt="x"), room=Room(id="r", name="R"), owner=owner)
    claim = await opened.journal.create_run(run_id, created, worker="w", lease_s=60)
    if ends:
        failed = RunFailed(failure=BusyError("no").to_failure())
        await opened.journal.append(run_id, claim.epoch, [EventDraft(failed)])


class ScheduleContract:
    """Subclasses provide `stores` and `clock`."""

    async def test_a_schedule_is_kept_as_it_was_made(self, stores: Stores, clock: Clock) -> None:
        one, other = stores
        made = make_schedule(clock)
        await one.schedules.add(made, most=2)
        assert await other.schedules.get("anna", "morning") == made == await other.schedules.get("anna", made.id)
        off = replace(make_schedule(clock, "off"), is_enabled=False, next_tick=None, webhook=None, key_id=None)
        await one.schedules.add(off, most=2)
        assert await other.schedules.list_all("anna") == [made, off]
        with pytest.raises(ConflictError, match="there is a schedule 'off' already"):
            await one.schedules.add(replace(off, id="sched_other"), most=5)
        with pytest.raises(ConflictError, match="the most allowed"):
            await one.schedules.add(make_schedule(clock, "third"), most=2)
        for owner, name in (("ben", "morning"), ("ben", made.id), ("anna", "\x00")):
            with pytest.raises(NotFoundError):
                await other.schedules.get(owner, name)

    async def test_a_due_tick_is_claimed_by_one(self, stores: Stores, clock: Clock) -> None:
        one, other = stores
        await one.schedules.add(make_schedule(clock), most=9)
        await one.schedules.add(make_schedule(clock, "later", due=60), most=9)
        ((seen,), (same,)) = await asyncio.gather(one.schedules.list_due(9), other.schedules.list_due(9))
        tick = clock() - 5
        claims = await asyncio.gather(
            one.schedules.claim(seen, tick, until=clock() + 30), other.schedules.claim(same, tick, until=clock() + 31)
        )
        assert sorted(claims) == [False, True]
        assert await one.schedules.list_due(9) == []
        clock.now += 40  # its process died: the same tick is due again, and marked as begun
        (left,) = await other.schedules.list_due(9)
        assert (left.next_tick, left.held_until > 0) == (tick, True)
        assert await other.schedules.claim(left, tick, until=clock() + 30)
        await other.schedules.defer(left, tick, until=clock() + 5)
        assert await other.schedules.list_due(9) == []
        clock.now += 6
        assert [due.name for due in await other.schedules.list_due(9)] == ["morning"]
        assert await other.schedules.find_next_tick() == tick

    async def test_a_recorded_tick_moves_the_schedule_on_and_is_never_unmade(
        self, stores: Stores, clock: Clock
    ) -> None:
        one, other = stores
        await one.schedules.add(make_schedule(clock), most=9)
        (due,) = await one.schedules.list_due(9)
        assert due.next_tick is not None
        tick = due.next_tick
        assert await one.schedules.claim(due, tick, until=clock() + 30)
        started = Tick(tick, "cron", "started", "run_1", "", 3)
        await one.schedules.record(due, started, next_tick=tick + 86_400)
        # A process that was stopped meanwhile comes back with another result.
        await other.schedules.record(due, Tick(tick, "cron", "refused", None, "late"), next_tick=tick + 60)
        (kept,) = await other.schedules.list_ticks(due, limit=9)
        assert (kept.outcome, kept.run_id, kept.missed, kept.run_status) == ("started", "run_1", 3, None)
        now = await other.schedules.get("anna", "morning")
        assert (now.next_tick, now.held_until, now.last_tick, now.last_run_id) == (tick + 86_400, 0, tick, "run_1")
        # A run that was started before the last one is recorded late.
        await other.schedules.record(due, Tick(tick - 60, "cron", "started", "run_0"), next_tick=None)
        assert (await one.schedules.get("anna", "morning")).last_run_id == "run_1"
        # The other way round: what another process has really started stays.
        await other.schedules.record(due, Tick(5.0, "cron", "refused", None, "no"), next_tick=None)
        await one.schedules.record(due, replace(started, tick=5.0), next_tick=None)
        assert [row.outcome for row in await one.schedules.list_ticks(due, limit=9, before=6.0)] == ["started"]

    async def test_a_change_wins_over_a_claim_and_an_older_change(self, stores: Stores, clock: Clock) -> None:
        one, other = stores
        await one.schedules.add(make_schedule(clock), most=9)
        (due,) = await one.schedules.list_due(9)
        before = await other.schedules.get("anna", "morning")
        clock.now += 1
        await other.schedules.replace(before, replace(before, cron="@daily", next_tick=clock() + 99, name="evening"))
        assert not await one.schedules.claim(due, clock(), until=clock() + 30)
        with pytest.raises(ConflictError, match="at the same time"):
            await one.schedules.replace(before, replace(before, cron="@weekly"))
        changed = await one.schedules.get("anna", "evening")
        assert (changed.cron, changed.next_tick, changed.key_id) == ("@daily", clock() + 98 + 1, "key1")
        assert not await one.schedules.stop(before, "a person has changed it since")
        assert await one.schedules.stop(changed, "the API key key1 was revoked \ud800")
        stopped = await other.schedules.get("anna", "evening")
        assert (stopped.is_enabled, stopped.next_tick, stopped.stopped[:31]) == (
            False,
            None,
            "the API key key1 was revoked \N{REPLACEMENT CHARACTER}"[:31],
        )
        assert await other.schedules.find_next_tick() is None
        await one.schedules.remove(stopped)
        await one.schedules.record(stopped, Tick(clock(), "manual", "started", "run_2"), next_tick=None)
        assert await other.schedules.list_all("anna") == []
        assert await other.schedules.list_ticks(stopped, limit=9) == []

    async def test_old_ticks_are_cut(self, stores: Stores, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schedule_store, "MAX_TICKS", 3)
        one, _ = stores
        made = make_schedule(clock)
        await one.schedules.add(made, most=9)
        for at in range(1, 6):
            await one.schedules.record(made, Tick(float(at), "cron", "skipped", None), next_tick=None)
        assert [row.tick for row in await one.schedules.list_ticks(made, limit=9)] == [5, 4, 3]

    async def test_a_delivery_is_due_when_its_run_has_ended(self, stores: Stores, clock: Clock) -> None:
        one, other = stores
        assert await one.outbox.register("anna", "run_1", HOOK)
        assert not await other.outbox.register("anna", "run_1", HOOK)
        await start_run(one, "run_1", ends=False)
        assert await other.outbox.take_due(9, hold_s=30) == []
        failed = RunFailed(failure=BusyError("no").to_failure())
        await one.journal.append("run_1", 1, [EventDraft(failed)])
        both = await asyncio.gather(one.outbox.take_due(9, hold_s=30), other.outbox.take_due(9, hold_s=30))
        (taken,) = [*both[0], *both[1]]
        assert (taken.id, taken.attempts, taken.url) == (make_delivery_id("run_1", HOOK.url), 1, HOOK.url)
        clock.now += 31  # its process died amid the attempt
        (again,) = await other.outbox.take_due(9, hold_s=30)
        assert (again.id, again.attempts) == (taken.id, 2)
        await one.outbox.record_attempt(taken, "failed", next_attempt=clock(), status=410, error="late")
        assert await one.outbox.take_due(9, hold_s=30) == []
        await other.outbox.record_attempt(again, "delivered", next_attempt=clock(), status=204, error="")
        await one.outbox.record_attempt(taken, "open", next_attempt=clock(), status=500, error="late")
        assert (await one.outbox.get(taken.id, "anna")).state == "delivered"
        assert await one.outbox.take_due(9, hold_s=30) == []
        await one.outbox.retry(taken.id, "anna")
        assert [due.attempts for due in await one.outbox.take_due(9, hold_s=30)] == [1]
        with pytest.raises(NotFoundError):
            await one.outbox.retry(taken.id, "ben")

    async def test_a_delivery_without_a_run_ends(self, stores: Stores, clock: Clock) -> None:
        one, _ = stores
        for run_id in ("run_1", "run_2", "run_3"):
            await one.outbox.register("anna", run_id, HOOK)
        await start_run(one, "run_2")
        await one.outbox.discard("run_1")
        await one.outbox.discard("run_2")  # its run has begun nevertheless
        await one.outbox.give_up_orphans()
        clock.now += ORPHAN_SECONDS + 1
        await one.outbox.give_up_orphans()
        found = {row.run_id: row.state for row in await one.outbox.list_newest("anna", limit=9)}
        assert found == {"run_2": "open", "run_3": "failed"}
        with pytest.raises(ConflictError, match="deleted"):
            await one.outbox.retry(make_delivery_id("run_3", HOOK.url), "anna")

    async def test_a_delivery_whose_process_died_before_its_run_begins_anew(self, stores: Stores, clock: Clock) -> None:
        one, other = stores
        for run_id in ("run_1", "run_2"):
            await one.outbox.register("anna", run_id, HOOK)
        clock.now += ORPHAN_SECONDS + 1
        assert await other.outbox.register("anna", "run_2", HOOK)  # before anybody has given it up
        await other.outbox.give_up_orphans()
        assert {row.state for row in await other.outbox.list_newest("anna", limit=9, run_id="run_2")} == {"open"}
        assert await other.outbox.register("anna", "run_1", HOOK)
        assert not await one.outbox.register("anna", "run_1", HOOK)
        for run_id in ("run_1", "run_2"):
            await start_run(other, run_id)
        taken = await other.outbox.take_due(9, hold_s=30)
        assert {(row.run_id, row.last_error) for row in taken} == {("run_1", ""), ("run_2", "")}
        await other.outbox.record_attempt(taken[0], "failed", next_attempt=clock(), status=410, error="no")
        assert not await one.outbox.register("anna", taken[0].run_id, HOOK), "a receiver has refused it"

    async def test_one_owner_does_not_delay_another(self, stores: Stores, clock: Clock) -> None:
        one, _ = stores
        for number in range(MAX_PER_OWNER + 3):
            await one.outbox.register("anna", f"run_a{number}", HOOK)
            await start_run(one, f"run_a{number}")
        clock.now += 1
        await one.outbox.register("ben", "run_b", HOOK)
        await start_run(one, "run_b", "ben")
        taken = await one.outbox.take_due(16, hold_s=30)
        assert [row.owner for row in taken] == ["anna"] * MAX_PER_OWNER + ["ben"]
        assert await one.outbox.take_due(16, hold_s=30, in_flight={"anna": MAX_PER_OWNER, "ben": 1}) == []
        more = await one.outbox.take_due(16, hold_s=30, in_flight={"ben": 1, "anna": MAX_PER_OWNER - 1})
        assert [row.owner for row in more] == ["anna"]
        assert await one.outbox.list_newest("anna", limit=9, run_id="\x00") == []
        pages = await one.outbox.list_newest("anna", limit=4)
        rest = await one.outbox.list_newest("anna", limit=9, before=pages[-1].id)
        assert len({row.id for row in [*pages, *rest]}) == MAX_PER_OWNER + 3
        assert [row.run_id for row in await one.outbox.list_newest("anna", limit=9, run_id="run_a0")] == ["run_a0"]
