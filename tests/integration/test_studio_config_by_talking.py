"""Prompts, secrets and questions about what there is, by talking; every category goes to its sub-agent."""

import json
import re
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_studio_routing import approve, ask, intents_of, lines_of
from tests.support.mcp_client import offered
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes

SECRET = "sk-only-the-gateway-knows-4711"


@pytest.mark.parametrize(
    ("category", "agent", "tool"),
    [
        ("room_management", "room_agent", "rooms_list"),
        ("tool_generation", "tool_agent", "tools_list"),
        ("query", "query_agent", "search_entities"),
        ("config", "config_agent", "prompts_list"),
    ],
)
@pytest.mark.row("S002-02")
async def test_each_category_has_a_sub_agent_with_its_own_tools(
    serve: Serve, category: str, agent: str, tool: str
) -> None:
    async with serve(script(routes(intent(category, tool)))) as url:
        answered = await ask(url, "what is there?")
    assert answered["metadata"]["status"] == "complete", answered
    (started,) = lines_of(answered, "subagent")
    assert started["title"] == agent
    assert tool in [line["title"] for line in lines_of(answered, "tool") if line["span"] == started["span"]]
    tools = set(started["detail"]["tools"])
    assert tool in tools
    others = {"room_create", "tool_apply", "prompt_save"} - tools
    assert len(others) >= 2, "a sub-agent has the tools of its own category only"


@pytest.mark.row("S002-52")
async def test_a_prompt_is_saved_applied_and_removed_by_talking(serve: Serve) -> None:
    text = "Answer in two sentences.\nBe kind."
    turns = {
        "keep this": intent("config", "prompt_save", name="kind", text=text),
        "show it": intent("config", "prompt_show", name="kind"),
        "give it to desk": intent("config", "prompt_apply", name="kind", room_id="desk"),
        "throw it away": intent("config", "prompt_remove", name="kind"),
        "for nowhere": intent("config", "prompt_apply", name="kind", room_id="nowhere"),
    }
    rules = [routes(read, about=f"please {said}") for said, read in turns.items()]
    model = script(*rules, concludes("That is not possible."))
    said: dict[str, dict[str, Any]] = {}
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.post("/v1/rooms", json={"name": "Desk"})).status_code == 201
        for message in turns:
            answered = await ask(url, f"please {message}")
            waits = answered["metadata"]["status"] == "awaiting_approval"
            changes = message in ("keep this", "give it to desk", "throw it away")
            assert waits is changes, "nobody is asked about what only reads, or would be refused"
            said[message] = await approve(url, answered) if waits else answered
            if message == "give it to desk":
                room = (await client.get("/v1/rooms/desk")).json()["room"]
                assert room["system_prompt"] == text
    assert text in said["show it"]["response"]
    assert "Nothing was changed" in said["for nowhere"]["response"]


@pytest.mark.row("S002-50")
async def test_secrets_are_named_and_their_values_are_nowhere(serve: Serve, model_server: ScriptedServer) -> None:
    rules = (routes(intent("config", "list secrets")), acts("list_secrets", times=1), concludes(f"It is {SECRET}."))
    async with serve(script(*rules), llm_api_key=SECRET) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answered = await ask(url, "which secrets are configured, and what are they?")
        events = (await client.get(f"/v1/runs/{answered['metadata']['run_id']}/events")).text
    told = json.dumps([one["body"]["messages"] for one in model_server.requests()])
    assert SECRET not in json.dumps(answered) + events + told, "not even where a model knows it"
    assert "configured" in told


@pytest.mark.row("S002-20", "S002-21", "S002-22", "S002-23", "S002-43")
async def test_questions_about_what_there_is_are_answered_from_the_graph(
    serve: Serve, model_server: ScriptedServer
) -> None:
    rules = (
        routes(
            intent("query", "explain_relationship", entity_a="room:desk", entity_b="tool:calculator"),
            about="how is desk related to the calculator",
        ),
        routes(
            intent("query", "explain_relationship", entity_a="room:desk", entity_b="room:chat"), about="desk to chat"
        ),
        routes(intent("query", "which rooms", name="calculator")),
        acts("search_entities", {"query": "calculator", "entity_type": "tool"}, times=1),
        acts("get_entity_details", {"entity_id": "tool:calculator"}, times=1, call_id="a2"),
        concludes("The room desk uses the calculator."),
    )
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        body = {"name": "Desk", "tools": ["calculator"], "skills": []}
        assert (await client.post("/v1/rooms", json=body)).status_code == 201
        found = await ask(url, "which rooms use the calculator?")
        assert found["response"] == "The room desk uses the calculator."
        seen = [one["body"]["messages"] for one in model_server.requests() if one["purpose"] == "subagent"]
        assert "room:desk" in json.dumps(seen[-1]), "a room made a moment ago is in the graph"
        related = await ask(url, "how is desk related to the calculator?")
        assert "desk" in related["response"].lower()
        assert "calculator" in related["response"]
        assert related["metadata"]["usage"]["model_calls"] == 1
    (asked,) = [one["body"] for one in model_server.requests() if one["purpose"] == "router"][:1]
    assert asked["response_format"]["type"] == "json_schema", "several values come as structured output"
    assert asked["response_format"]["json_schema"]["strict"] is True


@pytest.mark.row("S002-51")
async def test_a_server_is_connected_to_one_room_by_talking(serve: Serve) -> None:
    with offered("mcp_server_basic", "http") as entry:
        turns = {
            "connect it": intent("config", "mcp_server_add", room_id="ours", name="notes", url=entry["url"]),
            "which are connected": intent("config", "mcp_servers_list", room_id="ours"),
            "cut it off": intent("config", "mcp_server_remove", room_id="ours", name="notes"),
        }
        rules = [routes(read, about=f"please {said}") for said, read in turns.items()]
        host = entry["url"].split("/")[2]
        async with (
            serve(script(*rules), fetch_allow_hosts=(host,)) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            assert (await client.post("/v1/rooms", json={"name": "Ours"})).status_code == 201
            asked = await ask(url, "please connect it")
            assert asked["metadata"]["status"] == "awaiting_approval", asked
            assert entry["url"] in asked["response"]
            assert (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"] == {}
            added = await approve(url, asked)
            assert added["metadata"]["status"] == "complete", added
            assert "notes" in (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"]
            assert "notes" in (await ask(url, "please which are connected"))["response"]
            await approve(url, await ask(url, "please cut it off"))
            assert (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"] == {}


@pytest.mark.row("S002-53")
async def test_a_query_agent_that_fails_leaves_the_others_at_work(serve: Serve) -> None:
    rules = (
        routes(
            intent("query", "compare", request="compare the rooms"),
            intent("config", "prompts_list", request="list the prompts"),
        ),
        says(to="subagent", fault="status_500"),
    )
    async with serve(script(*rules)) as url:
        answered = await ask(url, "compare the rooms and list the prompts")
    assert answered["metadata"]["status"] == "partial"
    assert "spawn_query_agent" in answered["response"], "the failure is reported"
    done = {line["title"]: line["status"] for line in lines_of(answered, "subagent")}
    assert done["config_agent"] == "done"


@pytest.mark.row("S002-55")
async def test_the_same_script_gives_the_same_run(serve: Serve) -> None:
    rules = (
        routes(intent("room_management", "create", name="Desk"), intent("query", "rooms_list")),
        acts("rooms_list", times=1),
        concludes("There is nothing to do."),
    )
    runs = []
    for _ in range(2):
        async with serve(script(*rules)) as url:
            asked = await ask(url, "make a desk if there is none, and list the rooms")
            runs.append(await approve(url, asked))
    shown = [
        sorted((line["type"], line["title"], line["status"], json.dumps(line["detail"].get("args")))
               for line in run["steps"])
        for run in runs
    ]  # fmt: skip
    assert shown[0] == shown[1]
    assert runs[0]["response"] == runs[1]["response"]
    assert intents_of(runs[0]) == intents_of(runs[1])


async def test_a_schedule_is_set_once_a_person_has_allowed_it(serve: Serve) -> None:
    fields: dict[str, Any] = {
        "name": "morning",
        "cron": "0 7 * * mon-fri",
        "prompt": "calculate 6*7",
        "timezone": "Europe/Stockholm",
    }
    model = script(
        routes(intent("config", "schedule_create", **{**fields, "cron": "at seven"}), about="at seven o'clock"),
        routes(intent("config", "schedule_create", **fields), about="every weekday"),
        concludes("When exactly?"),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await ask(url, "calculate 6*7 at seven o'clock")
        assert refused["metadata"]["status"] == "partial", "nobody is asked about a time that cannot be read"
        waiting = await ask(url, "calculate 6*7 every weekday at seven")
        assert waiting["metadata"]["status"] == "awaiting_approval", waiting
        assert (await client.get("/v1/schedules")).json()["data"] == []
        done = await approve(url, waiting)
        (made,) = (await client.get("/v1/schedules")).json()["data"]
    assert (made["cron"], made["timezone"], made["webhook"]) == (fields["cron"], fields["timezone"], None)
    assert re.search(r"It runs next at 20\d\d-\d\d-\d\d 07:00\+0[12]:00", done["response"])
