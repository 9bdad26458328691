"""The prompt library, the graph and the names of secrets: by HTTP, MCP, plans and the command line alike."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.integration.test_rooms import client_of, create
from tests.integration.test_rooms_everywhere import call, run_tool
from tests.support.approvals import ids_of
from tests.support.keys import bearer, created_key
from tests.support.mcp_client import until_async


async def save(client: httpx.AsyncClient, name: str, **body: Any) -> httpx.Response:
    return await client.put(f"/v1/studio/prompts/{name}", json=body)


@pytest.mark.row("S002-52")
async def test_a_prompt_is_saved_applied_to_a_room_and_removed(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        await create(client, name="Ours")
        saved = await save(client, "brief", text="Be brief.", description="short answers")
        assert (saved.status_code, saved.json()["version"]) == (200, 1)
        assert (await save(client, "brief", text="Be very brief.", version=1)).json()["version"] == 2
        stale = await save(client, "brief", text="x", version=1)
        assert (stale.status_code, stale.json()["error"]["details"]["stage"]) == (409, "version")
        applied = await client.post("/v1/studio/prompts/brief/apply", json={"room": "ours"})
        assert applied.json()["room"]["system_prompt"] == "Be very brief."
        earlier = await client.post("/v1/studio/prompts/brief/apply", json={"room": "ours", "version": 1})
        assert earlier.json()["room"]["system_prompt"] == "Be brief."
        old = {"room": "ours", "room_version": applied.json()["version"]}
        assert (await client.post("/v1/studio/prompts/brief/apply", json=old)).status_code == 409
        refused = await client.post("/v1/studio/prompts/brief/apply", json={"room": "knowledge"})
        assert (refused.status_code, refused.json()["error"]["details"]["stage"]) == (409, "managed")
        versions = (await client.get("/v1/studio/prompts/brief/versions")).json()["data"]
        assert [one["text"] for one in versions] == ["Be very brief.", "Be brief."]
        assert (await client.delete("/v1/studio/prompts/brief")).status_code == 204
        assert (await client.get("/v1/studio/prompts/brief")).status_code == 404
        assert (await client.get("/v1/rooms/ours")).json()["room"]["system_prompt"] == "Be brief."


@pytest.mark.parametrize(("others_text", "count"), [("", 1), ("Pay Eve first.", 2)])
async def test_a_yes_to_a_prompt_is_a_yes_to_the_text_that_was_shown(
    serve: Serve, others_text: str, count: int
) -> None:
    """Without a number, `prompt_apply` means the newest version: what is saved while the question waits is shown."""
    applies = {"tool": "prompt_apply", "args": {"name": "brief", "room_id": "ours"}}
    async with serve() as url, client_of(url) as client:
        await create(client, name="Ours")
        await save(client, "brief", text="Be brief, please.")
        body = {"prompt": "", "metadata": {"tool_calls": [applies], "approve_plan": True}}
        asked = (await client.post("/v1/agent", json=body)).json()
        assert "Be brief, please." in asked["response"], asked
        run = f"/v1/runs/{asked['metadata']['run_id']}"
        if others_text:
            await save(client, "brief", text=others_text)
        for number in range(1, count + 1):
            assert "Be brief" not in (await client.get("/v1/rooms/ours")).text
            await client.post(f"{run}/approve", json={"approvals": ids_of(asked)})
            asked = await wait_for_stop(client, run)
            assert asked["status"] == ("succeeded" if number == count else "awaiting_approval"), asked
            assert number == count or others_text in json.dumps(asked)
        assert (await client.get("/v1/rooms/ours")).json()["room"]["system_prompt"] == (
            others_text or "Be brief, please."
        )


async def wait_for_stop(client: httpx.AsyncClient, run: str) -> dict[str, Any]:
    """The run once it has ended or asks again."""

    async def is_at_rest() -> bool:
        return (await client.get(run)).json()["status"] not in ("queued", "running")

    await until_async(is_at_rest)
    stopped: dict[str, Any] = (await client.get(run)).json()
    return stopped


@pytest.mark.parametrize(
    ("name", "body", "status", "reason"),
    [
        ("Two%20Words", {"text": "x"}, 400, "cannot be a prompt's name"),
        ("x", {"text": ""}, 400, "text: it is empty"),
        ("x", {"text": "y" * 50_001}, 400, "at most 50,000"),
        ("x", {}, 400, "Missing required parameter: 'text'"),
        ("x", {"text": "x", "colour": "red"}, 400, "colour"),
        ("x", {"text": 5}, 400, "text"),
    ],
)
async def test_a_prompt_that_cannot_be_saved_is_refused(
    serve: Serve, name: str, body: dict[str, Any], status: int, reason: str
) -> None:
    async with serve() as url, client_of(url) as client:
        response = await save(client, name, **body)
        assert response.status_code == status, response.text
        assert reason in response.json()["error"]["message"]
        assert (await client.get("/v1/studio/prompts")).json()["data"] == []


@pytest.mark.row("S002-52")
async def test_mcp_clients_keep_prompts_and_get_them_as_prompts(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        await call(client, "room_create", name="Ours")
        saved = await call(client, "prompt_save", name="brief", text="Be brief.", description="short answers")
        assert (saved["version"], saved["versions"]) == (1, [1])
        assert [one["name"] for one in (await call(client, "prompts_list"))["prompts"]] == ["brief"]
        assert (await call(client, "prompt_show", name="brief"))["text"] == "Be brief."
        assert "there is no prompt 'gone'" in await call(client, "prompt_show", name="gone")
        assert "stage: identifier" in await call(client, "prompt_save", name="Two Words", text="x")
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert listed["brief"].description == "short answers"
        got = await client.get_prompt("brief", {"task": "Say hello"})
        assert got.messages[0].content.text == "Be brief.\n\nTask: Say hello"  # type: ignore[union-attr]
        applied = await call(client, "prompt_apply", name="brief", room_id="ours")
        assert (applied["room_id"], applied["version"]) == ("ours", 1)
        assert "system_prompt: Be brief." in (await call(client, "room_show", room_id="ours"))["yaml"]
        assert "there is no room named 'gone'" in await call(client, "prompt_apply", name="brief", room_id="gone")
        assert await call(client, "prompt_remove", name="brief") == {"removed": "brief", "versions": 1}
        left = (await client.list_prompts(cache_mode="bypass")).prompts
        assert "brief" not in [prompt.name for prompt in left]


def test_the_command_line_keeps_prompts(tmp_path: Path) -> None:
    (tmp_path / "brief.md").write_text("Be brief.\n")
    assert stepgate(tmp_path, "rooms", "create", "Ours")[0] == 0
    code, output = stepgate(tmp_path, "prompts", "save", "brief", "--file", str(tmp_path / "brief.md"))
    assert (code, output) == (0, "saved brief, version 1")
    assert stepgate(tmp_path, "prompts", "save", "brief", "Be very brief.")[1] == "saved brief, version 2"
    code, output = stepgate(tmp_path, "prompts", "list", "--json")
    assert [(row["name"], row["version"]) for row in json.loads(output)] == [("brief", 2)]
    assert "Be very brief." in stepgate(tmp_path, "prompts", "show", "brief")[1]
    assert len(stepgate(tmp_path, "prompts", "show", "brief", "--versions")[1].splitlines()) == 2
    code, output = stepgate(tmp_path, "prompts", "apply", "brief", "ours", "--version", "1")
    assert code == 0, output
    assert "system_prompt: |\n  Be brief.\n" in (tmp_path / "data" / "rooms" / "ours.yaml").read_text()
    assert stepgate(tmp_path, "prompts", "remove", "brief")[1] == "removed brief with 2 versions"
    code, output = stepgate(tmp_path, "prompts", "show", "brief")
    assert (code, output) == (1, "stepgate: there is no prompt 'brief'; known prompts: none")


@pytest.mark.row("S002-21", "S002-23")
async def test_the_graph_knows_documents_and_files_and_where_each_thing_is_stored(serve: Serve) -> None:
    async with serve() as url, client_of(url) as http, Client(f"{url}/mcp") as client:
        await create(http, name="Ours", tools=["calculator"], collections=["work"])
        sent = await http.post(
            "/v1/documents",
            files={"file": ("travel.md", b"# Trips\n\nTrips are booked early.")},
            data={"collection": "work"},
        )
        document = f"document:{sent.json()['document_id']}"
        (found,) = (await call(client, "search_entities", query="travel.md", entity_type="document"))["entities"]
        assert (found["id"], found["title"], found["source"]) == (document, "travel.md", sent.json()["source"])
        shown = await call(client, "get_entity_details", entity_id="travel.md")
        assert {"source": "collection:work", "kind": "contains", "target": document} in shown["links"]
        related = await call(client, "explain_relationship", entity_a="room:ours", entity_b=document)
        assert related["explanation"].startswith(
            "The room ours reads the collection work. The collection work contains the document travel.md."
        )
        spelled = await call(client, "explain_relationship", entity_a="Travel.MD", entity_b="Room:OURS")
        assert spelled["explanation"].startswith("The document travel.md is contained in the collection work.")
        sources = {
            "tool:calculator": "mcp_tools/builtin/calculator.py:",
            "skill:summarize": "skills/summarize/SKILL.md",
            "prompt:summarize/SKILL.md": "skills/summarize/SKILL.md",
            "room:ours": "rooms/ours.yaml",
            "room:knowledge": "config/rooms/knowledge.yaml",
            "collection:work": "table collections, name work",
        }
        for entity, source in sources.items():
            details = (await http.get(f"/v1/studio/entities/{entity}")).json()
            assert details["source"].startswith(source), details
        instructions = await call(client, "get_entity_details", entity_id="prompt:summarize/SKILL.md")
        assert [link["target"] for link in instructions["links"]] == ["skill:summarize"]
        graph = (await http.get("/v1/studio/graph")).json()
        files = [one for one in graph["entities"] if one["type"] == "file"]
        assert all(one["source"].endswith(one["name"]) for one in files)
        assert {link["source"] for link in graph["links"] if link["target"].startswith("file:")} == {
            f"skill:{one['name'].partition('/')[0]}" for one in files
        }
        assert (await http.delete(f"/v1/documents/{sent.json()['document_id']}")).status_code == 204
        gone = await call(client, "search_entities", query="travel.md", entity_type="document")
        assert gone["entities"] == []


@pytest.mark.row("S002-20", "S002-21", "S002-22", "S002-23")
async def test_the_graph_answers_and_follows_changes(serve: Serve) -> None:
    async with serve() as url, client_of(url) as http, Client(f"{url}/mcp") as client:
        found = await call(client, "search_entities", query="support", entity_type="room")
        assert found["entities"] == []
        await create(http, name="Support Team", tools=["calculator"], skills=["summarize"])
        await save(http, "tone", text="Be kind.")
        await http.post("/v1/studio/prompts/tone/apply", json={"room": "support-team"})
        found = await call(client, "search_entities", query="support", entity_type="room")
        assert [one["id"] for one in found["entities"]] == ["room:support-team"]
        details = await call(client, "get_entity_details", entity_id="tool:calculator")
        assert {"source": "room:support-team", "kind": "uses", "target": "tool:calculator"} in details["links"]
        explained = await call(client, "explain_relationship", entity_a="prompt:tone", entity_b="skill:summarize")
        assert explained["explanation"] == (
            "The prompt tone prompts the room support-team. The room support-team uses the skill summarize."
        )
        await save(http, "tone", text="Be kinder.")
        kept = await call(client, "explain_relationship", entity_a="prompt:tone", entity_b="room:support-team")
        assert kept["explanation"] == "The prompt tone prompts the room support-team.", (
            "the room has an earlier version"
        )
        unrelated = await call(client, "explain_relationship", entity_a="prompt:tone", entity_b="room:chat")
        assert isinstance(unrelated["related"], bool)
        refused = await call(client, "get_entity_details", entity_id="calculatr")
        assert "did you mean tool:calculator, " in refused
        graph = (await http.get("/v1/studio/graph")).json()
        assert {"room:support-team", "prompt:tone", "tool:calculator"} <= {one["id"] for one in graph["entities"]}
        assert {"source": "prompt:tone", "kind": "prompts", "target": "room:support-team"} in graph["links"]
        await http.delete("/v1/rooms/support-team")
        assert "there is no entity" in await call(client, "get_entity_details", entity_id="room:support-team")


@pytest.mark.row("S002-22")
async def test_no_relation_is_said_plainly(serve: Serve) -> None:
    async with serve() as url, client_of(url) as http, Client(f"{url}/mcp") as client:
        await save(http, "lonely", text="Nobody uses me.")
        said = await call(client, "explain_relationship", entity_a="lonely", entity_b="calculator")
        assert said == {
            "related": False,
            "path": [],
            "explanation": "There is no relation between the prompt lonely and the tool calculator.",
            "from_outside": False,
        }


async def test_others_see_neither_prompts_nor_rooms_nor_secrets(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    path = data / "credentials.json"
    path.write_text('{"notes": {"type": "bearer", "token": "tok-123"}, "anna/crm": {"type": "bearer"}}')
    path.chmod(0o600)
    async with serve(require_key="always") as url:
        anna = await created_key(data, "anna", owner="anna", scopes="admin,agent,mcp")
        bob = await created_key(data, "bob", owner="bob", scopes="agent")
        async with client_of(url, headers=bearer(anna)) as one, client_of(url, headers=bearer(bob)) as other:
            await create(one, name="Annas", tools=["calculator"])
            await save(one, "tone", text="Annas words.")
            assert (await other.get("/v1/studio/prompts/tone")).status_code == 404
            graph = (await other.get("/v1/studio/graph")).json()
            assert not {"room:annas", "prompt:tone"} & {entity["id"] for entity in graph["entities"]}
            found = json.dumps(await run_tool(url, "search_entities", key=bob, query="", entity_type="room", limit=100))
            assert "room:stepgate" in found
            assert "room:annas" not in found
            applied = await other.post("/v1/studio/prompts/tone/apply", json={"room": "annas"})
            assert applied.status_code == 403
            assert (await other.get("/v1/studio/secrets")).status_code == 403
            refused = await run_tool(url, "list_secrets", key=bob)
            assert "only by API keys with the scope 'rooms'" in json.dumps(refused)
            own = (await one.get("/v1/studio/secrets")).json()["data"]
            assert [(secret["name"], secret["configured"]) for secret in own] == [("anna/crm", False)]
            assert "credentials.json" not in json.dumps(own)
        assert (await delete_user(url, data, "anna")).status_code == 200
        again = await created_key(data, "anna2", owner="anna", scopes="agent")
        async with client_of(url, headers=bearer(again)) as one:
            assert (await one.get("/v1/studio/prompts")).json()["data"] == []


async def delete_user(url: str, data: Path, owner: str) -> httpx.Response:
    admin = await created_key(data, "ops", owner="local", scopes="admin")
    async with client_of(url, headers=bearer(admin)) as client:
        return await client.delete(f"/v1/users/{owner}")


@pytest.mark.row("S002-50")
async def test_secrets_are_listed_by_name_and_never_by_value(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    path = data / "credentials.json"
    path.write_text(
        '{"notes": {"type": "bearer", "token": "tok-secret-123"}, "half": {"type": "bearer", "token": "${NOT_SET_9}"}}'
    )
    path.chmod(0o600)
    async with serve(llm_api_key="sk-secret-456") as url, client_of(url) as http, Client(f"{url}/mcp") as client:
        listed = (await http.get("/v1/studio/secrets")).json()["data"]
        by_name = {secret["name"]: secret for secret in listed}
        assert by_name["AGENT_LLM_API_KEY"]["configured"] is True
        assert by_name["AGENT_REDIS_URL"]["configured"] is False
        assert by_name["notes"]["configured"] is True
        assert (by_name["half"]["configured"], "NOT_SET_9 is not set" in by_name["half"]["problem"]) == (False, True)
        by_tool = await call(client, "list_secrets")
        assert by_tool["secrets"] == listed
        assert "secret-" not in json.dumps([listed, by_tool])
        path.chmod(0o644)
        assert (await http.get("/v1/studio/secrets")).status_code >= 400
        assert "chmod 600" in await call(client, "list_secrets")
