"""Around the MCP SDK's endpoint: what it refuses in two words is told in full, and in JSON-RPC's shape."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import HostError, MediaTypeError, WireError, error_response
from gateway.render.errors import MCP_PATH

_REFUSALS: Mapping[int, str] = {421: "host", 403: "origin"}
"""The SDK's statuses for a header that is not allowed."""


class HostsTold:
    """The SDK's endpoint. Where it refuses a Host or an Origin, the setting that allows it is named; its other refusals
    in plain text become errors as well."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        refused = 0
        told = b""

        async def send_unless_refused(message: Message) -> None:
            nonlocal refused, told
            if message["type"] == "http.response.start" and _plain_refusal(message):
                refused = message["status"]
            if not refused:
                await send(message)
            elif message["type"] == "http.response.body":
                told += message.get("body", b"")

        await self._app(scope, receive, send_unless_refused)
        if refused:
            error = _told(refused, told.decode("utf-8", "replace"), Headers(scope=scope))
            await error_response(error, MCP_PATH, status=refused)(scope, receive, send)


def _plain_refusal(start: Message) -> bool:
    kind = next((value for name, value in start["headers"] if name.lower() == b"content-type"), b"")
    return start["status"] in _REFUSALS or (start["status"] >= 400 and not kind.startswith(b"application/json"))


def _told(status: int, sdk_says: str, headers: Headers) -> WireError:
    if status in _REFUSALS:
        name = _REFUSALS[status]
        value = headers.get(name, "")[:100]
        return HostError(
            f"/mcp does not answer to the {name} {value!r}; if it is yours, add its name to AGENT_ALLOWED_HOSTS"
        )
    if "Content-Type" in sdk_says:
        kind = headers.get("content-type", "")[:80]
        return MediaTypeError(f"The body was sent as `{kind}`; send JSON with `content-type: application/json`.")
    return WireError(sdk_says[:200] or f"the MCP server refused this request ({status})")
