"""How a door reaches the wired gateway."""

from typing import Annotated

from fastapi import Depends, Request

from agent.core.errors import BusyError
from gateway.bootstrap import Stepgate


async def stepgate_of(request: Request) -> Stepgate:
    """The gateway behind this app. `BusyError` before it is wired.

    Async although nothing is awaited: a plain function would cost every request a hop to a thread."""
    stepgate = getattr(request.app.state, "stepgate", None)
    if not isinstance(stepgate, Stepgate):
        raise BusyError("the gateway is starting; try again in a moment")
    return stepgate


Gateway = Annotated[Stepgate, Depends(stepgate_of)]
