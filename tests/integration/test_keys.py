"""API keys: who gets in, what they may do, how much, and that nobody reaches another's things."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import AuthError, BadRequestError, ConflictError, NotFoundError, QuotaError, RateLimitError
from agent.core.models import Usage
from agent.llm.tiers import Prices
from agent.storage.api_keys import ApiKey, KeyLimits, KeyStore
from agent.storage.audit import StoredAuditLog
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.key_budgets import KeyBudgets
from agent.storage.sql import PostgresClient, SqlClient, SqliteClient
from gateway.access.authentication import Authenticator, Caller, format_duration
from gateway.access.quota_reservations import RESERVED_RETRY_SECONDS, KeyQuotas
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.integration.test_openai_door import MODEL, sdk, user
from tests.support import warm
from tests.support.keys import bearer, created_key
from tests.support.postgres import fresh_database
from tests.support.script import says, script


class Clock:
    """Time moved by hand, UTC seconds."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def create_key_by_command(folder: Path, *arguments: str) -> str:
    """The text of a key that `stepgate keys create` made for this data folder."""
    process = await asyncio.create_subprocess_exec(
        *warm.command("gateway.cli", "keys", "create", *arguments),
        env={"AGENT_DATA_DIR": str(folder), "PATH": ""}, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, told.decode()
    return out.decode().strip()


@pytest.fixture(params=["sqlite", "postgres"])
async def statements(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store's database of either kind."""
    if request.param == "sqlite":
        store = await open_sqlite(tmp_path / "stepgate.db")
        yield SqliteClient(store.database)
        await store.close()
        return
    from agent.storage.journal_postgres import open_postgres

    with fresh_database() as url:
        server = await open_postgres(url)
        yield PostgresClient(server.database)
        await server.close()


async def test_a_key_is_shown_once_and_only_its_hash_is_kept(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    key, text = await keys.create("anna", "laptop", ["chat"], tools=["calculator"])
    assert await keys.verify(text) == key
    stored = await statements.read("SELECT * FROM api_keys")
    assert text.rsplit("_", 1)[1] not in str(stored)
    assert await keys.list_keys("anna") == [key]
    assert await keys.list_keys("bob") == []


async def test_wrong_expired_and_revoked_keys_open_nothing(statements: SqlClient) -> None:
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
    with pytest.raises(BadRequestError, match="in the past"):
        await keys.create("anna", "late", ["chat"], expires_at=clock.now)
    fresh, again = await keys.create("anna", "tablet", ["chat"])
    assert await keys.has_valid_key()
    await keys.revoke(fresh.id)
    await keys.revoke(fresh.id)
    await keys.revoke(other.id)
    with pytest.raises(AuthError, match="revoked"):
        await keys.verify(again)
    assert not await keys.has_valid_key()
    with pytest.raises(NotFoundError):
        await keys.revoke("none")


async def test_limits_of_a_key_are_changed_and_removed(statements: SqlClient) -> None:
    audit = StoredAuditLog(statements, Clock())
    keys = KeyStore(statements, Clock(), audit)
    key, text = await keys.create("anna", "laptop", ["chat"], limits=KeyLimits(requests_per_minute=5, budget_usd=1.5))
    changed = await keys.change_limits(key.id, {"budget_usd": None, "parallel_runs": 2}, by="root")
    assert changed.limits == KeyLimits(requests_per_minute=5, parallel_runs=2)
    assert await keys.verify(text) == changed == await keys.change_limits(key.id, {"parallel_runs": 2}, by="root")
    (entry,) = await audit.list_entries(action="key.change")
    assert (entry.target, entry.owner, entry.principal) == (key.id, "anna", "root")
    assert entry.detail == {
        "name": "laptop",
        "before": {"requests_per_minute": 5, "budget_usd": 1.5},
        "limits": {"requests_per_minute": 5, "parallel_runs": 2},
    }
    every = ({"tokens_per_minute": 7}, {"parallel_runs": 9}, {"budget_tokens": 11}, {"requests_per_minute": 13})
    await asyncio.gather(*(keys.change_limits(key.id, one) for one in every))
    assert (await keys.get(key.id)).limits == KeyLimits(
        requests_per_minute=13, tokens_per_minute=7, parallel_runs=9, budget_tokens=11
    ), "none of several changes at once is lost"
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        await keys.change_limits(key.id, {"parallel_runs": -1})
    with pytest.raises(NotFoundError):
        await keys.change_limits("none", {"parallel_runs": 1})
    await keys.revoke(key.id)
    with pytest.raises(ConflictError, match="revoked"):
        await keys.change_limits(key.id, {"parallel_runs": 1})


async def test_an_administrator_changes_limits_which_hold_at_once(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    admin = bearer(await created_key(data, "desk", owner="root", scopes="admin"))
    text = await created_key(data, "laptop", owner="anna")
    path, anna = f"/v1/admin/keys/{text.split('_')[1]}", bearer(text)
    async with serve(None, require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert (await client.patch(path, json={"limits": {"requests_per_minute": 1}}, headers=anna)).status_code == 403
        assert (await client.get("/v1/models", headers=anna)).status_code == 200
        set_one = await client.patch(path, json={"limits": {"requests_per_minute": 1}}, headers=admin)
        assert (set_one.status_code, set_one.json()["limits"]["requests_per_minute"]) == (200, 1), set_one.text
        answers = [(await client.get("/v1/models", headers=anna)).status_code for _ in range(3)]
        assert answers[-1] == 429, answers
        freed = await client.patch(path, json={"limits": {"requests_per_minute": None}}, headers=admin)
        assert set(freed.json()["limits"].values()) == {None}
        assert "text" not in freed.json(), "the key is not shown again"
        assert (await client.get("/v1/models", headers=anna)).status_code == 200
        for body, status in (
            ({"limits": {}}, 400), ({}, 400), ({"limits": {"rpm": 1}}, 400), ({"scopes": ["admin"]}, 400),
            ({"limits": {"requests_per_minute": 0}}, 400), ({"limits": {"budget_usd": -1}}, 400),
            ({"limits": None}, 400),
        ):  # fmt: skip
            refused = await client.patch(path, json=body, headers=admin)
            assert refused.status_code == status, (body, refused.text)
        assert (
            await client.patch("/v1/admin/keys/none", json={"limits": {"parallel_runs": 1}}, headers=admin)
        ).status_code == 404
        await client.delete(path, headers=admin)
        assert (await client.patch(path, json={"limits": {"parallel_runs": 1}}, headers=admin)).status_code == 409
        listed = (await client.get("/v1/audit", params={"action": "key.change"}, headers=admin)).json()["data"]
        assert [(one["owner"], one["detail"]["limits"]) for one in listed] == [
            ("anna", {}), ("anna", {"requests_per_minute": 1}),
        ]  # fmt: skip


def test_a_command_changes_limits(tmp_path: Path) -> None:
    code, made = stepgate(tmp_path, "keys", "create", "laptop", "--rpm", "5", "--budget-usd", "2")
    assert code == 0, made
    (text,) = re.findall(r"^sg_\S+$", made, re.MULTILINE)
    code, told = stepgate(tmp_path, "keys", "set", text, "--rpm", "60", "--budget-usd", "0", "--parallel", "2")
    assert (code, told.splitlines()[-1]) == (
        0, f"key {text.split('_')[1]} (laptop of local): requests_per_minute 60, parallel_runs 2",
    )  # fmt: skip
    code, told = stepgate(tmp_path, "keys", "set", text)
    assert (code, "--rpm 60" in told) == (2, True), told
    code, told = stepgate(tmp_path, "keys", "set", "none", "--rpm", "60")
    assert (code != 0, "stepgate keys list" in told) == (True, True), told
    code, listed = stepgate(tmp_path, "audit", "list", "--action", "key.change")
    assert (code, "laptop" in listed) == (0, True), listed


@pytest.mark.parametrize(
    ("owner", "name", "scopes"),
    [("a", "n", ["chat", "root"]), ("a", "n", []), (" ", "n", ["chat"]), ("a", "", ["chat"])],
)
async def test_a_key_that_says_nothing_is_not_made(
    statements: SqlClient, owner: str, name: str, scopes: Sequence[str]
) -> None:
    with pytest.raises(BadRequestError):
        await KeyStore(statements, Clock()).create(owner, name, scopes)


def budgets(keys: KeyStore, statements: SqlClient) -> KeyBudgets:
    return KeyBudgets(keys, statements, Clock())


async def reserve_tokens(
    budgets: KeyBudgets, key: ApiKey, tokens: int, run_id: str = "run_a", epoch: int = 1
) -> str | None:
    return await budgets.reserve(key, Usage(prompt_tokens=tokens), run_id=run_id, epoch=epoch)


async def test_a_budget_is_reserved_before_and_settled_after(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    of = budgets(keys, statements)
    key, _ = await keys.create("anna", "laptop", ["chat"], limits=KeyLimits(budget_tokens=100))
    first = await reserve_tokens(of, key, 60)
    assert first
    assert not await reserve_tokens(of, key, 60), "what is set aside counts"
    await of.settle(key.id, first, 10, None)
    second = await reserve_tokens(of, key, 90)
    assert second
    await of.settle(key.id, second, 90, 0.5)
    assert not await reserve_tokens(of, key, 1)
    assert await keys.get_usage(key.id) == (100, 0.5)


async def test_two_calls_at_once_cannot_both_have_the_last_tokens(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    of = budgets(keys, statements)
    key, _ = await keys.create("bob", "x", ["chat"], limits=KeyLimits(budget_tokens=100))
    taken = await asyncio.gather(*(reserve_tokens(of, key, 60) for _ in range(5)))
    assert len([one for one in taken if one]) == 1


async def test_money_is_reserved_before_and_settled_after(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    of = budgets(keys, statements)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(budget_usd=1.0))
    taken = await asyncio.gather(*(reserve_tokens(of, key, 1_000) for _ in range(10)))
    (first,) = [one for one in taken if one]
    await of.settle(key.id, first, 1_000, 0.1)  # now a price is known: 0.1 for 1,000 tokens
    held = [one for one in await asyncio.gather(*(reserve_tokens(of, key, 3_000) for _ in range(10))) if one]
    assert len(held) == 3, "0.9 is left, and each may cost 0.3"
    for name in held:
        await of.settle(key.id, name, 3_000, 0.25)
    last = await reserve_tokens(of, key, 1_000_000)
    assert last, "alone, a call may always spend what is left"
    assert not await reserve_tokens(of, key, 1)
    await of.settle(key.id, last, 500, 0.2)
    assert not await reserve_tokens(of, key, 1), "it is spent"


async def test_calls_that_cost_nothing_are_not_held_up_by_a_budget_in_money(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    of = budgets(keys, statements)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(budget_usd=1.0))
    await of.settle(key.id, await reserve_tokens(of, key, 10), 10, None)
    assert all(await asyncio.gather(*(reserve_tokens(of, key, 1_000) for _ in range(5))))


async def test_what_a_killed_process_had_set_aside_is_free_once_its_run_moves_on(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    of = budgets(keys, statements)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(budget_tokens=100))
    for run_id in ("run_a", "run_b"):
        await statements.write(
            "INSERT INTO runs (run_id, owner, room, status, title, epoch, last_seq, created_at, updated_at) "
            "VALUES (?, 'anna', 'r', 'running', '', 1, 1, 0, 0)",
            run_id,
        )
    assert await reserve_tokens(of, key, 100, "run_a")
    assert not await reserve_tokens(of, key, 100, "run_b"), "it may be under way"
    await statements.write("UPDATE runs SET epoch = 2 WHERE run_id = 'run_a'")
    assert await reserve_tokens(of, key, 100, "run_a", 2), "another process carries the run on"
    assert not await reserve_tokens(of, key, 1, "run_b")
    await statements.write("UPDATE runs SET terminal = ? WHERE run_id = 'run_a'", True)
    assert await reserve_tokens(of, key, 100, "run_b"), "the run has ended"


async def test_requests_a_minute_slide(statements: SqlClient) -> None:
    clock = Clock()
    keys = KeyStore(statements, clock)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(requests_per_minute=2))
    gate = Authenticator(keys, requires_key=True, clock=clock)
    caller = Caller(key)
    assert (await gate.count_request(caller)).headers["x-ratelimit-remaining-requests"] == "1"
    clock.now += 30
    (await gate.count_request(caller)).raise_if_refused()
    counted = await gate.count_request(caller)
    assert counted.headers["x-ratelimit-remaining-requests"] == "0"
    with pytest.raises(RateLimitError, match="2 requests a minute") as refused:
        counted.raise_if_refused()
    assert refused.value.details["retry_after_s"] == 30
    clock.now += 31
    (await gate.count_request(caller)).raise_if_refused()


async def test_tokens_a_minute_slide(statements: SqlClient) -> None:
    clock = Clock()
    keys = KeyStore(statements, clock)
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(tokens_per_minute=100))
    quotas = KeyQuotas(keys, budgets(keys, statements), clock)
    gate = Authenticator(keys, requires_key=True, token_rates=quotas.token_rates, clock=clock)

    async def call(tokens: int) -> str:
        return await quotas.reserve(key.id, Usage(prompt_tokens=tokens), run_id="run_a", epoch=1)

    with pytest.raises(RateLimitError, match=r"may take 101 tokens exceeds what the key \w+ allows"):
        await call(101)
    first = await call(80)
    with pytest.raises(RateLimitError, match="20 are left") as refused:
        await call(21)
    assert refused.value.details == {"retry_after_s": RESERVED_RETRY_SECONDS, "limit": "tokens"}, "what is held counts"
    await quotas.record_usage(key.id, first, Usage(prompt_tokens=50, completion_tokens=10))
    clock.now += 20
    assert (await gate.count_request(Caller(key))).headers == {
        "x-ratelimit-limit-tokens": "100",
        "x-ratelimit-remaining-tokens": "40",
        "x-ratelimit-reset-tokens": "40s",
    }
    await quotas.record_usage(key.id, await call(40), Usage(prompt_tokens=40))
    with pytest.raises(RateLimitError, match="0 are left; try again in 40 s") as spent:
        await quotas.check_token_rate(key.id, 1)
    assert spent.value.details["retry_after_s"] == 40
    clock.now += 41
    await quotas.check_token_rate(key.id, 1)
    await call(60)


async def test_of_ten_calls_at_once_as_many_pass_as_the_minute_has_room_for(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    limits = KeyLimits(tokens_per_minute=2_000, budget_tokens=100_000)
    key, _ = await keys.create("anna", "x", ["chat"], limits=limits)
    quotas = KeyQuotas(keys, budgets(keys, statements), Clock())
    calls = (quotas.reserve(key.id, Usage(prompt_tokens=1_000), run_id="run_a", epoch=1) for _ in range(10))
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, str) for one in told) == 2
    assert sum(isinstance(one, RateLimitError) for one in told) == 8
    assert (await statements.read("SELECT count(*) FROM key_reservations"))[0][0] == 2


async def test_a_price_that_is_known_is_set_aside_and_never_passed(statements: SqlClient) -> None:
    keys = KeyStore(statements, Clock())
    key, _ = await keys.create("anna", "x", ["chat"], limits=KeyLimits(budget_usd=1.0))
    quotas = KeyQuotas(keys, budgets(keys, statements), Clock())
    call = Prices({"m": (100.0, 200.0)}).add_cost("m", Usage(prompt_tokens=2_000, completion_tokens=1_000))
    assert call.cost_usd == pytest.approx(0.4)
    first, second = [await quotas.reserve(key.id, call, run_id="run_a", epoch=1) for _ in range(2)]
    with pytest.raises(RateLimitError, match="reserved by calls in progress"):
        await quotas.reserve(key.id, call, run_id="run_a", epoch=1)
    await quotas.record_usage(key.id, first, call.model_copy(update={"cost_usd": 0.5}))
    with pytest.raises(RateLimitError):
        await quotas.reserve(key.id, call, run_id="run_a", epoch=1)
    await quotas.record_usage(key.id, second, call)
    with pytest.raises(QuotaError, match=r"another model call: 0\.9 of 1 USD are used, and this call may cost 0\.4"):
        await quotas.reserve(key.id, call, run_id="run_a", epoch=1)


@pytest.mark.parametrize(("model", "cost"), [("small", 3.0), ("other", None)])
def test_a_cost_comes_from_the_list_where_it_names_the_model(model: str, cost: float | None) -> None:
    used = Usage(prompt_tokens=1_000_000, completion_tokens=500_000)
    assert Prices({"small": (1.0, 4.0)}).add_cost(model, used).cost_usd == cost
    assert Prices({"small": (1.0, 4.0), "*": (0.0, 0.0)}).add_cost("other", used).cost_usd == 0
    told = used.model_copy(update={"cost_usd": 0.7})
    assert Prices({"*": (1.0, 4.0)}).add_cost(model, told).cost_usd == 0.7, "who made the bill knows better"


async def test_what_an_endpoint_without_prices_did_counts_against_money(serve: Serve, tmp_path: Path) -> None:
    text = await create_key_by_command(tmp_path / "data", "laptop", "--budget-usd", "0.0033")
    model = script(says("Stockholm is the capital.", to="completion"))
    prices = {"*": (0.0, 100.0)}  # the first reply, of some tokens, is paid; another of up to 32 does not fit
    body = {"model": "chat", "messages": [{"role": "user", "content": "Which town?"}], "max_tokens": 32}
    async with (
        serve(model, model_prices=prices) as url,
        httpx.AsyncClient(base_url=url, timeout=30, headers={"authorization": f"Bearer {text}"}) as client,
    ):
        first = await client.post("/v1/chat/completions", json=body)
        spent = first.json()["stepgate"]["usage"]["cost_usd"]
        second = await client.post("/v1/chat/completions", json=body)
    assert first.status_code == 200, first.text
    assert 0 < spent < 0.0033
    assert (second.status_code, second.json()["error"]["code"]) == (429, "insufficient_quota"), second.text


def test_durations_are_written_as_openai_writes_them() -> None:
    assert [format_duration(s) for s in (0.012, 1, 59.4, 360)] == ["12ms", "1s", "59s", "6m0s"]


async def test_with_keys_demanded_nobody_gets_in_without_one(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL, require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = await created_key(tmp_path / "data", "laptop", scopes="chat")
        body = {"model": "stepgate", "messages": user()}
        for headers in ({}, bearer("sk-anything"), bearer(key[:-1] + "_")):
            refused = await client.post("/v1/chat/completions", json=body, headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert refused.json()["error"]["code"] == ("invalid_api_key" if headers else None)
        for path in ("/v1/runs", "/v1/memories", "/v1/collections", "/v1/models", "/v1/documents", "/v1/jobs", "/tasks",
                     "/v1/citations/x", "/v1/skills", "/v1/tools", "/metrics"):  # fmt: skip
            assert (await client.get(path)).status_code == 401, path
        assert (await client.get("/health")).status_code == 200
        assert (await client.post("/v1/chat/completions", json=body, headers=bearer(key))).status_code == 200
        lacking = await client.post("/v1/agent", json={"prompt": "2+2"}, headers=bearer(key))
        assert (lacking.status_code, lacking.json()["error"]["error_code"]) == (403, "ERR_SCOPE")


async def test_the_official_sdk_gets_in_with_a_key(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL, require_key="always") as url:
        key = await created_key(tmp_path / "data", "sdk")
        async with sdk(url) as client:
            answer = await client.with_options(api_key=key).chat.completions.create(model="stepgate", messages=user())
    assert answer.choices[0].message.content == "It is 42, as computed."


@pytest.mark.row("Scard-11")
async def test_another_owners_things_are_not_there(serve: Serve, tmp_path: Path) -> None:
    async with serve(MODEL) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        anna = bearer(await created_key(tmp_path / "data", "a", owner="anna"))
        bob = bearer(await created_key(tmp_path / "data", "b", owner="bob"))
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
        key = bearer(await create_key_by_command(tmp_path / "data", "x", "--rpm", "2", "--budget-tokens", "100000"))
        body = {"model": "chat", "messages": [{"role": "user", "content": "hello there, how are you?"}]}
        first = await client.post("/v1/chat/completions", json=body, headers=key)
        assert first.headers["x-ratelimit-limit-requests"] == "2"
        assert first.headers["x-ratelimit-remaining-requests"] == "1"
        await client.post("/v1/chat/completions", json=body, headers=key)
        refused = await client.post("/v1/chat/completions", json=body, headers=key)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert refused.json()["error"]["type"] == "requests"
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert refused.headers["x-ratelimit-limit-requests"] == "2"


async def test_tokens_that_are_used_up_refuse_before_a_run_or_a_stream_begins(serve: Serve, tmp_path: Path) -> None:
    model = script(says("hi", prompt_tokens=900, completion_tokens=100))
    async with serve(model, llm_max_tokens=4096) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await create_key_by_command(tmp_path / "data", "x", "--tpm", "5000"))
        body = {"model": "chat", "messages": [{"role": "user", "content": "hello there, how are you?"}]}
        first = await client.post("/v1/chat/completions", json=body, headers=key)
        assert (first.status_code, first.headers["x-ratelimit-remaining-tokens"]) == (200, "5000")
        short = await client.post("/v1/chat/completions", json={**body, "max_tokens": 16}, headers=key)
        assert short.status_code == 200, "4,000 are left"
        for streamed in (False, True):
            refused = await client.post("/v1/chat/completions", json={**body, "stream": streamed}, headers=key)
            assert refused.status_code == 429
            error = refused.json()["error"]
            assert (error["type"], error["code"]) == ("tokens", "rate_limit_exceeded")
            assert 50 <= int(refused.headers["retry-after"]) <= 60
            assert "x-should-retry" not in refused.headers
            assert refused.headers["x-ratelimit-limit-tokens"] == "5000"
            assert refused.headers["x-ratelimit-remaining-tokens"] == "3000"
        assert len((await client.get("/v1/runs", headers=key)).json()["data"]) == 2


async def test_an_endpoint_that_tells_no_tokens_is_paid_for_all_the_same(serve: Serve, tmp_path: Path) -> None:
    model = script(says("word " * 100, prompt_tokens=0, completion_tokens=0))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await create_key_by_command(tmp_path / "data", "x", "--budget-tokens", "9000"))
        body = {"model": "chat", "messages": [{"role": "user", "content": "tell me " + "more " * 200}]}
        for streamed in (False, True):
            answer = await client.post("/v1/chat/completions", json={**body, "stream": streamed}, headers=key)
            assert answer.status_code == 200
        store = await open_sqlite(tmp_path / "data" / "stepgate.db")
        (row,) = await SqliteClient(store.database).read("SELECT used_tokens FROM api_keys")
        await store.close()
        run = (await client.get("/v1/runs", headers=key)).json()["data"][0]["id"]
        told = (await client.get(f"/v1/runs/{run}", headers=key)).json()["response"]
    assert 2 * (250 + 125) <= row[0] <= 1_500
    assert '"estimated": true' in json.dumps(told)


async def test_a_spent_budget_refuses_before_the_call(serve: Serve, tmp_path: Path, model_server: Any) -> None:
    async with serve(script(says("hi"))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await create_key_by_command(tmp_path / "data", "x", "--budget-tokens", "10"))
        body = {"model": "chat", "messages": [{"role": "user", "content": "tell me a story please"}]}
        refused = await client.post("/v1/chat/completions", json=body, headers=key)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "insufficient_quota"
    assert refused.headers["x-should-retry"] == "false"
    assert model_server.requests() == []


async def test_a_key_may_be_limited_to_some_tools(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        key = bearer(await create_key_by_command(tmp_path / "data", "x", "--tools", "current_time"))
        calls = [{"tool": "calculator", "args": {"expression": "1+1"}}, {"tool": "current_time", "args": {}}]
        answer = (await client.post("/v1/agent", json={"metadata": {"tool_calls": calls}}, headers=key)).json()
        told = json.dumps(answer)
    assert "not allowed" in told or answer.get("error", {}).get("error_code") == "ERR_BAD_REQUEST"


async def test_the_tool_ingest_needs_the_scope_of_its_door(serve: Serve, tmp_path: Path) -> None:
    roots = tmp_path / "files"
    roots.mkdir()
    (roots / "a.md").write_text("# Zebras\n\nThe zebra eats hay.")
    async with serve(file_roots=(roots,)) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        calls = {"metadata": {"tool_calls": [{"tool": "ingest", "args": {"source": str(roots)}}]}}
        for scopes, allowed in (("agent,chat,approve", False), ("agent,ingest", True), ("admin", True)):
            key = bearer(await created_key(tmp_path / "data", "x", owner="anna", scopes=scopes))
            told = (await client.post("/v1/agent", json=calls, headers=key)).json()
            assert ("the scope 'ingest'" in json.dumps(told)) is not allowed, told
            found = await client.get("/v1/collections", headers=key)
            assert ("documents" in found.text) is allowed, (scopes, found.text)
        assert "1 read" in json.dumps((await client.post("/v1/agent", json=calls)).json()), (
            "the machine's owner needs none"
        )


async def test_the_network_is_not_let_in_without_a_key(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *warm.command("gateway.cli", "serve"),
        env={"AGENT_DATA_DIR": str(tmp_path), "AGENT_HOST": "0.0.0.0", "AGENT_PORT": "0", "PATH": ""},
        stdout=-1, stderr=-1,
    )  # fmt: skip
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert "stepgate keys create" in told.decode()


async def test_keys_are_listed_and_revoked_by_hand(tmp_path: Path, serve: Serve) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        text = await create_key_by_command(tmp_path / "data", "laptop", "--days", "3")
        assert (await client.get("/v1/runs", headers=bearer(text))).status_code == 200
        for command in (["list", "--json"], ["revoke", text.split("_")[1]]):
            process = await asyncio.create_subprocess_exec(
                *warm.command("gateway.cli", "keys", *command),
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
        key = await create_key_by_command(tmp_path / "data", "ide", "--owner", "anna", "--scopes", "mcp,agent")
        chat = await create_key_by_command(tmp_path / "data", "web", "--owner", "anna", "--scopes", "chat")
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


async def test_strangers_read_no_paths_and_addresses(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    scraper = await created_key(folder, "scraper", owner="ops", scopes="metrics")
    admin = await created_key(folder, "root", owner="ops", scopes="admin")
    anna = await created_key(folder, "laptop", owner="anna", tools="calculator")
    model = script(says(fault="status_401", to="completion"))
    async with serve(model, require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        for headers in ({}, bearer(anna), bearer("sg_no")):
            bare = (await client.get("/ready", headers=headers)).json()
            assert {one["detail"] for one in bare["components"].values()} == {""}
        whole = (await client.get("/ready", headers=bearer(admin))).json()
        assert "SQLite at" in whole["components"]["store"]["detail"]
        assert (await client.get("/metrics", headers=bearer(scraper))).status_code == 200
        assert (await client.get("/metrics", headers=bearer(anna))).status_code == 403
        assert (await client.get("/v1/audit", headers=bearer(scraper))).status_code == 403
        body: dict[str, Any] = {"prompt": "hello there, who are you?", "room": "chat"}
        failed = await client.post("/v1/agent", json=body, headers=bearer(anna))
        assert failed.status_code == 502
        assert "127.0.0.1" not in failed.text
        assert "AGENT_" not in failed.text
        body = {
            "prompt": "x",
            "metadata": {"tool_calls": [{"tool": "web_fetch", "args": {"url": "https://a.example"}}]},
        }
        refused = await client.post("/v1/agent", json=body, headers=bearer(anna))
    assert refused.status_code == 400
    assert "this API key does not allow the tool 'web_fetch'" in refused.text


async def test_the_scope_rooms_administers_rooms_and_tools_of_ones_own_and_nothing_else(
    serve: Serve, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    anna = bearer(await created_key(data, "a", owner="anna", scopes="rooms"))
    bob = bearer(await created_key(data, "b", owner="bob", scopes="rooms"))
    program = {"name": "x", "mcp_servers": {"files": {"command": "touch", "args": ["/tmp/x"]}}}
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        made = await client.post("/v1/rooms", json={"name": "Annas"}, headers=anna)
        assert (made.status_code, made.json()["owner"]) == (201, "anna")
        assert (await client.get("/v1/studio/tools", headers=anna)).status_code == 200
        refused = await client.post("/v1/rooms", json=program, headers=anna)
        assert refused.status_code in (400, 403), "only shared rooms start programs, and only by a key with admin"
        shared = (await client.get("/v1/rooms/stepgate", headers=anna)).json()
        change = {"version": shared["version"], "description": "mine"}
        assert (await client.patch("/v1/rooms/stepgate", json=change, headers=anna)).status_code in (403, 409)
        assert (await client.get("/v1/rooms/annas", headers=bob)).status_code == 404
        for path in ("/v1/audit", "/v1/users", "/v1/queue", "/v1/studio/secrets", "/v1/runs", "/metrics"):
            assert (await client.get(path, headers=anna)).status_code in (403, 404, 405), path
        closed = await client.post("/v1/agent", json={"prompt": "2+2"}, headers=anna)
        assert closed.status_code == 403
