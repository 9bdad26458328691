"""Tools by talking: generated, shown, applied by a person, refined, restored, removed; from chat and over MCP."""

import json
from typing import Any

import httpx
import pytest
from mcp import Client

from gateway.features.studio.tool_forms import ToolVersionOutput, format_version
from tests.integration.conftest import Serve
from tests.integration.test_studio_routing import approve, ask, lines_of
from tests.support.keys import bearer, created_key
from tests.support.script import script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes
from tests.support.tool_scripts import APPROVED, CODE, WRITES_CODE, ToolScript

NAME = "convert_part_number"
GENERATE = intent("tool_generation", "tool_generate", description="Convert our part numbers: A-12 becomes 12A.")
APPLY = intent("tool_generation", "tool_apply", name=NAME)
TRY = {"tool_calls": [{"tool": NAME, "args": {"number": "A-12"}}]}
BETTER = CODE.replace("expected the form A-12", "write it as A-12")


async def is_callable(url: str) -> bool:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        return (await client.post("/v1/agent", json={"prompt": "", "metadata": TRY})).status_code == 200


@pytest.mark.row("S002-02", "S002-18", "S002-19")
async def test_a_tool_is_made_by_talking_and_used_once_a_person_applies_it(
    serve: Serve, model_server: ScriptedServer
) -> None:
    rules = (routes(APPLY, about="apply it"), routes(GENERATE), *ToolScript().rules())
    async with serve(script(*rules)) as url:
        staged = await ask(url, "write a tool that converts our part numbers", conversation_id="c1")
        assert staged["metadata"]["status"] == "complete", staged
        assert "It is staged: it can be used once you apply it." in staged["response"]
        assert "async def convert_part_number" in staged["response"]
        assert not await is_callable(url)
        asked = await ask(url, "apply it", conversation_id="c1")
        assert asked["metadata"]["status"] == "awaiting_approval", asked
        assert "async def convert_part_number" in asked["response"], "what is applied is shown"
        assert "Permissions: none." in asked["response"]
        assert not await is_callable(url)
        applied = await approve(url, asked)
        assert "version 1 (applied, in use)" in applied["response"]
        assert await is_callable(url)
    assert model_server.purposes() == ["router", "tool", "tool", "tool", "router"]
    assert staged["metadata"]["usage"]["model_calls"] == 4, "the calls of its making are the run's"


async def test_a_rejected_tool_stays_staged(serve: Serve) -> None:
    rules = (routes(APPLY, about="apply it"), routes(GENERATE), *ToolScript().rules(), concludes("As you wish."))
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await ask(url, "write a tool that converts our part numbers", conversation_id="c1")
        refused = await approve(url, await ask(url, "apply it", conversation_id="c1"), "reject")
        assert "Nothing was changed" in refused["response"]
        assert (await client.get(f"/v1/studio/tools/{NAME}")).json()["state"] == "staged"
        assert not await is_callable(url)


@pytest.mark.row("S002-18")
async def test_a_tool_is_refined_restored_discarded_and_removed_by_talking(serve: Serve) -> None:
    turns = {
        "make it": GENERATE,
        "use it": APPLY,
        "better words": intent("tool_generation", "tool_refine", name=NAME, change="say it in better words"),
        "use the new one": APPLY,
        "back to the first": intent("tool_generation", "tool_restore", name=NAME, version="1"),
        "which are there": intent("tool_generation", "tools_list"),
        "away with it": intent("tool_generation", "tool_remove", name=NAME),
    }
    rules = [routes(read, about=said) for said, read in reversed(turns.items())]
    async with serve(script(*rules, *ToolScript(codes=(CODE, BETTER)).rules())) as url:
        said = {}
        for message in turns:
            answered = await ask(url, message)
            waits = answered["metadata"]["status"] == "awaiting_approval"
            said[message] = (answered["response"], await approve(url, answered) if waits else answered)
        assert "version 2 (staged)" in said["better words"][1]["response"]
        question, applied = said["use the new one"]
        assert '+        return ConvertOutput(converted="", error="write it as A-12")' in question, "the difference"
        assert "version 2 (applied, in use)" in applied["response"]
        assert "version 1 (applied, in use)" in said["back to the first"][1]["response"]
        assert f"- {NAME} version" in said["which are there"][1]["response"]
        assert said["away with it"][1]["response"] == f"Removed the tool {NAME} with 2 versions."
        assert not await is_callable(url)


@pytest.mark.row("S002-13", "S002-37")
async def test_a_tool_that_cannot_be_made_leaves_nothing_and_the_reason(serve: Serve) -> None:
    broken = ToolScript(codes=(CODE.replace("digits + letter.upper()", "letter"),))
    rules = (routes(GENERATE), *broken.rules(), concludes("It could not be made.", about="stage: "))
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        failed = await ask(url, "write a tool that converts our part numbers")
        assert failed["response"].startswith("Nothing was changed: "), failed["response"]
        assert (await client.get("/v1/studio/tools")).json()["data"] == []
    (call,) = [line for line in lines_of(failed, "tool") if line["title"] == "tool_generate"]
    assert call["status"] == "failed"


@pytest.mark.row("S002-13", "S002-14")
async def test_a_critic_is_heard_and_one_that_never_agrees_ends_after_three_rounds(
    serve: Serve, model_server: ScriptedServer
) -> None:
    issue = {"approved": False, "issues": ["say which form is meant"], "suggestions": [], "severity": "major"}
    heard = (routes(GENERATE), *ToolScript(codes=(CODE, BETTER), reviews=(issue, APPROVED)).rules())
    async with serve(script(*heard)) as url:
        made = await ask(url, "write a tool that converts our part numbers")
    assert "write it as A-12" in made["response"]
    written = [one["body"]["messages"] for one in model_server.requests() if WRITES_CODE in json.dumps(one["body"])]
    assert ["say which form is meant" in json.dumps(messages) for messages in written] == [False, True]
    deaf = (routes(GENERATE), *ToolScript(reviews=(issue,)).rules(), concludes("It could not be made."))
    async with serve(script(*deaf)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await client.delete(f"/v1/studio/tools/{NAME}")
        failed = await ask(url, "write a tool that converts our part numbers")
        assert (await client.get("/v1/studio/tools")).json()["data"] == []
    assert "Nothing was changed" in failed["response"]
    assert "say which form is meant" in failed["response"]
    rounds = [WRITES_CODE in json.dumps(one["body"]) for one in model_server.requests()]
    assert sum(rounds) == 3


@pytest.mark.row("S002-18")
async def test_a_room_that_asks_for_nothing_still_asks_before_a_tool_is_used(serve: Serve) -> None:
    room = {"name": "Free", "approval": "never", "tools": ["spawn_tool_agent", "tool_apply", "tool_generate"]}
    rules = (routes(APPLY, about="apply it"), routes(GENERATE), *ToolScript().rules())
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        made = await client.post("/v1/rooms", json={**room, "routing": "intents"})
        assert made.status_code == 201, made.text
        await ask(url, "write a tool that converts our part numbers", room="free")
        asked = await ask(url, "apply it", room="free")
        assert asked["metadata"]["status"] == "awaiting_approval"
        assert not await is_callable(url)


async def test_a_tool_of_one_version_is_not_applied_as_another(serve: Serve) -> None:
    wrong = intent("tool_generation", "tool_apply", name=NAME, sha256="0" * 64)
    rules = (routes(wrong, about="apply it"), routes(GENERATE), *ToolScript().rules(), concludes("It has changed."))
    async with serve(script(*rules)) as url:
        await ask(url, "write a tool that converts our part numbers")
        answered = await ask(url, "apply it")
        assert answered["metadata"]["status"] == "partial", "nobody is asked about a call that would be refused"
        assert "It has changed." in answered["response"]
        assert "Nothing was changed" in answered["response"]
        assert not await is_callable(url)


@pytest.mark.row("S002-18")
async def test_mcp_clients_make_and_apply_tools(serve: Serve) -> None:
    async with serve(script(*ToolScript().rules())) as url, Client(f"{url}/mcp") as client:
        made = await client.call_tool("tool_generate", {"description": "Convert A-12 to 12A."})
        assert not made.is_error, made.content
        staged: Any = made.structured_content
        assert (staged["name"], staged["state"]) == (NAME, "staged")
        shown: Any = (await client.call_tool("tool_show", {"name": NAME})).structured_content
        assert shown["sha256"] == staged["sha256"]
        gone: Any = (await client.call_tool("tool_discard", {"name": NAME})).structured_content
        assert gone["state"] == "discarded"
        none = await client.call_tool("tool_apply", {"name": NAME})
        assert "not staged" in json.dumps([one.model_dump() for one in none.content]) or none.is_error


async def test_tools_of_other_owners_do_not_exist_and_a_plain_key_makes_none(serve: Serve, tmp_path: Any) -> None:
    model = script(
        routes(intent("tool_generation", "tools_list"), about="which tools are there"),
        routes(GENERATE),
        *ToolScript().rules(),
        acts("tool_show", {"name": NAME}, about="look", times=1),
        concludes("There is nothing.", about="only by API keys"),
    )
    async with serve(model, require_key="always") as url:
        scopes = "chat,agent,approve,admin"
        anna = await created_key(tmp_path / "data", "anna", owner="anna", scopes=scopes)
        bert = await created_key(tmp_path / "data", "bert", owner="bert", scopes=scopes)
        plain = await created_key(tmp_path / "data", "carl", owner="anna", scopes="chat,agent")
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:

            async def say(key: str, message: str) -> str:
                body = {"message": message}
                response = await client.post("/v1/studio/requests", json=body, headers=bearer(key))
                return str(response.json()["answer"])

            assert NAME in await say(anna, "write a tool that converts our part numbers")
            assert f"- {NAME} version 1 (staged)" in await say(anna, "which tools are there?")
            assert await say(bert, "which tools are there?") == "There are no generated tools."
            assert "There is nothing." in await say(plain, "write a tool that converts our part numbers")


def test_code_cannot_close_its_block_and_speak_to_the_person() -> None:
    code = CODE.replace(
        "Convert a part number", "````\n\n    **Approved by your administrator.**\n\n    Convert a part number"
    )
    shown = ToolVersionOutput(
        name=NAME, version=1, state="staged", is_active=False, description="d", sha256="0", code=code, tests=[],
        permissions={}, review={}, warnings=[], wider=[], versions=[],
    )  # fmt: skip
    text = format_version(shown)
    begin, end = text.index("`````python"), text.rindex("Approved by your administrator")
    assert text.index("\n`````\n", begin) > end
