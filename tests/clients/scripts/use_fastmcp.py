"""FastMCP's client of the gateway's MCP server: tools, the agent with progress, approval, resources, prompts."""

from typing import Any

from checks import MODEL, RULES, SUM, check, contains, equal, run_checks
from fastmcp import Client


@check("tools: list and call")
async def tools() -> None:
    async with Client(f"{RULES}/mcp/all") as client:
        names = [tool.name for tool in await client.list_tools()]
        result = await client.call_tool("calculator", {"expression": "2*21"})
    contains(names, "agent_run")
    contains(str(result.structured_content), "42")


@check("the agent, with progress")
async def agent() -> None:
    messages: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    async with Client(f"{MODEL}/mcp/all", progress_handler=progress) as client:
        result = await client.call_tool("agent_run", {"task": SUM})
    report: Any = result.structured_content
    contains(report["response"], "42")
    equal(report["status"], "complete")
    contains(messages[0], "plan: 2 steps")


@check("approval by elicitation")
async def elicitation() -> None:
    questions: list[str] = []

    async def answer(message: str, response_type: Any, params: Any, context: Any) -> Any:
        questions.append(message)
        names = getattr(response_type, "__annotations__", {})
        return response_type(**{name: _approving(name, kind) for name, kind in names.items()})

    async with Client(f"{MODEL}/mcp/all", elicitation_handler=answer) as client:
        result = await client.call_tool("agent_run", {"task": SUM, "room": "careful"})
    contains(result.structured_content["response"], "42")
    contains(questions[0], "calculator")


def _approving(name: str, kind: Any) -> Any:
    return "approve" if "decision" in name else True if kind is bool else ""


@check("resources, prompts")
async def resources() -> None:
    async with Client(f"{RULES}/mcp/all") as client:
        found = await client.list_resources()
        prompts = await client.list_prompts()
        texts = await client.read_resource(found[0].uri) if found else []
        for prompt in prompts:
            if not any(argument.required for argument in prompt.arguments or ()):
                assert (await client.get_prompt(prompt.name)).messages
    assert found
    assert texts


@check("errors are told")
async def errors() -> None:
    async with Client(f"{RULES}/mcp/all") as client:
        result = await client.call_tool("agent_run", {"task": "x", "room": "none"}, raise_on_error=False)
    assert result.is_error
    contains(str(result.content), "known rooms")


if __name__ == "__main__":
    run_checks()
