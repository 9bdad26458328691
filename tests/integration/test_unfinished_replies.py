"""Replies that ended before their end: readers learn that a part is missing, and who ended them."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.models import Room
from tests.integration.conftest import Serve
from tests.integration.test_engine import write_skill
from tests.integration.test_model_streams import ask, settings_for
from tests.integration.test_tailor import TRUE, ask_question
from tests.support.engine import engine_bench
from tests.support.raw_endpoint import DONE, STOP, chunk, raw_endpoint, say
from tests.support.script import plans, says, script

ABORTS = ["abort", "insufficient_system_resource", "network_error"]


async def ask_wholly(url: str, room: str = "chat", **body: Any) -> dict[str, Any]:
    """A completion with its run's part, as the door gives it."""
    asked = {"model": room, "messages": [{"role": "user", "content": "Tell me about trees"}], **body}
    async with httpx.AsyncClient(timeout=30) as client:
        whole: dict[str, Any] = (await client.post(f"{url}/v1/chat/completions", json=asked)).json()
    return whole


@pytest.mark.parametrize("reason", ABORTS)
@pytest.mark.parametrize("room", ["chat", "stepgate"])
async def test_half_an_answer_is_no_success(serve: Serve, reason: str, room: str) -> None:
    parts = [say("ANSWER\nTrees are tall"), say(" and"), chunk({}, reason), DONE]
    async with raw_endpoint(*parts) as endpoint, serve(**settings_for(endpoint)) as url:
        whole = await ask_wholly(url, room)
        streamed = await ask(url, stream=True, room=room)
    assert whole["choices"][0]["finish_reason"] == streamed["finish"] == "length"
    assert whole["stepgate"]["status"] == "partial"
    assert f"ended the reply early ({reason})" in whole["stepgate"]["reason"]
    assert any(reason in one["message"] for one in whole["stepgate"]["uncertainties"])


@pytest.mark.parametrize("reason", ["eos_token", "COMPLETE", "end_turn", "stop"])
async def test_a_whole_answer_is_one_under_any_name(serve: Serve, reason: str) -> None:
    async with raw_endpoint(say("Trees."), chunk({}, reason), DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        whole = await ask_wholly(url)
    assert (whole["choices"][0]["finish_reason"], whole["stepgate"]["status"]) == ("stop", "complete")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("sensitive", "content_filter"), ("refusal", "content_filter"), ("model_context_window_exceeded", "length")],
)
async def test_the_reasons_of_providers_have_openais_names(serve: Serve, reason: str, finish: str) -> None:
    async with raw_endpoint(say("Trees"), chunk({}, reason), DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        assert (await ask(url, stream=True))["finish"] == finish


@pytest.mark.parametrize("reason", ["length", "abort"])
async def test_the_cut_text_of_a_skill_is_reported(tmp_path: Path, reason: str) -> None:
    roots = write_skill(tmp_path / "skills", "summarise")
    model = script(
        plans({"tool": "summarise"}, {"tool": "completion"}),
        says("The first half of", to="skill", finish_reason=reason),
        says("It says the first half.", to="completion"),
    )
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots]) as bench:
        response = await bench.run("please summarise it")
    messages = [one["message"] for one in response.metadata["uncertainties"]]
    assert any("the text of summarise is incomplete" in message for message in messages)


@pytest.mark.parametrize("reason", ["length", "abort"])
async def test_an_answer_that_a_skill_was_cut_in_ends_so(tmp_path: Path, reason: str) -> None:
    roots = write_skill(tmp_path / "skills", "greet")
    model = script(says("Hello and", to="skill", finish_reason=reason))
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots], room=Room(id="g", skill="greet")) as bench:
        response = await bench.run("Greet me, please")
    assert response.metadata["truncated"] is True
    assert (response.metadata["status"] == "partial") is (reason == "abort")


async def test_an_answer_from_documents_that_was_broken_off_names_who_did(tmp_path: Path) -> None:
    response = await ask_question(tmp_path, says(f"{TRUE}\n\nHolidays are", to="completion", finish_reason="abort"))
    assert response.response.startswith(TRUE)
    assert "(abort)" in response.metadata["reason"]


CALL = {"index": 0, "id": "c1", "function": {"name": "browser.search", "arguments": '{"query": "trees"}'}}
MINE = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("tools", [{}, {"tools": [MINE]}])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_that_nobody_offered_reaches_no_client(serve: Serve, tools: Any, stream: bool) -> None:
    parts = [chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls"), DONE]
    async with raw_endpoint(*parts) as endpoint, serve(**settings_for(endpoint)) as url:
        answer = await ask(url, stream=stream, **tools)
        assert len(endpoint.bodies) == 2, "an empty reply is asked for once more"
    assert answer["finish"] != "tool_calls"
    assert "the model returned an empty reply" in answer["content"]


async def test_a_call_of_the_clients_tool_stays(serve: Serve) -> None:
    call = {**CALL, "function": {"name": "functions.mine", "arguments": "{}"}}
    foreign = {**CALL, "index": 1, "id": "c2"}
    parts = [chunk({"tool_calls": [call]}), chunk({"tool_calls": [foreign]}), chunk({}, "tool_calls"), DONE]
    async with raw_endpoint(*parts) as endpoint, serve(**settings_for(endpoint)) as url:
        choice = (await ask_wholly(url, tools=[MINE]))["choices"][0]
    assert [one["function"]["name"] for one in choice["message"]["tool_calls"]] == ["mine"]
    assert choice["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    "content",
    [
        [{"text": "Hi"}],
        ["Hi"],
        {"type": "text", "text": "Hi"},
        [{"type": None, "text": "H"}, "i"],
        [{"text": "Hi", "index": 0}],
    ],
    ids=json.dumps,
)
async def test_a_content_in_parts_is_their_text(serve: Serve, content: Any) -> None:
    piece = chunk({"content": content})
    async with raw_endpoint(piece, STOP, DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        assert (await ask(url, stream=True))["content"] == "Hi"
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
    async with raw_endpoint(json.dumps(reply).encode()) as endpoint, serve(**settings_for(endpoint)) as url:
        assert (await ask(url, stream=False))["content"] == "Hi"
