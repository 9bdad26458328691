"""FastAPI dependencies for authentication: the caller, a required scope, a stream slot.

`/health`, `/ready` and the list of doors need no caller.
"""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request

from agent.core.errors import AgentError, BusyError
from agent.storage.api_keys import Scope
from gateway.access.authentication import Authenticator, Caller, read_key
from gateway.render.sse import EventStream


def get_gateway(request: Request) -> Any:
    """The gateway behind this application, whose class is built above. Raises `BusyError` before it is there."""
    gateway = getattr(request.app.state, "stepgate", None)
    if gateway is None:
        raise BusyError("the gateway is starting; try again in a moment")
    return gateway


async def get_caller(request: Request) -> Caller:
    """Identifies the caller of this request and counts the request once against its rate limits.

    It calls other dependencies directly instead of declaring them: FastAPI's resolver took a tenth of a request's CPU.
    Raises `AuthError` and `RateLimitError`.
    """
    caller_state: Any = getattr(request.state, "caller", None)
    if isinstance(caller_state, Caller):
        return caller_state
    authenticator: Authenticator = get_gateway(request).authenticator
    caller = await authenticator.authenticate(read_key(request.headers))
    request.state.caller = caller
    counted = await authenticator.count_request(caller)
    request.state.extra_headers = counted.headers
    counted.raise_if_refused()
    return caller


CurrentCaller = Annotated[Caller, Depends(get_caller)]


async def get_event_stream(request: Request) -> EventStream:
    """The event stream that may answer this request. Opening it takes one of the caller's stream slots."""
    stepgate, caller = get_gateway(request), await get_caller(request)
    return EventStream(partial(stepgate.authenticator.open_stream, caller), stepgate.settings.heartbeat_seconds)


CallerStream = Annotated[EventStream, Depends(get_event_stream)]


async def may_see_details(request: Request) -> bool:
    """Whether the caller of a public endpoint may see paths and addresses.

    True where no key is required (the caller is on this machine) and for a key with the scope `admin`. An invalid key
    counts as no key. A caller by a name that the gateway does not answer to may be a foreign web page.
    """
    authenticator: Authenticator = get_gateway(request).authenticator
    if not authenticator.requires_key and getattr(request.state, "is_host_allowed", True):
        return True
    text = read_key(request.headers)
    try:
        caller = await authenticator.authenticate(text) if text is not None else None
    except AgentError:  # also if the store is down, which this endpoint reports
        return False
    return caller is not None and caller.key is not None and caller.key.has_scope("admin")


def require_scope(scope: Scope) -> Any:
    """A router dependency that raises `ScopeError` for API keys without this scope."""

    async def check(request: Request) -> None:
        (await get_caller(request)).require_scope(scope)

    return Depends(check)


def require_tool(tool: str) -> Any:
    """A route dependency that raises `ScopeError` for API keys whose list of tools lacks this one, whose work
    the route does.
    """

    async def check(request: Request) -> None:
        (await get_caller(request)).principal.require_tool(tool)

    return Depends(check)
