"""Personal data over the turns of a conversation: models see placeholders, people, tools and their own store values."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.models import JsonObject, Room, RoomGuards
from tests.integration.conftest import Serve
from tests.support.engine import engine_bench
from tests.support.script import Call, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import returning

ANN, BOB = "anna.berg@example.com", "bob.lind@example.org"
PRIVATE = Room(id="test", supervision="checks", guard_input=RoomGuards(pii="redact"))


def sent_text(requests: list[dict[str, Any]]) -> str:
    return str([request["body"]["messages"] for request in requests])


@pytest.mark.row("S003-04", "S003-02")
async def test_the_second_turn_of_a_conversation_knows_the_first(serve: Serve, model_server: ScriptedServer) -> None:
    """The second prompt brings another address: it must not take the sign, nor the value, of the first one's."""
    model = script(
        says("I noted <EMAIL_1>.", to="completion", about="I am", times=1),
        says("You are <EMAIL_2>, and <EMAIL_1> is new.", to="completion"),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:

        async def ask(prompt: str) -> JsonObject:
            body = {"prompt": prompt, "conversation_id": "c1", "room": "stepgate"}
            answer: JsonObject = (await client.post("/v1/agent", json=body)).raise_for_status().json()
            return answer

        first = await ask(f"I am {ANN}, hello")
        second = await ask(f"And {BOB}: who is who?")
        asked = sent_text(model_server.requests())
        third = await ask("who is who?")
    assert first["response"] == f"I noted {ANN}."
    assert second["response"] == f"You are {ANN}, and {BOB} is new."
    assert ANN not in asked
    assert BOB not in asked
    assert third["response"] == f"You are {BOB}, and {ANN} is new.", "signs are given anew, in the order of the turns"


@pytest.mark.row("S003-04")
async def test_a_tool_gets_the_value_that_an_earlier_turn_named(tmp_path: Path) -> None:
    tool = returning("find_order", f"order 17 of {ANN}")
    model = script(
        answers("Noted.", times=1),
        plans({"tool": "find_order", "inputs": {"x": "<EMAIL_1>"}}, {"tool": "completion", "depends_on": ["s1"]}),
        says("It is order 17 of <EMAIL_1>.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[tool], room=PRIVATE) as bench:
        await bench.run(f"I am {ANN}", conversation_id="c")
        response = await bench.run("Please search for the order of my address and report it", conversation_id="c")
        asked = sent_text(bench.client.requests)
        stored = await bench.store.conversations.list_turns("local", "c")
    assert tool.calls == [{"x": ANN}]
    assert response.response == f"It is order 17 of {ANN}."
    assert ANN not in asked, "not in the tool's result either"
    assert [text for _, text in stored][:2] == [f"I am {ANN}", "Noted."]
    assert stored[-1][1] == f"It is order 17 of {ANN}."


async def test_a_sign_that_somebody_wrote_earlier_is_no_sign_of_ours(tmp_path: Path) -> None:
    history = ({"role": "user", "content": "what is <EMAIL_1>?"}, {"role": "assistant", "content": "A sign."})
    async with engine_bench(tmp_path, script(says("<EMAIL_#1> and <EMAIL_1>")), room=PRIVATE) as bench:
        response = await bench.run(f"and {ANN}?", messages=history)
        asked = sent_text(bench.client.requests)
    assert "<EMAIL_#1>" in asked
    assert response.response == f"<EMAIL_#1> and {ANN}"


async def test_what_is_remembered_across_conversations_holds_no_address(tmp_path: Path) -> None:
    room = PRIVATE.model_copy(update={"memory": True})
    async with engine_bench(tmp_path, script(says("I like <EMAIL_1> too.")), room=room) as bench:
        response = await bench.run(f"What is nice about {ANN}?", conversation_id="c")
        kept = await bench.engine.memory.list_newest("local", kind="exchange")
    assert response.response == f"I like {ANN} too."
    assert [memory.text for memory in kept] == ["What is nice about [EMAIL]?\nI like [EMAIL] too."]


async def test_the_clients_own_tools_get_the_value(serve: Serve, model_server: ScriptedServer) -> None:
    earlier = {"id": "c0", "type": "function", "function": {"name": "mail", "arguments": json.dumps({"to": BOB})}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [earlier]},
        {"role": "tool", "content": f"sent to {BOB}", "tool_call_id": "c0"},
        {"role": "user", "content": f"now mail {ANN}"},
    ]
    tool = {"type": "function", "function": {"name": "mail", "parameters": {"type": "object"}}}
    model = script(says(calls=(Call("mail", {"to": "<EMAIL_1>", "cc": "<EMAIL_2>"}),)))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        body = {"model": "chat", "messages": messages, "tools": [tool]}
        answer = (await client.post("/v1/chat/completions", json=body)).raise_for_status().json()
        asked = sent_text(model_server.requests())
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"to": ANN, "cc": BOB}
    assert ANN not in asked
    assert BOB not in asked
