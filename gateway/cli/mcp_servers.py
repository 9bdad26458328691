"""`stepgate mcp-servers list|add|test`: other people's MCP servers."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent.core.errors import ConfigError
from agent.tools import ToolRegistry
from gateway.cli.session import settings_of_command
from mcp_tools.hub import CONNECT_SECONDS, McpServer
from mcp_tools.mcp_config import add_server, read_servers

app = typer.Typer(help="Other people's MCP servers: which there are, add one, try one.", no_args_is_help=True)


@app.command("list")
def list_servers() -> None:
    """List the configured servers."""
    settings = settings_of_command()
    servers, problems = read_servers(settings.mcp_servers_path)
    console = Console()
    table = Table("server", "transport", "where", "state", box=None)
    for name, config in servers.items():
        where = config.url or " ".join((config.command, *config.args))
        table.add_row(*map(escape, (name, config.transport, where, "disabled" if config.disabled else "enabled")))
    console.print(table if servers else f"No MCP servers in {settings.mcp_servers_path}.")
    for problem in problems:
        console.print(f"[red]{escape(problem)}[/red]", highlight=False)


@app.command(context_settings={"ignore_unknown_options": True})
def add(
    name: Annotated[str, typer.Argument(help="What to call it; its tools become name__tool.")],
    target: Annotated[list[str], typer.Argument(help="Its URL, or the command that starts it with its arguments.")],
) -> None:
    """Add a server to the file. Says exactly what will be run."""
    settings = settings_of_command()
    path = settings.mcp_servers_path
    if target[0].startswith(("http://", "https://")):
        if len(target) > 1:
            raise typer.BadParameter("a URL takes no arguments")
        add_server(path, name, {"url": target[0]})
        print(f"{name}: {target[0]} (in {path})")
        return
    add_server(path, name, {"command": target[0], "args": target[1:]})
    print(f"{name}: will run exactly: {' '.join(target)} (in {path})")


@app.command()
def test(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Connect to a server, list its tools, and keep the list."""
    settings = settings_of_command()
    servers, problems = read_servers(settings.mcp_servers_path)
    if name not in servers:
        told = next((problem for problem in problems if f"{name!r}" in problem), None)
        raise ConfigError(told or f"there is no MCP server {name!r} in {settings.mcp_servers_path}")
    server = McpServer(name, servers[name], ToolRegistry(), settings.data_dir / "mcp")

    async def connect() -> None:
        owner = asyncio.create_task(server.own())
        try:
            async with asyncio.timeout(CONNECT_SECONDS + 2):
                while server.status == "connecting":  # noqa: ASYNC110 - a status, told once a try
                    await asyncio.sleep(0.05)
        except TimeoutError:
            server.status, server.reason = "down", f"no answer within {CONNECT_SECONDS:g} s"
        finally:
            owner.cancel()
            await asyncio.wait([owner])

    asyncio.run(connect())
    if server.status != "ready" and server.reason:
        raise ConfigError(f"MCP server {name!r} is {server.status}: {server.reason}")
    print(f"{name}: ready, {len(server.tools)} tools")
    for tool in server.tools:
        print(f"  {tool.name}: {(tool.description or '').strip().splitlines()[0][:100] if tool.description else ''}")
