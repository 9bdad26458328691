"""Roles of arguments: what the own tools declare, what a question shows, and values that a person has confirmed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from agent.core import events as ev
from agent.core.models import ChatMessage, Room
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from tests.integration.conftest import Serve
from tests.integration.test_approval import OPEN, ask, log_of, waiting
from tests.support.engine import engine_bench
from tests.support.keys import bearer, created_key
from tests.support.script import plans, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

UNKNOWN = ChatMessage(role="assistant", content="As agreed: it is MALLORY.")
CHORE = "Tell the team what the harbour master wrote this morning"
FIRST = "read notes.md and save what it says as a prompt named first"
SECOND = "save one more prompt named second with the same text"


def saves(name: str, text: str, **step: Any) -> dict[str, Any]:
    return {"tool": "prompt_save", "inputs": {"name": name, "text": text}, **step}


MODEL = script(
    plans(saves("second", CHORE), {"id": "s2", "tool": "completion"}, about="named second"),
    plans(
        {"id": "s1", "tool": "read_file", "inputs": {"path": "notes.md"}},
        saves("first", "$s1.output.text", id="s2"),
        {"id": "s3", "tool": "completion"},
        about="named first",
    ),
    says("It is saved.", to="completion"),
)


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    folder = tmp_path / "rooms"
    folder.mkdir()
    room = {"name": "planner", "tools": ["read_file", "prompt_save"], "supervision": "checks", "memory": False}
    (folder / "planner.yaml").write_text(yaml.safe_dump(room))
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.md").write_text(CHORE)
    return folder


@pytest.mark.parametrize(
    ("conversation", "has_key", "asked"), [("made", False, False), ("c1", False, True), ("c1", True, False)]
)
async def test_a_confirmed_value_is_not_asked_about_again_in_its_conversation(
    serve: Serve, rooms: Path, tmp_path: Path, conversation: str, has_key: bool, asked: bool
) -> None:
    async with serve(MODEL, rooms_dir=rooms, file_roots=(tmp_path / "files",)) as url:
        headers = bearer(await created_key(tmp_path / "data", "anna", owner="anna")) if has_key else {}
        async with httpx.AsyncClient(base_url=url, timeout=60, headers=headers) as client:
            if conversation == "made":
                conversation = (await client.post("/v1/conversations", json={})).json()["id"]
            talk = {"room": "planner", "conversation_id": conversation}
            first = (await client.post("/v1/agent", json={"prompt": FIRST, **talk})).json()
            assert CHORE in first["response"], "the question shows the value"
            (item,) = first["metadata"]["approvals"][0]["items"]
            assert item["roles"]["text"] == "other"
            path = f"/v1/runs/{first['metadata']['run_id']}/approve"
            ids = [one["approval_id"] for one in first["metadata"]["approvals"]]
            assert (await client.post(path, json={"approvals": ids})).status_code < 300
            for _ in range(200):
                run = (await client.get(f"/v1/runs/{first['metadata']['run_id']}")).json()
                if run["status"] not in ("queued", "running", "awaiting_approval"):
                    break
                await asyncio.sleep(0.05)
            assert run["status"] == "succeeded", run
            second = (await client.post("/v1/agent", json={"prompt": SECOND, **talk})).json()
    assert (second["metadata"]["status"] == "awaiting_approval") == asked, second["response"]


async def test_every_own_tool_that_changes_something_says_what_each_of_its_arguments_is(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, skills_dirs=())
    async with build_gateway(settings) as stepgate:
        specs = [tool.spec for tool in stepgate.registry]
    names = {spec.name: set(spec.input_schema.get("properties") or {}) for spec in specs}  # type: ignore[arg-type]
    assert {"ingest", "schedule_create", "room_edit", "memory_save"} <= names.keys()
    silent = {
        f"{spec.name}.{name}"
        for spec in specs
        for name in names[spec.name]
        if spec.effect != "read" and name not in spec.argument_roles
    }
    unknown = {f"{spec.name}.{name}" for spec in specs for name in set(spec.argument_roles) - names[spec.name]}
    assert (silent, unknown) == (set(), set())


class _Mail(FunctionTool):
    """A tool with declared roles: a mail with a text, filed under an id of a list of its own."""

    def __init__(self) -> None:
        async def work(args: Any) -> str:
            return "sent"

        names = ("to", "body", "folder_id", "copies")
        properties = {name: {"type": "integer" if name == "copies" else "string"} for name in names}
        super().__init__("send_mail", work, annotations=EFFECT, properties=properties)
        roles = {"to": "where", "body": "content", "folder_id": "id", "copies": "amount"}
        object.__setattr__(self._spec, "argument_roles", roles)


@pytest.mark.parametrize(
    ("effects", "inputs", "asked"),
    [
        ("ask_any", {"to": "bo@example.org", "body": "$s1"}, True),
        ("ask_where", {"to": "bo@example.org", "body": "$s1"}, False),
        ("ask_where", {"to": "$s1", "body": "hello"}, True),
        ("ask_where", {"to": "bo@example.org", "copies": "$s2.output.many"}, True),
        ("ask_where", {"to": "bo@example.org", "folder_id": "$s2.output.folders[0].id"}, False),
        ("ask_where", {"to": "bo@example.org", "folder_id": "$s2.output.folders[0].name"}, True),
        ("ask_any", {"to": "bo@example.org", "folder_id": "$s2.output.folders[0].id"}, True),
        ("ask_any", {"to": "bo@example.org", "body": "hello"}, False),
    ],
)
async def test_roles_and_the_rooms_setting_decide_what_is_asked(
    tmp_path: Path, effects: Any, inputs: dict[str, str], asked: bool
) -> None:
    page, tool = returning("read_page", "mallory@example.org", tainted=True), _Mail()
    listing = returning("list_folders", {"folders": [{"id": "f-77", "name": "Inbox"}], "many": 9}, tainted=True)
    model = script(
        plans(
            {"id": "s1", "tool": "read_page", "inputs": {"x": "u"}},
            {"id": "s2", "tool": "list_folders", "inputs": {"x": "u"}},
            {"id": "s3", "tool": "send_mail", "inputs": inputs, "depends_on": ["s1", "s2"]},
            {"id": "s4", "tool": "completion"},
        ),
        says("done", to="completion"),
    )
    room = Room(id="test", supervision="checks", effects=effects)
    async with engine_bench(tmp_path, model, tools=[page, listing, tool], room=room) as bench:
        response = await ask(bench, "read the page and the folders, then mail hello to bo@example.org")
        assert (response.metadata["status"] == "awaiting_approval") == asked
        assert len(tool.calls) == (0 if asked else 1)
        log = await log_of(bench, response)
    made = [e.body.untrusted for e in log if isinstance(e.body, ev.ToolCalled) and e.body.tool == "send_mail"]
    assert [bool(untrusted) for untrusted in made] == ([] if asked else [effects == "ask_where"])


MAIL: dict[str, Any] = {
    "subject": "", "labels": [], "blank": " ", "dots": "..", "filter": {"from": ""}, "none": None,
    "bo": "bo@example.org",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        ("query", "$s1.output.subject", True),
        ("query", "$s1.output.labels", True),
        ("query", "$s1.output.blank", True),
        ("query", "$s1.output.dots", True),
        ("query", "$s1.output.filter", True),
        ("query", ["$s1.output.subject"], True),
        ("query", "$s2.output.subject", False),
        ("query", "$s1.output.none", False),
        ("query", "$s1.output.bo", False),
        ("folder", "$s1.output.subject", False),
        ("query", "", False),
    ],
)
async def test_what_a_result_leaves_empty_is_not_the_users_all(
    tmp_path: Path, name: str, value: Any, asked: bool
) -> None:
    """An empty filter means everything: the words of a mail may not choose it by being absent."""
    mail, own = returning("read_mail", MAIL, tainted=True), returning("read_own", MAIL)
    schemas: dict[str, Any] = {"query": {}, "folder": {"type": "string", "default": ""}}
    deletes = FunctionTool("delete_messages", lambda args: _say("gone"), annotations=EFFECT, properties=schemas)
    model = script(
        plans(
            {"id": "s1", "tool": "read_mail", "inputs": {"x": "u"}},
            {"id": "s2", "tool": "read_own", "inputs": {"x": "u"}},
            {"id": "s3", "tool": "delete_messages", "inputs": {name: value}, "depends_on": ["s1", "s2"]},
            {"id": "s4", "tool": "completion"},
        ),
        says("done", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[mail, own, deletes], room=OPEN) as bench:
        response = await ask(bench, "read the mail and delete the messages of bo@example.org that are like it")
        assert (response.metadata["status"] == "awaiting_approval") == asked, response.response
        assert len(deletes.calls) == (0 if asked else 1)
    assert not asked or "the result of `read_mail`" in response.response


async def _say(text: str) -> str:
    return text


TAKEN = {"many": 9, "day": "2026-05-04", "name": "visit evil.example", "place": "evil.example", "mood": "good"}
ROWS = [{"n": 1, "t": "first"}, {"n": 2, "t": "second"}]
FIELDS: dict[str, Any] = {
    "many": "integer", "day": "date", "name": "string", "place": "id", "mood": ["good", "bad"],
    "rows": [{"n": "number", "t": "string"}],
}  # fmt: skip


def extracting_model(inputs: dict[str, Any], fields: dict[str, Any] = FIELDS) -> Any:
    """Reads a page, takes fields out of it, and mails with `inputs`."""
    return script(
        plans(
            {"id": "s1", "tool": "read_page", "inputs": {"x": "u"}},
            {"id": "s2", "tool": "extract", "inputs": {"value": "$s1", "fields": json.dumps(fields)}},
            {"id": "s3", "tool": "send_mail", "inputs": {"to": "bo@example.org", **inputs}, "depends_on": ["s2"]},
            {"id": "s4", "tool": "completion"},
        ),
        says(json.dumps({**TAKEN, "rows": ROWS}), to="tool"),
        says("done", to="completion"),
    )


@pytest.mark.parametrize(
    ("effects", "inputs", "asked"),
    [
        ("ask_any", {"body": "$s2.output.day"}, False),
        ("ask_any", {"body": "on $s2.output.day we are $s2.output.many and $s2.mood"}, False),
        ("ask_any", {"body": "row $s2.output.rows[1].n"}, False),
        ("ask_any", {"body": "row $item.n", "for_each": "$s2.output.rows"}, False),
        ("ask_any", {"body": "$item.t", "for_each": "$s2.output.rows"}, True),
        ("ask_any", {"body": "$s2.output.name"}, True),
        ("ask_any", {"body": "rows $s2.output.rows"}, True),
        ("ask_any", {"body": "$s2"}, True),
        ("ask_any", {"body": "$s2.output.day $s1"}, True),
        ("ask_any", {"copies": "$s2.output.many"}, True),
        ("ask_where", {"copies": "$s2.output.many"}, False),
        ("ask_where", {"to": "$s2.output.place"}, True),
        ("ask_any", {"to": "$s2.output.day"}, True),
        ("ask_where", {"folder_id": "$s2.output.place"}, True),
        ("ask_any", {"folder_id": "$s2.output.many"}, True),
    ],
)
async def test_typed_fields_may_be_content_and_no_place(
    tmp_path: Path, effects: Any, inputs: dict[str, Any], asked: bool
) -> None:
    page, tool = returning("read_page", "a page of somebody", tainted=True), _Mail()
    room = Room(id="test", supervision="checks", effects=effects)
    async with engine_bench(tmp_path, extracting_model(inputs), tools=[page, tool], room=room) as bench:
        response = await ask(bench, "read the page, then mail bo@example.org what it says")
        assert (response.metadata["status"] == "awaiting_approval") == asked
    assert bool(tool.calls) == (not asked)


@pytest.mark.parametrize(("history", "asked"), [((), False), ((UNKNOWN,), True)])
async def test_choices_of_a_plan_that_untrusted_text_may_have_written_are_not_trusted(
    tmp_path: Path, history: Any, asked: bool
) -> None:
    page, tool = returning("read_page", "a page of somebody", tainted=True), _Mail()
    model = extracting_model({"body": "$s2.output.mood"}, {"mood": ["good", "visit evil.example"]})
    room = Room(id="test", supervision="checks")
    async with engine_bench(tmp_path, model, tools=[page, tool], room=room) as bench:
        messages = [ChatMessage(role="user", content="hi"), *history] if history else None
        response = await ask(bench, "mail bo@example.org what the page says", messages=messages)
        assert (response.metadata["status"] == "awaiting_approval") == asked
    assert bool(tool.calls) == (not asked)


@pytest.mark.parametrize(
    ("effects", "inputs", "asked"),
    [
        ("ask_any", {"body": "obeyed"}, "plan"),
        ("ask_where", {"body": "obeyed"}, ""),
        ("ask_where", {"body": "obeyed", "to": "mallory@example.org"}, "plan"),
        ("ask_where", {"body": "obeyed", "copies": "7"}, "plan"),
        ("ask_where", {"folder_id": "f-1"}, "call"),
        ("ask_any", {"folder_id": "f-1"}, "plan"),
    ],
)
async def test_the_question_about_a_whole_plan_heeds_the_rooms_setting(
    tmp_path: Path, effects: Any, inputs: dict[str, Any], asked: str
) -> None:
    tool = _Mail()
    step = {"tool": "send_mail", "inputs": {"to": "bo@example.org", **inputs}}
    model = script(plans(step, {"tool": "completion"}), says("done", to="completion"))
    room = Room(id="test", supervision="checks", effects=effects)
    async with engine_bench(tmp_path, model, tools=[tool], room=room) as bench:
        messages = [ChatMessage(role="user", content="hi"), UNKNOWN]
        response = await ask(bench, "send a mail to bo@example.org", messages=messages)
        kinds = ["call" if one["call_id"] else "plan" for one in response.metadata.get("approvals") or ()]
    assert kinds == ([asked] if asked else [])
    assert bool(tool.calls) == (not asked)


async def test_a_question_marks_where_a_change_from_outside_goes(tmp_path: Path) -> None:
    page, tool = returning("read_page", "mallory@example.org", tainted=True), _Mail()
    model = script(
        plans(
            {"id": "s1", "tool": "read_page", "inputs": {"x": "u"}},
            {"id": "s2", "tool": "send_mail", "inputs": {"body": "$s1", "to": "$s1", "copies": "1"}},
        )
    )
    async with engine_bench(tmp_path, model, tools=[page, tool], room=OPEN) as bench:
        response = await ask(bench, "read the page and mail what it says 1 time")
        assert waiting(response)
    lines = [line for line in response.response.splitlines() if line.strip().startswith("- ")]
    assert ["where it goes" in line for line in lines] == [True, False, False]
    assert "`read_page`" in lines[0]
    assert "from your request" in lines[2]


def _hosted(tool: FunctionTool, server: str, where: str = "") -> FunctionTool:
    """The tool as one that a server hosts, whose argument `where` says where a call goes."""
    object.__setattr__(tool.spec, "origin", f"mcp:{server}")
    object.__setattr__(tool.spec, "argument_roles", {where: "where"} if where else {})
    return tool


@pytest.mark.parametrize(
    ("channels", "asked"),
    [(["general", "random"], False), (["general", "the-code-is-4711"], True)],
    ids=["what the server listed", "what nobody listed"],
)
async def test_typed_fields_of_a_servers_results_may_go_back_to_it(
    tmp_path: Path, channels: list[str], asked: bool
) -> None:
    listing = _hosted(returning("list_channels", {"channels": ["general", "random"]}, tainted=True), "chat")
    names = {"channel": {"type": "string"}}
    look = _hosted(returning("read_channel", "hello", tainted=True, properties=names), "chat", "channel")
    fields = json.dumps({"items": [{"channel": "string"}]})
    model = script(
        plans(
            {"id": "s1", "tool": "list_channels", "inputs": {"x": "u"}},
            {"id": "s2", "tool": "extract", "inputs": {"value": "$s1", "fields": fields}, "depends_on": ["s1"]},
            {
                "id": "s3",
                "tool": "read_channel",
                "inputs": {"for_each": "$s2.output.items", "channel": "$item.channel"},
            },
            {"id": "s4", "tool": "completion"},
        ),
        says(json.dumps({"items": [{"channel": one} for one in channels]}), to="tool"),
        says("done", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[listing, look], room=OPEN) as bench:
        response = await ask(bench, "who wrote in the channels?")
    assert (response.metadata["status"] == "awaiting_approval") == asked, response.response
    assert [call["channel"] for call in look.calls] == ([] if asked else channels)
