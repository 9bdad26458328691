"""A model that is too slow for its time limit is named, and is not waited for again; rules answer what they can."""

import asyncio

import httpx
from aiohttp import web

from tests.integration.conftest import Serve
from tests.support.model_endpoint import list_of, model_endpoint

SLOW = "the model is too slow here, so it is not asked again in this run"


async def wait_for_the_end(request: web.Request) -> None:
    if request.path.endswith("/completions"):
        for _ in range(600):
            if request.transport is None or request.transport.is_closing():
                return
            await asyncio.sleep(0.02)


async def test_rules_answer_in_place_of_a_model_that_sends_nothing(serve: Serve) -> None:
    async with (
        model_endpoint(list_of("huge"), hold=wait_for_the_end) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="huge", llm_timeout_s=0.5, model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        reply = (await client.post("/v1/agent", json={"prompt": "What is 17.5 * 240?"})).json()
        assert "4200" in reply["response"]
        told = [one["message"] for one in reply["metadata"]["uncertainties"]]
        assert any(SLOW in message and "gave no answer within" in message for message in told), told
        assert SLOW in reply["metadata"]["runtime"]["planner"]["fallback_reason"]
        assert endpoint.paths.count("/v1/chat/completions") == 2, "asked once, and once more with twice the limit"

        endpoint.paths.clear()
        again = (await client.post("/v1/agent", json={"prompt": "What is 3 * 14?"})).json()
        assert "42" in again["response"]
        assert endpoint.paths.count("/v1/chat/completions") == 2, "the next run asks anew"


async def test_what_rules_cannot_answer_says_that_the_model_is_too_slow(serve: Serve) -> None:
    async with (
        model_endpoint(list_of("huge"), hold=wait_for_the_end) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="huge", llm_timeout_s=0.5, model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        reply = (await client.post("/v1/agent", json={"prompt": "Who was Napoleon?"})).json()
        assert reply["error"]["error_code"] == "ERR_MODEL_TIMEOUT"
        assert SLOW in reply["error"]["message"]
        assert endpoint.paths.count("/v1/chat/completions") == 2
