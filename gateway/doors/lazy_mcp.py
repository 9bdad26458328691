"""Loads `/mcp` at its first request. The MCP SDK takes 0.6 s of CPU and 30 MB, which gateways without MCP
clients save.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.core.errors import BusyError, NotFoundError
from agent.core.principal import STATE_KEY
from agent.core.settings import Settings
from gateway.access.authentication import read_key
from gateway.access.key_watch import KeyWatch
from gateway.packaged_files import SHIPPED_VIEWS
from mcp_tools.server.toolsets import QUERY_PARAMETER, Toolsets
from mcp_tools.server.views import View, list_missing_tools, load_configured_views, make_default_view

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.doors.mcp import McpDoor

log = logging.getLogger(__name__)

PATH = "/mcp"


class LazyMcpDoor:
    """The endpoints, and one task that loads the door at the first request and closes it at the end.

    The SDK's managers must be exited in the task that entered them.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._requested = asyncio.Event()
        self._closing = asyncio.Event()
        self._endpoints: asyncio.Future[Mapping[str, ASGIApp]] | None = None
        self._views: Mapping[str, View] = {}
        self._toolsets = Toolsets()
        self._stepgate: Stepgate | None = None
        self.routes: list[BaseRoute] = [Route(path, endpoint=_Endpoint(self)) for path in (PATH, PATH + "/{view}")]
        """Routes for the application. Mounting an ASGI application at "/" would catch all later routes."""

    @asynccontextmanager
    async def serve(self, stepgate: "Stepgate") -> AsyncIterator[None]:
        """Serves while entered. Raises `ConfigError` for an invalid view."""
        self._toolsets = Toolsets(stepgate.host.context.features.list_toolsets())
        views = load_configured_views(self._settings, SHIPPED_VIEWS, self._toolsets)
        for line in list_missing_tools(views.values(), stepgate.registry):
            log.warning("%s", line)
        self._stepgate = stepgate
        self._views = {
            PATH: make_default_view(self._settings.mcp_toolsets, self._toolsets),
            **{f"{PATH}/{name}": view for name, view in views.items()},
        }
        self._endpoints = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._run_door(stepgate, self._endpoints), name="mcp door")
        try:
            yield
        finally:
            self._closing.set()
            await owner

    async def identify(self, scope: Scope) -> KeyWatch | None:
        """Stores the caller's principal on the request, for the server behind, and returns the watch of its key.

        Raises `AuthError`, `ScopeError` and `RateLimitError`.
        """
        if self._stepgate is None:
            return None
        request = Request(scope)
        caller = await self._stepgate.authenticator.authenticate(read_key(request.headers))
        caller.require_scope("mcp")
        counted = await self._stepgate.authenticator.count_request(caller)
        request.state.extra_headers = counted.headers
        counted.raise_if_refused()
        setattr(request.state, STATE_KEY, caller.principal)
        return self._stepgate.authenticator.watch_key(caller)

    async def get_endpoint(self, path: str, toolsets: str | None) -> ASGIApp:
        """The endpoint of a path once it is loaded. `toolsets` is that of the query.

        Raises `NotFoundError` for an unknown view, `BadRequestError` for toolsets that it does not have, and
        `BusyError` while the gateway starts or stops.
        """
        if self._endpoints is None or self._closing.is_set():
            raise BusyError("the gateway is starting or stopping; try again in a moment")
        if path not in self._views:
            view_names = ", ".join(self._views)
            raise NotFoundError(f"there is no view at {path[:100]}; known views: {view_names}")
        self._views[path].choose_toolsets(toolsets, self._toolsets)
        self._requested.set()
        return (await asyncio.shield(self._endpoints))[path]

    async def _run_door(self, stepgate: "Stepgate", endpoints: "asyncio.Future[Mapping[str, ASGIApp]]") -> None:
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._requested, self._closing)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if not self._requested.is_set():
            endpoints.cancel()
            return
        async with AsyncExitStack() as stack:
            try:
                door = await asyncio.to_thread(self._load_door)
                await stack.enter_async_context(door.serve(stepgate))
            except Exception as error:  # noqa: BLE001 - every waiting request must get the error
                endpoints.set_exception(error)
                return
            endpoints.set_result(door.endpoints)
            await self._closing.wait()

    def _load_door(self) -> "McpDoor":
        from gateway.doors.mcp import McpDoor  # noqa: PLC0415 - see the module's docstring

        return McpDoor(self._settings, self._views, self._toolsets)


class _Endpoint:
    """The ASGI application of both paths. A class, because Starlette takes functions as request handlers."""

    def __init__(self, door: LazyMcpDoor) -> None:
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        view = scope["path_params"].get("view")
        path = PATH if view is None else f"{PATH}/{view}"
        watch = await self._door.identify(scope)
        toolsets = Request(scope).query_params.get(QUERY_PARAMETER)
        endpoint = await self._door.get_endpoint(path, toolsets)
        if watch is None:
            await endpoint(scope, receive, send)
            return
        async with watch.wrap_receive(receive) as watched:
            await endpoint(scope, watched, send)
