"""`stepgate mcp-servers login|logout`: OAuth logins at foreign MCP servers."""

import asyncio
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError
from gateway.cli.session import load_command_settings
from mcp_tools.client.config import McpServerConfig, read_servers, to_tool_alphabet

if TYPE_CHECKING:
    from agent.core.settings import Settings

Name = Annotated[str, typer.Argument(help="The server's name.")]


def login(
    name: Name,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the address in a browser.")] = True,
) -> None:
    """Log in to a server in the browser, and store the login for the gateway."""
    settings = load_command_settings()
    config = get_server_config(settings, name)
    if config.auth != "oauth":
        raise ConfigError(f'MCP server {name!r} does not use a login; add "auth": "oauth" to its entry')
    from mcp_tools.client.oauth_flow import log_in  # noqa: PLC0415 - likewise
    from mcp_tools.client.oauth_tokens import LoginFile  # noqa: PLC0415 - likewise

    async def show(url: str) -> None:
        print(f"Open this address and log in; the browser returns to this machine:\n\n  {url}\n", flush=True)
        if browser:
            await asyncio.to_thread(webbrowser.open, url)

    new = asyncio.run(log_in(name, config, show, settings.fetch_allow_hosts))
    LoginFile(settings.data_dir / "mcp", to_tool_alphabet(name)).write(new)
    print(f"{name}: logged in. A running gateway uses it within a minute.")


def logout(name: Name) -> None:
    """Delete the login for a server. The server itself is not notified."""
    from mcp_tools.client.oauth_tokens import LoginFile  # noqa: PLC0415 - likewise

    if not LoginFile(load_command_settings().data_dir / "mcp", to_tool_alphabet(name)).delete():
        raise ConfigError(f"nobody is logged in at the MCP server {name!r}")
    print(f"{name}: logged out. Revoke the access at the server itself, if needed.")


def get_server_config(settings: "Settings", name: str) -> McpServerConfig:
    """The entry of this name. Raises `ConfigError` if it is missing or unusable."""
    servers, problems = read_servers(settings.mcp_servers_path)
    if name not in servers:
        problem = next((problem for problem in problems if f"{name!r}" in problem), None)
        raise ConfigError(problem or f"there is no MCP server {name!r} in {settings.mcp_servers_path}")
    return servers[name]
