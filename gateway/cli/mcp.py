"""`stepgate mcp`: the MCP server over stdio, for IDEs that start their servers themselves."""

import asyncio
import logging

from gateway.cli.session import set_up_logging, settings_of_command
from gateway.loading import Loading


def mcp() -> None:
    """Serve MCP over stdin and stdout. Shares the data folder with a running gateway."""
    settings = settings_of_command()
    set_up_logging(settings, logging.WARNING)
    with Loading():
        from gateway.cli.stdio import serve_stdio  # noqa: PLC0415 - the engine and the SDK; other commands do not need it

    asyncio.run(serve_stdio(settings))
