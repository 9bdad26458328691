"""Who calls, for the doors: a dependency that knows the caller, and one that demands a scope.

`/health`, `/ready` and the list of doors are open to all.
"""

from typing import Annotated, Any

from fastapi import Depends, Request

from agent.core.errors import ScopeError
from agent.core.keys import Scope
from agent.core.models import AgentRequest
from gateway.bootstrap import Stepgate
from gateway.doors.wiring import Gateway
from gateway.gatekeeper import Caller, key_of


async def caller_of(request: Request, stepgate: Gateway) -> Caller:
    """The caller of this request, counted once."""
    known: Any = getattr(request.state, "caller", None)
    if isinstance(known, Caller):
        return known
    caller = await stepgate.gatekeeper.caller(key_of(request.headers))
    request.state.caller = caller
    request.state.extra_headers = stepgate.gatekeeper.count(caller)
    return caller


async def start_run(stepgate: Stepgate, caller: Caller, request: AgentRequest, *, hidden: bool = False) -> str:
    """Begin a run for a caller, with the tools of their key. Raises what `AgentService.start` does, and
    `RateLimitError` when as many of their runs are under way as their key allows."""
    return await stepgate.service.of(caller.principal).start(request, hidden=hidden)


By = Annotated[Caller, Depends(caller_of)]


def requires(scope: Scope) -> Any:
    """A dependency of a router: its callers' keys must have this scope."""

    async def check(caller: By) -> None:
        if caller.key is not None and not caller.key.allows(scope):
            raise ScopeError(f"the API key {caller.key.id} lacks the scope {scope!r}", scope=scope)

    return Depends(check)
