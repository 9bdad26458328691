"""Limits of keys as callers meet them: many requests at once, at one gateway and at two that share a Redis."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from agent.core.settings import Settings
from agent.storage.api_keys import KeyLimits
from gateway.bootstrap import Stepgate, build_gateway
from tests.support.processes import start
from tests.support.redis_server import URL, own_prefix
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.serving import serving

CHAT = {"model": "chat", "messages": [{"role": "user", "content": "Hello"}]}


def settings(folder: Path, **options: object) -> Settings:
    given = {"data_dir": folder, "skills_dirs": (), "drain_seconds": 1, "require_key": "always", "port": 0}
    return Settings(_env_file=None, **{**given, **options})  # type: ignore[arg-type]


@asynccontextmanager
async def gateways(folder: Path, number: int, **options: object) -> AsyncIterator[tuple[Stepgate, list[str]]]:
    """So many gateways on one store; the first one, and the addresses of all."""
    async with AsyncExitStack() as stack:
        wired = [await stack.enter_async_context(build_gateway(settings(folder, **options))) for _ in range(number)]
        urls = [await stack.enter_async_context(serving(one.settings, one)) for one in wired]
        yield wired[0], urls


async def key_of(stepgate: Stepgate, *, tools: list[str] | None = None, **limits: int) -> dict[str, str]:
    """The headers of a new key."""
    made = KeyLimits.model_validate(limits)
    _, text = await stepgate.keys.create("anna", "x", ["chat", "agent"], tools=tools, limits=made)
    return {"authorization": f"Bearer {text}"}


@pytest.mark.parametrize("number", [1, 2])
async def test_no_more_runs_at_a_time_than_the_key_allows_wherever_they_are_sent(tmp_path: Path, number: int) -> None:
    with own_prefix() as prefix, ScriptedServer(script(says("Never said.", fault="hang"))) as model:
        options = {"llm_base_url": model.url, "model_fast": "m", "redis_url": URL, "redis_prefix": prefix}
        async with gateways(tmp_path, number, **options) as (stepgate, urls), httpx.AsyncClient(timeout=30) as client:
            headers = await key_of(stepgate, parallel_runs=2)

            async def ask(index: int) -> httpx.Response:
                url = f"{urls[index % number]}/v1/agent"
                body = {"prompt": "Hello", "room": "chat", "stream": True}
                async with client.stream("POST", url, json=body, headers=headers) as response:
                    if response.status_code != 200:
                        await response.aread()
                return response

            answers = await asyncio.gather(*(ask(index) for index in range(12)))
            assert Counter(answer.status_code for answer in answers) == {200: 2, 429: 10}
            refused = next(answer for answer in answers if answer.status_code == 429)
            assert "allows 2 runs at the same time" in refused.json()["error"]["message"]
            begun = [answer.headers["x-stepgate-run-id"] for answer in answers if answer.status_code == 200]
            for run_id in begun:
                await client.post(f"{urls[0]}/v1/runs/{run_id}/cancel", headers=headers)
            async with asyncio.timeout(30):
                while (again := await ask(0)).status_code == 429:  # noqa: ASYNC110 - the door tells nobody
                    await asyncio.sleep(0.05)
            assert again.status_code == 200, "their places are free again"


async def test_two_gateways_on_one_redis_count_requests_and_tokens_together(tmp_path: Path) -> None:
    hello = says("Hello.", to="completion", prompt_tokens=500, completion_tokens=500)
    with own_prefix() as prefix, ScriptedServer(script(hello)) as model:
        options = {"llm_base_url": model.url, "model_fast": "m", "redis_url": URL, "redis_prefix": prefix}
        async with (
            gateways(tmp_path, 2, llm_max_tokens=4096, **options) as (stepgate, urls),
            httpx.AsyncClient(timeout=30) as client,
        ):
            few = await key_of(stepgate, requests_per_minute=3)
            seen = [await client.get(f"{url}/v1/models", headers=few) for url in urls * 3]
            small = await key_of(stepgate, tokens_per_minute=4_500)
            asked = [await client.post(f"{url}/v1/chat/completions", json=CHAT, headers=small) for url in urls * 2]
    assert [answer.status_code for answer in seen] == [200, 200, 200, 429, 429, 429]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in seen[:3]] == ["2", "1", "0"]
    assert [answer.status_code for answer in asked] == [200, 429, 429, 429], "a thousand used, a call may take 4,096"
    assert asked[1].headers["x-ratelimit-remaining-tokens"] == "3500"


async def test_a_redis_that_is_down_lets_nobody_in_twice_and_keeps_nobody_out(tmp_path: Path) -> None:
    async with gateways(tmp_path, 1, redis_url="redis://127.0.0.1:1/0") as (stepgate, (url,)):
        headers = await key_of(stepgate, requests_per_minute=2)
        async with httpx.AsyncClient(timeout=30) as client:
            codes = [(await client.get(f"{url}/v1/models", headers=headers)).status_code for _ in range(3)]
    assert codes == [200, 200, 429]


async def test_a_call_that_no_minute_has_room_for_is_not_tried_again(tmp_path: Path) -> None:
    with ScriptedServer(script(says("Hello."))) as model:
        options = {"llm_base_url": model.url, "model_fast": "m", "llm_max_tokens": 4096}
        async with gateways(tmp_path, 1, **options) as (stepgate, (url,)), httpx.AsyncClient(timeout=30) as client:
            headers = await key_of(stepgate, tokens_per_minute=1_000)
            refused = await client.post(f"{url}/v1/chat/completions", json=CHAT, headers=headers)
            shorter = await client.post(f"{url}/v1/chat/completions", json={**CHAT, "max_tokens": 50}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "tokens")
    assert refused.headers["x-should-retry"] == "false"
    assert "retry-after" not in refused.headers, "waiting does not help"
    assert shorter.status_code == 200


async def test_the_tools_of_a_key_are_those_of_its_tasks_too(tmp_path: Path) -> None:
    async with gateways(tmp_path, 1) as (stepgate, (url,)), httpx.AsyncClient(base_url=url, timeout=30) as client:
        headers = await key_of(stepgate, tools=["current_time"])
        task = (await client.post("/tasks", json={"prompt": "What is 17.5 * 240?"}, headers=headers)).json()
        done = await client.post(f"/tasks/{task['task_id']}/run", headers=headers)
        run_id = done.headers.get("x-stepgate-run-id", "")
        events = (await client.get(f"/v1/runs/{run_id}/events", headers=headers)).text if run_id else ""
    assert '"tool": "calculator"' not in events
    # Not anywhere in the text: ids and times hold any digits.
    assert not {"result", "outcomes", "status"}.isdisjoint(done.json())
    assert all("4200" not in str(value) for name, value in done.json().items() if not name.endswith(("_id", "_at")))


def stepgate(folder: Path, *words: str, **options: str) -> list[str]:
    """What a command says, stdout and stderr together."""
    environment = {f"AGENT_{name.upper()}": value for name, value in options.items()}
    environment |= {"AGENT_DATA_DIR": str(folder), "AGENT_SKILLS_DIRS": "none", "COLUMNS": "250"}
    process = start([sys.executable, "-m", "gateway", *words], environment=environment)
    assert process.wait(60) == 0, process.output
    return process.output


def test_a_key_whose_limits_cannot_hold_is_made_with_a_warning(tmp_path: Path) -> None:
    limits = ["--tpm", "4000", "--budget-tokens", "4096", "--budget-usd", "20", "--tools", "calculator,calulator,x__y"]
    endpoint = {"llm_base_url": "http://127.0.0.1:1/v1", "model_fast": "m", "llm_max_tokens": "4096"}
    told = stepgate(tmp_path, "keys", "create", "a", *limits, **endpoint)
    warnings = [line.removeprefix("warning: ").split(":")[0] for line in told if line.startswith("warning: ")]
    assert warnings == ["--tpm 4,000", "--budget-tokens 4,096", "--budget-usd 20", "--tools"]
    assert "no tool is called calulator;" in next(line for line in told if "--tools" in line)
    assert told[-1].startswith("sg_")
    quiet = stepgate(tmp_path, "keys", "create", "b", "--tpm", "20000", "--budget-usd", "20", "--tools", "calculator")
    assert not [line for line in quiet if "warning" in line]
    listed = stepgate(tmp_path, "keys", "list")
    assert "tokens_per_minute 4,000, budget_tokens 4,096, budget_usd 20.0" in listed[1]
    assert len(json.loads("".join(stepgate(tmp_path, "keys", "list", "--json")))) == 2
