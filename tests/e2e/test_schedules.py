"""Schedules and webhooks of real processes: two gateways on one PostgreSQL, and kills at the worst moments."""

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.postgres import fresh_database
from tests.support.processes import GatewayProcess
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.webhook_receiver import WebhookReceiver

SCHEDULE = {"cron": "0 7 1 1 *", "prompt": "Say hello.", "timezone": "UTC"}
RUNS = "SELECT count(*) FROM runs"
TICK_2025, TICK_2026 = 1_735_714_800, 1_767_250_800
"""Seven o'clock on the first of January, UTC seconds."""
SET_TICK = "UPDATE schedules SET next_tick = %s, held_until = %s"
DEADLINE_S = 30.0


def get(url: str, path: str) -> Any:
    return httpx.get(f"{url}{path}", timeout=30).json()


def wait_for_ticks(url: str, names: list[str]) -> dict[str, Any]:
    """The one tick of each schedule, once its run has ended."""
    until, found = time.monotonic() + DEADLINE_S, dict[str, Any]()
    while time.monotonic() < until:
        for name in [name for name in names if name not in found]:
            ticks = get(url, f"/v1/schedules/{name}/ticks")["data"]
            if ticks and ticks[0]["run_status"] == "succeeded":
                (found[name],) = ticks
        if len(found) == len(names):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{len(found)} of {len(names)} ticks have run")


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(script(says("ANSWER\nHello.", to="planner"))) as server:
        yield server


def test_two_gateways_on_one_database_run_a_tick_once(tmp_path: Path, model: ScriptedServer) -> None:
    names = [f"s{number}" for number in range(20)]
    with WebhookReceiver() as receiver, fresh_database() as database:
        settings = {
            "llm_base_url": model.url, "model_fast": "m", "database_url": database,
            "fetch_allow_hosts": receiver.host,
        }  # fmt: skip
        with GatewayProcess(tmp_path / "a", **settings) as one, GatewayProcess(tmp_path / "b", **settings) as other:
            for name in names:
                body = {**SCHEDULE, "name": name, "webhook": {"url": receiver.url}}
                assert httpx.post(f"{one.url}/v1/schedules", json=body, timeout=30).status_code == 201
            with psycopg.connect(database, autocommit=True) as db:
                db.execute(SET_TICK, (TICK_2025, 0))
                ticks = wait_for_ticks(other.url, names)
                posts = receiver.wait_for(len(names))
                ((runs,),) = db.execute(RUNS)
            time.sleep(3)  # a second look of both tickers and senders
    assert runs == len(names)
    assert {tick["missed"] for tick in ticks.values()} == {1}
    assert sorted(post.data["id"] for post in posts) == sorted(tick["run_id"] for tick in ticks.values())
    assert len(receiver.posts) == len(names)


def test_a_tick_of_a_killed_gateway_runs_once_at_the_other(tmp_path: Path, model: ScriptedServer) -> None:
    with fresh_database() as database:
        settings = {"llm_base_url": model.url, "model_fast": "m", "database_url": database, "lease_seconds": "2"}
        with GatewayProcess(tmp_path / "a", **settings) as one:
            httpx.post(f"{one.url}/v1/schedules", json={**SCHEDULE, "name": "s"}, timeout=30)
            one.process.signal(signal.SIGKILL)
            one.process.wait()
        with psycopg.connect(database, autocommit=True) as db:
            # As it leaves a tick that it has claimed, but over in a moment instead of 30 s.
            db.execute(SET_TICK, (TICK_2026, time.time() + 1))
            with GatewayProcess(tmp_path / "b", **settings) as other:
                tick = wait_for_ticks(other.url, ["s"])["s"]
            ((runs,),) = db.execute(RUNS)
    assert (tick["outcome"], tick["tick"], runs) == ("started", "2026-01-01T07:00:00Z", 1)


def test_the_webhook_of_a_gateway_killed_between_the_end_and_the_post_is_sent(tmp_path: Path) -> None:
    with WebhookReceiver() as gone:
        dead = gone.host
    model = script(says("ANSWER\nHello.", to="planner", delay_s=0.2))
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m", "fetch_allow_hosts": dead}
        with GatewayProcess(tmp_path, **settings) as first:
            body = {"prompt": "Say hello.", "background": True, "webhook": {"url": f"http://{dead}/hook"}}
            run_id = httpx.post(f"{first.url}/v1/agent", json=body, timeout=30).json()["run_id"]
            with httpx.stream("GET", f"{first.url}/v1/runs/{run_id}/events", timeout=30) as events:
                for line in events.iter_lines():
                    if line == "event: run.succeeded":
                        first.process.signal(signal.SIGKILL)
                        break
        first.process.wait()
        with closing(sqlite3.connect(tmp_path / "stepgate.db")) as db:
            ((state, attempts),) = db.execute("SELECT state, attempts FROM webhook_deliveries").fetchall()
            assert (state, attempts <= 1) == ("open", True)
            db.execute("UPDATE webhook_deliveries SET next_attempt = 0")  # instead of waiting for the hold
            db.commit()
        with (
            WebhookReceiver(port=int(dead.rsplit(":", 1)[1])) as receiver,
            GatewayProcess(tmp_path, **settings) as again,
        ):
            (post,) = receiver.wait_for(1)
            until = time.monotonic() + DEADLINE_S
            while get(again.url, "/v1/webhooks/deliveries")["data"][0]["state"] != "delivered":
                assert time.monotonic() < until
                time.sleep(0.05)
    assert (post.data["id"], post.data["answer"]) == (run_id, "Hello.")
    assert len(receiver.posts) == 1
