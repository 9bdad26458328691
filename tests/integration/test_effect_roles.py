"""Roles of arguments: what the own tools declare, what a question shows, and values that a person has confirmed."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from agent.core import events as ev
from agent.core.models import Room
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from tests.integration.conftest import Serve
from tests.integration.test_approval import OPEN, ask, log_of, waiting
from tests.integration.test_keys import bearer, created_key
from tests.support.engine import engine_bench
from tests.support.script import plans, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

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
        headers = bearer(await created_key(tmp_path / "data", "anna", "--owner", "anna")) if has_key else {}
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
