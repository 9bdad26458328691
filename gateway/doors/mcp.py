"""`/mcp`: the MCP server over streamable HTTP, both eras of the protocol on one endpoint."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.core.config import Settings
from agent.core.errors import BusyError
from gateway.bootstrap import Stepgate
from gateway.doors.hosts import HostsTold
from mcp_tools.server import Served, build_server
from mcp_tools.server_caller import current
from mcp_tools.server_curated import View
from mcp_tools.server_extras import ExtrasOf, no_extras
from mcp_tools.server_sessions import MAX_SESSIONS, RETRY_MS, SessionManager

STATE_KEY = "mcp_state.key"
"""Kept in the data folder: what seals the state clients carry from one round of a call to the next."""


class McpDoor:
    """The endpoints, by path. One door for each app: the SDK's session managers can be entered once."""

    def __init__(self, settings: Settings, views: Mapping[str, View], extras: ExtrasOf = no_extras) -> None:
        self._stepgate: Stepgate | None = None
        self._managers = {
            path: SessionManager(
                build_server(self._served, settings.data_dir / STATE_KEY, extras, view),
                retry_interval=RETRY_MS,
                max_request_body_size=settings.max_body_bytes,
                max_sessions=MAX_SESSIONS,
                security_settings=_allowed(settings),
            )
            for path, view in views.items()
        }
        self.endpoints: Mapping[str, ASGIApp] = {
            path: HostsTold(_TrimmedHeaders(StreamableHTTPASGIApp(manager))) for path, manager in self._managers.items()
        }

    @asynccontextmanager
    async def serve(self, stepgate: Stepgate) -> AsyncIterator[None]:
        """Serve until left."""
        self._stepgate = stepgate
        async with AsyncExitStack() as stack:
            for manager in self._managers.values():
                await stack.enter_async_context(manager.run())
            yield

    def _served(self) -> Served:
        if self._stepgate is None:
            raise BusyError("the gateway is starting; try again in a moment")
        return served_by(self._stepgate)


class _TrimmedHeaders:
    """Blanks around a header's value are no part of it (RFC 9110, 5.5), but httptools leaves those at its end; the
    SDK would find `Mcp-Name` to differ from the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await self._app({**scope, "headers": headers}, receive, send)


def served_by(stepgate: Stepgate) -> Served:
    """What the MCP server offers of a wired gateway, to whoever is asking."""
    return Served(stepgate.service.of(current()), stepgate.registry, stepgate.skills)


def _allowed(settings: Settings) -> TransportSecuritySettings:
    """Only named hosts and origins: a page in a browser must not reach a local gateway by rebinding a name."""
    hosts = ("127.0.0.1", "localhost", "[::1]", settings.host, *settings.allowed_hosts)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[name for host in hosts for name in (host, f"{host}:*")],
        allowed_origins=[
            f"{scheme}://{host}{port}" for host in hosts for scheme in ("http", "https") for port in ("", ":*")
        ],
    )
