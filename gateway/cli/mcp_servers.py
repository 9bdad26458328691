"""`stepgate mcp-servers list|add|remove|test`: other people's MCP servers."""

import asyncio
import shutil
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent.core.errors import ConfigError
from gateway.cli.groups import Group
from gateway.cli.session import settings_of_command
from gateway.cli.tables import print_table
from mcp_tools.mcp_config import add_server, read_servers, remove_server

app = typer.Typer(help="Other people's MCP servers: which there are, add or remove one, try one.", cls=Group)


@app.command("list")
def list_servers() -> None:
    """List the configured servers."""
    settings = settings_of_command()
    servers, problems = read_servers(settings.mcp_servers_path)
    table = Table("server", "transport", "state", "where", box=None, pad_edge=False)
    for name, config in servers.items():
        where = config.url or " ".join((config.command, *config.args))
        table.add_row(*map(escape, (name, config.transport, "disabled" if config.disabled else "enabled", where)))
    if servers:
        print_table(table)
    else:
        print(f"No MCP servers in {settings.mcp_servers_path}.")
    for problem in problems:
        Console().print(f"[red]{escape(problem)}[/red]", highlight=False, soft_wrap=True)


@app.command(context_settings={"ignore_unknown_options": True})
def add(
    name: Annotated[str, typer.Argument(help="What to call it; its tools become name__tool.")],
    target: Annotated[list[str], typer.Argument(help="Its URL, or the command that starts it with its arguments.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace a server of this name. After `--` it is the command's own.")
    ] = False,
) -> None:
    """Add a server to the file. Says exactly what will be run."""
    path = settings_of_command().mcp_servers_path
    if "://" in target[0]:
        if len(target) > 1:
            raise typer.BadParameter("a URL takes no arguments")
        add_server(path, name, {"url": target[0]}, replace=force)
        print(f"{name}: {target[0]} (in {path})")
        return
    add_server(path, name, {"command": target[0], "args": target[1:]}, replace=force)
    print(f"{name}: will run exactly: {' '.join(target)} (in {path})")
    if shutil.which(target[0]) is None:
        print(f"warning: there is no program {target[0]!r} here", file=sys.stderr)


@app.command()
def remove(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Remove a server from the file."""
    path = settings_of_command().mcp_servers_path
    remove_server(path, name)
    print(f"{name}: removed from {path}")


@app.command()
def test(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Connect to a server, list its tools, and keep the list."""
    settings = settings_of_command()
    servers, problems = read_servers(settings.mcp_servers_path)
    if name not in servers:
        told = next((problem for problem in problems if f"{name!r}" in problem), None)
        raise ConfigError(told or f"there is no MCP server {name!r} in {settings.mcp_servers_path}")
    from agent.tools import ToolRegistry  # noqa: PLC0415 - the client and its SDK; the other commands edit a file
    from gateway.cli.foreign import try_server  # noqa: PLC0415
    from mcp_tools.hub import McpServer  # noqa: PLC0415

    server = McpServer(name, servers[name], ToolRegistry(), settings.data_dir / "mcp")
    asyncio.run(try_server(server))
    if server.status != "ready" and server.reason:
        raise ConfigError(f"MCP server {name!r} is {server.status}: {server.reason}")
    print(f"{name}: ready, {len(server.tools)} {'tool' if len(server.tools) == 1 else 'tools'}")
    for tool in server.tools:
        print(f"  {tool.name}: {(tool.description or '').strip().splitlines()[0][:100] if tool.description else ''}")
