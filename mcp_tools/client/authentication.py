"""Authentication at external MCP servers: by a named credential or by an OAuth login.

No credential comes from a caller. If a server rejects one, the server's status says so and names the remedy.
"""

import asyncio
import shlex
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import httpx2
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

from agent.core.errors import ToolError
from agent.net import SafeClient
from agent.storage.credentials import Bearer, CredentialError, Credentials
from mcp_tools.client.bounded_bodies import CODINGS, bound_body, get_media_type, read_or_nothing
from mcp_tools.client.checked_transport import CheckedTransport
from mcp_tools.client.config import McpServerConfig, to_tool_alphabet
from mcp_tools.client.http_refusals import find_refusal_words, read_protocol_error
from mcp_tools.client.lenient_http import LenientHttpClient
from mcp_tools.client.oauth_tokens import Login, LoginFile
from mcp_tools.client.sanitize import sanitize_text

REFRESH_TIMEOUT_S = 20.0
"""Time limit of a token refresh, in seconds; the next connection tries again."""

_FORBIDDEN = 403
_OAUTH_HINT = 'if it requires a login, set "auth": "oauth"'


class ServerRevokedError(ToolError):
    """Raised in place of a request to a server that was removed, disabled or changed."""


class ServerAuthentication:
    """The credentials of one server, and its responses to them.

    `problem` says why the server rejected the last request's credential; empty if it did not. After `revoke` no
    credential is read, and the HTTP clients made here send nothing.
    """

    def __init__(
        self, folder: Path | None = None, credentials: Credentials | None = None, safe: SafeClient | None = None
    ) -> None:
        """With `safe` only the addresses that it allows are connected to."""
        self._folder, self._credentials, self._safe = folder, credentials, safe
        self.problem = ""
        self._rejection = ""
        """The problem, if a response said it."""
        self._remedy = ""
        self._is_revoked = False

    @property
    def is_revoked(self) -> bool:
        """Whether nothing may be sent to this server any longer."""
        return self._is_revoked

    def revoke(self) -> None:
        """Ends the use of the credentials for good, because the server was removed, disabled or changed."""
        self._is_revoked = True

    def require_permission(self) -> None:
        """Raises `ServerRevokedError` after `revoke`."""
        if self._is_revoked:
            raise ServerRevokedError("no request is sent, because the server was removed, disabled or changed")

    def make_auth(self, name: str, config: McpServerConfig) -> httpx2.Auth | None:
        """The HTTP authentication for a server; None if its headers suffice or it needs none.

        Raises `ToolError` if the credential or login is missing.
        """
        self.require_permission()
        self.problem = self._rejection = ""
        self._remedy = f"check `headers` or `credential` of its entry; {_OAUTH_HINT} and {format_login_hint(name)}"
        if config.auth == "oauth":
            self._remedy = format_login_hint(name)
            if (
                self._folder is None
                or (file := LoginFile(self._folder, to_tool_alphabet(name))).read(config.url) is None
            ):
                raise ToolError(f"no login is stored: {format_login_hint(name)}", agent_id=name)
            return OAuthTokenAuth(file, config.url, self)
        if config.credential is not None:
            auth = CredentialAuth(self._credentials, config.credential, self, config.url)
            auth.get_token()
            return auth
        return None

    def read_secret_env(self, config: McpServerConfig) -> dict[str, str]:
        """The environment of a server's program that holds tokens. Blocks. Raises `ToolError` if one is
        missing.
        """
        self.require_permission()
        return {
            variable: CredentialAuth(self._credentials, name, self).get_token()
            for variable, name in config.secret_env.items()
        }

    def make_http_client(
        self, headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:  # fmt: skip
        """The SDK's HTTP client, which also records rejected credentials."""
        limits = create_mcp_http_client(timeout=timeout).timeout
        transport = None if self._safe is None else CheckedTransport(self._safe)
        client = LenientHttpClient(
            headers={**CODINGS, **(headers or {})}, timeout=limits, auth=auth, transport=transport
        )
        client.event_hooks = {"request": [self._on_request], "response": [bound_body, self._on_response]}
        return client

    async def _on_request(self, request: httpx2.Request) -> None:
        """Sends nothing after `revoke`: no retry, redirect, reconnection or end of the session."""
        if self._is_revoked and request.method != "DELETE":
            await asyncio.Event().wait()  # until the connection's owner is cancelled; the SDK would log an error
        self.require_permission()

    async def _on_response(self, response: httpx2.Response) -> None:
        """Notes a rejected credential. A 403 with an error of the protocol is the answer to a request."""
        status = response.status_code
        if response.is_success:
            self.problem = self._rejection = ""
        if status not in (401, 403) or self.problem != self._rejection:  # a credential that is missing comes first
            return
        body, kind = await read_or_nothing(response), get_media_type(response)
        if status == _FORBIDDEN and read_protocol_error(kind, body) is not None:
            return
        words = sanitize_text(find_refusal_words(status, kind, body)).text
        reason = f"HTTP {status} ({words})" if words else f"HTTP {status}"
        self.problem = self._rejection = f"it rejects our credential with {reason}: {self._remedy}"


class CredentialAuth(httpx2.Auth):
    """A bearer token from the credentials file. It is read for each request, so a new token is used at once.

    `url` is where it is sent; empty for the environment of a program.
    """

    def __init__(self, credentials: Credentials | None, name: str, access: ServerAuthentication, url: str = "") -> None:
        self._credentials, self._name, self._authentication, self._url = credentials, name, access, url

    def get_token(self) -> str:
        """The token. Raises `ToolError` if there is none."""
        if self._credentials is None:
            raise ToolError(f"there is no credentials file, so there is no credential {self._name!r}")
        try:
            stored, name = self._credentials, self._name
            credential = stored.get_for(name, self._url) if self._url else stored.get(name)
        except CredentialError as error:
            raise ToolError(error.message) from error
        if not isinstance(credential, Bearer):
            raise ToolError(f"the credential {self._name!r} must have the type bearer")
        return credential.token.get_secret_value()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends the request with the token."""
        self._authentication.require_permission()
        try:
            request.headers["Authorization"] = f"Bearer {await asyncio.to_thread(self.get_token)}"
        except ToolError as error:
            self._authentication.problem = error.message
        yield request


class OAuthTokenAuth(httpx2.Auth):
    """The access token of a login. It is refreshed before it expires and when the server rejects it."""

    def __init__(self, file: LoginFile, url: str, access: ServerAuthentication) -> None:
        self._file, self._url, self._authentication = file, url, access

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends the request with the token. Sends it again if the server rejects the token and there is a new one."""
        self._authentication.require_permission()
        login = self._file.read(self._url)
        if login is not None and login.expires_before(time.time()):
            login = await self._refresh_login(login) or login
        if login is None:
            yield request
            return
        request.headers["Authorization"] = f"Bearer {login.access_token}"
        response = yield request
        if response.status_code == 401 and (refreshed := await self._refresh_login(login)) is not None:
            request.headers["Authorization"] = f"Bearer {refreshed.access_token}"
            yield request

    async def _refresh_login(self, old: Login) -> Login | None:
        """A login with another token than `old` has, or None if there is none."""
        async with self._file.lock_for_refresh():
            self._authentication.require_permission()
            login = self._file.read(self._url)
            if login is None or login.access_token != old.access_token:
                return login  # another task or process has refreshed it
            if login.refresh_token is None:
                return None
            try:
                tokens = await _request_refresh(login, login.refresh_token)
            except (httpx2.HTTPError, httpx2.StreamError, ValidationError) as error:
                self._authentication.problem = (
                    f"its login cannot be refreshed at {login.token_endpoint}: {type(error).__name__}"
                )
                return None
            if tokens is None:
                return None
            refreshed = login.model_copy(
                update={
                    "access_token": tokens.access_token,
                    "refresh_token": tokens.refresh_token or login.refresh_token,
                    "scope": tokens.scope or login.scope,
                    "expires_at": get_expiry(tokens),
                }
            )
            await asyncio.to_thread(self._file.write, refreshed)
            return refreshed


def format_login_hint(name: str) -> str:
    """The command that logs in at this server."""
    return f"run `stepgate mcp-servers login {shlex.quote(name)}`"


def get_expiry(tokens: OAuthToken) -> float | None:
    """The time at which the access token expires, in UTC seconds since 1970; None if unknown."""
    return None if tokens.expires_in is None else time.time() + tokens.expires_in


async def _request_refresh(login: Login, refresh_token: str) -> OAuthToken | None:
    """New tokens (RFC 6749, section 6), or None if the server rejects the refresh token.

    Raises `httpx2.HTTPError`, `httpx2.StreamError` and `ValidationError`.
    """
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": login.client_id}
    if login.resource is not None:
        form["resource"] = login.resource  # RFC 8707
    auth: httpx2.Auth = httpx2.Auth()
    if login.client_secret is not None and login.token_endpoint_auth_method == "client_secret_post":  # noqa: S105 - a name
        form["client_secret"] = login.client_secret
    elif login.client_secret is not None:
        auth = httpx2.BasicAuth(quote(login.client_id, safe=""), quote(login.client_secret, safe=""))  # section 2.3.1
    hooks = {"response": [bound_body]}
    # No redirects: the request carries a token.
    async with httpx2.AsyncClient(timeout=REFRESH_TIMEOUT_S, headers=CODINGS, event_hooks=hooks) as client:
        answer = await client.post(login.token_endpoint, data=form, auth=auth)
    if answer.status_code in (400, 401):
        return None
    answer.raise_for_status()
    return OAuthToken.model_validate_json(answer.content)
