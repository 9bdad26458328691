"""`stepgate tools list|call`; features add theirs."""

import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError, ToolInputError
from agent.core.models import LOCAL_OWNER, AgentRequest, JsonObject
from gateway.cli import lazy_rich
from gateway.cli.arguments import check_arguments, parse_arguments
from gateway.cli.groups import LazyGroup
from gateway.cli.session import gateway_command, run_with_gateway
from gateway.feature_loader import VARIABLE, import_target, load_features

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from mcp_tools.client.hub import McpServer

app = typer.Typer(name="tools", help="Tools: list, call, generate and apply them.", cls=LazyGroup)


@app.command("list")
def list_tools(
    generated: Annotated[bool, typer.Option("--generated", help="Only generated tools, staged ones too.")] = False,
) -> None:
    """List the tools with their effect class; for foreign servers, the tools they last offered."""
    if generated:
        _list_generated()
        return

    async def work(stepgate: "Stepgate") -> None:
        table = lazy_rich.Table(box=None, pad_edge=False)
        for name in ("tool", "effect", "arguments"):
            table.add_column(name, overflow="fold")
        table.add_column("description")
        for spec in stepgate.registry.list_specs():
            names = ", ".join(spec.properties)
            first = spec.description.split("\n", 1)[0].split(". ")[0].rstrip(".")
            table.add_row(*map(lazy_rich.escape, (spec.name, spec.effect, names, first)))
        lazy_rich.print_table(table)
        for name, server in stepgate.servers.items():
            if server.status != "disabled" and not server.tools:
                print(f"{name}: no tools are known; `stepgate mcp-servers test {name}` lists them", file=sys.stderr)

    run_with_gateway(work, foreign="remembered")


def _list_generated() -> None:
    """Lists the generated tools. Raises `ConfigError` if the feature that makes them is off."""
    command = load_features().list_commands("tools list").get("--generated")
    if command is None:
        raise ConfigError(f"--generated: generated tools belong to the feature 'studio'; {VARIABLE} leaves it out")
    import_target(command.target)(owner=LOCAL_OWNER)


@app.command()
@gateway_command(foreign="remembered")
async def call(
    stepgate: "Stepgate",
    name: Annotated[str, typer.Argument(help="The tool.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="key=value pairs, or one JSON object.")] = None,
) -> int:
    """Call one tool through the gateway: validated, limited, recorded as a run."""
    async with AsyncExitStack() as stack:
        server = _find_server(stepgate, name)
        if server is not None:
            await _start_server(stack, server)
        spec = stepgate.registry.get(name).spec
        try:
            args = check_arguments(spec, parse_arguments(spec, arguments or []))
        except ToolInputError as error:
            print(error.message, file=sys.stderr)
            return 1
        request = AgentRequest(metadata={"tool_calls": [{"tool": name, "args": args}]})
        return await _run_call(stepgate, request, name)


def _find_server(stepgate: "Stepgate", tool: str) -> "McpServer | None":
    """The foreign server a tool belongs to: by its last tool list, else by its name."""
    servers = stepgate.servers.values()
    if tool in stepgate.registry:
        origin = stepgate.registry.get(tool).spec.origin
        return next((server for server in servers if server.origin == origin), None)
    before, separator, _ = tool.partition("__")
    plain = before.lower().replace("-", "_")
    return next((s for s in servers if separator and s.name.lower().replace("-", "_") == plain), None)


async def _start_server(stack: AsyncExitStack, server: "McpServer") -> None:
    """Starts one server. Raises `ConfigError` if it does not become ready."""
    from gateway.cli.mcp_connection import connect_server  # noqa: PLC0415 - the SDK of MCP, only for tools of its servers

    if server.status != "disabled":
        await stack.enter_async_context(connect_server(server))
    if server.status != "ready":
        why = f"{server.status}: {server.reason}" if server.reason else server.status
        raise ConfigError(f"MCP server {server.name!r} is {why}; see `stepgate mcp-servers test {server.name}`")


async def _run_call(stepgate: "Stepgate", request: AgentRequest, name: str) -> int:
    """Runs the call. Prints its result on stdout, or its error on stderr."""
    response = await stepgate.service.wait_for_response(await stepgate.service.start_run(request))
    results: list[JsonObject] = response.metadata.get("tool_results") or []
    error = next((result["error"] for result in results if result.get("error_code")), None)
    if results and error is None:
        print(response.response)
        return 0
    text = str(error or response.response)
    print(text if text.startswith(name) else f"{name}: {text}", file=sys.stderr)
    return 1
