"""Reads the caller of an MCP request. The door has verified the key and left the principal on the HTTP request."""

from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.requests import Request

from agent.core.principal import STATE_KEY, Principal
from mcp_tools.server.current_principal import reset_current_principal, set_current_principal


async def set_principal(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Middleware that sets the principal for each message: a session's messages may come from many HTTP requests."""
    request = ctx.request
    found = getattr(request.state, STATE_KEY, None) if isinstance(request, Request) else None
    token = set_current_principal(found if isinstance(found, Principal) else None)
    try:
        return await call_next(ctx)
    finally:
        reset_current_principal(token)
