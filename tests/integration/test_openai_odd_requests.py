"""Requests that OpenAI's own endpoint answers although they look odd, through the official SDK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.integration.conftest import Serve
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer

LONG_ID = "call_" + "x" * 600
IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "instructions only": [{"role": "system", "content": "Say hello."}],
    "a developer only": [{"role": "developer", "content": "Say hello."}],
    "an empty answer": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "again"},
    ],
    "no content at all": [
        {"role": "user", "content": "hi"},
        {"role": "assistant"},
        {"role": "user", "content": "again"},
    ],
    "names": [{"role": "user", "name": "ada", "content": "hi"}],
    "a very long id": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": LONG_ID, "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": LONG_ID, "content": "seen"},
    ],
}


@asynccontextmanager
async def connected(serve: Serve, tmp_path: Path) -> AsyncIterator[openai.AsyncOpenAI]:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "plain.yaml").write_text("planning: false\nvision: true\n")
    (rooms / "seeing.yaml").write_text("vision: true\nmemory: false\n")
    model = script(plans({"tool": "completion"}, times=1), says("Hello."))
    async with (
        serve(model, rooms_dir=rooms) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


async def ask(client: openai.AsyncOpenAI, room: str, messages: Any) -> str | None:
    completion = await client.chat.completions.create(model=room, messages=messages)
    return completion.choices[0].message.content


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_room_that_plans_answers(serve: Serve, tmp_path: Path, name: str) -> None:
    async with connected(serve, tmp_path) as client:
        assert await ask(client, "stepgate", HISTORIES[name]) == "Hello."


async def test_a_plain_room_passes_them_on(serve: Serve, tmp_path: Path, model_server: ScriptedServer) -> None:
    async with connected(serve, tmp_path) as client:
        for messages in HISTORIES.values():
            await ask(client, "plain", messages)
        await ask(client, "plain", [{"role": "user", "content": ""}])
        result = {"role": "tool", "tool_call_id": LONG_ID, "content": [{"type": "text", "text": "seen"}, IMAGE]}
        await ask(client, "plain", [*HISTORIES["a very long id"][:2], result])
        sent = [request["body"]["messages"] for request in model_server.requests()]
    alone, developer, empty, missing, named, long, blank, pictured = sent
    assert alone == [{"role": "system", "content": "Say hello."}]
    assert [message["content"] for message in developer] == ["Say hello."]
    assert empty == missing
    assert [message["role"] for message in empty] == ["user", "assistant", "user"]
    assert named == [{"role": "user", "name": "ada", "content": "hi"}]
    assert long[1]["tool_calls"][0]["id"] == long[2]["tool_call_id"] == LONG_ID
    assert [message["content"] for message in blank] == [""]
    assert pictured[2]["content"][1] == IMAGE


@pytest.mark.parametrize(("content", "code"), [(None, "invalid_type"), ([], "empty_array")])
@pytest.mark.parametrize("room", ["stepgate", "plain"])
async def test_a_user_must_send_something(
    serve: Serve, tmp_path: Path, room: str, content: list[str] | None, code: str
) -> None:
    async with connected(serve, tmp_path) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await ask(client, room, [{"role": "user", "content": content}])
    assert (caught.value.param, caught.value.code) == ("messages[0].content", code)


async def test_the_address_of_a_picture_may_stand_alone(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    picture = {"type": "image_url", "image_url": IMAGE["image_url"]["url"]}
    async with connected(serve, tmp_path) as client:
        await ask(client, "plain", [{"role": "user", "content": [{"type": "text", "text": "this?"}, picture]}])
        (request,) = model_server.requests()
    assert request["body"]["messages"][-1]["content"][1] == IMAGE


@pytest.mark.parametrize("room", ["seeing", "plain"])
async def test_pictures_keep_their_places_among_texts(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer, room: str
) -> None:
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    left, right = {"type": "text", "text": "Left,\nold:"}, {"type": "text", "text": "Right:"}
    parts = [IMAGE, left, other, IMAGE, right, other]
    pictures = {"role": "user", "content": parts}
    async with connected(serve, tmp_path) as client:
        await ask(client, room, [pictures])
        await ask(client, "plain", [pictures, {"role": "user", "content": "Which is older?"}])
        contents = [one["content"] for sent in model_server.requests() for one in sent["body"]["messages"]]
    assert [one for one in contents if isinstance(one, list)] == [parts, parts]


async def test_limits_and_numbers_are_read_as_other_programs_write_them(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    options: list[dict[str, Any]] = [
        {"max_tokens": -1, "seed": 7.0},
        {"max_tokens": 0, "top_k": 40.0},
        {"max_tokens": 100.0},
        {"tool_choice": ""},
    ]
    messages: Any = [{"role": "user", "content": "hi"}]
    async with connected(serve, tmp_path) as client:
        for chosen in options:
            await client.chat.completions.with_raw_response.create(
                model="plain",
                messages=messages,
                extra_body=chosen,
            )
        for refused in ({"max_tokens": -2}, {"max_tokens": 1.5}, {"max_tokens": True}, {"seed": "7"}):
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(
                    model="plain",
                    messages=messages,
                    extra_body=refused,
                )
        listed = (await client.get("/models/", cast_to=dict[str, Any]))["data"]
        sent = [request["body"] for request in model_server.requests()]
    limits = [body.get("max_tokens", body.get("max_completion_tokens")) for body in sent]
    assert limits == [None, None, 100, None]
    assert (sent[0]["seed"], sent[1]["top_k"]) == (7, 40)
    assert "plain" in {one["id"] for one in listed}


async def test_what_binds_an_answer_or_switches_thinking_off_reaches_the_model(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    bound: dict[str, Any] = {
        "guided_choice": ["a", "b"],
        "chat_template_kwargs": {"enable_thinking": False},
        "thinking": {"type": "disabled"},
        "grammar": 'root ::= "a"',
    }
    async with connected(serve, tmp_path) as client:
        reply = await client.chat.completions.with_raw_response.create(
            model="plain", messages=[{"role": "user", "content": "hi"}], extra_body={**bound, "api_base": "http://x"}
        )
        (request,) = model_server.requests()
    assert {name: request["body"].get(name) for name in bound} == bound
    assert "api_base" not in request["body"]
    assert reply.http_response.json()["stepgate"]["runtime"]["ignored_parameters"] == ["api_base"]


async def test_tools_that_may_not_be_called_now_are_still_sent(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    look: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    async with connected(serve, tmp_path) as client:
        for room in ("plain", "stepgate"):
            await client.chat.completions.create(
                model=room, messages=[{"role": "user", "content": "hi"}], tools=[look], tool_choice="none"
            )
        first = model_server.requests()[0]["body"]
    assert (first["tools"], first["tool_choice"]) == ([look], "none")


async def test_a_part_of_a_past_turn_that_cannot_be_read_is_named(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    audio: Any = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    data = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    past: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "Listen:"}, audio, {"type": "image", "source": data}]},
        {"role": "assistant", "content": "Heard."},
    ]
    async with connected(serve, tmp_path) as client:
        await ask(client, "plain", [*past, {"role": "user", "content": "And now?"}])
        with pytest.raises(openai.BadRequestError):
            await ask(client, "plain", [{"role": "user", "content": [audio]}])
        (request,) = model_server.requests()
    parts = request["body"]["messages"][0]["content"]
    assert [part.get("text", part.get("image_url", {}).get("url")) for part in parts] == [
        "Listen:\n[input_audio: not read]", "data:image/png;base64,iVBORw0KGgo=",
    ]  # fmt: skip


LOOK: dict[str, Any] = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", **LOOK, "strict": False},
        LOOK,
        {"name": "look", "description": "Looks.", "input_schema": LOOK["parameters"]},
        {"name": "look", "description": "Looks.", "inputSchema": LOOK["parameters"]},
    ],
    ids=["responses", "bare", "anthropic", "mcp"],
)
async def test_tools_in_the_forms_of_other_apis_reach_the_model(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer, tool: Any
) -> None:
    tools: list[Any] = [tool, {"type": "web_search"}]
    async with connected(serve, tmp_path) as client:
        await client.chat.completions.create(model="plain", messages=[{"role": "user", "content": "hi"}], tools=tools)
        (request,) = model_server.requests()
    nested, other = request["body"]["tools"]
    assert {key: nested["function"][key] for key in LOOK} == LOOK
    assert (nested["type"], other) == ("function", {"type": "web_search"})


@pytest.mark.parametrize(("sent", "passed"), [({"a": 1}, '{"a": 1}'), ("", "{}"), (None, "{}"), ("{broken", "{broken")])
async def test_a_past_call_has_its_type_and_arguments_as_text(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer, sent: Any, passed: str
) -> None:
    call = {"id": "c", "function": {"name": "look", "arguments": sent}}
    past: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "seen"},
    ]
    async with connected(serve, tmp_path) as client:
        await ask(client, "plain", past)
        (request,) = model_server.requests()
    (told,) = request["body"]["messages"][1]["tool_calls"]
    assert told == {"type": "function", "id": "c", "function": {"name": "look", "arguments": passed}}


async def test_thoughts_among_the_parts_of_an_answer_are_not_its_text(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    thoughts: list[Any] = [{"type": kind, kind: "hm"} for kind in ("reasoning", "thinking", "think")]
    answer: Any = {"role": "assistant", "content": [*thoughts, {"type": "text", "text": "Yes."}]}
    async with connected(serve, tmp_path) as client:
        await ask(client, "plain", [{"role": "user", "content": "hi"}, answer, {"role": "user", "content": "why?"}])
        (request,) = model_server.requests()
    assert request["body"]["messages"][1]["content"] == "Yes."
