"""HTTP for servers whose address a user or a model chose: connects to checked addresses only (SSRF).

Each request, redirected ones too, resolves its host once by the rules of `SafeClient`, and connects to what was
resolved, so that a second lookup with another answer changes nothing.
"""

import httpx2

from agent.net import SafeClient


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """The transport of the MCP client, which asks `safe` for each address."""

    def __init__(self, safe: SafeClient) -> None:
        super().__init__(trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0))
        self._safe = safe

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request to a checked address of its host. Raises `ToolDeniedError` if there is none."""
        addresses = await self._safe.resolve_url(str(request.url))
        sent = httpx2.Request(
            request.method,
            request.url.copy_with(host=str(addresses[0])),
            headers=request.headers,  # the header `Host` keeps the name
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        return await super().handle_async_request(sent)
