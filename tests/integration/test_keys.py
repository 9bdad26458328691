"""API keys: who gets in, what they may do, how much, and that nobody reaches another's things."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import AuthError, BadRequestError, NotFoundError
from agent.core.journal_sqlite import open_sqlite
from agent.core.keys import ApiKey, KeyLimits, KeyStore
from agent.core.statements import PostgresStatements, SqliteStatements, Statements
from gateway.gatekeeper import Caller, Gatekeeper, KeyPurse, duration
from tests.integration.conftest import Serve
from tests.integration.test_openai_door import MODEL, sdk, user
from tests.support.postgres import fresh_database
from tests.support.script import says, script


class Clock:
    """Time moved by hand, UTC seconds."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def made(folder: Path, *arguments: str) -> str:
    """The text of a key that `stepgate keys create` made for this data folder."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.cli", "keys", "create", *arguments,
        env={"AGENT_DATA_DIR": str(folder), "PATH": ""}, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, told.decode()
    return out.decode().strip()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture(params=["sqlite", "postgres"])
async def statements(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store's database of either kind."""
    if request.param == "sqlite":
        store = await open_sqlite(tmp_path / "stepgate.db")
        yield SqliteStatements(store.database)
        await store.close()
        return
    from agent.core.journal_postgres import open_postgres

    with fresh_database() as url:
        server = await open_postgres(url)
        yield PostgresStatements(server.database)
        await server.close()


async def test_a_key_is_shown_once_and_only_its_hash_is_kept(statements: Statements) -> None:
    keys = KeyStore(statements, Clock())
    key, text = await keys.create("anna", "laptop", ["chat"], tools=["calculator"])
    assert await keys.verify(text) == key
    stored = await statements.read("SELECT * FROM api_keys")
    assert text.rsplit("_", 1)[1] not in str(stored)
    assert await keys.list("anna") == [key]
    assert await keys.list("bob") == []


async def test_wrong_expired_and_revoked_keys_open_nothing(statements: Statements) -> None:
    clock = Clock()
    keys = KeyStore(statements, clock)
    key, text = await keys.create("anna", "laptop", ["chat"], expires_at=clock.now + 10)
    other, _ = await keys.create("anna", "phone", ["chat"])
    for wrong in (
        f"sg_{key.id}_{'0' * 43}",
        f"sg_{other.id}_{text.rsplit('_', 1)[1]}",
        "sg_none_x",
        "sg__",
        "sk-1",
        "",
    ):
        with pytest.raises(AuthError):
            await keys.verify(wrong)
    clock.now += 11
    with pytest.raises(AuthError, match="expired"):
        await keys.verify(text)
    fresh, again = await keys.create("anna", "tablet", ["chat"])
    assert await keys.any()
    await keys.revoke(fresh.id)
    await keys.revoke(fresh.id)
    await keys.revoke(other.id)
    with pytest.raises(AuthError, match="revoked"):
        await keys.verify(again)
    assert not await keys.any()
    with pytest.raises(NotFoundError):
        await keys.revoke("none")


@pytest.mark.parametrize(
    ("owner", "name", "scopes"),
    [("a", "n", ["chat", "root"]), ("a", "n", []), (" ", "n", ["chat"]), ("a", "", ["chat"])],
)
async def test_a_key_that_says_nothing_is_not_made(
    statements: Statements, owner: str, name: str, scopes: Sequence[str]
) -> None:
    with pytest.raises(BadRequestError):
        await KeyStore(statements, Clock()).create(owner, name, scopes)


async def test_a_budget_is_reserved_before_and_settled_after(statements: Statements) -> None:
    keys = KeyStore(statements, Clock())
    key, _ = await keys.create("anna", "laptop", ["chat"], limits=KeyLimits(budget_tokens=100))
    assert await keys.reserve(key, 60)
    assert not await keys.reserve(key, 60), "what is set aside counts"
    await keys.settle(key.id, 60, 10, None)
    assert await keys.reserve(key, 90)
    await keys.settle(key.id, 90, 90, 0.5)
    assert not await keys.reserve(key, 1)
    assert await keys.spent(key.id) == (100, 0.5)


async def other(keys: KeyStore) -> ApiKey:
    key, _ = await keys.create("bob", "x", ["chat"], limits=KeyLimits(budget_tokens=100))
    return key


async def test_two_calls_at_once_cannot_both_have_the_last_tokens(statements: Statements) -> None:
    keys = KeyStore(statements, Clock())
    key = await other(keys)
    taken = await asyncio.gather(*(keys.reserve(key, 60) for _ in range(5)))
    assert taken.count(True) == 1


async def test_money_that_is_spent_ends_it(statements: Statements) -> None:
    keys = KeyStore(statements, Clock())
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(budget_usd=1.0))
    assert await keys.reserve(key, 1000)
    await keys.settle(key.id, 1000, 500, 1.0)
    assert not await keys.reserve(key, 1)


async def test_requests_a_minute_slide(statements: Statements) -> None:
    clock = Clock()
    keys = KeyStore(statements, clock)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(requests_per_minute=2))
    gate = Gatekeeper(keys, demanded=True, clock=clock)
    caller = Caller("anna", key)
    assert gate.count(caller)["x-ratelimit-remaining-requests"] == "1"
    clock.now += 30
    gate.count(caller)
    with pytest.raises(Exception, match="2 requests a minute") as refused:
        gate.count(caller)
    assert refused.value.details["retry_after_s"] == 30  # type: ignore[attr-defined]
    clock.now += 31
    gate.count(caller)


async def test_tokens_a_minute_slide(statements: Statements) -> None:
    from agent.core.models import Usage

    clock = Clock()
    keys = KeyStore(statements, clock)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(tokens_per_minute=100))
    purse = KeyPurse(keys, clock)
    await purse.reserve(key.id, 500)
    await purse.settle(key.id, 500, Usage(prompt_tokens=90, completion_tokens=20))
    with pytest.raises(Exception, match="100 tokens a minute"):
        await purse.reserve(key.id, 1)
    clock.now += 61
    await purse.reserve(key.id, 1)


def test_durations_are_written_as_openai_writes_them() -> None:
    assert [duration(s) for s in (0.012, 1, 59.4, 360)] == ["12ms", "1s", "59s", "6m0s"]


async def test_with_keys_demanded_nobody_gets_in_without_one(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL, require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = await made(tmp_path / "data", "laptop", "--scopes", "chat")
        body = {"model": "stepgate", "messages": user()}
        for headers in ({}, bearer("sk-anything"), bearer(key[:-1] + "_")):
            refused = await client.post("/v1/chat/completions", json=body, headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert refused.json()["error"]["code"] == "invalid_api_key"
        for path in ("/v1/runs", "/v1/memories", "/v1/collections", "/v1/models", "/v1/documents", "/v1/jobs", "/tasks",
                     "/v1/citations/x", "/v1/skills", "/v1/tools", "/metrics"):  # fmt: skip
            assert (await client.get(path)).status_code == 401, path
        assert (await client.get("/health")).status_code == 200
        assert (await client.post("/v1/chat/completions", json=body, headers=bearer(key))).status_code == 200
        lacking = await client.post("/v1/agent", json={"prompt": "2+2"}, headers=bearer(key))
        assert (lacking.status_code, lacking.json()["error"]["error_code"]) == (403, "ERR_SCOPE")


async def test_the_official_sdk_gets_in_with_a_key(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL, require_key="always") as url:
        key = await made(tmp_path / "data", "sdk")
        async with sdk(url) as client:
            answer = await client.with_options(api_key=key).chat.completions.create(model="stepgate", messages=user())
    assert answer.choices[0].message.content == "It is 42, as computed."


async def test_another_owners_things_are_not_there(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        anna = bearer(await made(tmp_path / "data", "a", "--owner", "anna"))
        bob = bearer(await made(tmp_path / "data", "b", "--owner", "bob"))
        run = (await client.post("/v1/agent", json={"prompt": "2+2"}, headers=anna)).json()["metadata"]["run_id"]
        task = (await client.post("/tasks", json={"prompt": "P1 incident"}, headers=anna)).json()["task_id"]
        for path in (f"/v1/runs/{run}", f"/v1/runs/{run}/events", f"/tasks/{task}", f"/tasks/{task}/runs/latest"):
            assert (await client.get(path, headers=bob)).status_code == 404, path
            assert (await client.get(path, headers=anna)).status_code in (200, 204, 404), path
        for verb in ("cancel", "approve", "reject"):
            assert (await client.post(f"/v1/runs/{run}/{verb}", json={}, headers=bob)).status_code == 404
        assert (await client.get("/v1/runs", headers=bob)).json()["data"] == []
        assert [r["id"] for r in (await client.get("/v1/runs", headers=anna)).json()["data"]] == [run]
        assert (await client.get("/v1/runs")).json()["data"] == [], "without a key one is `local`"


async def test_limits_are_told_as_openai_tells_them(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(says("hi"))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await made(tmp_path / "data", "x", "--rpm", "2", "--budget-tokens", "100000"))
        body = {"model": "chat", "messages": [{"role": "user", "content": "hello there, how are you?"}]}
        first = await client.post("/v1/chat/completions", json=body, headers=key)
        assert first.headers["x-ratelimit-limit-requests"] == "2"
        assert first.headers["x-ratelimit-remaining-requests"] == "1"
        await client.post("/v1/chat/completions", json=body, headers=key)
        refused = await client.post("/v1/chat/completions", json=body, headers=key)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert int(refused.headers["retry-after"]) >= 1


async def test_a_spent_budget_refuses_before_the_call(serve: Serve, tmp_path: Path, model_server: Any) -> None:
    async with serve(script(says("hi"))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await made(tmp_path / "data", "x", "--budget-tokens", "10"))
        body = {"model": "chat", "messages": [{"role": "user", "content": "tell me a story please"}]}
        refused = await client.post("/v1/chat/completions", json=body, headers=key)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "insufficient_quota"
    assert refused.headers["x-should-retry"] == "false"
    assert model_server.requests() == []


async def test_a_key_may_be_limited_to_some_tools(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await made(tmp_path / "data", "x", "--tools", "current_time"))
        calls = [{"tool": "calculator", "args": {"expression": "1+1"}}, {"tool": "current_time", "args": {}}]
        answer = (await client.post("/v1/agent", json={"metadata": {"tool_calls": calls}}, headers=key)).json()
        told = json.dumps(answer)
    assert "not allowed" in told or answer.get("error", {}).get("error_code") == "ERR_BAD_REQUEST"


async def test_the_network_is_not_let_in_without_a_key(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.cli", "serve",
        env={"AGENT_DATA_DIR": str(tmp_path), "AGENT_HOST": "0.0.0.0", "AGENT_PORT": "0", "PATH": ""},
        stdout=-1, stderr=-1,
    )  # fmt: skip
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert "stepgate keys create" in told.decode()


async def test_keys_are_listed_and_revoked_by_hand(tmp_path: Path, serve: Serve) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        text = await made(tmp_path / "data", "laptop", "--days", "3")
        assert (await client.get("/v1/runs", headers=bearer(text))).status_code == 200
        for command in (["list", "--json"], ["revoke", text.split("_")[1]]):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "gateway.cli", "keys", *command,
                env={"AGENT_DATA_DIR": str(tmp_path / "data"), "PATH": ""}, stdout=-1, stderr=-1,
            )  # fmt: skip
            out, told = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0, told.decode()
            assert text.rsplit("_", 1)[1] not in out.decode()
        async with asyncio.timeout(15):
            while (await client.get("/v1/runs", headers=bearer(text))).status_code != 401:  # noqa: ASYNC110
                await asyncio.sleep(0.2)


async def test_mcp_takes_the_same_keys_and_works_for_their_owner(serve: Serve, tmp_path: Path) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with serve(require_key="always") as url:
        key = await made(tmp_path / "data", "ide", "--owner", "anna", "--scopes", "mcp,agent")
        chat = await made(tmp_path / "data", "web", "--owner", "anna", "--scopes", "chat")
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            for headers, status in (({}, 401), (bearer(chat), 403)):
                refused = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
                assert refused.status_code == status
        async with (
            httpx2.AsyncClient(headers=bearer(key), timeout=30) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as session,
        ):
            done: Any = (await session.call_tool("agent_run", {"task": "what is 2+3?"})).structured_content
        run = done["run_id"]
        async with httpx.AsyncClient(base_url=url, timeout=30, headers=bearer(key)) as client:
            assert (await client.get(f"/v1/runs/{run}")).json()["response"]["response"] == "2+3 = 5"
