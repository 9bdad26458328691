"""The principal of the current MCP request. The door has verified the key and left it on the HTTP request."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from agent.core.principal import LOCAL, STATE_KEY, Principal

if TYPE_CHECKING:  # the MCP SDK, which not every user of this module loads
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

_current_principal: ContextVar[Principal] = ContextVar("principal", default=LOCAL)


def get_current_principal() -> Principal:
    """The principal of the request that is being handled; tasks started by a handler inherit it."""
    return _current_principal.get()


def get_current_owner() -> str:
    """The owner whose data the current request reads and writes."""
    return get_current_principal().owner


@contextmanager
def act_as(principal: Principal) -> Iterator[None]:
    """Makes this the current principal while entered."""
    token = _current_principal.set(principal)
    try:
        yield
    finally:
        _current_principal.reset(token)


async def set_principal(ctx: "ServerRequestContext[Any, Any]", call_next: "CallNext") -> "HandlerResult":
    """Middleware that sets the principal for each message: a session's messages may come from many HTTP requests."""
    request = ctx.request
    principal = getattr(request.state, STATE_KEY, None) if isinstance(request, Request) else None
    with act_as(principal if isinstance(principal, Principal) else LOCAL):
        return await call_next(ctx)
