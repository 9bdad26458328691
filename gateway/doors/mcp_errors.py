"""Wraps the MCP SDK's endpoint: explains its plain-text refusals, in JSON-RPC's shape."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import HostError, MediaTypeError, RequestFormatError, build_error_response
from gateway.render.errors import MCP_PATH

_REFUSALS: Mapping[int, str] = {421: "host", 403: "origin"}
"""The SDK's statuses for a refused header."""


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
