"""Schedules: what a tick does, by a clock moved by hand, in a whole gateway; and `/v1/schedules` over HTTP."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import BadRequestError, StoreFullError
from agent.core.events import RunCreated
from agent.core.models import AgentRequest, Webhook
from agent.core.principal import Principal
from agent.core.settings import Settings
from agent.storage.api_keys import KeyLimits
from gateway.bootstrap import Stepgate, build_gateway
from gateway.bootstrap_database import build_statements, open_store
from gateway.features.protocols.parts import get_tasks
from gateway.features.schedules.engine.model import ScheduleSpec
from gateway.features.schedules.engine.schedule_store import ScheduleStore, Tick
from gateway.features.schedules.engine.service import list_next_ticks
from gateway.features.schedules.engine.ticker import ScheduleTicker, make_run_id
from gateway.features.schedules.parts import get_schedules
from gateway.features.schedules.schedule_callers import ScheduleCallers
from tests.contract.journal_stores import Clock
from tests.integration.conftest import Serve
from tests.support.script import plans, script

DAY = 86_400
SEVEN = 1_800_000_000 - 1_800_000_000 % DAY + 7 * 3600.0
"""Seven o'clock in the morning, UTC."""
DAILY = ScheduleSpec(name="morning", cron="0 7 * * *", prompt="calculate 2+2", timezone="UTC")
WAITS = {"tool_calls": [{"tool": "memory_save", "args": {"content": "x"}}]}


class Fleet:
    """One gateway, and tickers that move with a clock of their own."""

    def __init__(self, gateway: Stepgate, clock: Clock) -> None:
        self.gateway, self.clock = gateway, clock
        self.service = get_schedules(gateway).service
        self.store = ScheduleStore(gateway.keys._statements, clock)
        self.service._clock = clock
        self.service.store = self.store
        self.counted = Counter[str]()

    def ticker(self) -> ScheduleTicker:
        gateway = self.gateway
        callers = ScheduleCallers(gateway.keys, gateway.authenticator)
        return ScheduleTicker(
            self.store, gateway.service, get_tasks(gateway), gateway.intake, callers.authorize,
            clock=self.clock, count=self.count,
        )  # fmt: skip

    def count(self, outcome: str, number: int) -> None:
        self.counted[outcome] += number

    async def ticks(self, name: str = "morning", owner: str = "local") -> list[Tick]:
        schedule = await self.store.get(owner, name)
        return await self.store.list_ticks(schedule, limit=50)

    async def settle(self, owner: str = "local") -> None:
        """Waits until every run has ended."""
        for row in await self.gateway.service.list_runs(owner=owner):
            await self.gateway.service.wait_until_end(row.run_id, owner=owner, waits=False)

    async def read_created(self, tick: Tick, owner: str = "local") -> RunCreated:
        events = await self.gateway.service.read_events(tick.run_id or "", owner=owner)
        assert isinstance(events[0].body, RunCreated)
        return events[0].body

    async def count_runs(self, owner: str = "local") -> int:
        return len(await self.gateway.service.list_runs(owner=owner))


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    settings = Settings(_env_file=None, data_dir=tmp_path, skills_dirs=(), drain_seconds=1)
    settings.rooms_path.mkdir()
    (settings.rooms_path / "careful.yaml").write_text("name: Careful\napproval: always\n", "utf-8")
    clock = Clock()
    clock.now = SEVEN - 60
    async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
        yield Fleet(gateway, clock)


async def test_a_tick_runs_once_however_many_tickers_see_it(fleet: Fleet) -> None:
    made = await fleet.service.create(DAILY, Principal())
    assert made.next_tick == SEVEN
    tickers = [fleet.ticker() for _ in range(3)]
    assert [await ticker.handle_due() for ticker in tickers] == [0, 0, 0]
    for day in range(3):
        fleet.clock.now = SEVEN + day * DAY + 1
        for ticker in tickers:
            await ticker.handle_due()
        await fleet.settle()
    ticks = await fleet.ticks()
    assert [(tick.outcome, tick.run_status, tick.missed) for tick in ticks] == [("started", "succeeded", 0)] * 3
    assert [tick.run_id for tick in ticks] == [make_run_id(made.id, SEVEN + day * DAY) for day in (2, 1, 0)]
    assert await fleet.count_runs() == 3
    request = (await fleet.read_created(ticks[0])).request
    assert request.metadata["schedule"] == {"id": made.id, "name": "morning", "tick": "2027-01-17T07:00:00+00:00"}
    assert not request.interactive


async def test_a_run_that_was_started_by_a_process_that_died_is_not_started_again(fleet: Fleet) -> None:
    made = await fleet.service.create(DAILY, Principal())
    fleet.clock.now = SEVEN + 1
    assert await fleet.store.claim(made, SEVEN, until=fleet.clock() + 30)
    await fleet.gateway.intake.accept(
        Principal(), AgentRequest(prompt="calculate 2+2"), run_id=make_run_id(made.id, SEVEN)
    )
    fleet.clock.now += 2 * DAY  # nobody was there for two days
    assert await fleet.ticker().handle_due() == 1
    await fleet.settle()
    assert [tick.outcome for tick in await fleet.ticks()] == ["started"]
    assert await fleet.count_runs() == 1
    await fleet.ticker().handle_due()  # now the ticks since: one run for both
    assert [(tick.outcome, tick.missed) for tick in await fleet.ticks()] == [("started", 1), ("started", 0)]


async def test_a_clock_that_jumps_forth_and_back_runs_each_tick_once(fleet: Fleet) -> None:
    made = await fleet.service.create(DAILY, Principal())
    ticker = fleet.ticker()
    for day in (0, 3650, 1, 2):
        fleet.clock.now = SEVEN + day * DAY + 1
        await ticker.handle_due()
        await ticker.handle_due()
        await fleet.settle()
        assert (await fleet.store.get("local", "morning")).next_tick == SEVEN + (day + 1) * DAY
    fleet.clock.now = SEVEN + 3650 * DAY + 1  # now its time has really come
    await fleet.ticker().handle_due()
    started = [tick.run_id for tick in await fleet.ticks() if tick.outcome == "started"]
    assert started == [make_run_id(made.id, SEVEN + day * DAY) for day in (3650, 2, 1, 0)]
    assert await fleet.count_runs() == 4


async def test_a_gateway_that_starts_after_its_clock_was_wrong_runs_schedules_again(fleet: Fleet) -> None:
    fleet.clock.now = SEVEN + 3650 * DAY
    await fleet.service.create(DAILY, Principal())
    fleet.clock.now = SEVEN - 60
    await fleet.ticker().handle_due()
    assert (await fleet.store.get("local", "morning")).next_tick == SEVEN


@pytest.mark.parametrize(("misfire", "outcome", "runs"), [("run_once", "started", 1), ("skip", "missed", 0)])
async def test_ticks_without_a_gateway(
    fleet: Fleet, misfire: Any, outcome: str, runs: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway.features.schedules.engine")
    made = await fleet.service.create(DAILY.model_copy(update={"misfire": misfire}), Principal())
    fleet.clock.now = SEVEN + 5 * DAY + 3600
    await fleet.ticker().handle_due()
    (tick,) = await fleet.ticks()
    assert (tick.outcome, tick.missed, tick.tick) == (outcome, 5, SEVEN + 5 * DAY)
    assert {name: count for name, count in fleet.counted.items() if count} == (
        {"missed": 6} if misfire == "skip" else {"started": 1, "missed": 5}
    )
    (line,) = [message for message in caplog.messages if made.id in message]
    assert (tick.run_id or outcome) in line
    await fleet.settle()
    assert await fleet.count_runs() == runs
    assert (await fleet.store.get("local", "morning")).next_tick == SEVEN + 6 * DAY
    fleet.clock.now = SEVEN + 6 * DAY + 30  # a little late is on time
    await fleet.ticker().handle_due()
    assert (await fleet.ticks())[0].outcome == "started"


@pytest.mark.parametrize(("overlap", "outcome"), [("skip", "skipped"), ("allow", "started")])
async def test_a_tick_while_the_run_before_is_going(fleet: Fleet, overlap: Any, outcome: str) -> None:
    spec = DAILY.model_copy(update={"overlap": overlap, "metadata": WAITS, "room": "careful"})
    await fleet.service.create(spec, Principal())
    for day in range(2):
        fleet.clock.now = SEVEN + day * DAY
        await fleet.ticker().handle_due()
        await fleet.settle()
    newest, first = await fleet.ticks()
    assert first.outcome == "started"
    assert newest.outcome == outcome
    if overlap == "skip":
        assert "awaiting_approval" in newest.detail


async def test_a_refusal_that_may_pass_is_tried_again_and_then_recorded(fleet: Fleet) -> None:
    key, _ = await fleet.gateway.keys.create("anna", "k", ["agent"], limits=KeyLimits(requests_per_minute=1))
    caller = Principal("anna", key.id)
    for name in ("one", "two"):
        await fleet.service.create(DAILY.model_copy(update={"name": name}), caller)
    fleet.clock.now = SEVEN
    await fleet.ticker().handle_due()
    await fleet.settle("anna")
    outcomes = [[tick.outcome for tick in await fleet.ticks(name, "anna")] for name in ("one", "two")]
    assert sorted(outcomes) == [[], ["started"]]
    assert await fleet.ticker().handle_due() == 0
    fleet.clock.now = SEVEN + 61
    await fleet.ticker().handle_due()
    (late,) = [row for name in ("one", "two") for row in await fleet.ticks(name, "anna") if row.outcome == "refused"]
    assert "allows 1 requests a minute" in late.detail
    assert (await fleet.store.get("anna", "one")).next_tick == SEVEN + DAY


@pytest.mark.parametrize("end", ["revoked", "deleted", "expired", "lacks the scope"])
async def test_a_key_that_is_gone_stops_its_schedules(fleet: Fleet, end: str) -> None:
    scopes = ["chat"] if end == "lacks the scope" else ["agent"]
    key, _ = await fleet.gateway.keys.create("anna", "k", scopes)
    await fleet.service.create(DAILY, Principal("anna", key.id))
    if end == "revoked":
        await fleet.gateway.keys.revoke(key.id)
    elif end == "expired":
        await fleet.gateway.keys._statements.write("UPDATE api_keys SET expires_at = 1 WHERE id = ?", key.id)
    elif end == "deleted":
        await fleet.gateway.keys._statements.write("DELETE FROM api_keys WHERE id = ?", key.id)
    fleet.clock.now = SEVEN
    await fleet.ticker().handle_due()
    stopped = await fleet.store.get("anna", "morning")
    assert (stopped.is_enabled, stopped.next_tick) == (False, None)
    assert end in stopped.stopped
    assert key.id in stopped.stopped
    (tick,) = await fleet.ticks("morning", "anna")
    assert (tick.outcome, tick.detail) == ("refused", stopped.stopped)
    assert await fleet.count_runs("anna") == 0


async def test_the_limits_of_the_key_hold_at_a_tick(fleet: Fleet) -> None:
    key, _ = await fleet.gateway.keys.create("anna", "k", ["agent"], tools=["current_time"])
    await fleet.service.create(DAILY, Principal("anna", key.id, ("current_time",)))
    fleet.clock.now = SEVEN
    await fleet.ticker().handle_due()
    ((tick,),) = [await fleet.ticks("morning", "anna")]
    created = await fleet.read_created(tick, "anna")
    assert (created.request.metadata["tools"], created.key) == (["current_time"], key.id)


async def test_a_task_runs_at_its_ticks_and_not_beside_itself(fleet: Fleet) -> None:
    task = await get_tasks(fleet.gateway).create_task("Summarise this: Anna sent the invoices.", {}, owner="local")
    spec = ScheduleSpec(name="morning", cron="@daily", timezone="UTC", task_id=task.task_id)
    made = await fleet.service.create(spec, Principal())
    tick = made.next_tick or 0.0
    # A process died after the task had recorded the run, before the run was stored.
    fleet.clock.now = tick
    await get_tasks(fleet.gateway)._store.start_run(task, make_run_id(made.id, tick))
    await fleet.ticker().handle_due()
    assert await fleet.ticks() == []
    await get_tasks(fleet.gateway)._store.discard_run(make_run_id(made.id, tick), task)
    fleet.clock.now = tick + 10
    await fleet.ticker().handle_due()
    await fleet.settle()
    (first,) = await fleet.ticks()
    assert first.outcome == "started"
    metadata = (await fleet.read_created(first)).request.metadata
    assert (metadata["task_id"], metadata["schedule"]) == (
        task.task_id, {"id": made.id, "name": "morning", "tick": datetime.fromtimestamp(tick, UTC).isoformat()}
    )  # fmt: skip
    await get_tasks(fleet.gateway).get_task(task.task_id)
    await get_tasks(fleet.gateway)._store.start_run(task, "run_by_somebody_else")
    fleet.clock.now = tick + DAY
    await fleet.ticker().handle_due()
    newest = (await fleet.ticks())[0]
    assert newest.outcome == "skipped"
    assert "already in progress, in run run_by_somebody_else" in newest.detail


async def test_a_schedule_that_cannot_be_computed_any_more_is_stopped_and_the_others_run(fleet: Fleet) -> None:
    for name in ("morning", "lost"):
        await fleet.service.create(DAILY.model_copy(update={"name": name}), Principal())
    await fleet.store._statements.write("UPDATE schedules SET timezone = 'US/Pacific-New' WHERE name = 'lost'")
    assert list_next_ticks(await fleet.store.get("local", "lost"), 3) == []
    fleet.clock.now = SEVEN
    assert await fleet.ticker().handle_due() == 2
    assert await fleet.ticker().handle_due() == 0
    lost = await fleet.store.get("local", "lost")
    assert (lost.is_enabled, lost.next_tick) == (False, None)
    assert "'US/Pacific-New' must be an IANA time zone" in lost.stopped
    assert [tick.outcome for tick in await fleet.ticks()] == ["started"]


async def test_a_store_that_takes_nothing_is_not_asked_in_a_loop(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await fleet.service.create(DAILY, Principal())
    fleet.clock.now = SEVEN
    claims = 0

    async def claim(*_: object, **__: object) -> bool:
        nonlocal claims
        claims += 1
        raise StoreFullError("the disk is full", agent_id="store")

    monkeypatch.setattr(fleet.store, "claim", claim)
    async with fleet.ticker().run():
        await asyncio.sleep(0.6)
    assert claims == 1
    assert [line.getMessage() for line in caplog.records if "disk is full" in line.getMessage()] == [
        "ticks of schedules cannot be handled: the disk is full"
    ]


async def test_what_cannot_run_is_refused_when_it_is_made(fleet: Fleet) -> None:
    good = DAILY.model_dump()
    for change, reason in (
        ({"cron": "61 * * * *"}, "cron"),
        ({"timezone": "Mars"}, "timezone"),
        ({"webhook": Webhook(url="http://10.0.0.1/x")}, "not a public address"),
        ({"webhook": Webhook(url="ftp://example.org/x")}, "only http and https"),
        ({"webhook": Webhook(url="https://example.org/x", secret_name="none")}, "there is no credential"),
        ({"metadata": {"tool_calls": [{"tool": "no_such"}]}}, "no_such"),
    ):
        with pytest.raises(BadRequestError, match=reason):
            await fleet.service.create(ScheduleSpec.model_validate({**good, **change}), Principal())
    assert await fleet.store.list_all("local") == []


async def test_a_secret_of_the_gateway_is_not_stored_with_a_schedule(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, llm_api_key="sk-very-secret-1234567890", skills_dirs=())
    async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
        spec = DAILY.model_copy(update={"prompt": "say sk-very-secret-1234567890"})
        made = await get_schedules(gateway).service.create(spec, Principal())
        assert "very-secret" not in str(made.work)


@asynccontextmanager
async def client_of(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serve(script(plans({"tool": "completion"})), **options) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        yield client


async def test_schedules_over_http(serve: Serve) -> None:
    body = {"name": "morning", "cron": "0 7 * * *", "timezone": "Europe/Stockholm", "prompt": "calculate 2+2"}
    async with client_of(serve) as client:
        made = await client.post("/v1/schedules", json=body)
        assert made.status_code == 201, made.text
        item = made.json()
        assert (item["prompt"], item["overlap"], item["key"], len(item["next_ticks"])) == (
            "calculate 2+2",
            "skip",
            None,
            5,
        )
        assert (await client.post("/v1/schedules", json=body)).status_code == 409
        for wrong, param in (
            ({**body, "name": "a/b"}, "name"),
            ({**body, "cron": "x"}, "cron"),
            ({**body, "task_id": "task_1"}, "prompt"),
            ({**body, "cronn": "x"}, "cronn"),
        ):
            refused = await client.post("/v1/schedules", json=wrong)
            assert refused.status_code == 400, refused.text
            assert param in refused.text
            assert "^[" not in refused.text, "words, not a regular expression"
        started = await client.post("/v1/schedules/morning/run", headers={"idempotency-key": "k1"})
        assert started.status_code == 202, started.text
        again = await client.post("/v1/schedules/morning/run", headers={"idempotency-key": "k1"})
        assert again.json()["run_id"] == started.json()["run_id"]
        ticks = (await client.get(f"/v1/schedules/{item['id']}/ticks")).json()["data"]
        assert [(tick["origin"], tick["run_id"]) for tick in ticks] == [("manual", started.json()["run_id"])]
        changed = await client.patch("/v1/schedules/morning", json={"enabled": False, "name": "evening"})
        assert (changed.json()["enabled"], changed.json()["next_ticks"]) == (False, [])
        assert (await client.patch("/v1/schedules/evening", json={"cron": None})).status_code == 400
        back = await client.patch("/v1/schedules/evening", json={"enabled": True, "cron": "@hourly", "webhook": None})
        assert (back.json()["cron"], len(back.json()["next_ticks"])) == ("@hourly", 5)
        assert [one["name"] for one in (await client.get("/v1/schedules")).json()["data"]] == ["evening"]
        assert (await client.delete("/v1/schedules/evening")).status_code == 204
        gone = await client.get("/v1/schedules/evening")
        assert gone.status_code == 404
        assert "GET /v1/schedules" in gone.text


async def test_half_a_character_in_a_schedule_or_task_hides_no_other(serve: Serve) -> None:
    async with client_of(serve) as client:
        for path, fields in (
            ("/v1/schedules", {"name": "half", "cron": "@daily", "prompt": "say \ud800"}),
            ("/tasks", {"prompt": "say it", "context": {"text": "\ud800"}}),
        ):
            made = await client.post(path, content=json.dumps(fields), headers={"content-type": "application/json"})
            assert made.status_code == 201, made.text
            listed = await client.get(path)
            assert listed.status_code == 200, listed.text


async def test_a_due_schedule_of_a_stopped_gateway_runs_at_the_next_start(serve: Serve, tmp_path: Path) -> None:
    """With the real clock and the ticker of a served gateway."""
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", skills_dirs=())
    async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
        await get_schedules(gateway).service.create(DAILY, Principal())
    store = await open_store(settings)
    await build_statements(store).write("UPDATE schedules SET next_tick = next_tick - 3 * 86400")
    await store.close()
    async with serve() as url, httpx.AsyncClient(base_url=url) as client:
        for _ in range(200):
            ticks = (await client.get("/v1/schedules/morning/ticks")).json()["data"]
            if ticks and ticks[0]["run_status"] == "succeeded":
                break
            await asyncio.sleep(0.05)
    assert [(tick["outcome"], tick["missed"]) for tick in ticks] == [("started", 2)]
