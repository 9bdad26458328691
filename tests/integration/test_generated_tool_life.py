"""A generated tool from its first try to its removal, over the real door: what is refused, and that nothing is left."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_generated_tools import REQUEST, call_tool, client_of
from tests.integration.test_owners import keys_of
from tests.support.approvals import ids_of
from tests.support.mcp_client import until_async
from tests.support.sandboxes import requires_sandbox
from tests.support.script import Script, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tool_scripts import CODE, INTERFACE, REVIEWS, TESTS, WRITES_CODE, WRITES_TESTS, ToolScript

pytestmark = requires_sandbox

API = "/v1/studio/tools"
NAME = "convert_part_number"
WRONG = CODE.replace("digits + letter.upper()", "letter.upper() + digits")
ENDLESS = CODE.replace("    letter, dash", "    while True:\n        pass\n    letter, dash")
VETO = {"approved": False, "issues": ["the letter may have two characters"], "suggestions": [], "severity": "major"}
BLOCKER = {"approved": True, "issues": ["it sends data away"], "suggestions": [], "severity": "blocker"}


async def generate(client: httpx.AsyncClient, **more: Any) -> httpx.Response:
    return await client.post(API, json={**REQUEST, **more})


async def stage(client: httpx.AsyncClient) -> dict[str, Any]:
    response = await generate(client)
    assert response.status_code == 201, response.text
    staged: dict[str, Any] = response.json()
    return staged


def error_of(response: httpx.Response) -> dict[str, Any]:
    failure: dict[str, Any] = response.json()["error"]
    return failure


def prompts(server: ScriptedServer, about: str) -> list[str]:
    """The user's messages of the requests whose system prompt contains `about`."""
    return [
        request["body"]["messages"][1]["content"]
        for request in server.requests()
        if about in request["body"]["messages"][0]["content"]
    ]


async def assert_nothing_is_left(client: httpx.AsyncClient) -> None:
    assert (await client.get(API)).json() == {"data": []}
    assert (await client.get(f"{API}/{NAME}")).status_code == 404
    assert NAME not in [tool["name"] for tool in (await client.get("/v1/tools")).json()["data"]]


@pytest.mark.row("S002-13", "S002-14")
async def test_a_critic_that_always_refuses_ends_after_three_rounds(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(*ToolScript(reviews=(VETO,)).rules())) as url, client_of(url) as client:
        refused = await generate(client)
        failure = error_of(refused)
        assert (refused.status_code, failure["error_code"], failure["recoverable"]) == (400, "ERR_VALIDATION", True)
        assert (failure["details"]["stage"], failure["details"]["rounds"]) == ("review", 3)
        assert failure["details"]["problems"] == ["review (major): the letter may have two characters"]
        asked = prompts(model_server, WRITES_CODE)
        assert len(asked) == 3
        assert "the letter may have two characters" not in asked[0]
        assert "the letter may have two characters" in asked[1]
        await assert_nothing_is_left(client)


@pytest.mark.row("S002-12")
async def test_a_blocker_is_never_approved(serve: Serve) -> None:
    async with serve(script(*ToolScript(reviews=(BLOCKER,)).rules())) as url, client_of(url) as client:
        assert error_of(await generate(client))["details"]["stage"] == "review"
        await assert_nothing_is_left(client)


@pytest.mark.row("S002-19")
async def test_code_that_fails_its_tests_is_never_reviewed(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(*ToolScript(codes=(WRONG,)).rules())) as url, client_of(url) as client:
        failure = error_of(await generate(client))
        assert failure["details"]["stage"] == "tests"
        assert '"converted": "A12"' in failure["details"]["problems"][0], "what the tool returned"
        assert prompts(model_server, REVIEWS) == []
        await assert_nothing_is_left(client)


async def test_the_second_round_gets_the_failures_of_the_first(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(*ToolScript(codes=(WRONG, CODE)).rules())) as url, client_of(url) as client:
        staged = await stage(client)
        assert staged["code"] == CODE
        first, second = prompts(model_server, WRITES_CODE)
        assert "Test 1 failed: AssertionError" not in first
        assert "Test 1 failed: AssertionError" in second
        (tests_prompt,) = prompts(model_server, WRITES_TESTS)
        assert "letter" not in tests_prompt, "the tests are written without the code"


@pytest.mark.parametrize(
    ("rules", "stage_of"),
    [
        ([says("I would love to help!", to="tool")], "tests"),
        ([*ToolScript().rules()[:1], says("```python\nprint(1)\n```", to="tool")], "producer"),
        ([*ToolScript().rules()[:1], says(json.dumps({"function_name": NAME, "code": 3}), to="tool")], "producer"),
        (ToolScript(codes=(CODE + CODE[CODE.index("async def") :],)).rules(), "function"),
        (ToolScript(codes=("import os\n" + CODE,)).rules(), "import"),
        (ToolScript(codes=("def broken(:",)).rules(), "syntax"),
        (ToolScript(codes=(CODE.replace("async def", "def"),)).rules(), "async"),
        (ToolScript(codes=(ENDLESS,), permissions={"seconds": 0.3}).rules(), "tests"),
        (ToolScript(tests=("assert True",) * 3).rules(), "tests"),
        (ToolScript(tests=('assert await convert_part_number(ConvertInput(number="x"))',) * 3).rules(), "tests"),
        (ToolScript(name="class", interface=INTERFACE).rules(), "tests"),
        (ToolScript(permissions={"hosts": ["https://x/"]}).rules(), "tests"),
        (ToolScript(permissions={"tools": ["nonsense"]}).rules(), "tests"),
        (ToolScript(permissions={"tools": ["tool_apply"]}).rules(), "tests"),
        ([*ToolScript().rules()[:2], says("approved!", to="tool")], "review"),
    ],
)  # fmt: skip
async def test_a_model_that_fails_leaves_nothing(serve: Serve, rules: Sequence[Any], stage_of: str) -> None:
    async with serve(script(*rules)) as url, client_of(url) as client:
        refused = await generate(client)
        assert refused.status_code == 400, refused.text
        assert error_of(refused)["details"]["stage"] == stage_of
        assert error_of(refused)["message"]
        await assert_nothing_is_left(client)


async def test_a_model_that_is_down_leaves_nothing(serve: Serve) -> None:
    rules = [*ToolScript().rules()[:2], says(to="tool", fault="status_400")]
    async with serve(Script(rules)) as url, client_of(url) as client:
        refused = await generate(client)
        assert refused.status_code >= 400
        assert error_of(refused)["error_code"].startswith("ERR_MODEL")
        await assert_nothing_is_left(client)


async def test_without_a_model_it_says_so(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        refused = await generate(client)
        assert error_of(refused)["error_code"] == "ERR_CONFLICT"


@pytest.mark.row("S002-32")
@pytest.mark.parametrize(
    "name", ["Convert Part-Number", "convertPartNumber", " convert-part number ", "_convert_part_number"]
)
async def test_a_name_is_made_an_identifier(serve: Serve, name: str) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        staged = await generate(client, name=name)
        assert staged.status_code == 201, staged.text
        assert staged.json()["name"] == NAME


@pytest.mark.row("S002-32", "S002-37")
@pytest.mark.parametrize("name", ["2fast", "class", " ", "x" * 300, "変換", "a;b", "rm -rf /"])
async def test_a_bad_name_is_an_error_before_any_call(serve: Serve, name: str, model_server: ScriptedServer) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        refused = await generate(client, name=name)
        failure = error_of(refused)
        assert (refused.status_code, failure["details"]["stage"], failure["recoverable"]) == (400, "identifier", True)
        assert model_server.requests() == []


async def test_a_name_in_use_is_refused(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        assert (await generate(client, name="calculator")).status_code == 409
        assert model_server.requests() == []
        await stage(client)
        assert (await generate(client, name="convert-part-number")).status_code == 409
        assert (await generate(client)).status_code == 409, "a name that the model chooses"
        assert (await client.post(f"{API}/{NAME}/discard", json={})).status_code == 200
        assert (await stage(client))["version"] == 2, "a discarded tool is no obstacle"


@pytest.mark.parametrize("description", ["", "  ", "x" * 9_000])
async def test_a_bad_description_is_refused(serve: Serve, description: str) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        refused = await generate(client, description=description)
        assert (refused.status_code, error_of(refused)["details"]["stage"]) == (400, "description")


@pytest.mark.row("S002-18")
async def test_versions_are_applied_refined_restored_discarded_and_removed(
    serve: Serve, model_server: ScriptedServer
) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        first = await stage(client)
        wrong = await client.post(f"{API}/{NAME}/apply", json={"sha256": "0" * 64})
        assert (wrong.status_code, error_of(wrong)["details"]["stage"]) == (409, "version")
        decisions = await asyncio.gather(
            *(client.post(f"{API}/{NAME}/apply", json={"sha256": first["sha256"]}) for _ in range(4))
        )
        assert sorted(one.status_code for one in decisions) == [200, 409, 409, 409], "an approval is used once"

        changed = CODE.replace('"expected the form A-12"', '"use the form A-12"')
        model_server.load(script(*ToolScript(codes=(changed,)).rules()))
        refined = await client.post(f"{API}/{NAME}/refine", json={"change": "Say it shorter."})
        assert refined.status_code == 201, refined.text
        second = refined.json()
        assert (second["version"], second["parent"], second["state"], second["is_active"]) == (2, 1, "staged", False)
        assert "the form A-12" in prompts(model_server, WRITES_CODE)[0], "the code that is refined"
        assert "expected the form" in (await call_tool(client, NAME, number="x"))["response"], "version 1 is in use"
        assert (await client.post(f"{API}/{NAME}/restore", json={"version": 2})).status_code == 409
        assert (await client.post(f"{API}/{NAME}/apply", json={"version": 2})).status_code == 200
        assert "use the form" in (await call_tool(client, NAME, number="x"))["response"]
        assert (await client.post(f"{API}/{NAME}/discard", json={"version": 1})).status_code == 409
        restored = await client.post(f"{API}/{NAME}/restore", json={"version": 1, "sha256": first["sha256"]})
        assert (restored.status_code, restored.json()["is_active"]) == (200, True)
        assert "expected the form" in (await call_tool(client, NAME, number="x"))["response"]
        listed = (await client.get(f"{API}/{NAME}/versions")).json()["data"]
        assert [(one["version"], one["is_active"]) for one in listed] == [(2, False), (1, True)]

        room = {"name": "Parts", "tools": [NAME]}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        used = await client.delete(f"{API}/{NAME}")
        assert (used.status_code, error_of(used)["details"]["rooms"]) == (409, ["parts"])
        assert (await client.delete("/v1/rooms/parts")).status_code == 204
        assert (await client.delete(f"{API}/{NAME}")).status_code == 204
        await assert_nothing_is_left(client)
        counts: Counter[str] = Counter()
        for entry in (await client.get("/v1/audit?action=tool")).json()["data"]:
            # One of several at a time that lost is recorded before, and again as failed.
            counts[entry["action"]] += 1 if entry["outcome"] == "done" else -1
        assert counts == {"tool.remove": 1, "tool.restore": 1, "tool.apply": 2}


async def test_what_a_person_has_seen_is_what_is_applied(serve: Serve, model_server: ScriptedServer) -> None:
    """Without a number, `tool_apply` means the newest staged version: that is shown, and no other one is applied."""
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        await stage(client)
        await refine(client, model_server, "form 2")
        assert (await client.post(f"{API}/{NAME}/apply", json={"version": 2})).status_code == 200
        body = {"prompt": "", "metadata": {"tool_calls": [{"tool": "tool_apply", "args": {"name": NAME}}]}}
        asked = (await client.post("/v1/agent", json=body)).json()
        assert f"Tool {NAME}, version 1 (staged)" in asked["response"], asked
        await refine(client, model_server, "form 3")
        run = f"/v1/runs/{asked['metadata']['run_id']}"
        await client.post(f"{run}/approve", json={"approvals": ids_of(asked)})
        await until_async(lambda: shows(client, run, f"Tool {NAME}, version 3 (staged)"))
        assert await list_active(client) == [2], "nobody has seen version 3 before"
        await client.post(f"{run}/approve", json={"approvals": ids_of((await client.get(run)).json())})
        await until_async(lambda: shows(client, run, '"status":"succeeded"'))
        assert await list_active(client) == [3]


async def shows(client: httpx.AsyncClient, run: str, text: str) -> bool:
    """Whether the run, as it is now, holds a text."""
    return text in (await client.get(run)).text


async def refine(client: httpx.AsyncClient, server: ScriptedServer, hint: str) -> None:
    """Stages a version that returns another hint."""
    server.load(script(*ToolScript(codes=(CODE.replace("the form A-12", hint),)).rules()))
    refined = await client.post(f"{API}/{NAME}/refine", json={"change": "Say it otherwise."})
    assert refined.status_code == 201, refined.text


async def list_active(client: httpx.AsyncClient) -> list[int]:
    versions = (await client.get(f"{API}/{NAME}/versions")).json()["data"]
    return [one["version"] for one in versions if one["is_active"]]


async def test_an_applied_tool_is_there_after_a_restart(serve: Serve) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        await stage(client)
        assert (await client.post(f"{API}/{NAME}/apply", json={})).status_code == 200
    async with serve(script()) as url, client_of(url) as client:
        assert '"12A"' in (await call_tool(client, NAME, number="A-12"))["response"]


async def test_another_process_is_followed(serve: Serve, tmp_path: Path) -> None:
    async with (
        serve(script(*ToolScript().rules())) as url,
        client_of(url) as client,
        serve(script(*ToolScript().rules())) as other_url,
        client_of(other_url) as other,
    ):
        await stage(client)
        assert (await client.post(f"{API}/{NAME}/apply", json={})).status_code == 200
        async with asyncio.timeout(10):
            while (await call_tool(other, NAME, number="A-12"))["status"] != 200:  # noqa: ASYNC110 - it polls too
                await asyncio.sleep(0.1)


async def test_a_wider_version_names_what_it_gains(serve: Serve, model_server: ScriptedServer) -> None:
    wide = CODE.replace("    letter, dash", '    await http_get("https://parts.example/x")\n    letter, dash')
    tests = tuple(f'record("http_get", "https://parts.example/x", answer="ok")\n{case}' for case in TESTS)
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        assert (await stage(client))["wider"] == [], "it asks for nothing"
        await client.post(f"{API}/{NAME}/apply", json={})
        made = ToolScript(codes=(wide,), tests=tests, permissions={"hosts": ["parts.example"]})
        model_server.load(script(*made.rules()))
        limited = await client.post(f"{API}/{NAME}/refine", json={"change": "Ask the server.", "permissions": {}})
        assert (limited.status_code, error_of(limited)["details"]["stage"]) == (400, "tests")
        refined = (await client.post(f"{API}/{NAME}/refine", json={"change": "Ask the server."})).json()
        assert refined["wider"] == ["hosts parts.example"]
        assert refined["permissions"]["hosts"] == ["parts.example"]


@pytest.mark.row("S000-14")
async def test_tools_belong_to_their_owner(serve: Serve, tmp_path: Path) -> None:
    keys = await keys_of(tmp_path, {}, anna=["admin"], bert=["admin"])
    keys["reader"] = (await keys_of(tmp_path, {}, anna=["chat", "agent", "approve"]))["anna"]
    async with serve(script(*ToolScript().rules()), require_key="always") as url, client_of(url) as client:
        client.headers.update(keys["reader"])
        assert (await client.get(API)).status_code == 403
        client.headers.update(keys["anna"])
        await stage(client)
        applied = await client.post(f"{API}/{NAME}/apply", json={})
        assert applied.status_code == 200, applied.text
        assert "12A" in (await call_tool(client, NAME, number="A-12"))["response"]
        client.headers.update(keys["bert"])
        assert (await client.get(API)).json() == {"data": []}
        assert (await client.get(f"{API}/{NAME}")).status_code == 404
        assert NAME not in [tool["name"] for tool in (await client.get("/v1/tools")).json()["data"]]
        denied = await call_tool(client, NAME, number="A-12")
        assert "12A" not in json.dumps(denied)
        assert (await generate(client)).status_code == 409, "names are unique, as those of all tools"
        assert (await client.delete(f"{API}/{NAME}")).status_code == 404
