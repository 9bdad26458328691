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
