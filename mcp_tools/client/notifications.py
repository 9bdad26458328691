"""Log messages and progress of external MCP servers, limited in length and rate."""

import logging
from collections.abc import Callable
from time import monotonic

import mcp_types as types
from mcp.client.session import LoggingFnT
from mcp.shared.dispatcher import ProgressFnT

from mcp_tools.client.remote_tool import ReportProgress
from mcp_tools.client.sanitize import escape_invisible, sanitize_text

log = logging.getLogger(__name__)

MESSAGES_PER_MINUTE = 20
"""Log messages of one server that are logged; the others are counted."""
_MAX_MESSAGE_CHARS = 300
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO}


def make_log_handler(name: str, clock: Callable[[], float] = monotonic) -> LoggingFnT:
    """A handler that writes log messages of server `name` to our log. Its errors become our warnings."""
    minute, logged, skipped = clock(), 0, 0

    async def handle(params: types.LoggingMessageNotificationParams) -> None:
        nonlocal minute, logged, skipped
        if clock() - minute > 60:
            if skipped:
                log.info("MCP server %r sent %d more log messages", name, skipped)
            minute, logged, skipped = clock(), 0, 0
        if logged >= MESSAGES_PER_MINUTE:
            skipped += 1
            return
        logged += 1
        level = _LEVELS.get(params.level, logging.WARNING)
        log.log(level, "MCP server %r logs: %s", name, escape_invisible(str(params.data)[:_MAX_MESSAGE_CHARS]))

    return handle


def make_progress_handler(report: ReportProgress) -> ProgressFnT:
    """A handler that passes a server's progress on as one line of text."""

    async def handle(progress: float, total: float | None, message: str | None) -> None:
        amount = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        text = sanitize_text((message or "")[:_MAX_MESSAGE_CHARS]).text
        report(f"{text} ({amount})" if text else amount)

    return handle
