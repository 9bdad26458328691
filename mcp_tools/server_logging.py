"""Log messages to MCP clients. The 2025 era sets a level for its session, the 2026 one asks with each request."""

from typing import get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from mcp_tools.server_sessions import Context, connection_of

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From the least severe to the most."""
DEFAULT_LEVEL: types.LoggingLevel = "info"
"""What a session of the 2025 era gets that has set no level; the protocol leaves it to the server."""
_STATE = "stepgate.log_level"


async def set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """`logging/setLevel`: from now on only messages of this level and above."""
    connection_of(context).state[_STATE] = params.level
    return types.EmptyResult()


async def log_to_client(context: Context, level: types.LoggingLevel, data: JsonValue) -> None:
    """Send a message on the stream of this request, if its client wants messages of this level."""
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        wanted = level in allowed_log_levels(context.protocol_version, context.meta)
    else:
        least = connection_of(context).state.get(_STATE, DEFAULT_LEVEL)
        wanted = LEVELS.index(level) >= LEVELS.index(least)
    if wanted:
        params = types.LoggingMessageNotificationParams(level=level, logger="stepgate", data=data)
        message = types.LoggingMessageNotification(params=params)
        await context.session.send_notification(message, related_request_id=context.request_id)
