"""Who an MCP request comes from: the door has verified their key, and left the principal on the HTTP request."""

from contextvars import ContextVar
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.requests import Request

from agent.core.principal import STATE, Principal

_current: ContextVar[Principal | None] = ContextVar("principal", default=None)


def current() -> Principal:
    """The principal of the request that is being handled; what a handler starts inherits it."""
    return _current.get() or Principal()


async def identified(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The middleware that takes the principal off each message: a session's messages may come from many requests."""
    request = ctx.request
    found = getattr(request.state, STATE, None) if isinstance(request, Request) else None
    token = _current.set(found if isinstance(found, Principal) else None)
    try:
        return await call_next(ctx)
    finally:
        _current.reset(token)
