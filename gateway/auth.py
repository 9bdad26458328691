"""Who calls, for the doors: a dependency that knows the caller, and one that demands a scope.

`/health`, `/ready` and the list of doors are open to all.
"""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request

from agent.core.errors import AgentError, ScopeError
from agent.core.keys import Scope
from gateway.doors.wiring import stepgate_of
from gateway.gatekeeper import Caller, key_of
from gateway.sse import EventStream


async def caller_of(request: Request) -> Caller:
    """The caller of this request, counted once.

    Dependencies of dependencies are called here, not declared: FastAPI's resolving took a tenth of a turn's CPU."""
    known: Any = getattr(request.state, "caller", None)
    if isinstance(known, Caller):
        return known
    stepgate = await stepgate_of(request)
    caller = await stepgate.gatekeeper.caller(key_of(request.headers))
    request.state.caller = caller
    counted = await stepgate.gatekeeper.count(caller)
    request.state.extra_headers = counted.headers
    counted.require()
    return caller


By = Annotated[Caller, Depends(caller_of)]


async def stream_of(request: Request) -> EventStream:
    """The stream this request may be answered by."""
    stepgate, caller = await stepgate_of(request), await caller_of(request)
    return EventStream(partial(stepgate.gatekeeper.stream, caller), stepgate.settings.heartbeat_seconds)


Stream = Annotated[EventStream, Depends(stream_of)]


async def knows_more(request: Request) -> bool:
    """Whether a caller of a door that is open to all may read of paths and addresses: where no key is demanded, for the
    caller is at home then, and with one of the scope `admin`. A key that is not valid opens no more than none."""
    gatekeeper = (await stepgate_of(request)).gatekeeper
    if not gatekeeper.demanded:
        return True
    text = key_of(request.headers)
    try:
        caller = await gatekeeper.caller(text) if text is not None else None
    except AgentError:  # also where the store is down, which is what is asked about
        return False
    return caller is not None and caller.key is not None and caller.key.allows("admin")


def requires(scope: Scope) -> Any:
    """A dependency of a router: its callers' keys must have this scope."""

    async def check(request: Request) -> None:
        caller = await caller_of(request)
        if caller.key is not None and not caller.key.allows(scope):
            raise ScopeError(f"the API key {caller.key.id} lacks the scope {scope!r}", scope=scope)

    return Depends(check)
