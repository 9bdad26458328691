"""`stepgate mcp`: the MCP server over stdio, for IDEs that start their servers themselves."""

import asyncio
import logging

from gateway.cli.session import load_command_settings, set_up_logging
from gateway.quiet_interrupt import QuietInterrupt


def mcp() -> None:
    """Serve MCP over stdin and stdout. Shares the data folder with a running gateway."""
    settings = load_command_settings()
    set_up_logging(settings, logging.WARNING)
    with QuietInterrupt():
        from gateway.cli.stdio import serve_stdio  # noqa: PLC0415 - the engine and the SDK; other commands do not need it

    asyncio.run(serve_stdio(settings))
