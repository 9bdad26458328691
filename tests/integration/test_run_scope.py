"""What one request may use and sees: named tools, skills and foreign tools in plans, its own messages."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.core.models import Room
from mcp_tools.client.hub import McpHub
from tests.integration.test_mcp_client import server, stdio
from tests.support.engine import Bench, engine_bench
from tests.support.mcp_client import until
from tests.support.script import Call, plans, says, script

SKILL = "---\nname: repeat\ndescription: Repeats what it is told, with care.\nallowed-tools: {tools}\n---\nRepeat it.\n"
ONLY = {"metadata": {"tools": ["current_time"]}}


def skill_root(folder: Path, tools: str) -> Path:
    place = folder / "skills" / "repeat"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(SKILL.format(tools=tools))
    return folder / "skills"


def list_requests(bench: Bench, purpose: str) -> list[dict[str, Any]]:
    """The bodies of the model calls of a purpose."""
    return [request["body"] for request in bench.client.requests if request["purpose"] == purpose]


def text_of(body: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


@pytest.mark.row("S001-47")
async def test_named_tools_are_all_a_planned_run_has(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2+3"}}, times=1),
        plans({"tool": "repeat", "inputs": {"task": "compute 2+3 and tell the time"}}, {"tool": "completion"}),
        says(to="skill", times=1, calls=(Call("calculator", {"expression": "2+3"}),)),
        says("I could not compute.", to="skill"),
        says("Not computed.", to="completion"),
    )
    root = skill_root(tmp_path, "calculator current_time")
    async with engine_bench(tmp_path / "data", model, skill_roots=[root]) as bench:
        response = await bench.run("search for the sum of 2+3", **ONLY)
        catalogue = text_of(list_requests(bench, "planner")[0])
        assert "- current_time(" in catalogue
        assert "- calculator(" not in catalogue
        assert "calculator" in text_of(list_requests(bench, "planner")[1]), "the plan that used it was refused, by name"
        offered = [tool["function"]["name"] for tool in list_requests(bench, "skill")[0]["tools"]]
        assert offered == ["current_time"]
        refused = [line for line in response.steps if line.type == "tool"]
        assert [(line.title, line.status) for line in refused] == [("calculator", "refused")]
    assert [step["tool"] for step in response.metadata["plan"]["steps"]] == ["repeat", "completion"]


@pytest.mark.row("S001-12")
async def test_messages_stand_for_the_history_in_that_call_only(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", script(says("Noted."))) as bench:
        said: list[str] = []
        for prompt, more in (
            ("My boat is Aurora", {}),
            ("What is hers", {"messages": ({"role": "user", "content": "My cat is Mira"},)}),
            ("Which one", {}),
        ):
            await bench.run(prompt, conversation_id="c", **more)
            said.append(text_of(list_requests(bench, "planner")[-1]))
        assert ("Aurora" in said[1], "Mira" in said[1]) == (False, True)
        assert ("Aurora" in said[2], "Mira" in said[2]) == (True, False)


@pytest.mark.row("S001-17", "Scard-02")
async def test_planner_and_skills_know_foreign_tools_too(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "repeat", "inputs": {"task": "say hello"}}, {"tool": "completion"}),
        says(to="skill", times=1, calls=(Call("srv__echo", {"text": "hello"}),)),
        says("It said hello.", to="skill", about="echo: hello"),
        says("Hello came back.", to="completion"),
    )
    root = skill_root(tmp_path, "srv__echo")
    room = Room(id="test", tools=("calculator", "srv__echo"))
    async with engine_bench(tmp_path / "data", model, skill_roots=[root], room=room) as bench:
        hub = McpHub({"srv": stdio(trusted=True)}, bench.engine.registry, tmp_path / "mcp", None)
        await hub.start()
        try:
            await until(lambda: server(hub).status == "ready")
            response = await bench.run("search, then repeat hello")
        finally:
            await hub.aclose()
        prompt = text_of(list_requests(bench, "planner")[0])
        enabled = [skill for skill in bench.engine.skills.list_visible(None) if skill.model_invocable]
        assert len(enabled) >= 8, "the shipped ones and ours"
        for skill in enabled:
            line = next(line for line in prompt.splitlines() if line.startswith(f"- {skill.name}: "))
            described = line.removeprefix(f"- {skill.name}: ").rstrip("…").strip()
            assert described, line
            assert " ".join(skill.description.split()).startswith(described)
        assert "- srv__echo(text: string): Say it back." in prompt
        assert response.response == "Hello came back."
        (called,) = response.metadata["tool_results"]
        assert (called["tool"], called["tainted"]) == ("srv__echo", True)


@pytest.mark.row("S001-11")
async def test_conversations_survive_reopening_and_two_writers(tmp_path: Path) -> None:
    async with (
        engine_bench(tmp_path / "data", None) as one,
        engine_bench(tmp_path / "data", None) as other,
    ):
        stores = (one.store.conversations, other.store.conversations)
        await asyncio.gather(
            *(stores[n % 2].add_exchange("local", "c", f"run_{n}", f"q{n}", f"a{n}") for n in range(10))
        )
    async with engine_bench(tmp_path / "data", None) as again:
        turns = await again.store.conversations.list_turns("local", "c", limit=100)
    assert sorted(turns) == sorted([("user", f"q{n}") for n in range(10)] + [("assistant", f"a{n}") for n in range(10)])
    assert [role for role, _ in turns] == ["user", "assistant"] * 10
