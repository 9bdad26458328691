"""Several changes that a small model makes one call a turn: one list, one question, made in order. The model is
scripted: it decides on one call at a time, as a real small one does, and lists the changes when it is asked to."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import Rule, Script, decides, says, script, wants
from tests.support.scripted_server import ScriptedServer
from tests.support.tool_scripts import ToolScript

TOOL = "convert_part_number"
REQUEST = "Make a room Parts, write a tool that converts A-12 to 12A, put it into use, and give it to the room"
PARTS = ["make a room Parts", "write a tool that converts A-12 to 12A", "put the tool into use", "give it to the room"]
MAKE = {"tool": "room_create", "inputs": {"name": "Parts"}}
WRITE = {"tool": "tool_generate", "inputs": {"description": "converts A-12 to 12A"}}
APPLY = {"tool": "tool_apply", "inputs": {"name": "$2"}}
GIVE = {"tool": "room_edit", "inputs": {"room_id": "$1", "field": "tools", "value": '["$3"]'}}
CHANGES = ("room_create", "tool_generate", "tool_apply", "room_edit")
WORKSHOP = """
id: workshop
name: Workshop
approval: side_effects
supervision: checks
memory: false
tools: [rooms_list, room_show, room_create, room_edit, room_delete, tool_generate, tool_apply, tools_list, current_time]
"""


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    """A folder with a room that has the studio's tools, and plans in rounds with a small model."""
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "workshop.yaml").write_text(WORKSHOP)
    return folder


def lists(*calls: dict[str, Any], **conditions: Any) -> Rule:
    """A rule: asked for all changes, the model lists these, one for each step."""
    changes = [{"for": number, **call} for number, call in enumerate(calls, start=1)]
    return says(json.dumps({"changes": changes}), to="planner", about="The user sees all changes", **conditions)


def plans_parts(*rules: Rule, listed: tuple[dict[str, Any], ...] = (MAKE, WRITE, APPLY, GIVE)) -> Script:
    """A model that names the steps of the request and calls the tool of the first one."""
    first = decides(MAKE, missing=PARTS[: len(listed)], times=1)
    answer = says("It is done as asked.", to="completion")
    return script(wants(*CHANGES), lists(*listed, times=1), *rules, first, decides(), answer, *ToolScript().rules())


class Door:
    """A client at one door, in one conversation."""

    def __init__(self, client: httpx.AsyncClient, door: str) -> None:
        self._client = client
        self._door = door
        self._messages: list[dict[str, str]] = []
        self.asked: list[str] = []
        """The questions about approval so far."""

    async def say(self, text: str) -> dict[str, Any]:
        """Sends a message; a reply to the question if one is open. Gives the answer with its status."""
        before = [*self._messages]
        self._messages.append({"role": "user", "content": text})
        if self._door == "/v1/chat/completions":
            body = {"model": "workshop", "messages": self._messages}
            response = (await self._client.post(self._door, json=body)).json()
            answer = response["choices"][0]["message"]["content"]
        else:
            body = {"prompt": text, "room": "workshop", "messages": before}
            response = (await self._client.post(self._door, json=body)).json()
            answer = response["response"]
        self._messages.append({"role": "assistant", "content": answer})
        if response["metadata"]["status"] == "awaiting_approval":
            self.asked.append(answer)
        return {"answer": answer, "status": response["metadata"]["status"], "metadata": response["metadata"]}


Run = Callable[[Script], Awaitable[None]]


async def read_tools(client: httpx.AsyncClient, room: str = "parts") -> Any:
    return (await client.get(f"/v1/rooms/{room}")).json()["room"]["tools"]


@pytest.mark.row("S002-24", "S002-27", "S002-29")
@pytest.mark.parametrize("door", ["/v1/chat/completions", "/v1/agent"])
async def test_a_room_a_tool_for_it_and_its_use_are_one_question(
    serve: Serve, rooms: Path, model_server: ScriptedServer, door: str
) -> None:
    """The code, which is written later, is asked about once when it is there."""
    async with (
        serve(plans_parts(), rooms_dir=rooms, model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        talk = Door(client, door)
        asked = await talk.say(REQUEST)
        assert asked["status"] == "awaiting_approval", asked
        assert all(f"{number}. `{tool}`" in asked["answer"] for number, tool in enumerate(CHANGES, start=1)), asked
        assert (await client.get("/v1/rooms/parts")).status_code == 404, "nothing is made before"
        code = await talk.say("approve")
        assert code["status"] == "awaiting_approval", code
        assert "async def convert_part_number" in code["answer"]
        assert "`tool_generate`): done" in code["answer"], "it says what was made"
        assert "`room_edit`): waits" in code["answer"]
        done = await talk.say("approve " + " ".join(code["metadata"]["approvals"]))
        assert await read_tools(client) == [TOOL]
    assert done["status"] == "complete", done
    assert all(f"{number}. {part}" in done["answer"] for number, part in enumerate(PARTS, start=1))
    assert done["answer"].count(": done") == len(PARTS)
    assert len(talk.asked) == 2
