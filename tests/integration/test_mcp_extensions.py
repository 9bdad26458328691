"""The extensions of the MCP server: skills with their digests, and runs as tasks."""

import hashlib
from pathlib import Path

import httpx
import pytest

from mcp_tools.server.tasks import TASKS_EXTENSION
from tests.integration.conftest import Serve
from tests.support.conformance_wire import SLOW, modern, session_of_2025

TASK_METHODS = ("get", "cancel", "update")


async def test_a_long_task_is_the_durable_run(tmp_path: Path, serve: Serve) -> None:
    call = {"name": "agent_run", "arguments": {"task": "search, compute"}}
    async with serve(SLOW) as url:
        created = (await modern(url, "tools/call", call, tasks=True))["result"]
        task = {"taskId": created["taskId"]}
        undeclared = await modern(url, "tasks/get", task)
        misrouted = await modern(url, "tasks/get", task, {"mcp-name": "another"}, tasks=True)
        working = (await modern(url, "tasks/get", task, tasks=True))["result"]
        answered = (await modern(url, "tasks/update", {**task, "inputResponses": {}}, tasks=True))["result"]
        await modern(url, "tools/call", {"name": "run_get", "arguments": {"run_id": created["taskId"], "wait_s": 20}})
        stopped = (await modern(url, "tools/call", call, tasks=True))["result"]
        cancelled = (await modern(url, "tasks/cancel", {"taskId": stopped["taskId"]}, tasks=True))["result"]
        await modern(url, "tools/call", {"name": "run_get", "arguments": {"run_id": stopped["taskId"], "wait_s": 20}})
    async with serve() as url:
        done = (await modern(url, "tasks/get", task, tasks=True))["result"]
        gone = (await modern(url, "tasks/get", {"taskId": stopped["taskId"]}, tasks=True))["result"]
        again = (await modern(url, "tasks/cancel", task, tasks=True))["result"]
        unknown = [await modern(url, f"tasks/{name}", {"taskId": "run_x"}, tasks=True) for name in TASK_METHODS]
        quick = (await modern(url, "tools/call", {**call, "arguments": {"task": "what is 6*7"}}, tasks=True))["result"]
    assert (created["resultType"], created["status"], created["ttlMs"]) == ("task", "working", None)
    assert undeclared["error"]["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    assert (undeclared["error"]["code"], misrouted["error"]["code"]) == (-32021, -32020)
    assert (working["status"], working["resultType"]) == ("working", "complete")
    assert "result" not in working
    assert answered["resultType"] == cancelled["resultType"] == again["resultType"] == "complete"
    assert done["status"] == "completed"
    assert done["result"]["structuredContent"]["response"] == "It is 42."
    assert gone["status"] == "cancelled"
    assert [answer["error"]["code"] for answer in unknown] == [-32602] * 3
    assert quick["resultType"] == "complete"
    assert "42" in quick["content"][0]["text"]


async def test_a_client_of_2025_knows_no_tasks(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient() as client:
        headers = await session_of_2025(url)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "run_x"}}
        answer = await client.post(f"{url}/mcp", json=body, headers=headers)
    assert "-32601" in answer.text


@pytest.mark.row("Scard-03")
async def test_skills_are_served_with_the_digests_of_their_files(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "weather-words"
    (folder / "assets").mkdir(parents=True)
    front = "name: weather-words\ndescription: Names weather.\nversion: 1.5"
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n# Do it\n")
    (folder / "assets" / "sky.bin").write_bytes(b"\xff\x00sky")
    odd = tmp_path / "skills" / "other-name"
    odd.mkdir()
    (odd / "SKILL.md").write_text("---\ndescription: Has no name.\n---\nText\n")
    async with serve(skills_dirs=(tmp_path / "skills",)) as url:
        entries = (await modern(url, "skills/list", {}))["result"]["skills"]
        listed = {entry["frontmatter"]["name"]: entry for entry in entries}
        uri = "skill://weather-words/SKILL.md"
        got = (await modern(url, "skills/get", {"uri": uri}))["result"]
        card = (await modern(url, "resources/read", {"uri": uri}))["result"]["contents"][0]
        blob = (await modern(url, "resources/read", {"uri": "skill://weather-words/assets/sky.bin"}))["result"]
        out = await modern(url, "resources/read", {"uri": "skill://weather-words/../other-name/SKILL.md"})
        unknown = await modern(url, "skills/get", {"uri": "skill://none/SKILL.md"})
    entry = listed["weather-words"]
    assert entry == got["skill"]
    assert (got["ttlMs"], got["resultType"]) == (60_000, "complete")
    assert entry["frontmatter"] == {"name": "weather-words", "description": "Names weather.", "version": 1.5}
    assert [file["uri"].rsplit("/", 1)[1] for file in entry["resources"]] == ["SKILL.md", "sky.bin"]
    assert entry["resources"][0]["digest"] == f"sha256:{hashlib.sha256(card['text'].encode()).hexdigest()}"
    assert entry["resources"][1]["size"] == 5
    assert blob["contents"][0]["blob"]
    assert "other-name" not in listed, "another client could not load it"
    assert (out["error"]["code"], unknown["error"]["code"]) == (-32602, -32602)


ODD = {
    "too-long": f"name: too-long\ndescription: {'x' * 1025}",
    "tool-list": "name: tool-list\ndescription: Has a list.\nallowed-tools: [Read, Grep]",
    "numbered": "name: numbered\ndescription: Has a number.\nmetadata:\n  version: 1.0",
    "endless": "name: endless\ndescription: Has no end.\nsize: .inf",
}


async def test_an_odd_skill_is_left_out_and_breaks_no_list(serve: Serve, tmp_path: Path) -> None:
    for name, front in {**ODD, "block-end": "name: block-end\ndescription: |\n  Two lines\n  of text."}.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(f"---\n{front}\n---\nDo it.\n")
    async with serve(skills_dirs=(tmp_path / "skills",)) as url:
        entries = (await modern(url, "skills/list", {}))["result"]["skills"]
        prompts = (await modern(url, "prompts/list", {}))["result"]["prompts"]
        odd = await modern(url, "skills/get", {"uri": "skill://too-long/SKILL.md"})
        card = (await modern(url, "resources/read", {"uri": "skill://too-long/SKILL.md"}))["result"]
    fronts = {entry["frontmatter"]["name"]: entry["frontmatter"] for entry in entries}
    assert not fronts.keys() & ODD.keys() - {"endless"}
    assert fronts["block-end"]["description"] == "Two lines\nof text.\n", "as YAML reads it: the last newline stays"
    assert {prompt["name"] for prompt in prompts} >= {*ODD, "block-end"}, "they work all the same"
    assert odd["error"]["code"] == -32602
    assert "x" * 1025 in card["contents"][0]["text"]
