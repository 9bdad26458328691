"""How we prove to a foreign MCP server who we are: by a named credential, or as somebody has logged in (OAuth).

Nothing of it comes from a caller. A proof that is refused is told as the server's status, with what to do about it.
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

from agent.core.credentials import Bearer, CredentialError, Credentials
from agent.core.errors import ToolError
from mcp_tools.hub_tool import plain
from mcp_tools.logins import Login, LoginFile
from mcp_tools.mcp_config import McpServerConfig

RENEW_SECONDS = 20.0
"""An authorization server that has not answered by then is asked again at the next try."""

_BY_LOGIN = 'if it wants a login, give the entry "auth": "oauth"'


class Access:
    """The proofs of one server, and what it says to our requests. `problem` says why the newest was refused for want
    of one; empty when it was not."""

    def __init__(self, folder: Path | None = None, credentials: Credentials | None = None) -> None:
        self._folder, self._credentials = folder, credentials
        self.problem = ""
        self.status = 200
        """Of the newest answer to what we sent."""
        self._remedy = ""

    def auth(self, name: str, config: McpServerConfig) -> httpx2.Auth | None:
        """What proves who we are to the server of this entry; None where its headers do, or nothing has to.

        Raises `ToolError` when there is no such proof yet."""
        self.problem = ""
        self._remedy = f"check `headers` or `credential` of its entry; {_BY_LOGIN}, and {login_with(name)}"
        if config.auth == "oauth":
            self._remedy = login_with(name)
            if self._folder is None or (file := LoginFile(self._folder, plain(name))).read(config.url) is None:
                raise ToolError(f"nobody is logged in there: {login_with(name)}", agent_id=name)
            return LoggedIn(file, config.url, self)
        if config.credential is not None:
            proof = NamedCredential(self._credentials, config.credential, self)
            proof.token()
            return proof
        return None

    def client(
        self, headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:  # fmt: skip
        """The SDK's own client, listening for refusals."""
        client = create_mcp_http_client(headers, timeout, auth)
        client.event_hooks = {"response": [self._hear]}
        return client

    async def _hear(self, response: httpx2.Response) -> None:
        """The SDK tells of a refusal only that there was one."""
        if response.request.method == "POST":
            self.status = response.status_code
        if response.status_code in (401, 403):
            self.problem = self.problem or f"it refuses us with HTTP {response.status_code}: {self._remedy}"
        elif response.is_success:
            self.problem = ""


class NamedCredential(httpx2.Auth):
    """A bearer token from the file of credentials, read anew for each request: a new one counts at once."""

    def __init__(self, credentials: Credentials | None, name: str, access: Access) -> None:
        self._credentials, self._name, self._access = credentials, name, access

    def token(self) -> str:
        """The token. Raises `ToolError` where there is none."""
        if self._credentials is None:
            raise ToolError(f"there is no file of credentials to take {self._name!r} from")
        try:
            found = self._credentials.get(self._name)
        except CredentialError as error:
            raise ToolError(error.message) from error
        if not isinstance(found, Bearer):
            raise ToolError(f"the credential {self._name!r} is no bearer token: its type must be bearer")
        return found.token.get_secret_value()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with the token."""
        try:
            request.headers["Authorization"] = f"Bearer {await asyncio.to_thread(self.token)}"
        except ToolError as error:
            self._access.problem = error.message
        yield request


class LoggedIn(httpx2.Auth):
    """The token of a login, renewed before it ends and when it is refused."""

    def __init__(self, file: LoginFile, url: str, access: Access) -> None:
        self._file, self._url, self._access = file, url, access

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with the token; once more where that one was refused and there is another."""
        login = self._file.read(self._url)
        if login is not None and login.ends_before(time.time()):
            login = await self._renewed(login) or login
        if login is None:
            yield request
            return
        request.headers["Authorization"] = f"Bearer {login.access_token}"
        response = yield request
        if response.status_code == 401 and (fresh := await self._renewed(login)) is not None:
            request.headers["Authorization"] = f"Bearer {fresh.access_token}"
            yield request

    async def _renewed(self, old: Login) -> Login | None:
        """A login with another token than `old` has; None where there is none to be had."""
        async with self._file.renewing():
            login = self._file.read(self._url)
            if login is None or login.access_token != old.access_token:
                return login  # somebody was quicker, in this process or another
            if login.refresh_token is None:
                return None
            try:
                tokens = await _refresh(login, login.refresh_token)
            except (httpx2.HTTPError, ValidationError) as error:
                self._access.problem = f"its login cannot be renewed at {login.token_endpoint}: {type(error).__name__}"
                return None
            if tokens is None:
                return None
            fresh = login.model_copy(
                update={
                    "access_token": tokens.access_token,
                    "refresh_token": tokens.refresh_token or login.refresh_token,
                    "scope": tokens.scope or login.scope,
                    "expires_at": ends_at(tokens),
                }
            )
            self._file.write(fresh)
            return fresh


def login_with(name: str) -> str:
    """What to do where nobody is logged in."""
    return f"run `stepgate mcp-servers login {shlex.quote(name)}`"


def ends_at(tokens: OAuthToken) -> float | None:
    """When the access token ends, in UTC seconds since 1970; None where nobody says."""
    return None if tokens.expires_in is None else time.time() + tokens.expires_in


async def _refresh(login: Login, refresh_token: str) -> OAuthToken | None:
    """New tokens (RFC 6749, section 6); None when they are refused. Raises `httpx2.HTTPError`, `ValidationError`."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": login.client_id}
    if login.resource is not None:
        form["resource"] = login.resource  # RFC 8707
    proof: httpx2.Auth = httpx2.Auth()
    if login.client_secret is not None and login.token_endpoint_auth_method == "client_secret_post":  # noqa: S105 - a name
        form["client_secret"] = login.client_secret
    elif login.client_secret is not None:
        proof = httpx2.BasicAuth(quote(login.client_id, safe=""), quote(login.client_secret, safe=""))  # section 2.3.1
    async with httpx2.AsyncClient(timeout=RENEW_SECONDS) as client:  # follows no redirect: a token is sent
        answer = await client.post(login.token_endpoint, data=form, auth=proof)
    if answer.status_code in (400, 401):
        return None
    answer.raise_for_status()
    return OAuthToken.model_validate_json(answer.content)
