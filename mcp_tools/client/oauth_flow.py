"""Login at an external MCP server by OAuth 2.1: a person agrees in a browser, which is sent back to this machine.

The SDK implements the protocol: discovery, registration, PKCE, state and issuer. This module adds the callback page,
limits which hosts may be contacted, and returns what must be stored.
"""

import asyncio
import html
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from agent.core.errors import ConfigError
from agent.net import SafeClient
from mcp_tools.client.authentication import get_expiry
from mcp_tools.client.bounded_bodies import CODINGS, bound_body
from mcp_tools.client.config import McpServerConfig, is_confidential_url
from mcp_tools.client.errors import describe_cause
from mcp_tools.client.http_refusals import OLDER_TRANSPORT_STATUSES
from mcp_tools.client.oauth_tokens import Login

LOGIN_TIMEOUT_S = 600.0
"""How long the person may take in the browser, in seconds."""
_REQUEST_TIMEOUT_S = 10.0
"""How long the browser may take to send its request, in seconds."""
_HEADERS = "content-type: text/html\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n"

ShowUrl = Callable[[str], Awaitable[None]]


async def log_in(name: str, config: McpServerConfig, show: ShowUrl, allow_hosts: Iterable[str] = ()) -> Login:
    """Logs in at a server. `show` gets the URL that a person must open in a browser.

    `allow_hosts` (`host` or `host:port`) may be authorization servers although they are not public. Raises
    `ConfigError` if the login is rejected, times out, or the server asks for none.
    """
    storage = _MemoryTokenStorage()
    try:
        async with asyncio.timeout(LOGIN_TIMEOUT_S), _serve_callback(config.oauth.port) as callback:
            provider = _make_provider(config, storage, callback, show)
            await _trigger_login(config, provider, storage, allow_hosts)
    except TimeoutError as error:
        raise ConfigError(f"MCP server {name!r}: the login was not completed within {LOGIN_TIMEOUT_S:g} s") from error
    except Exception as error:  # boundary to external code: the SDK raises any error, also in groups
        raise ConfigError(f"MCP server {name!r}: the login failed: {describe_cause(error)}") from error
    context = provider.context
    names_resource = context.should_include_resource_param(context.protocol_version)
    if storage.tokens is None or context.client_info is None or context.client_info.client_id is None:
        raise ConfigError(f"MCP server {name!r} requires no login; remove `auth` from its entry")
    return Login(
        url=config.url,
        issuer=str(context.oauth_metadata.issuer) if context.oauth_metadata else None,
        token_endpoint=provider._get_token_endpoint(),
        resource=context.get_resource_url() if names_resource else None,
        client_id=context.client_info.client_id,
        client_secret=context.client_info.client_secret,
        token_endpoint_auth_method=context.client_info.token_endpoint_auth_method,
        access_token=storage.tokens.access_token,
        refresh_token=storage.tokens.refresh_token,
        scope=storage.tokens.scope,
        expires_at=get_expiry(storage.tokens),
    )


class _MemoryTokenStorage:
    """The SDK's token storage, in memory until the login is complete."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None  # every login starts without tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _CallbackReceiver:
    """Receives the browser's request at the end of the login."""

    def __init__(self, port: int) -> None:
        self.redirect_url = f"http://127.0.0.1:{port}/callback"
        self._state: str | None = None
        self._callback_params: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def expect_callback(self, url: str) -> None:
        """Remembers the state parameter of the authorization URL. Raises `ConfigError` for a URL that others could
        read."""
        if not is_confidential_url(url):
            raise ConfigError(f"its login page at {urlsplit(url).hostname} has no TLS")
        self._state = _parse_query(url).get("state")

    def handle_request(self, target: str) -> tuple[str, str]:
        """Stores the parameters of the first valid callback. Returns the HTTP status and a text for the page."""
        parameters = _parse_query(target)
        if urlsplit(target).path != "/callback" or self._state is None or parameters.get("state") != self._state:
            return "404 Not Found", "Not found."
        if not self._callback_params.done():
            self._callback_params.set_result(parameters)
        return "200 OK", "You can close this page and go back to the terminal."

    async def wait_for_code(self) -> AuthorizationCodeResult:
        """The authorization code. Raises `ConfigError` if the login was rejected."""
        parameters = await self._callback_params
        if "code" not in parameters:
            reason = parameters.get("error_description") or parameters.get("error") or "no code was sent"
            raise ConfigError(f"the authorization server rejected the login: {reason}")
        return AuthorizationCodeResult(
            code=parameters["code"], state=parameters.get("state"), iss=parameters.get("iss")
        )


@asynccontextmanager
async def _serve_callback(port: int | None) -> AsyncIterator[_CallbackReceiver]:
    """Serves the callback page on this machine. Raises `ConfigError` if the port is in use."""
    callback: _CallbackReceiver

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                target = (await reader.readline()).split()[1].decode("ascii")
                while (await reader.readline()).strip():
                    pass
            status, message = callback.handle_request(target)
            page = f"<!doctype html><meta charset=utf-8><title>Stepgate</title><p>{html.escape(message)}".encode()
            head = f"HTTP/1.1 {status}\r\n{_HEADERS}content-length: {len(page)}\r\n\r\n"
            writer.write(head.encode() + page)
            await writer.drain()
        except (TimeoutError, OSError, ValueError, IndexError):
            pass  # not a request of a browser
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port or 0, limit=16_384)
    except OSError as error:
        raise ConfigError(f"port {port} is in use; choose another for `oauth.port`") from error
    callback = _CallbackReceiver(server.sockets[0].getsockname()[1])
    try:
        yield callback
    finally:
        server.close()


def _parse_query(url: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}


def _make_provider(
    config: McpServerConfig, storage: _MemoryTokenStorage, callback: _CallbackReceiver, show: ShowUrl
) -> OAuthClientProvider:
    client, secret = config.oauth.client_id, config.oauth.client_secret
    if client is not None:
        storage.client = OAuthClientInformationFull(
            client_id=client,
            client_secret=secret.get_secret_value() if secret is not None else None,
            redirect_uris=[AnyUrl(callback.redirect_url)],
            token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
        )

    async def redirect(url: str) -> None:
        callback.expect_callback(url)
        await show(url)

    metadata = OAuthClientMetadata(client_name="Stepgate", redirect_uris=[AnyUrl(callback.redirect_url)])
    return OAuthClientProvider(config.url, metadata, storage, redirect, callback.wait_for_code)


async def _trigger_login(
    config: McpServerConfig, provider: OAuthClientProvider, storage: _MemoryTokenStorage, allow_hosts: Iterable[str]
) -> None:
    """Connects, which makes the server ask for the login, and lists the tools to verify that it was accepted.

    Once tokens were issued, only their rejection fails the login: another problem of the server is none of its own. An
    address that refuses the streamable transport is tried with that of older servers.
    """
    safe = SafeClient([urlsplit(config.url).hostname or "", *allow_hosts])
    hooks = _RequestHooks(config.url, safe)
    try:
        for is_sse in (True,) if config.transport == "sse" else (False, True):
            try:
                async with _open_login_transport(config, provider, hooks, is_sse=is_sse) as client:
                    await client.list_tools()
            except Exception as error:
                if storage.tokens is None and not is_sse and hooks.status in OLDER_TRANSPORT_STATUSES:
                    continue
                if storage.tokens is None:
                    raise
                if hooks.status in (401, 403):
                    raise ConfigError(f"the server rejects the new token with HTTP {hooks.status}") from error
            return
    finally:
        await safe.aclose()


class _RequestHooks:
    """Checks the addresses of requests, because the server chooses its authorization server, and notes the status of
    its last response."""

    def __init__(self, url: str, safe: SafeClient) -> None:
        self._server, self._safe = httpx2.URL(url), safe
        self.status = 0

    def make_http_client(
        self, headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:  # fmt: skip
        """The SDK's HTTP client with these hooks."""
        http = create_mcp_http_client({**CODINGS, **(headers or {})}, timeout, auth)
        http.event_hooks = {"request": [self._check], "response": [bound_body, self._note]}
        return http

    def _is_server(self, url: httpx2.URL) -> bool:
        return (url.scheme, url.host, url.port) == (self._server.scheme, self._server.host, self._server.port)

    async def _check(self, request: httpx2.Request) -> None:
        """Allows only public hosts and TLS."""
        if self._is_server(request.url):
            return
        if not is_confidential_url(str(request.url)):
            raise ConfigError(f"its login page at {request.url.host} has no TLS")
        await self._safe.check_url(str(request.url))

    async def _note(self, response: httpx2.Response) -> None:
        if self._is_server(response.request.url) and not response.request.url.path.startswith("/.well-known/"):
            self.status = response.status_code


@asynccontextmanager
async def _open_login_transport(
    config: McpServerConfig, provider: OAuthClientProvider, hooks: _RequestHooks, *, is_sse: bool
) -> AsyncIterator[Client]:
    """A client that logs in when the server asks for it."""
    headers = dict(config.headers)
    if is_sse:
        transport = sse_client(config.url, headers, httpx_client_factory=hooks.make_http_client, auth=provider)
        async with Client(transport) as client:
            yield client
        return
    async with (
        hooks.make_http_client(headers, auth=provider) as http,
        Client(streamable_http_client(config.url, http_client=http)) as client,
    ):
        yield client
