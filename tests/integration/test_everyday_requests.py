"""Everyday requests with ten servers attached: the planner is asked, and sees the tool that fits."""

from pathlib import Path
from typing import Any

from agent.core.models import JsonObject
from agent.tools import ToolContext, ToolResult, ToolSpec
from tests.support.catalogues import load_requests, load_specs
from tests.support.engine import engine_bench
from tests.support.script import answers, plans, says, script

NEEDING = tuple(request for request in load_requests() if request.expected == "tool")


class CountingTool:
    """A tool of a foreign server that counts its calls."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.calls: list[JsonObject] = []

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Return a word."""
        self.calls.append(args)
        return ToolResult("done", "done")

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Nothing is known of earlier calls."""
        return None


def planner_prompt(bench: Any) -> str:
    (request,) = bench.client.requests
    bench.client.requests.clear()
    assert request["purpose"] == "planner"
    return str(request["body"]["messages"][0]["content"])


async def test_every_request_with_a_fitting_tool_reaches_the_planner_with_that_tool(tmp_path: Path) -> None:
    tools = [CountingTool(spec) for spec in load_specs()]
    missing = []
    async with engine_bench(tmp_path, script(answers("Done.")), tools=tools, translate="off") as bench:
        for request in NEEDING:
            response = await bench.run(request.text)
            prompt = planner_prompt(bench)
            assert response.response == "Done."
            if f"- {request.tools[0]}(" not in prompt:
                missing.append(request.id)
            assert request.tools[0].partition("__")[2] in prompt, "every tool is there, be it by name alone"
    assert len(NEEDING) >= 200
    assert len(missing) <= 0.02 * len(NEEDING), f"without their inputs: {missing}"


async def test_tools_that_are_not_spelled_out_can_be_looked_for(tmp_path: Path) -> None:
    wanted = CountingTool(next(spec for spec in load_specs() if spec.name == "forge__list_branches"))
    tools = [wanted, *(CountingTool(spec) for spec in load_specs() if spec is not wanted.spec)]
    look = says('{"kind": "find_tools", "query": "branches of a repository"}', to="planner", times=1)
    model = script(look, plans({"tool": "forge__list_branches", "inputs": {"repo": "acme/web"}}), says("Two."))
    async with engine_bench(tmp_path, model, tools=tools) as bench:
        response = await bench.run("What is there to see?")
        first, second = (request["body"]["messages"][0]["content"] for request in bench.client.requests[:2])
        purposes = bench.client.purposes()
    assert purposes == ["planner", "planner", "completion"], "a search costs one more call"
    assert '"kind": "find_tools"' in first
    assert '"kind": "find_tools"' not in second, "it is searched once"
    line = next(line for line in second.splitlines() if line.startswith("- forge__list_branches("))
    assert ": string" in line, "what was found is spelled out whole"
    assert response.response == "Two."
    assert len(wanted.calls) == 1
