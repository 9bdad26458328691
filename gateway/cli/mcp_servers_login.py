"""`stepgate mcp-servers login|logout`: as whom we are at a foreign MCP server that wants a login (OAuth)."""

import asyncio
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError
from gateway.cli.session import settings_of_command
from mcp_tools.mcp_config import McpServerConfig, read_servers

if TYPE_CHECKING:
    from agent.core.config import Settings

Name = Annotated[str, typer.Argument(help="The server's name.")]


def login(
    name: Name,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the address in a browser.")] = True,
) -> None:
    """Log in at a server, in the browser, and keep the login for the gateway."""
    settings = settings_of_command()
    config = configured(settings, name)
    if config.auth != "oauth":
        raise ConfigError(f'MCP server {name!r} is set to no login; give its entry "auth": "oauth"')
    from mcp_tools.hub_tool import plain  # noqa: PLC0415 - the SDK of MCP; the other commands do without
    from mcp_tools.login import log_in  # noqa: PLC0415 - likewise
    from mcp_tools.logins import LoginFile  # noqa: PLC0415 - likewise

    async def show(url: str) -> None:
        print(f"Open this address, and agree there; it comes back to this machine:\n\n  {url}\n", flush=True)
        if browser:
            await asyncio.to_thread(webbrowser.open, url)

    new = asyncio.run(log_in(name, config, show, settings.fetch_allow_hosts))
    LoginFile(settings.data_dir / "mcp", plain(name)).write(new)
    print(f"{name}: logged in. A gateway that is running takes it up within a minute.")


def logout(name: Name) -> None:
    """Forget the login at a server. The server itself is not told."""
    from mcp_tools.hub_tool import plain  # noqa: PLC0415 - the SDK of MCP; the other commands do without
    from mcp_tools.logins import LoginFile  # noqa: PLC0415 - likewise

    if not LoginFile(settings_of_command().data_dir / "mcp", plain(name)).forget():
        raise ConfigError(f"nobody is logged in at the MCP server {name!r}")
    print(f"{name}: logged out. What the server has granted can be taken back there.")


def configured(settings: "Settings", name: str) -> McpServerConfig:
    """The entry of this name. Raises `ConfigError` where there is none, or it cannot be used."""
    servers, problems = read_servers(settings.mcp_servers_path)
    if name not in servers:
        told = next((problem for problem in problems if f"{name!r}" in problem), None)
        raise ConfigError(told or f"there is no MCP server {name!r} in {settings.mcp_servers_path}")
    return servers[name]
