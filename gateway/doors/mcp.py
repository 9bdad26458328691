"""`/mcp`: the MCP server over streamable HTTP, both generations of the protocol at one endpoint."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import BusyError
from agent.core.settings import Settings
from gateway.bootstrap import Stepgate
from gateway.doors.mcp_messages import McpMessageMiddleware
from gateway.errors import HostError, MediaTypeError, RequestFormatError, build_error_response
from gateway.render.errors import MCP_PATH
from mcp_tools.server.mcp_server import ServerDependencies, build_server
from mcp_tools.server.sessions import MAX_SESSIONS, RETRY_MS, SessionManager
from mcp_tools.server.views import View

STATE_KEY = "mcp_state.key"
"""File in the data folder: the key that seals the state which clients carry between the rounds of a call."""
_REFUSALS: Mapping[int, str] = {421: "host", 403: "origin"}
"""The SDK's statuses for a refused header."""


class McpDoor:
    """The endpoints by path. One door for each application: the SDK's session managers can be entered only once."""

    def __init__(self, settings: Settings, views: Mapping[str, View]) -> None:
        self._stepgate: Stepgate | None = None
        self._managers = {
            path: SessionManager(
                build_server(self._get_served, settings.data_dir / STATE_KEY, view),
                retry_interval=RETRY_MS,
                max_request_body_size=settings.max_body_bytes,
                max_sessions=MAX_SESSIONS,
                security_settings=_build_transport_security(settings),
            )
            for path, view in views.items()
        }
        self.endpoints: Mapping[str, ASGIApp] = {
            path: McpErrorMiddleware(
                McpMessageMiddleware(_TrimmedHeaders(StreamableHTTPASGIApp(manager)), settings.max_body_bytes)
            )
            for path, manager in self._managers.items()
        }

    @asynccontextmanager
    async def serve(self, stepgate: Stepgate) -> AsyncIterator[None]:
        """Serves while entered."""
        self._stepgate = stepgate
        async with AsyncExitStack() as stack:
            for manager in self._managers.values():
                await stack.enter_async_context(manager.run())
            yield

    def _get_served(self) -> ServerDependencies:
        if self._stepgate is None:
            raise BusyError("the gateway is starting; try again in a moment")
        return build_served(self._stepgate)


class _TrimmedHeaders:
    """Strips spaces around header values, which are no part of them (RFC 9110, 5.5).

    httptools leaves those at the end; the SDK would then find that `Mcp-Name` differs from the body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await self._app({**scope, "headers": headers}, receive, send)


class McpErrorMiddleware:
    """The SDK's endpoint with explained refusals. For a refused Host or Origin it names the setting that allows it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        refused = 0
        sdk_text = b""

        async def send_unless_refused(message: Message) -> None:
            nonlocal refused, sdk_text
            if message["type"] == "http.response.start" and _is_plain_text_refusal(message):
                refused = message["status"]
            if not refused:
                await send(message)
            elif message["type"] == "http.response.body":
                sdk_text += message.get("body", b"")

        await self._app(scope, receive, send_unless_refused)
        if refused:
            error = _explain_refusal(refused, sdk_text.decode("utf-8", "replace"), Headers(scope=scope))
            await build_error_response(error, MCP_PATH, status=refused)(scope, receive, send)


def _is_plain_text_refusal(start: Message) -> bool:
    kind = next((value for name, value in start["headers"] if name.lower() == b"content-type"), b"")
    return start["status"] in _REFUSALS or (start["status"] >= 400 and not kind.startswith(b"application/json"))


def _explain_refusal(status: int, sdk_says: str, headers: Headers) -> RequestFormatError:
    if status in _REFUSALS:
        name = _REFUSALS[status]
        value = headers.get(name, "")[:100]
        return HostError(f"/mcp does not answer to the {name} {value!r}; if it is yours, add it to AGENT_ALLOWED_HOSTS")
    if "Content-Type" in sdk_says:
        kind = headers.get("content-type", "")[:80]
        return MediaTypeError(f"The body was sent as `{kind}`; send JSON with `content-type: application/json`.")
    return RequestFormatError(sdk_says[:200] or f"the MCP server refused this request ({status})")


def build_served(stepgate: Stepgate) -> ServerDependencies:
    """Returns what the MCP server offers of this gateway."""
    prompts, recipes = stepgate.studio.prompts, stepgate.recipes.store
    return ServerDependencies(stepgate.intake, stepgate.registry, stepgate.skills, prompts, recipes)


def _build_transport_security(settings: Settings) -> TransportSecuritySettings:
    """Allows only named hosts and origins: a web page must not reach a local gateway by DNS rebinding."""
    public_host = urlsplit(settings.public_url or "").hostname
    own_hosts = ("127.0.0.1", "localhost", "[::1]", settings.host, *([public_host] if public_host else ()))
    hosts = (*own_hosts, *settings.allowed_hosts)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[name for host in hosts for name in (host, f"{host}:*")],
        allowed_origins=[
            f"{scheme}://{host}{port}" for host in hosts for scheme in ("http", "https") for port in ("", ":*")
        ],
    )
