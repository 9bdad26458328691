"""Webhooks: a real receiver is told about the ends of runs, however it answers; addresses inside are refused."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from agent.core.principal import Principal
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from gateway.features.schedules.engine.model import ScheduleSpec
from gateway.features.schedules.engine.webhooks.sender import WebhookSender
from gateway.features.schedules.parts import get_schedules, get_webhooks
from tests.integration.conftest import Serve
from tests.support.script import says, script
from tests.support.webhook_receiver import WebhookReceiver

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
ASKED = {"prompt": "calculate 6*7", "background": True, "metadata": {"ticket": "T-1"}}


def write_credentials(folder: Path, **entries: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "credentials.json").write_text(json.dumps(entries), "utf-8")
    (folder / "credentials.json").chmod(0o600)


@asynccontextmanager
async def client_of(serve: Serve, receiver: WebhookReceiver, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serve(fetch_allow_hosts=(receiver.host,), **options) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        yield client


async def deliveries(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get("/v1/webhooks/deliveries", params=query)).json()["data"]
    return found


async def wait_for_state(client: httpx.AsyncClient, state: str, attempts: int = 1) -> dict[str, Any]:
    for _ in range(400):
        (found,) = await deliveries(client)
        if found["state"] == state and found["attempts"] >= attempts and (state != "open" or found["last_error"]):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(found)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another at once; three of them."""
    former = WebhookSender.__init__

    def init(self: WebhookSender, *args: Any, **options: Any) -> None:
        former(self, *args, **{**options, "delays": (0.0, 0.0)})

    monkeypatch.setattr(WebhookSender, "__init__", init)


async def test_a_run_in_the_background_tells_its_end_signed(serve: Serve, tmp_path: Path) -> None:
    with WebhookReceiver() as receiver:
        write_credentials(tmp_path / "data", hook={"type": "webhook", "url": receiver.url, "secret": SECRET})
        async with client_of(serve, receiver, public_url="https://gate.example.org", require_key="never") as client:
            webhook = {"url": receiver.url, "secret_name": "hook"}
            started = await client.post("/v1/agent", json={**ASKED, "webhook": webhook})
            assert started.status_code == 202, started.text
            run_id = started.json()["run_id"]
            (post,) = await asyncio.to_thread(receiver.wait_for, 1)
            told = await wait_for_state(client, "delivered")
            run = (await client.get(started.json()["url"])).json()
        openai.OpenAI(api_key="none").webhooks.verify_signature(post.body, post.headers, secret=SECRET)
        assert (post.headers["webhook-id"], post.headers["content-type"]) == (told["id"], "application/json")
        assert json.loads(post.body)["type"] == "run.succeeded"
        assert post.data == {
            "id": run_id,
            "status": run["status"],
            "answer": run["response"]["response"],
            "answer_truncated": False,
            "url": f"https://gate.example.org/v1/runs/{run_id}",
            "room": "stepgate",
            "owner": "local",
            "metadata": {"ticket": "T-1"},
            "failure": None,
        }
        assert "42" in post.data["answer"]
        assert (told["run_id"], told["attempts"], told["last_status"]) == (run_id, 1, 204)
        assert len(receiver.posts) == 1


async def test_tasks_responses_and_schedules_tell_their_ends(serve: Serve) -> None:
    with WebhookReceiver() as receiver:
        webhook = {"url": receiver.url}
        async with client_of(serve, receiver) as client:
            task = (
                await client.post("/tasks", json={"prompt": "Summarise this: it rained.", "webhook": webhook})
            ).json()
            assert task["webhook"]["url"] == receiver.url
            for _ in range(2):
                await client.post(f"/tasks/{task['task_id']}/run")
            body = {"model": "stepgate", "input": "calculate 6*7", "background": True, "webhook": webhook}
            response = (await client.post("/v1/responses", json=body)).json()
            spec = {"name": "s", "cron": "@daily", "prompt": "calculate 1+1", "webhook": webhook}
            await client.post("/v1/schedules", json=spec)
            scheduled = (await client.post("/v1/schedules/s/run")).json()
            posts = await asyncio.to_thread(receiver.wait_for, 4)
            runs = (await client.get(f"/tasks/{task['task_id']}/runs")).json()["data"]
        told = [post.data["id"] for post in posts]
        assert {run["run_id"] for run in runs} < set(told)
        assert scheduled["run_id"] in told
        assert response["id"].removeprefix("resp_")[:32] in "".join(told)
        assert len(set(told)) == 4
        by_id = {post.data["id"]: post.data["metadata"] for post in posts}
        assert by_id[runs[0]["run_id"]]["task_id"] == task["task_id"]
        assert by_id[scheduled["run_id"]]["schedule"]["name"] == "s"


@pytest.mark.usefixtures("quick")
async def test_a_post_is_repeated_under_one_id_until_it_is_accepted(serve: Serve) -> None:
    with WebhookReceiver(500, 302, headers=[("location", "/elsewhere")]) as receiver:
        async with client_of(serve, receiver) as client:
            await client.post("/v1/agent", json={**ASKED, "webhook": {"url": receiver.url}})
            posts = await asyncio.to_thread(receiver.wait_for, 3)
            told = await wait_for_state(client, "delivered")
        assert told["attempts"] == 3
        assert {post.headers["webhook-id"] for post in posts} == {told["id"]}
        assert len({post.body for post in posts}) == 1
        assert {post.path for post in posts} == {"/hook"}, "the redirect is not followed"


@pytest.mark.usefixtures("quick")
async def test_a_delivery_that_nobody_accepts_is_given_up_and_sent_again_by_hand(serve: Serve) -> None:
    with WebhookReceiver(500, 0, 503) as receiver:
        async with client_of(serve, receiver, webhook_timeout_s=0.3) as client:
            await client.post("/v1/agent", json={**ASKED, "webhook": {"url": receiver.url}})
            told = await wait_for_state(client, "failed")
            assert (told["attempts"], told["last_status"], told["last_error"]) == (3, 503, "the receiver answered 503")
            assert told["next_attempt_at"] is None
            assert (await client.post(f"/v1/webhooks/deliveries/{told['id']}/retry")).status_code == 202
            again = await wait_for_state(client, "delivered")
        assert (again["id"], again["attempts"]) == (told["id"], 1)


async def test_a_receiver_that_wants_no_more_is_not_asked_again(serve: Serve) -> None:
    with WebhookReceiver(410) as receiver:
        async with client_of(serve, receiver) as client:
            await client.post("/v1/agent", json={**ASKED, "webhook": {"url": receiver.url}})
            told = await wait_for_state(client, "failed")
    assert "410" in told["last_error"]


async def test_a_busy_receiver_is_asked_again_when_it_says(serve: Serve) -> None:
    with WebhookReceiver(429, headers=[("retry-after", "3600")]) as receiver:
        async with client_of(serve, receiver) as client:
            await client.post("/v1/agent", json={**ASKED, "webhook": {"url": receiver.url}})
            told = await wait_for_state(client, "open")
    assert told["last_status"] == 429
    waits = datetime.fromisoformat(told["next_attempt_at"]) - datetime.fromisoformat(told["updated_at"])
    assert waits.total_seconds() > 3590


@pytest.mark.parametrize(
    ("webhook", "reason"),
    [
        ({"url": "http://127.0.0.1:8080/"}, "not a public address"),
        ({"url": "http://169.254.169.254/latest"}, "not a public address"),
        ({"url": "http://[::1]:8080/"}, "not a public address"),
        ({"url": "https://example.org:6379/"}, "port 6379 is refused"),
        ({"url": "https://anna:secret@example.org/"}, "user name or password"),
        ({"url": "file:///etc/passwd"}, "only http and https"),
        ({"url": ""}, "webhook"),
        ({"url": "https://example.org/" + "x" * 3000}, "webhook"),
        ({"url": "https://example.org/", "secret_name": "none"}, "there is no credential"),
        ({"url": "https://example.org/", "secret": "x"}, "webhook"),
    ],
)
async def test_an_address_inside_is_refused_before_the_run(serve: Serve, webhook: dict[str, str], reason: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await client.post("/v1/agent", json={**ASKED, "webhook": webhook})
        assert refused.status_code == 400, refused.text
        assert reason in refused.text
        assert (await client.get("/v1/runs")).json()["data"] == []
        assert await deliveries(client) == []


async def test_a_webhook_needs_a_run_in_the_background(serve: Serve) -> None:
    hook = {"url": "https://example.org/"}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for path, body in (
            ("/v1/agent", {"prompt": "x", "webhook": hook}),
            ("/v1/responses", {"model": "stepgate", "input": "x", "webhook": hook}),
            ("/v1/agent", {"prompt": "x", "background": True, "stream": True}),
        ):
            refused = await client.post(path, json=body)
            assert refused.status_code == 400, refused.text
            assert "background" in refused.text


async def test_a_slow_receiver_does_not_hold_up_runs(serve: Serve) -> None:
    with WebhookReceiver(0, 0) as receiver:
        model = script(says("ANSWER\nDone.", to="planner"))
        async with (
            serve(model, fetch_allow_hosts=(receiver.host,), webhook_timeout_s=2) as url,
            httpx.AsyncClient(base_url=url, timeout=30) as client,
        ):
            await client.post("/v1/agent", json={**ASKED, "webhook": {"url": receiver.url}})
            await asyncio.to_thread(receiver.wait_for, 1)
            async with asyncio.timeout(2):
                answered = await client.post("/v1/agent", json={"prompt": "Say something."})
            assert answered.status_code == 200
            assert [one["attempts"] for one in await deliveries(client)] == [1]


async def test_a_deleted_run_or_owner_leaves_no_delivery(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, skills_dirs=())
    async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
        await gateway.keys.create("anna", "k", ["agent"])
        spec = ScheduleSpec.model_validate(
            {"name": "s", "cron": "@daily", "prompt": "calculate 1+1", "webhook": {"url": "https://93.184.216.34/"}}
        )
        await get_schedules(gateway).service.create(spec, Principal("anna"))
        runs = [await get_schedules(gateway).service.run_now("s", Principal("anna")) for _ in range(2)]
        for run in runs:
            await gateway.service.wait_until_end(run.run_id, owner="anna")
        outbox = get_webhooks(gateway).outbox
        assert len(await outbox.list_newest("anna", limit=9)) == 2
        await gateway.owners.delete_run(runs[0].run_id, owner="anna", by="anna")
        assert [row.run_id for row in await outbox.list_newest("anna", limit=9)] == [runs[1].run_id]
        removed = await gateway.owners.delete("anna", by="anna")
        assert {"schedules": 1, "schedule_ticks": 2, "webhook_deliveries": 1}.items() <= removed.items()
        assert await outbox.list_newest("anna", limit=9) == []
        assert await get_schedules(gateway).store.list_all("anna") == []
