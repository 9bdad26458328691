"""Around the MCP SDK's endpoint: a Host or Origin it refuses is told with the setting that allows it."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import HostError, error_response
from gateway.render.errors import MCP_PATH

_REFUSALS: Mapping[int, str] = {421: "host", 403: "origin"}
"""The SDK's statuses for a header that is not allowed."""


class HostsTold:
    """The SDK's endpoint; where it refuses a Host or an Origin in two words, the setting that allows it is named."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        refused = 0

        async def send_unless_refused(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                refused = message["status"]
            if not refused:
                await send(message)

        await self._app(scope, receive, send_unless_refused)
        if refused:
            name = _REFUSALS[refused]
            value = Headers(scope=scope).get(name, "")[:100]
            told = f"/mcp does not answer to the {name} {value!r}; if it is yours, add its name to AGENT_ALLOWED_HOSTS"
            await error_response(HostError(told), MCP_PATH, status=refused)(scope, receive, send)
