"""`/mcp` as the app has it: the MCP SDK behind it is loaded with the first request, for it takes 0.6 s of CPU and
30 MB that a house without MCP clients need not spend."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.core.config import Settings
from agent.core.errors import BusyError, NotFoundError, ScopeError
from agent.core.principal import STATE
from gateway.gatekeeper import key_of
from gateway.home import SHIPPED_VIEWS
from mcp_tools.server_curated import OWN, View, missing_tools, views_of

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.doors.mcp import McpDoor
    from mcp_tools.server_extras import ExtrasOf

log = logging.getLogger(__name__)

PATH = "/mcp"


class McpOnDemand:
    """The endpoints, and one task that loads the door at the first request and closes it in the end: the SDK's
    managers must be left in the task that entered them."""

    def __init__(self, settings: Settings, extras: "ExtrasOf | None" = None) -> None:
        self._settings = settings
        self._extras = extras
        self._wanted = asyncio.Event()
        self._closing = asyncio.Event()
        self._endpoints: asyncio.Future[Mapping[str, ASGIApp]] | None = None
        self._views: Mapping[str, View] = {}
        self._stepgate: Stepgate | None = None
        self.routes: list[BaseRoute] = [Route(path, endpoint=_Endpoint(self)) for path in (PATH, PATH + "/{view}")]
        """To be added to the gateway's own: mounting an app at "/" would swallow whatever comes after it."""

    @asynccontextmanager
    async def serve(self, stepgate: "Stepgate") -> AsyncIterator[None]:
        """Serve until left. `ConfigError` for a view that cannot be."""
        views = views_of(self._settings, SHIPPED_VIEWS)
        for line in missing_tools(views.values(), stepgate.registry):
            log.warning("%s", line)
        self._stepgate = stepgate
        self._views = {PATH: OWN, **{f"{PATH}/{name}": view for name, view in views.items()}}
        self._endpoints = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(stepgate, self._endpoints), name="mcp door")
        try:
            yield
        finally:
            self._closing.set()
            await owner

    async def identify(self, scope: Scope) -> None:
        """Leave the caller's principal on the request, for the server behind. `AuthError`, `ScopeError`,
        `RateLimitError`."""
        if self._stepgate is None:
            return
        request = Request(scope)
        caller = await self._stepgate.gatekeeper.caller(key_of(request.headers))
        if caller.key is not None and not caller.key.allows("mcp"):
            raise ScopeError(f"the API key {caller.key.id} lacks the scope 'mcp'", scope="mcp")
        counted = await self._stepgate.gatekeeper.count(caller)
        request.state.extra_headers = counted.headers
        counted.require()
        setattr(request.state, STATE, caller.principal)

    async def endpoint(self, path: str) -> ASGIApp:
        """The endpoint of a path, once it is loaded. `NotFoundError` for a view that is not there, `BusyError` while
        the gateway starts or stops."""
        if self._endpoints is None or self._closing.is_set():
            raise BusyError("the gateway is starting or stopping; try again in a moment")
        if path not in self._views:
            known = ", ".join(self._views)
            raise NotFoundError(f"there is no view at {path[:100]}; there are: {known}")
        self._wanted.set()
        return (await asyncio.shield(self._endpoints))[path]

    async def _own(self, stepgate: "Stepgate", endpoints: "asyncio.Future[Mapping[str, ASGIApp]]") -> None:
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._wanted, self._closing)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if not self._wanted.is_set():
            endpoints.cancel()
            return
        try:
            door = await asyncio.to_thread(self._load)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
            endpoints.set_exception(error)
            return
        async with door.serve(stepgate):
            endpoints.set_result(door.endpoints)
            await self._closing.wait()

    def _load(self) -> "McpDoor":
        from gateway.doors.mcp import McpDoor  # noqa: PLC0415 - see the module's docstring

        extras = {} if self._extras is None else {"extras": self._extras}
        return McpDoor(self._settings, self._views, **extras)


class _Endpoint:
    """The paths; a class, since Starlette takes functions for request handlers."""

    def __init__(self, door: McpOnDemand) -> None:
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        view = scope["path_params"].get("view")
        path = PATH if view is None else f"{PATH}/{view}"
        await self._door.identify(scope)
        await (await self._door.endpoint(path))(scope, receive, send)
