"""Routes of the A2A door, if its extra is installed. The SDK is loaded at the first request: it takes 40 MB, which
gateways without A2A clients save.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.core.errors import TooLargeError
from agent.core.extras import EXTRAS
from agent.core.json_walk import has_more_nodes
from agent.core.settings import Settings
from gateway.access.dependencies import get_caller
from gateway.doors.dependencies import get_stepgate

if TYPE_CHECKING:
    from gateway.features.protocols.doors.a2a import A2ADoor

CARD_PATH = "/.well-known/agent-card.json"
RPC_PATH = "/a2a"
MAX_VALUES: Final = 15_000
"""Values in the JSON of a call. The SDK converts each in Python: 200,000 held up everybody else for three seconds."""


class LazyA2ADoor:
    """The two endpoints of one application. `routes` is empty without the extra `a2a`."""

    def __init__(self) -> None:
        self._door: A2ADoor | None = None
        self._loading = asyncio.Lock()
        self.routes: list[BaseRoute] = []
        if EXTRAS["a2a"].is_installed:
            self.routes = [
                Route(CARD_PATH, endpoint=self._get_card, methods=["GET"]),
                Route(RPC_PATH, endpoint=self._handle_call, methods=["POST"]),
            ]

    async def _get_card(self, request: Request) -> Response:
        """The agent card. Anybody may read it."""
        stepgate = await get_stepgate(request)
        base_url = stepgate.settings.public_url or str(request.base_url)
        door = await self._load()
        return JSONResponse(door.build_card(stepgate, base_url.rstrip("/")))

    async def _handle_call(self, request: Request) -> Response:
        """Handles a JSON-RPC call. Raises `AuthError`, `ScopeError`, `RateLimitError`, and `TooLargeError` for more
        values than the SDK reads in a moment.
        """
        (await get_caller(request)).require_scope("agent")
        try:
            is_too_large = has_more_nodes(await request.json(), MAX_VALUES)
        except RecursionError:
            raise TooLargeError("the JSON of the call is nested too deeply; send it flat, or as text") from None
        except ValueError:  # the SDK says what is wrong with a body that is no JSON
            is_too_large = False
        if is_too_large:
            raise TooLargeError(f"the call has more than {MAX_VALUES:,} JSON values; send a long list as text")
        return await (await self._load()).handle_request(request)

    async def _load(self) -> "A2ADoor":
        async with self._loading:
            if self._door is None:
                self._door = await asyncio.to_thread(_build_door)
        return self._door


def make_routes(_: Settings) -> list[BaseRoute]:
    """The routes of one application's door."""
    return LazyA2ADoor().routes


def _build_door() -> "A2ADoor":
    from gateway.features.protocols.doors.a2a import A2ADoor  # noqa: PLC0415 - see the module's docstring

    return A2ADoor()
