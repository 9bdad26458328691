"""Log messages to MCP clients. Era 2025 sets a level for the session, era 2026 sets one for each request."""

from typing import get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from mcp_tools.server.sessions import Context, get_connection

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""In order of severity, the lowest first."""
DEFAULT_LEVEL: types.LoggingLevel = "info"
"""The level of a session of era 2025 that has set none; the protocol leaves the choice to the server."""
_LEVEL_KEY = "stepgate.log_level"


async def set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Handles `logging/setLevel`: the session gets only messages of this level and above."""
    get_connection(context).state[_LEVEL_KEY] = params.level
    return types.EmptyResult()


async def log_to_client(context: Context, level: types.LoggingLevel, data: JsonValue) -> None:
    """Sends a log message on the stream of this request if the client wants this level."""
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        wanted = level in allowed_log_levels(context.protocol_version, context.meta)
    else:
        least = get_connection(context).state.get(_LEVEL_KEY, DEFAULT_LEVEL)
        wanted = LEVELS.index(level) >= LEVELS.index(least)
    if wanted:
        params = types.LoggingMessageNotificationParams(level=level, logger="stepgate", data=data)
        message = types.LoggingMessageNotification(params=params)
        await context.session.send_notification(message, related_request_id=context.request_id)
