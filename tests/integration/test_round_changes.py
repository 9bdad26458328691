"""Several changes that a small model makes one call a turn: one list, one question, made in order. The model is
scripted: it decides on one call at a time, as a real small one does, and lists the changes when it is asked to."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.models import AgentRequest, Room
from tests.integration.conftest import Serve
from tests.support.change_crash_worker import change_bench, list_made
from tests.support.engine import engine_bench
from tests.support.processes import GatewayProcess, start
from tests.support.script import Rule, Script, decides, says, script, wants
from tests.support.scripted_server import ScriptedServer
from tests.support.tool_scripts import WRITES_TESTS, ToolScript
from tests.support.tools import EFFECT, FunctionTool, returning

TOOL = "convert_part_number"
JSON = {"accept": "application/json"}
REQUEST = "Make a room Parts, write a tool that converts A-12 to 12A, put it into use, and give it to the room"
PARTS = ["make a room Parts", "write a tool that converts A-12 to 12A", "put the tool into use", "give it to the room"]
MAKE = {"tool": "room_create", "inputs": {"name": "Parts"}}
WRITE = {"tool": "tool_generate", "inputs": {"description": "converts A-12 to 12A"}}
APPLY = {"tool": "tool_apply", "inputs": {"name": "$2"}}
GIVE = {"tool": "room_edit", "inputs": {"room_id": "$1", "field": "tools", "value": '["$3"]'}}
COPY = {"tool": "room_copy", "inputs": {"room_id": "nowhere", "name": "Spares"}}
SHOW = {"tool": "room_edit", "inputs": {"room_id": "$1", "field": "description", "value": "ours"}}
CHANGES = ("room_create", "tool_generate", "tool_apply", "room_edit")
WORKSHOP = """
id: workshop
name: Workshop
approval: side_effects
supervision: checks
memory: false
tools: [rooms_list, room_show, room_create, room_edit, room_copy, tool_generate, tool_apply, tools_list, current_time]
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


def names(parts: list[str], *rules: Rule, listed: tuple[dict[str, Any], ...], first: dict[str, Any] = MAKE) -> Script:
    """A model that names the steps of the request, calls the tool of the first one, and lists the changes when it is
    asked for all. `rules` say what it does afterwards."""
    begins = decides(first, missing=parts, times=1)
    answer = says("It is done as asked.", to="completion")
    return script(
        wants(*CHANGES, "room_copy"), lists(*listed, times=1), begins, *rules, decides(), answer, *ToolScript().rules()
    )


WHOLE = names(PARTS, listed=(MAKE, WRITE, APPLY, GIVE))


class Door:
    """A client at one door, in one conversation."""

    def __init__(self, client: httpx.AsyncClient, door: str) -> None:
        self.client = client
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
            response = (await self.client.post(self._door, json=body)).json()
            answer = response["choices"][0]["message"]["content"]
        else:
            body = {"prompt": text, "room": "workshop", "messages": before}
            response = (await self.client.post(self._door, json=body)).json()
            answer = response["response"]
        self._messages.append({"role": "assistant", "content": answer})
        if response["metadata"]["status"] == "awaiting_approval":
            self.asked.append(answer)
        return {"answer": answer, **response["metadata"]}

    async def approve(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Says yes to a question."""
        assert asked["status"] == "awaiting_approval", asked
        return await self.say("approve")


async def read_tools(talk: Door, room: str = "parts") -> Any:
    return (await talk.client.get(f"/v1/rooms/{room}")).json()["room"]["tools"]


@pytest.fixture(params=["/v1/chat/completions", "/v1/agent"])
def door(request: pytest.FixtureRequest) -> str:
    """Both doors."""
    return str(request.param)


@asynccontextmanager
async def talking(serve: Serve, rooms: Path, model: Script, door: str = "/v1/agent") -> AsyncIterator[Door]:
    """A conversation with a gateway whose model is small."""
    async with (
        serve(model, rooms_dir=rooms, model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        yield Door(client, door)


@pytest.mark.row("S002-24", "S002-27", "S002-29")
async def test_a_room_a_tool_for_it_and_its_use_are_one_question(serve: Serve, rooms: Path, door: str) -> None:
    """The code, which is written later, is asked about once when it is there."""
    async with talking(serve, rooms, WHOLE, door) as talk:
        asked = await talk.say(REQUEST)
        assert asked["status"] == "awaiting_approval", asked
        assert all(f"{number}. `{tool}`" in asked["answer"] for number, tool in enumerate(CHANGES, start=1)), asked
        assert (await talk.client.get("/v1/rooms/parts")).status_code == 404, "nothing is made before"
        code = await talk.approve(asked)
        assert code["status"] == "awaiting_approval", code
        assert "async def convert_part_number" in code["answer"]
        assert "(`tool_generate`): done" in code["answer"], "it says what was made"
        assert "(`room_edit`): waits" in code["answer"]
        done = await talk.approve(code)
        assert await read_tools(talk) == [TOOL]
    assert done["status"] == "complete", done
    assert all(f"{number}. {part}" in done["answer"] for number, part in enumerate(PARTS, start=1))
    assert done["answer"].count(": done") == len(PARTS)
    assert len(talk.asked) == 2


@pytest.mark.row("S002-31")
async def test_a_no_to_the_question_begins_nothing(serve: Serve, rooms: Path, door: str) -> None:
    async with talking(serve, rooms, WHOLE, door) as talk:
        await talk.say(REQUEST)
        done = await talk.say("/reject not today")
        assert (await talk.client.get("/v1/rooms/parts")).status_code == 404
    assert done["status"] == "cancelled", done
    assert "not today" in done["answer"]
    assert done["answer"].count(": not begun") == len(PARTS)
    assert len(talk.asked) == 1


@pytest.mark.row("S002-29", "S002-31")
async def test_a_no_to_the_code_ends_the_list_and_is_asked_about_no_more(serve: Serve, rooms: Path, door: str) -> None:
    """What was to follow is settled with it: a model that is asked for it would call it without what it needs."""
    give = {"tool": "room_edit", "inputs": {"room_id": "parts", "field": "description", "value": "ours"}}
    model = names(PARTS, decides(give, missing=PARTS[-1:]), listed=(MAKE, WRITE, APPLY, GIVE))
    async with talking(serve, rooms, model, door) as talk:
        await talk.approve(await talk.say(REQUEST))
        done = await talk.say("/reject it is ugly")
        assert await read_tools(talk) is None
    assert done["status"] == "partial", done
    outcomes = [
        line.rpartition("): ")[2] for line in done["answer"].splitlines() if line[:3] in ("1. ", "2. ", "3. ", "4. ")
    ]
    assert [one.partition(" (")[0] for one in outcomes] == ["done", "done", "not allowed", "not begun"], done["answer"]
    assert len(talk.asked) == 2


THREE = ["make a room Parts", "copy the room nowhere to Spares", "describe the room as ours"]
COPYING = "Make a room Parts, copy the room nowhere to Spares, and describe the room as ours"


@pytest.mark.row("S002-29", "S002-30")
async def test_a_failure_in_the_middle_names_what_was_made(serve: Serve, rooms: Path, door: str) -> None:
    async with talking(serve, rooms, names(THREE, listed=(MAKE, COPY, SHOW)), door) as talk:
        done = await talk.approve(await talk.say(COPYING))
        assert (await talk.client.get("/v1/rooms/parts")).json()["room"]["description"] != "ours"
    assert done["status"] == "partial", done
    assert "1. make a room Parts (`room_create`): done" in done["answer"]
    assert "(`room_copy`): not done (there is no room named" in done["answer"]
    assert "(`room_edit`): not begun" in done["answer"]
    assert len(talk.asked) == 1, "nothing else is asked"


async def test_a_corrected_change_is_asked_about_with_those_that_follow(serve: Serve, rooms: Path) -> None:
    corrected = {"tool": "room_copy", "inputs": {"room_id": "parts", "name": "Spares"}}
    described = {"tool": "room_edit", "inputs": {"room_id": "parts", "field": "description", "value": "ours"}}
    again = lists(corrected, described, times=1)
    model = names(THREE, decides(corrected, missing=THREE[1:2], times=1), again, listed=(MAKE, COPY, SHOW))
    async with talking(serve, rooms, model) as talk:
        asked = await talk.approve(await talk.say(COPYING))
        assert asked["status"] == "awaiting_approval", asked
        assert "1. `room_copy`" in asked["answer"]
        assert "2. `room_edit`" in asked["answer"]
        done = await talk.approve(asked)
        assert (await talk.client.get("/v1/rooms/parts")).json()["room"]["description"] == "ours"
        assert (await talk.client.get("/v1/rooms/spares")).status_code == 200
    assert done["status"] == "complete", done
    assert done["answer"].count(": done") == len(THREE), done["answer"]
    assert len(talk.asked) == 2


@pytest.mark.row("S002-28")
async def test_killed_between_two_changes_the_list_goes_on(tmp_path: Path) -> None:
    """The first is not made twice, and nothing is asked again."""
    process = start([sys.executable, "-m", "tests.support.change_crash_worker", str(tmp_path)])
    assert process.wait(60) == -signal.SIGKILL, process.output
    assert list_made(tmp_path) == ["make"], "it died between the first change and the second"
    async with change_bench(tmp_path) as bench:
        await bench.service.worker.recover_runs()
        (row,) = await bench.service.list_runs()
        done = await bench.service.wait_for_response(row.run_id)
    assert done.metadata["status"] == "complete", done
    assert list_made(tmp_path) == ["make", "write", "give"]
    assert done.response.count(": done") == 3


@pytest.mark.row("S002-28")
async def test_killed_within_a_change_what_became_of_it_is_told(
    rooms: Path, tmp_path: Path, model_server: ScriptedServer, door: str
) -> None:
    """Nobody knows whether it was made: it is not made again, and those that were to follow are not begun."""
    hanging = says("{}", to="tool", about=WRITES_TESTS, fault="hang", times=1)
    model_server.load(Script([hanging, *WHOLE.rules]))
    options = {"llm_base_url": model_server.url, "model_fast": "small", "model_high": "large"}
    options |= {"rooms_dir": str(rooms), "model_profile": "small"}
    with GatewayProcess(tmp_path / "data", **options) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=60) as client:
            asked = await Door(client, door).say(REQUEST)
            run = f"/v1/runs/{asked['run_id']}"
            waiting = (await client.get(run)).json()["response"]["metadata"]["approvals"]
            ids = [one["approval_id"] for one in waiting]
            assert (await client.post(f"{run}/approve", json={"approvals": ids})).is_success
            await asyncio.to_thread(model_server.wait_for, "tool")
    with GatewayProcess(tmp_path / "data", **options) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=60) as client, asyncio.timeout(30):
            while (shown := (await client.get(run)).json())["status"] in ("queued", "running"):  # noqa: ASYNC110 - the run goes on by itself
                await asyncio.sleep(0.05)
            log = (await client.get(f"{run}/events", headers=JSON)).json()["data"]
    assert shown["status"] == "partial", shown
    assert [one["data"]["tool"] for one in log if one["type"] == "tool.called"] == ["room_create", "tool_generate"]
    answer = shown["response"]["response"]
    assert "(`room_create`): done" in answer
    assert "(`tool_generate`): not done (" in answer
    assert "may or may not have happened" in answer
    assert answer.count(": not begun") == 2


async def test_another_request_beside_the_changes_is_answered_too(serve: Serve, rooms: Path, door: str) -> None:
    """A call that reads is no part of the list."""
    clock = {"tool": "current_time", "inputs": {}}
    parts = [*THREE[::2], "find out the time"]
    model = names(parts, decides(clock, missing=parts[-1:], times=1), listed=(MAKE, SHOW))
    async with talking(serve, rooms, model, door) as talk:
        asked = await talk.say("Make a room Parts, describe the room as ours, and find out the time")
        assert "current_time" not in asked["answer"]
        done = await talk.approve(asked)
        log = (await talk.client.get(f"/v1/runs/{done['run_id']}/events", headers=JSON)).json()["data"]
    assert done["status"] == "complete", done
    assert [one["data"]["tool"] for one in log if one["type"] == "tool.called"] == [
        "room_create", "room_edit", "current_time",
    ]  # fmt: skip
    assert len(talk.asked) == 1


async def test_changes_wait_together_for_what_is_read_beside_one(serve: Serve, rooms: Path) -> None:
    """A change that has all of its values would else be asked about by itself."""
    clock = {"tool": "current_time", "inputs": {}}
    parts = ["find out the time", *THREE[::2]]
    first = decides(clock, MAKE, missing=parts, times=1)
    model = script(
        wants(*CHANGES), lists(MAKE, SHOW, times=1), first, decides(MAKE, missing=parts[1:2], times=1), decides(),
        says("It is nine.", to="completion"),
    )  # fmt: skip
    async with talking(serve, rooms, model) as talk:
        asked = await talk.say("Find out the time, make a room Parts, and describe the room as ours")
        assert "1. `room_create`" in asked["answer"]
        assert "2. `room_edit`" in asked["answer"]
        done = await talk.approve(asked)
        assert (await talk.client.get("/v1/rooms/parts")).json()["room"]["description"] == "ours"
    assert done["status"] == "complete", done
    assert len(talk.asked) == 1


async def test_changes_that_are_decided_on_with_a_look_are_one_question(serve: Serve, rooms: Path) -> None:
    """Nothing that is read can make them others, and no further decision is needed."""
    sales = {"tool": "room_create", "inputs": {"name": "Sales"}}
    parts = ["find out the time", "make a room Parts", "make a room Sales"]
    first = decides({"tool": "current_time", "inputs": {}}, MAKE, sales, missing=parts, times=1)
    model = script(wants("room_create"), first, decides(), says("It is nine.", to="completion"))
    async with talking(serve, rooms, model) as talk:
        asked = await talk.say("Find out the time, and make the rooms with the name Parts and the name Sales")
        assert asked["answer"].count("`room_create`") == 2, asked
        done = await talk.approve(asked)
    assert done["status"] == "complete", done
    assert len(talk.asked) == 1


async def test_changes_of_two_rooms_keep_their_rooms(serve: Serve, rooms: Path, door: str) -> None:
    second = {"tool": "room_create", "inputs": {"name": "Sales"}}
    tools = {"tool": "room_edit", "inputs": {"room_id": "$2", "field": "tools", "value": '["calculator"]'}}
    parts = ["make a room Parts", "make a room Sales", "give the room Sales the calculator", "describe the room Parts"]
    model = names(parts, listed=(MAKE, second, tools, SHOW))
    async with talking(serve, rooms, model, door) as talk:
        asked = await talk.say("Make the rooms Parts and Sales, give Sales the calculator, and describe Parts as ours")
        assert "the result of step 2 (room\\_create)" in asked["answer"] or "step 2" in asked["answer"], asked["answer"]
        done = await talk.approve(asked)
        assert await read_tools(talk, "sales") == ["calculator"]
        assert await read_tools(talk) is None
        assert (await talk.client.get("/v1/rooms/parts")).json()["room"]["description"] == "ours"
    assert done["status"] == "complete", done
    assert len(talk.asked) == 1


async def test_a_reply_changes_the_list_before_anything_is_made(serve: Serve, rooms: Path) -> None:
    other = {"tool": "room_create", "inputs": {"name": "Spares"}}
    changed = decides(other, missing=THREE[:1], about="call it Spares", times=1)
    again = lists(other, SHOW, times=1)
    model = names(THREE[::2], again, listed=(MAKE, SHOW))
    model = script(changed, *model.rules)
    async with talking(serve, rooms, model) as talk:
        await talk.say("Make a room Parts, and describe the room as ours")
        asked = await talk.say("call it Spares")
        assert asked["status"] == "awaiting_approval", asked
        done = await talk.approve(asked)
        assert (await talk.client.get("/v1/rooms/spares")).json()["room"]["description"] == "ours"
        assert (await talk.client.get("/v1/rooms/parts")).status_code == 404
    assert done["status"] == "complete", done


async def test_a_reply_may_leave_a_change_out(serve: Serve, rooms: Path) -> None:
    """It is then neither open nor undone."""
    changed = decides(MAKE, missing=THREE[:1], about="leave the description", times=1)
    model = script(changed, *names(THREE[::2], decides(), lists(MAKE, times=1), listed=(MAKE, SHOW)).rules)
    async with talking(serve, rooms, model) as talk:
        await talk.say("Make a room Parts, and describe the room as ours")
        asked = await talk.say("leave the description as it is")
        assert "`room_edit`" not in asked["answer"], asked
        done = await talk.approve(asked)
    assert done["status"] == "complete", done
    assert "not begun" not in done["answer"]


async def test_an_edited_plan_has_the_outcomes_of_its_own_steps(tmp_path: Path) -> None:
    tools = make_shop()
    sell = {"tool": "sell_card", "inputs": {"member_id": "$1", "price": "$2"}}
    model = script(
        wants("add_member", "sell_card"), lists(ADD, sell, times=1), decides(ADD, missing=CLUB, times=1), decides(),
        says("Done.", to="completion"),
    )  # fmt: skip
    room = Room(id="test", approval="side_effects", supervision="checks")
    async with engine_bench(tmp_path, model, tools=tools, room=room, model_profile="small") as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="Add the member Ann, and sell her a card for $2"))
        asked = await bench.service.wait_for_response(run_id)
        first = asked.metadata["plan"]["steps"][0]
        edited = {**asked.metadata["plan"], "steps": [{**first, "args": {"name": "Bo"}}]}
        decided = await bench.service.submit_decision(run_id, "approve", plan=edited)
        done = await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)
    assert tools[0].calls == [{"name": "Bo"}]
    assert "1. add the member Ann (`add_member`): done" in done.response
    assert "sell_card" not in done.response
    assert done.metadata["status"] == "complete"


async def test_a_request_in_another_language_is_one_question_too(serve: Serve, rooms: Path) -> None:
    parts = ["den Raum Parts anlegen", "den Raum als unseren beschreiben"]
    show = {"tool": "room_edit", "inputs": {"room_id": "$1", "field": "description", "value": "unserer"}}
    async with talking(serve, rooms, names(parts, listed=(MAKE, show))) as talk:
        asked = await talk.say("Lege bitte den Raum Parts an und beschreibe ihn danach als unserer")
        assert "2. `room_edit`" in asked["answer"], asked
        done = await talk.approve(asked)
    assert done["status"] == "complete", done
    assert "2. den Raum als unseren beschreiben (`room_edit`): erledigt" in done["answer"], done
    assert len(talk.asked) == 1


async def test_a_stream_ends_with_the_outcomes(serve: Serve, rooms: Path) -> None:
    async with talking(serve, rooms, names(THREE[::2], listed=(MAKE, SHOW))) as talk:
        request = "Make a room Parts, and describe the room as ours"
        body = {"model": "workshop", "messages": [{"role": "user", "content": request}]}
        asked = (await talk.client.post("/v1/chat/completions", json=body)).json()["choices"][0]["message"]["content"]
        spoken = [*body["messages"], {"role": "assistant", "content": asked}, {"role": "user", "content": "approve"}]
        answer = ""
        async with talk.client.stream(
            "POST", "/v1/chat/completions", json={**body, "messages": spoken, "stream": True}
        ) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    choices = json.loads(line.removeprefix("data: ")).get("choices") or [{}]
                    answer += choices[0].get("delta", {}).get("content") or ""
    assert answer.startswith("It is done as asked.")
    assert answer.endswith("2. describe the room as ours (`room_edit`): done")


@pytest.mark.parametrize(
    ("approval", "parts"),
    [("side_effects", THREE[:1]), ("never", THREE[::2]), ("side_effects", ["make a room Parts", "say it"])],
)
async def test_one_change_and_a_room_that_asks_for_none_cost_nothing_more(
    serve: Serve, rooms: Path, model_server: ScriptedServer, approval: str, parts: list[str]
) -> None:
    (rooms / "workshop.yaml").write_text(WORKSHOP.replace("side_effects", approval))
    async with talking(serve, rooms, names(parts, listed=(MAKE, SHOW))) as talk:
        await talk.say("Make a room Parts")
    assert not any("The user sees all changes" in str(one["body"]["messages"]) for one in model_server.requests())


THING = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
MEMBER = {
    "properties": {"member_id": {"type": "integer"}, "price": {"type": "string"}},
    "required": ["member_id", "price"],
}


def make_shop(*, tells_id: bool = True) -> list[FunctionTool]:
    """A server whose `add_member` makes the number that `sell_card` takes."""
    declared: dict[str, Any] = {"type": "object", "properties": {"member_id": {"type": "integer"}}}
    options: dict[str, Any] = {"annotations": EFFECT, "origin": "mcp:club"}
    output = {"output_schema": declared} if tells_id else {}
    return [
        returning("add_member", {"member_id": 7}, **THING, **output, **options),
        returning("sell_card", "sold", **MEMBER, **options),
    ]


CLUB = ["add the member Ann", "sell her a card for $2"]
ADD = {"tool": "add_member", "inputs": {"name": "Ann"}}


async def ask_club(
    tmp_path: Path, second: dict[str, Any], **options: Any
) -> tuple[list[dict[str, Any]], list[FunctionTool]]:
    """The items of the first question, and the tools after it is approved, for a request to a club's server."""
    tools = make_shop(**options)
    model = script(
        wants("add_member", "sell_card"), lists(ADD, second, times=1), decides(ADD, missing=CLUB, times=1), decides(),
        says("Done.", to="completion"),
    )  # fmt: skip
    room = Room(id="test", approval="side_effects", supervision="checks")
    async with engine_bench(tmp_path, model, tools=tools, room=room, model_profile="small") as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="Add the member Ann, and sell her a card for $2"))
        asked = await bench.service.wait_for_response(run_id)
        decided = await bench.service.submit_decision(run_id, "approve")
        await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)
    items: list[dict[str, Any]] = asked.metadata["approvals"][0]["items"]
    return items, tools


async def test_a_number_may_be_what_an_earlier_change_makes(tmp_path: Path) -> None:
    """An amount of the request is none: `$2` there is money."""
    sell = {"tool": "sell_card", "inputs": {"member_id": "$1", "price": "$2"}}
    items, (_, card) = await ask_club(tmp_path, sell)
    assert [item["tool"] for item in items] == ["add_member", "sell_card"]
    assert items[1]["args"]["price"] == "$2"
    assert card.calls == [{"member_id": 7, "price": "$2"}]


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"member_id": "$1", "price": "$2"}, {"tells_id": False}),  # nobody knows where its result has the number
        ({"member_id": 9, "price": "$2"}, {}),  # nobody gave it
        ({"member_id": "$3", "price": "$2"}, {}),  # there is no third
        ({"member_id": "Ann", "price": "$2"}, {}),  # the tool takes a number
        ({"member_id": "$1", "price": "$2 for $1"}, {}),  # a text is written once its result is known
    ],
)
async def test_a_change_without_its_values_is_decided_on_when_they_are_known(
    tmp_path: Path, inputs: dict[str, Any], options: dict[str, Any]
) -> None:
    items, (member, _) = await ask_club(tmp_path, {"tool": "sell_card", "inputs": inputs}, **options)
    assert [item["tool"] for item in items] == ["add_member"]
    assert member.calls == [{"name": "Ann"}]


async def test_looks_of_a_server_that_nobody_vouches_for_are_no_changes(tmp_path: Path) -> None:
    """It says of its tools that they only read: they are asked about as reads, and are not made one after the other."""
    tide = returning("sea__tide", RuntimeError("no tide in Bern"), "high", annotations=EFFECT, read_claim="sea")
    looks = [{"tool": tide.spec.name, "inputs": {"x": place}} for place in ("Bern", "Brest")]
    model = script(
        decides(*looks, missing=["the tide in Bern", "the tide in Brest"], times=1), decides(), says("High.")
    )
    async with engine_bench(tmp_path, model, tools=[tide], model_profile="small") as bench:
        response = await bench.run("Get the tide in Bern, get the tide in Brest", interactive=False)
        asked = [str(request["body"]["messages"][-1]["content"]) for request in bench.client.requests]
    assert not any("The user sees all changes" in text for text in asked)
    assert "1. the tide" not in response.response
