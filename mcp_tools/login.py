"""Logging in at a foreign MCP server (OAuth 2.1): a person says yes in a browser, which comes back to this machine.

The SDK does the protocol: discovery, registration, PKCE, state and issuer. Here are the way back, the limits on where
it may go, and what is kept of it.
"""

import asyncio
import html
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from agent.core.errors import ConfigError
from agent.core.net import SafeClient
from mcp_tools.hub_access import ends_at
from mcp_tools.hub_failures import cause
from mcp_tools.logins import Login
from mcp_tools.mcp_config import McpServerConfig, is_private_way

PERSON_SECONDS = 600.0
"""How long a person may take in the browser."""
_HEAD_SECONDS = 10.0
"""How long a browser may take to say what it wants."""
_HEADERS = "content-type: text/html\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n"

Show = Callable[[str], Awaitable[None]]


async def log_in(name: str, config: McpServerConfig, show: Show, allow_hosts: Iterable[str] = ()) -> Login:
    """Log in at the server of this entry; `show` gets the address that a person has to open in a browser. `allow_hosts`
    are those (`host` or `host:port`) where the login server may be although they are not public.

    Raises `ConfigError` saying what went wrong: refused, not answered in time, or not asked for at all."""
    kept = _Kept()
    try:
        async with asyncio.timeout(PERSON_SECONDS), _way_back(config.oauth.port) as back:
            provider = _provider(config, kept, back, show)
            await _ask(config, provider, allow_hosts)
    except TimeoutError as error:
        raise ConfigError(f"MCP server {name!r}: nobody has agreed within {PERSON_SECONDS:g} s") from error
    except Exception as error:  # the border to foreign code: the SDK raises what it likes, in groups
        raise ConfigError(f"MCP server {name!r}: the login failed: {cause(error)}") from error
    context = provider.context
    names_resource = context.should_include_resource_param(context.protocol_version)
    if kept.tokens is None or context.client_info is None or context.client_info.client_id is None:
        raise ConfigError(f"MCP server {name!r} asks for no login; leave `auth` out of its entry")
    return Login(
        url=config.url,
        issuer=str(context.oauth_metadata.issuer) if context.oauth_metadata else None,
        token_endpoint=provider._get_token_endpoint(),
        resource=context.get_resource_url() if names_resource else None,
        client_id=context.client_info.client_id,
        client_secret=context.client_info.client_secret,
        token_endpoint_auth_method=context.client_info.token_endpoint_auth_method,
        access_token=kept.tokens.access_token,
        refresh_token=kept.tokens.refresh_token,
        scope=kept.tokens.scope,
        expires_at=ends_at(kept.tokens),
    )


class _Kept:
    """What the SDK wants to keep: in memory, until all of it is there."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None  # a login is a new one

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _WayBack:
    """Where the browser comes back to."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/callback"
        self._state: str | None = None
        self._arrived: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def leads_to(self, url: str) -> None:
        """Expect the browser back from this address. `ConfigError` for one where others can listen."""
        if not is_private_way(url):
            raise ConfigError(f"it wants a login at {urlsplit(url).hostname} without TLS")
        self._state = _query(url).get("state")

    def hear(self, target: str) -> tuple[str, str]:
        """Take what the browser brings along, once; the status and the words for it."""
        brought = _query(target)
        if urlsplit(target).path != "/callback" or self._state is None or brought.get("state") != self._state:
            return "404 Not Found", "There is nothing here."
        if not self._arrived.done():
            self._arrived.set_result(brought)
        return "200 OK", "You can close this page and go back to the terminal."

    async def result(self) -> AuthorizationCodeResult:
        """What it brings along. `ConfigError` where the login was refused."""
        brought = await self._arrived
        if "code" not in brought:
            told = brought.get("error_description") or brought.get("error") or "it sent no code"
            raise ConfigError(f"the authorization server refuses: {told}")
        return AuthorizationCodeResult(code=brought["code"], state=brought.get("state"), iss=brought.get("iss"))


@asynccontextmanager
async def _way_back(port: int | None) -> AsyncIterator[_WayBack]:
    """A page on this machine for the end of the login. Raises `ConfigError` where the port is taken."""
    back: _WayBack

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                target = (await reader.readline()).split()[1].decode("ascii")
                while (await reader.readline()).strip():
                    pass
            status, said = back.hear(target)
            page = f"<!doctype html><meta charset=utf-8><title>Stepgate</title><p>{html.escape(said)}".encode()
            head = f"HTTP/1.1 {status}\r\n{_HEADERS}content-length: {len(page)}\r\n\r\n"
            writer.write(head.encode() + page)
            await writer.drain()
        except (TimeoutError, OSError, ValueError, IndexError):
            pass  # whoever that was, it is not the browser we wait for
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port or 0, limit=16_384)
    except OSError as error:
        raise ConfigError(f"port {port} is taken; choose another for `oauth.port`") from error
    back = _WayBack(server.sockets[0].getsockname()[1])
    try:
        yield back
    finally:
        server.close()


def _query(url: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}


def _provider(config: McpServerConfig, kept: _Kept, back: _WayBack, show: Show) -> OAuthClientProvider:
    client, secret = config.oauth.client_id, config.oauth.client_secret
    if client is not None:
        kept.client = OAuthClientInformationFull(
            client_id=client,
            client_secret=secret.get_secret_value() if secret is not None else None,
            redirect_uris=[AnyUrl(back.address)],
            token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
        )

    async def lead(url: str) -> None:
        back.leads_to(url)
        await show(url)

    metadata = OAuthClientMetadata(client_name="Stepgate", redirect_uris=[AnyUrl(back.address)])
    return OAuthClientProvider(config.url, metadata, kept, lead, back.result)


async def _ask(config: McpServerConfig, provider: OAuthClientProvider, allow_hosts: Iterable[str]) -> None:
    """Connect, which makes the server ask for the login, and list its tools, which shows that it was taken."""
    asked = urlsplit(config.url)
    safe = SafeClient([asked.hostname or "", *allow_hosts])

    async def check(request: httpx2.Request) -> None:
        """The server chooses its authorization server: no door into somebody's network, and no plain text."""
        if (request.url.scheme, request.url.host, request.url.port) == (asked.scheme, asked.hostname, asked.port):
            return
        if not is_private_way(str(request.url)):
            raise ConfigError(f"it wants a login at {request.url.host} without TLS")
        await safe.vet(str(request.url))

    try:
        async with create_mcp_http_client(dict(config.headers), auth=provider) as http:
            http.event_hooks = {"request": [check]}
            async with Client(streamable_http_client(config.url, http_client=http)) as client:
                await client.list_tools()
    finally:
        await safe.aclose()
