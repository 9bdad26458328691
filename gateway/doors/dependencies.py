"""FastAPI dependency: the gateway behind the application."""

from typing import Annotated

from fastapi import Depends, Request

from gateway.access.dependencies import get_gateway
from gateway.bootstrap import Stepgate


async def get_stepgate(request: Request) -> Stepgate:
    """The gateway behind this application. Raises `BusyError` before it is built.

    Async although it awaits nothing: FastAPI would run a plain function in a thread on every request.
    """
    stepgate: Stepgate = get_gateway(request)
    return stepgate


Gateway = Annotated[Stepgate, Depends(get_stepgate)]
