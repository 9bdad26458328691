"""A gateway measures the model on its machine while nobody needs it, and works by what it found."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from agent.planning.rounds.tool_need import build_first_question
from gateway import live_models
from gateway.model_probe import PROBE_TASKS, idle_prober, measuring
from gateway.model_probe.asked_model import PIECE_CHARS
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.model_endpoint import list_of, model_endpoint

LISTED = {"owned_by": "llamacpp", "meta": {"n_ctx": 2048, "size": 7}}
MODELS = "/v1/admin/models"


@pytest.fixture(autouse=True)
def quickly_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_prober, "IDLE_SECONDS", 0.3)
    monkeypatch.setattr(idle_prober, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(idle_prober, "RETRY_SECONDS", 0.3)
    monkeypatch.setattr(live_models, "WATCH_SECONDS", 0.05)


async def wait_for_measurement(client: httpx.AsyncClient, context: int) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while True:
            profile: dict[str, Any] = (await client.get(MODELS)).json()["profile"]
            if profile["measured"] is not None and profile["measured"]["context_tokens"] == context:
                return profile
            await asyncio.sleep(0.05)


async def test_an_idle_gateway_measures_its_model_and_again_when_another_one_is_there(serve: Serve) -> None:
    async with (
        model_endpoint(list_of("tiny", **LISTED), answer=lambda _: "I do not know.") as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="tiny", model_profile="auto") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        profile = await wait_for_measurement(client, 2048)
        assert (profile["source"], profile["decides"], profile["checks_answers"]) == ("measured", "rounds", True)
        assert profile["measured"]["counts"]["schema"] == [0, 2]
        body = {"model": "chat", "messages": [{"role": "user", "content": "Hi there, friend"}]}
        await client.post("/v1/chat/completions", json=body)
        run = (await client.get("/v1/runs", params={"limit": 1})).json()["data"][0]["id"]
        metadata = (await client.get(f"/v1/runs/{run}")).json()["response"]["metadata"]
        assert metadata["runtime"]["profile"] == {
            "decides": "rounds", "judges": False, "checks_answers": True, "translates": False, "source": "measured"
        }  # fmt: skip

        measured_calls = endpoint.paths.count("/v1/chat/completions")
        await asyncio.sleep(1)
        assert endpoint.paths.count("/v1/chat/completions") == measured_calls, "the same model is not measured again"
        endpoint.listing = list_of("tiny", **{**LISTED, "meta": {"n_ctx": 4096, "size": 8}})
        await wait_for_measurement(client, 4096)


async def test_a_model_that_ollama_has_fetched_again_is_measured_again_with_its_context(serve: Serve) -> None:
    def describe(**details: Any) -> dict[str, Any]:
        return {"models": [{"name": "tiny", "model": "tiny", **details}]}

    async with (
        model_endpoint(list_of("tiny", owned_by="library"), answer=lambda _: "I do not know.") as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="tiny", model_profile="auto") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        endpoint.tags, endpoint.loaded = describe(digest="aa", size=7), describe(context_length=2048)
        await wait_for_measurement(client, 2048)
        measured_calls = endpoint.paths.count("/v1/chat/completions")
        endpoint.loaded = describe(context_length=4096)
        await asyncio.sleep(1)
        assert endpoint.paths.count("/v1/chat/completions") == measured_calls, "it is the same model"
        endpoint.tags = describe(digest="bb", size=7)
        await wait_for_measurement(client, 4096)


async def test_a_request_ends_the_call_of_the_probe_which_goes_on_later(serve: Serve) -> None:
    cancelled: list[str] = []

    async def wait_for_the_end(request: web.Request) -> None:
        if request.headers.get("x-stepgate-purpose") == "probe" and not cancelled:
            while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.02)
            cancelled.append(request.path)

    async with (
        model_endpoint(list_of("tiny", **LISTED), answer=lambda _: "Hello.", hold=wait_for_the_end) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="tiny", model_profile="auto") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        await asyncio.sleep(1.0)
        body = {"model": "chat", "messages": [{"role": "user", "content": "Tell me something"}]}
        async with asyncio.timeout(10):
            reply = (await client.post("/v1/chat/completions", json=body)).json()
        assert reply["choices"][0]["message"]["content"] == "Hello."
        await wait_for_measurement(client, 2048)
    assert cancelled == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("options", "is_warmed"),
    [({"model_profile": "small"}, True), ({"model_profile": "auto", "model_probe": "off"}, False)],
)
async def test_nothing_is_measured_unasked_where_a_setting_decides(
    serve: Serve, options: dict[str, str], is_warmed: bool
) -> None:
    async with (
        model_endpoint(list_of("tiny", **LISTED)) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="tiny", **options) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        await asyncio.sleep(1)
        profile = (await client.get(MODELS)).json()["profile"]
    calls = endpoint.paths.count("/v1/chat/completions")
    assert calls > 3 if is_warmed else not calls, "a small model reads its first prompts, and no more"
    assert (profile["source"], profile["measured"]) == (
        "setting" if options["model_profile"] == "small" else "default", None,
    )  # fmt: skip


async def test_the_first_decision_begins_with_what_the_endpoint_has_read(serve: Serve) -> None:
    asked: list[list[dict[str, Any]]] = []

    def look_up(body: dict[str, Any]) -> str:
        asked.append(body["messages"])
        return "lookup"

    async with (
        model_endpoint(list_of("tiny"), answer=look_up) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="tiny", model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        examples = [dict(message) for message in build_first_question()]
        async with asyncio.timeout(10):
            while asked.count(examples) < 2:  # noqa: ASYNC110 - the endpoint has no event
                await asyncio.sleep(0.05)
        read, asked[:] = [*asked], []
        await client.post("/v1/agent", json={"prompt": "Which of our rooms is the largest?"})
    need, first, *_ = asked
    assert need[:-1] == examples[:-1]
    assert first[0] in [messages[0] for messages in read], "the decision's instructions and tools"
    assert "calculator" in first[0]["content"]
    sizes = [sum(len(message["content"]) for message in messages) for messages in read[: read.index(examples) + 1]]
    assert len(sizes) > 3, "in pieces"
    assert all(0 < more - less < 2 * PIECE_CHARS for less, more in pairwise(sizes)), "nothing is read that takes long"
    assert all(messages[-1]["role"] == "user" for messages in read)


async def test_the_command_measures_any_model_and_prints_what_it_cost(tmp_path: Path) -> None:
    async with model_endpoint(list_of("tiny"), answer=lambda _: "I do not know.") as endpoint:
        settings = {"llm_base_url": endpoint.url, "model_fast": "tiny", "model_profile": "auto"}
        code, output = await asyncio.to_thread(stepgate, tmp_path, "models", "probe", **settings)
        assert code == 0, output
        assert "wrong  schema: object" in output
        assert "works in rounds; questions its answers" in output
        assert " calls, " in output
        code, output = await asyncio.to_thread(stepgate, tmp_path, "doctor", **settings)
        assert "ok   model profile: works in rounds: schema 0 of 2" in output
        code, output = await asyncio.to_thread(stepgate, tmp_path, "models", "probe", "unknown", **settings)
        assert (code, "unknown is not configured" in output) == (1, True)


async def test_a_measurement_that_was_cut_off_is_completed_by_the_next_one(tmp_path: Path) -> None:
    async with model_endpoint(list_of("tiny", **LISTED), answer=lambda _: "I do not know.", delay_s=0.1) as endpoint:
        settings = {"llm_base_url": endpoint.url, "model_fast": "tiny", "model_profile": "auto"}
        first = await asyncio.to_thread(stepgate, tmp_path, "models", "probe", "--seconds", "1", **settings)
        endpoint.delay_s = 0
        second = await asyncio.to_thread(stepgate, tmp_path, "models", "probe", **settings)
        endpoint.listing = list_of("tiny", **{**LISTED, "meta": {"n_ctx": 4096, "size": 8}})
        other = await asyncio.to_thread(stepgate, tmp_path, "models", "probe", **settings)
    assert "cut off by the time limit; the next measurement goes on there" in first[1]
    counts = [output.count("wrong  ") + output.count("right  ") for _, output in (first, second, other)]
    assert counts[0] > 0
    assert (counts[0] + counts[1], counts[2]) == (len(PROBE_TASKS), len(PROBE_TASKS))
    assert "cut off" not in second[1]


async def test_an_idle_gateway_completes_a_measurement_that_was_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring.ModelMeasurement.run, "__kwdefaults__", {"seconds": 0.2, "report": lambda _: None})
    async with (
        model_endpoint(list_of("tiny", **LISTED), answer=lambda _: "I do not know.", delay_s=0.01) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="tiny", model_profile="auto") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        async with asyncio.timeout(30):
            measured: dict[str, Any] = {}
            while not measured.get("is_complete"):
                await asyncio.sleep(0.05)
                measured = (await client.get(MODELS)).json()["profile"]["measured"] or {}
    assert sum(asked for _, asked in measured["counts"].values()) == len(PROBE_TASKS)
