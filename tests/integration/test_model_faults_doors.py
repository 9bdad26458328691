"""A model that fails: each fault is an error of its own at the door, and only what may pass is tried again."""

from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

ASK = {"prompt": "Say something nice about boats and their crews.", "room": "chat"}


async def ask(serve: Serve, *rules: Any, **options: Any) -> httpx.Response:
    """The answer of a room that is a plain model."""
    async with serve(script(*rules), **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        return await client.post("/v1/agent", json=ASK)


@pytest.mark.row("S001-03")
@pytest.mark.parametrize(
    ("fault", "options", "status", "code"),
    [
        ("status_401", {}, 502, "ERR_MODEL_AUTH"),
        ("status_429", {}, 429, "ERR_MODEL_RATE_LIMIT"),
        ("status_400", {}, 400, "ERR_MODEL_REQUEST"),
        ("context", {}, 400, "ERR_MODEL_CONTEXT"),
        ("status_500", {}, 502, "ERR_MODEL_DOWN"),
        ("garbage_json", {}, 502, "ERR_MODEL"),
        ("hang", {"llm_timeout_s": 0.3}, 504, "ERR_MODEL_TIMEOUT"),
    ],
)
async def test_each_fault_is_its_own_error(
    serve: Serve, fault: Any, options: dict[str, Any], status: int, code: str
) -> None:
    retry_after = 0.01 if fault == "status_429" else None
    refused = await ask(serve, says("", fault=fault, retry_after=retry_after), **options)
    assert refused.status_code == status, refused.text
    failure = refused.json()["error"]
    assert failure["error_code"].startswith(code)
    assert failure["message"]


@pytest.mark.row("S001-04")
async def test_what_passes_is_tried_again_and_a_refused_key_is_not(serve: Serve, model_server: ScriptedServer) -> None:
    answer = await ask(serve, says("", fault="status_503", times=2), says("Boats are fine."))
    assert answer.json()["response"] == "Boats are fine.", answer.text
    assert len(model_server.requests()) == 3
    refused = await ask(serve, says("", fault="status_401", times=1), says("Boats are fine."))
    assert refused.status_code == 502, refused.text
    assert len(model_server.requests()) == 1
