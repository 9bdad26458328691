"""`stepgate mcp-servers list|add|remove|test|login|logout|review`: foreign MCP servers."""

import asyncio
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.mcp_servers_login import get_server_config, login, logout
from gateway.cli.mcp_servers_review import describe_servers, open_pins, review
from gateway.cli.session import load_command_settings
from mcp_tools.client.config import McpServerConfig, add_server, read_servers, remove_server

if TYPE_CHECKING:
    from agent.core.settings import Settings
    from mcp_tools.client.hub import McpServer

app = typer.Typer(help="Foreign MCP servers: list, add, remove, test, log in, review.", cls=HelpfulGroup)
_APPLIED_NOTE = "A running gateway applies it within seconds; its log says if it cannot."


@app.command("list")
def list_servers() -> None:
    """List the configured servers."""
    settings = load_command_settings()
    servers, problems = read_servers(settings.mcp_servers_path)
    pinned = describe_servers(settings, servers) if servers else {}
    rows = []
    for name, config in servers.items():
        where = config.url or " ".join((config.command, *config.args))
        rows.append((name, config.transport, "disabled" if config.disabled else "enabled", pinned[name], where))
    none = f"No MCP servers in {settings.mcp_servers_path}; see `stepgate mcp-servers add --help`."
    lazy_rich.print_rows(("server", "transport", "state", "tools", "where"), rows, empty=none)
    for problem in problems:
        lazy_rich.Console().print(f"[red]{lazy_rich.escape(problem)}[/red]", highlight=False, soft_wrap=True)


@app.command(context_settings={"ignore_unknown_options": True})
def add(
    name: Annotated[str, typer.Argument(help="Its name; its tools become name__tool.")],
    target: Annotated[list[str], typer.Argument(help="Its URL, or the command and arguments that start it.")],
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace a server with this name. After `--` the option belongs to the command."),
    ] = False,
    oauth: Annotated[
        bool, typer.Option("--oauth", help="The server at this URL requires a login; run `login NAME` next.")
    ] = False,
) -> None:
    """Add a server to the file. Prints exactly what will be run."""
    path = load_command_settings().mcp_servers_path
    if "://" in target[0]:
        if len(target) > 1:
            raise typer.BadParameter("a URL has no arguments")
        add_server(path, name, {"url": target[0], **({"auth": "oauth"} if oauth else {})}, replace=force)
        print(f"{name}: {target[0]} (in {path})")
        print(f"Log in: stepgate mcp-servers login {name}" if oauth else _APPLIED_NOTE)
        return
    if oauth:
        raise typer.BadParameter("--oauth needs a URL")
    add_server(path, name, {"command": target[0], "args": target[1:]}, replace=force)
    print(f"{name}: will run exactly: {' '.join(target)} (in {path})")
    if shutil.which(target[0]) is None:
        print(f"warning: the program {target[0]!r} was not found", file=sys.stderr)
    print(_APPLIED_NOTE)


@app.command()
def remove(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Remove a server from the file."""
    path = load_command_settings().mcp_servers_path
    remove_server(path, name)
    print(f"{name}: removed from {path}")
    print(_APPLIED_NOTE)


app.command()(review)
app.command()(login)
app.command()(logout)


@app.command()
def test(name: Annotated[str, typer.Argument(help="The server's name.")]) -> None:
    """Connect to a server, list its tools, and store the list."""
    settings = load_command_settings()
    config = get_server_config(settings, name)
    from mcp_tools.client.sanitize import escape_invisible, sanitize_text  # noqa: PLC0415 - the guardrails; the other commands edit a file

    server = asyncio.run(_connect_once(settings, name, config))
    if server.status != "ready" and server.reason:
        raise ConfigError(f"MCP server {name!r} is {server.status}: {server.reason}")
    print(f"{name}: ready, {len(server.tools)} {'tool' if len(server.tools) == 1 else 'tools'}")
    for tool in server.tools:
        first_line = sanitize_text(tool.description or "").text.partition("\n")[0]
        print(f"  {escape_invisible(tool.name)}: {escape_invisible(first_line)[:100]}")
    for tool_name, why in server.quarantined.items():
        print(f"  {escape_invisible(tool_name)}: in quarantine, it {why}; see `stepgate mcp-servers review {name}`")
    if server.reason:
        print(f"  left out: {server.reason}")
    for line in config.ignored_settings:
        print(f"  ignored: {line}")


async def _connect_once(settings: "Settings", name: str, config: McpServerConfig) -> "McpServer":
    """Connects to the server once. Its tools are pinned as a running gateway would pin them."""
    from agent.storage.credentials import Credentials  # noqa: PLC0415 - likewise
    from agent.tools import ToolRegistry  # noqa: PLC0415 - the client and its SDK; the other commands edit a file
    from gateway.cli.mcp_connection import try_server  # noqa: PLC0415
    from mcp_tools.client.hub import McpServer  # noqa: PLC0415

    async with open_pins(settings) as pinning:
        credentials = Credentials(settings.credentials_file)
        server = McpServer(name, config, ToolRegistry(), settings.data_dir / "mcp", pinning, credentials)
        await try_server(server)
    return server
