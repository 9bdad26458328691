"""`/mcp`: the MCP server over streamable HTTP, both generations of the protocol at one endpoint."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import BusyError
from agent.core.principal import LOCAL, Principal
from agent.core.principal import STATE_KEY as PRINCIPAL_KEY
from agent.core.settings import Settings
from gateway.access.origin_check import is_json
from gateway.bootstrap import Stepgate
from gateway.doors.mcp_messages import McpMessageMiddleware
from gateway.render.error_responses import build_error_response
from gateway.render.errors import MCP_PATH, RequestFormatError
from mcp_tools.server.current_principal import act_as
from mcp_tools.server.mcp_server import ServerDependencies, build_server
from mcp_tools.server.sessions import IDLE_SECONDS, MAX_SESSIONS, RETRY_MS, SessionManager, build_session_user
from mcp_tools.server.toolsets import Toolsets
from mcp_tools.server.views import View

STATE_KEY = "mcp_state.key"
"""File in the data folder: the key that seals the state which clients carry between the rounds of a call."""


class McpDoor:
    """The endpoints by path. One door for each application: the SDK's session managers can be entered only once."""

    def __init__(self, settings: Settings, views: Mapping[str, View], toolsets: Toolsets) -> None:
        self._stepgate: Stepgate | None = None
        self._managers = {
            path: SessionManager(
                build_server(self._get_served, settings.data_dir / STATE_KEY, view, toolsets),
                retry_interval=RETRY_MS,
                max_request_body_size=settings.max_body_bytes,
                max_sessions=MAX_SESSIONS,
                session_idle_timeout=IDLE_SECONDS,
            )
            for path, view in views.items()
        }
        self.endpoints: Mapping[str, ASGIApp] = {
            path: McpErrorMiddleware(
                McpMessageMiddleware(_SdkRequests(StreamableHTTPASGIApp(manager)), settings.max_body_bytes)
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


class _SdkRequests:
    """Requests as the SDK reads them: with the caller as its user, to whom it binds sessions, with headers without
    spaces around values, and with `application/json` for every JSON type.

    The spaces are not part of the values (RFC 9110, 5.5). httptools leaves those at the end; the SDK would then find
    that `Mcp-Name` differs from the body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (name, b"application/json" if name == b"content-type" and is_json(value) else value.strip(b" \t"))
            for name, value in scope["headers"]
        ]
        caller = scope.get("state", {}).get(PRINCIPAL_KEY)
        principal = caller if isinstance(caller, Principal) else LOCAL
        with act_as(principal):  # the SDK compares headers with a tool's schema before any middleware of the server
            await self._app({**scope, "headers": headers, "user": build_session_user(principal)}, receive, send)


class McpErrorMiddleware:
    """The SDK's endpoint with refusals in JSON-RPC's shape instead of plain text."""

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
            text = sdk_text.decode("utf-8", "replace")[:200]
            if "Content-Type" in text:  # of an empty body: `BodyTypeMiddleware` has refused the others
                text = "The body is empty; send JSON with `content-type: application/json`."
            error = RequestFormatError(text or f"the MCP server refused this request ({refused})")
            await build_error_response(error, MCP_PATH, status=refused)(scope, receive, send)


def _is_plain_text_refusal(start: Message) -> bool:
    kind = next((value for name, value in start["headers"] if name.lower() == b"content-type"), b"")
    return start["status"] >= 400 and not kind.startswith(b"application/json")


def build_served(stepgate: Stepgate) -> ServerDependencies:
    """The parts of this gateway that the MCP server offers."""
    prompts = stepgate.host.list_mcp_prompts()
    return ServerDependencies(stepgate.intake, stepgate.registry, stepgate.skills, prompts)
