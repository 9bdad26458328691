"""What a foreign MCP server says beside its results: log messages, progress. As much of it as is good for us."""

import logging
from collections.abc import Callable
from time import monotonic

import mcp_types as types
from mcp.client.session import LoggingFnT
from mcp.shared.dispatcher import ProgressFnT

from mcp_tools.hub_tool import Told
from mcp_tools.sanitize import cleaned, escaped

log = logging.getLogger(__name__)

MESSAGES_A_MINUTE = 20
"""Log messages of one server that reach our log; the others are counted."""
_SHOWN = 300
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO}


def log_of(name: str, clock: Callable[[], float] = monotonic) -> LoggingFnT:
    """Takes what the server `name` logs by the protocol into our log. Its errors are warnings of ours."""
    minute, logged, left = clock(), 0, 0

    async def heard(params: types.LoggingMessageNotificationParams) -> None:
        nonlocal minute, logged, left
        if clock() - minute > 60:
            if left:
                log.info("MCP server %r sent %d more log messages", name, left)
            minute, logged, left = clock(), 0, 0
        if logged >= MESSAGES_A_MINUTE:
            left += 1
            return
        logged += 1
        level = _LEVELS.get(params.level, logging.WARNING)
        log.log(level, "MCP server %r logs: %s", name, escaped(str(params.data)[:_SHOWN]))

    return heard


def progress_to(told: Told) -> ProgressFnT:
    """Hands a server's progress on as a line: its own words, and how far it is where it says so."""

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        words = cleaned((message or "")[:_SHOWN]).text
        told(f"{words} ({share})" if words else share)

    return heard
