"""`/mcp`: the MCP server over streamable HTTP, both eras of the protocol on one endpoint."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import BaseRoute

from agent.core.config import Settings
from agent.core.errors import BusyError
from gateway.bootstrap import Stepgate
from mcp_tools.server import Served, build_server


class McpDoor:
    """The endpoint. One for each app: the SDK's session manager can be entered once."""

    def __init__(self, settings: Settings) -> None:
        self._stepgate: Stepgate | None = None
        self._server = build_server(self._served)
        app = self._server.streamable_http_app(
            streamable_http_path="/mcp",
            max_request_body_size=settings.max_body_bytes,
            transport_security=_allowed(settings),
        )
        self.routes: list[BaseRoute] = list(app.routes)
        """To be added to the gateway's own: mounting an app at "/" would swallow whatever comes after it."""

    @asynccontextmanager
    async def serve(self, stepgate: Stepgate) -> AsyncIterator[None]:
        """Serve until left."""
        self._stepgate = stepgate
        async with self._server.session_manager.run():
            yield

    def _served(self) -> Served:
        if self._stepgate is None:
            raise BusyError("the gateway is starting; try again in a moment")
        return served_by(self._stepgate)


def served_by(stepgate: Stepgate) -> Served:
    """What the MCP server offers of a wired gateway."""
    return Served(stepgate.service, stepgate.registry, stepgate.skills)


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
