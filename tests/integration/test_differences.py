"""docs/differences.md: what it says is here is here: addresses, commands, settings, files, SQL, names, Redis keys."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import typer.main

from agent.core.events import BODY_TYPES
from agent.core.failures import FAILURES
from agent.core.settings import Settings
from gateway.cli import app as stepgate_app
from gateway.cli.groups import DeferredCommand
from tests.integration.conftest import Serve
from tests.requirements import DEVIATIONS
from tests.support.redis_server import URL, own_prefix, watched_words
from tests.support.talks import papers, talk

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "differences.md"
PLACES = {"id": "none", "name": "work", "user_id": "u", "session_id": "s"}


def list_here() -> list[str]:
    """The right column of every table."""
    lines = PAGE.read_text("utf-8").splitlines()
    return [line.split("|")[2] for line in lines if line.startswith("| ") and not line.startswith("| ---")]


def find_named(pattern: str) -> set[str]:
    """What the right columns name in code, by a pattern for the whole of it."""
    coded = {one for cell in list_here() for one in re.findall(r"`([^`]+)`", cell)}
    return {one for one in coded if re.fullmatch(pattern, one)}


async def test_every_address_of_the_page_is_served(serve: Serve) -> None:
    named = find_named(r"(?:GET|POST|PATCH|DELETE) /[\w/{}.-]+")
    assert len(named) >= 15
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for one in sorted(named):
            method, path = one.split()
            address = re.sub(r"{(\w+)}", lambda found: PLACES[found[1]], path)
            response = await client.request(method, address, json={} if method in ("POST", "PATCH") else None)
            assert response.status_code not in (405, 501), one
            if response.status_code == 404:
                assert "no such" not in response.json()["error"]["message"].lower(), one
                assert response.json()["error"]["message"] != "Not Found", one


async def test_the_sql_of_the_page_runs_on_the_store_of_a_gateway(serve: Serve, tmp_path: Path) -> None:
    named = find_named(r"SELECT .+")
    assert len(named) >= 4
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        task = (await client.post("/tasks", json={"prompt": "Summarise this: the invoices were sent."})).json()[
            "task_id"
        ]
        await client.post(f"/tasks/{task}/run")
        (path,) = (tmp_path / "data").glob("*.db")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
            for statement in named:
                rows = store.execute(statement.replace("task_none", task)).fetchall()
                assert rows or "conversation" in statement, statement


def test_the_commands_of_the_page_are_there() -> None:
    named = find_named(r"stepgate .+")
    assert len(named) >= 6
    for one in named:
        command: Any = typer.main.get_command(stepgate_app)
        for word in one.split()[1:]:
            if word.startswith("-") or word.isdigit():
                continue
            command = command.load() if isinstance(command, DeferredCommand) else command
            command = command.commands.get(word)
            assert command is not None, one


def test_the_make_targets_of_the_page_are_there() -> None:
    targets = {one.split()[1] for one in find_named(r"make [a-z].*")}
    assert len(targets) >= 2
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert [one for one in targets if f"\n{one}:" not in makefile] == []


def test_the_settings_and_the_files_of_the_page_are_there() -> None:
    settings = find_named(r"AGENT_[A-Z_]+")
    assert len(settings) >= 5
    known = {f"AGENT_{name.upper()}" for name in Settings.model_fields}
    assert settings - known == set()
    files = find_named(r"(?:agent|gateway|docs)/[\w/.]+")
    assert len(files) >= 8
    assert [one for one in files if not (ROOT / one).exists()] == []


async def test_the_tools_and_the_schemas_of_the_page_are_listed(serve: Serve) -> None:
    cells = list_here()
    tools = {
        one for cell in cells for run in re.findall(r"the tools? ((?:`\w+`(?:, )?)+)", cell) for one in run.split("`")
    }
    tools = {one for one in tools if re.fullmatch(r"\w+", one)}
    schemas = {one for cell in cells if "/openapi.json" in cell for one in re.findall(r"`([A-Z]\w+)`", cell)} - {"GET"}
    assert len(tools) >= 5
    assert len(schemas) >= 3
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        known = {tool["name"] for tool in (await client.get("/v1/tools")).json()["data"]}
        described = (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert tools - known == set()
    assert schemas - set(described) == set()


def test_the_events_and_the_codes_of_the_page_are_there() -> None:
    events = find_named(r"[a-z]+\.(?!md|json|py|env)[a-z]+")
    assert len(events) >= 3
    assert events - set(BODY_TYPES) == set()
    codes = find_named(r"ERR_[A-Z_]+")
    assert len(codes) >= 2
    assert codes - set(FAILURES) == set()


async def test_the_redis_keys_of_the_page_are_those_of_a_conversation(serve: Serve, tmp_path: Path) -> None:
    named = find_named(r"stepgate:[\w:{}]+")
    assert len(named) == 2
    assert Settings.model_fields["redis_prefix"].default == "stepgate"
    with own_prefix() as prefix:
        async with (
            serve(None, redis_url=URL, redis_prefix=prefix, conversations_require_llm=False) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            mine = await talk(client, papers(tmp_path / "data"))
            with watched_words() as words:
                await mine.say("Help me index these research papers")
    filled = {one.replace("stepgate", prefix).replace("{id}", mine.id) for one in named}
    assert filled - words == set()


async def test_a_change_by_talking_is_allowed_by_the_ids_of_the_inbox(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        asked = (await client.post("/v1/studio/requests", json={"message": "create room alpha"})).json()
        assert asked["status"] == "awaiting_approval"
        assert (await client.get("/v1/rooms/alpha")).status_code == 404
        (waiting,) = (await client.get("/v1/approvals")).json()["data"]
        allowed = await client.post(f"/v1/runs/{waiting['run_id']}/approve", json={"approvals": [waiting["id"]]})
        assert allowed.is_success, allowed.text
        await client.get(f"/v1/runs/{waiting['run_id']}/events")  # ends with the run
        assert (await client.get("/v1/rooms/alpha")).status_code == 200


async def test_without_a_model_a_failed_call_is_not_made_again(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = (await client.post("/v1/agent", json={"prompt": "what is 1/0?"})).json()
    verdicts = [step["detail"]["outcome"] for step in answer["steps"] if step["type"] == "supervision"]
    assert verdicts == ["REPLAN"]
    assert answer["metadata"]["status"] == "partial"
    assert "What is missing" in answer["response"]


def test_the_page_names_the_recorded_deviations() -> None:
    text = PAGE.read_text("utf-8")
    assert [row for row in DEVIATIONS if row not in text] == []


async def test_the_limits_of_the_page_hold(serve: Serve) -> None:
    sample = "1 to 200, in the schema of the tool `spawn_pipeline_validator`"
    top = "1 to 100; `POST /v1/search` refuses others"
    assert {sample, top} <= {one.strip() for one in list_here()}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        tools = {tool["name"]: tool for tool in (await client.get("/v1/tools")).json()["data"]}
        limits = tools["spawn_pipeline_validator"]["input_schema"]["properties"]["sample_count"]
        refused = await client.post("/v1/search", json={"query_text": "boats", "top_k": 101})
        taken = await client.post("/v1/search", json={"query_text": "boats", "top_k": 100})
    assert (limits["minimum"], limits["maximum"]) == (1, 200)
    assert (refused.status_code, taken.status_code != 400) == (400, True), taken.text


async def test_what_the_page_says_of_limits_of_the_documents_own_requests_holds(serve: Serve) -> None:
    """The requests of the documents that are refused, or lose something, here: each has its row."""
    page = PAGE.read_text("utf-8")
    path = {"source_type": "local", "source_identifier": "/no/such/file.pdf"}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for place in ("/no/such/file.pdf", "/etc/hostname"):
            refused = await client.post("/v1/collections/desk/ingest", json={**path, "source_identifier": place})
            code = refused.json()["error"]["error_code"]
            assert (refused.status_code, code) == (403, "ERR_CONNECTOR_AUTH"), refused.text
        for length, status in ((90, 200), (91, 400)):
            body = {"user_message": "What is 2*21?", "session_id": "s" * length, "user_id": "u"}
            assert (await client.post("/query", json=body)).status_code == status, length
        context = {"colour": "red", "service": "a"}
        task = (await client.post("/tasks", json={"prompt": "Hello", "context": context})).json()
    assert task["dropped_context"] == ["colour"]
    assert all(one in page for one in ("AGENT_FILE_ROOTS", "1 to 90 characters", "`dropped_context`"))
