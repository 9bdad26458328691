"""`stepgate tools list|call`."""

import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError, ToolInputError
from agent.core.models import AgentRequest, JsonObject
from gateway.cli import screen
from gateway.cli.arguments import checked, parsed
from gateway.cli.groups import Group
from gateway.cli.session import with_stepgate

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from mcp_tools.hub import McpServer

app = typer.Typer(help="Tools: what plans and skills may call, and one call by hand.", cls=Group)


@app.command("list")
def list_tools() -> None:
    """List the tools with their effect class; of other people's servers, what they last offered."""

    async def work(stepgate: "Stepgate") -> None:
        table = screen.Table(box=None, pad_edge=False)
        for name in ("tool", "effect", "arguments"):
            table.add_column(name, overflow="fold")
        table.add_column("description")
        for spec in stepgate.registry.specs():
            properties = spec.input_schema.get("properties")
            names = ", ".join(properties) if isinstance(properties, dict) else ""
            first = spec.description.split("\n", 1)[0].split(". ")[0].rstrip(".")
            table.add_row(*map(screen.escape, (spec.name, spec.effect, names, first)))
        screen.print_table(table)
        for name, server in stepgate.servers.items():
            if server.status != "disabled" and not server.tools:
                print(f"{name}: no tools are known; `stepgate mcp-servers test {name}` asks for them", file=sys.stderr)

    with_stepgate(work, foreign="remembered")


@app.command()
def call(
    name: Annotated[str, typer.Argument(help="The tool.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="key=value pairs, or one JSON object.")] = None,
) -> None:
    """Call one tool through the gateway: validated, limited, recorded as a run."""

    async def work(stepgate: "Stepgate") -> int:
        async with AsyncExitStack() as stack:
            server = _server_of(stepgate, name)
            if server is not None:
                await _start(stack, server)
            spec = stepgate.registry.get(name).spec
            try:
                args = checked(spec, parsed(spec, arguments or []))
            except ToolInputError as error:
                print(error.message, file=sys.stderr)
                return 1
            request = AgentRequest(metadata={"tool_calls": [{"tool": name, "args": args}]})
            return await _call(stepgate, request, name)

    raise SystemExit(with_stepgate(work, foreign="remembered"))


def _server_of(stepgate: "Stepgate", tool: str) -> "McpServer | None":
    """The foreign server a tool belongs to: by the lists of earlier times, else by its name."""
    servers = stepgate.servers.values()
    if tool in stepgate.registry:
        origin = stepgate.registry.get(tool).spec.origin
        return next((server for server in servers if server.origin == origin), None)
    before, separator, _ = tool.partition("__")
    plain = before.lower().replace("-", "_")
    return next((s for s in servers if separator and s.name.lower().replace("-", "_") == plain), None)


async def _start(stack: AsyncExitStack, server: "McpServer") -> None:
    """Have the one server ready. Raises `ConfigError` when it cannot be."""
    from gateway.cli.foreign import connected  # noqa: PLC0415 - the SDK of MCP, only for tools of its servers

    if server.status != "disabled":
        await stack.enter_async_context(connected(server))
    if server.status != "ready":
        why = f"{server.status}: {server.reason}" if server.reason else server.status
        raise ConfigError(f"MCP server {server.name!r} is {why}; see `stepgate mcp-servers test {server.name}`")


async def _call(stepgate: "Stepgate", request: AgentRequest, name: str) -> int:
    """Carry out the call; its result on stdout, or its error on stderr in the tool's own words."""
    response = await stepgate.service.response(await stepgate.service.start(request))
    results: list[JsonObject] = response.metadata.get("tool_results") or []
    error = next((result["error"] for result in results if result.get("error_code")), None)
    if results and error is None:
        print(response.response)
        return 0
    text = str(error or response.response)
    print(text if text.startswith(name) else f"{name}: {text}", file=sys.stderr)
    return 1
