"""`stepgate mcp-servers list|add|remove|test|login|logout|review`: other people's MCP servers."""

import asyncio
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.mcp_servers_login import configured, login, logout
from gateway.cli.mcp_servers_review import opened_pins, review, standings
from gateway.cli.session import settings_of_command
from mcp_tools.mcp_config import McpServerConfig, add_server, read_servers, remove_server

if TYPE_CHECKING:
    from agent.core.config import Settings
    from mcp_tools.hub import McpServer

app = typer.Typer(help="Other people's MCP servers: which there are, add or remove one, try one.", cls=Group)
_TAKEN_UP = "A gateway that is running takes it up at its next start."


@app.command("list")
def list_servers() -> None:
    """List the configured servers."""
    settings = settings_of_command()
    servers, problems = read_servers(settings.mcp_servers_path)
    table = screen.Table("server", "transport", "state", "tools", "where", box=None, pad_edge=False)
    pinned = standings(settings, servers) if servers else {}
    for name, config in servers.items():
        where = config.url or " ".join((config.command, *config.args))
        state = "disabled" if config.disabled else "enabled"
        table.add_row(*map(screen.escape, (name, config.transport, state, pinned[name], where)))
    if servers:
        screen.print_table(table)
    else:
        print(f"No MCP servers in {settings.mcp_servers_path}.")
    for problem in problems:
        screen.Console().print(f"[red]{screen.escape(problem)}[/red]", highlight=False, soft_wrap=True)


@app.command(context_settings={"ignore_unknown_options": True})
def add(
    name: Annotated[str, typer.Argument(help="What to call it; its tools become name__tool.")],
    target: Annotated[list[str], typer.Argument(help="Its URL, or the command that starts it with its arguments.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace a server of this name. After `--` it is the command's own.")
    ] = False,
    oauth: Annotated[
        bool, typer.Option("--oauth", help="The server of this URL wants a login; `login NAME` is what comes next.")
    ] = False,
) -> None:
    """Add a server to the file. Says exactly what will be run."""
    path = settings_of_command().mcp_servers_path
    if "://" in target[0]:
        if len(target) > 1:
            raise typer.BadParameter("a URL takes no arguments")
        add_server(path, name, {"url": target[0], **({"auth": "oauth"} if oauth else {})}, replace=force)
        print(f"{name}: {target[0]} (in {path})")
        print(f"Log in: stepgate mcp-servers login {name}" if oauth else _TAKEN_UP)
        return
    if oauth:
        raise typer.BadParameter("--oauth is for a URL")
    add_server(path, name, {"command": target[0], "args": target[1:]}, replace=force)
    print(f"{name}: will run exactly: {' '.join(target)} (in {path})")
    if shutil.which(target[0]) is None:
        print(f"warning: there is no program {target[0]!r} here", file=sys.stderr)
    print(_TAKEN_UP)


@app.command()
def remove(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Remove a server from the file."""
    path = settings_of_command().mcp_servers_path
    remove_server(path, name)
    print(f"{name}: removed from {path}")


app.command()(review)
app.command()(login)
app.command()(logout)


@app.command()
def test(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Connect to a server, list its tools, and keep the list."""
    settings = settings_of_command()
    config = configured(settings, name)
    from mcp_tools.sanitize import cleaned, escaped  # noqa: PLC0415 - the guardrails; the other commands edit a file

    server = asyncio.run(_tried(settings, name, config))
    if server.status != "ready" and server.reason:
        raise ConfigError(f"MCP server {name!r} is {server.status}: {server.reason}")
    print(f"{name}: ready, {len(server.tools)} {'tool' if len(server.tools) == 1 else 'tools'}")
    for tool in server.tools:
        print(f"  {escaped(tool.name)}: {escaped(cleaned(tool.description or '').text.partition(chr(10))[0])[:100]}")
    for tool_name, why in server.quarantined.items():
        print(f"  {escaped(tool_name)}: in quarantine, it {why}; see `stepgate mcp-servers review {name}`")
    if server.reason:
        print(f"  left out: {server.reason}")
    for line in config.unheeded:
        print(f"  not heeded: {line}")


async def _tried(settings: "Settings", name: str, config: McpServerConfig) -> "McpServer":
    """The server after one connection to it. Its tools are pinned as a running gateway would."""
    from agent.core.credentials import Credentials  # noqa: PLC0415 - likewise
    from agent.tools import ToolRegistry  # noqa: PLC0415 - the client and its SDK; the other commands edit a file
    from gateway.cli.foreign import try_server  # noqa: PLC0415
    from mcp_tools.hub import McpServer  # noqa: PLC0415

    async with opened_pins(settings) as pinning:
        credentials = Credentials(settings.credentials_file)
        server = McpServer(name, config, ToolRegistry(), settings.data_dir / "mcp", pinning, credentials)
        await try_server(server)
    return server
