"""An OAuth 2.1 authorization server and an MCP server that asks for its tokens, each on a port of its own.

Real in all that a client can see: discovery, registration, PKCE, codes and refresh tokens that are good for once.
"""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.serving import running


@dataclass
class Authority:
    """What the authorization server knows, and what a test sets: how long tokens live, whether people agree."""

    life_s: int = 3600
    agrees: bool = True
    knows_tokens: bool = True
    """Whether refresh tokens are still good."""
    registers: bool = True
    url: str = ""
    resource: str = ""
    clients: dict[str, str | None] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    good: dict[str, float] = field(default_factory=dict)
    """Access tokens, and until when."""
    refresh: set[str] = field(default_factory=set)
    grants: list[str] = field(default_factory=list)
    """Each grant that was asked for."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Each request to the MCP server: its session's Authorization header, and its body."""

    def app(self) -> Starlette:
        """The authorization server."""
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self._metadata),
                Route("/join", self._register, methods=["POST"]),
                Route("/agree", self._authorize),
                Route("/coins", self._token, methods=["POST"]),
            ]
        )

    async def _metadata(self, _: Request) -> Response:
        told = {
            "issuer": self.url, "authorization_endpoint": f"{self.url}/agree", "token_endpoint": f"{self.url}/coins",
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
        }  # fmt: skip
        return JSONResponse(told | ({"registration_endpoint": f"{self.url}/join"} if self.registers else {}))

    async def _register(self, request: Request) -> Response:
        asked = await request.json()
        client = f"client-{len(self.clients)}"
        self.clients[client] = secrets.token_hex(8)
        issued = {"client_id": client, "client_secret": self.clients[client]}
        return JSONResponse(asked | issued | {"token_endpoint_auth_method": "client_secret_basic"}, 201)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["client_id"] in self.clients
        assert asked["resource"] == self.resource
        back = {"state": asked["state"], "iss": self.url}
        if not self.agrees:
            return _back(asked["redirect_uri"], back | {"error": "access_denied", "error_description": "she said no"})
        code = secrets.token_hex(8)
        self.codes[code] = asked
        return _back(asked["redirect_uri"], back | {"code": code})

    async def _token(self, request: Request) -> Response:
        form = {key: str(value) for key, value in (await request.form()).items()}
        self.grants.append(form["grant_type"])
        client = form["client_id"]
        expected = base64.b64encode(f"{client}:{self.clients[client]}".encode()).decode()
        if self.clients[client] is not None and request.headers.get("authorization") != f"Basic {expected}":
            return JSONResponse({"error": "invalid_client"}, 401)
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
            assert form["redirect_uri"] == asked["redirect_uri"]
        elif form["refresh_token"] not in self.refresh or not self.knows_tokens:
            return JSONResponse({"error": "invalid_grant"}, 400)
        else:
            self.refresh.remove(form["refresh_token"])
        token, again = secrets.token_hex(16), secrets.token_hex(16)
        self.good[token] = time.time() + self.life_s
        self.refresh.add(again)
        issued = {"access_token": token, "token_type": "bearer", "expires_in": self.life_s, "refresh_token": again}
        return JSONResponse(issued)


class Guarded:
    """The MCP server, behind its tokens."""

    def __init__(self, app: ASGIApp, authority: Authority) -> None:
        self._app, self._authority = app, authority

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        origin = self._authority.resource.removesuffix("/mcp")
        if request.url.path.startswith("/.well-known/oauth-protected-resource"):
            told = {"resource": self._authority.resource, "authorization_servers": [self._authority.url]}
            await JSONResponse(told)(scope, receive, send)
            return
        sent = request.headers.get("authorization", "")
        self._authority.seen.append((sent, request.url.path))
        if self._authority.good.get(sent.removeprefix("Bearer "), 0.0) < time.time():
            where = f'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
            await JSONResponse({"error": "who?"}, 401, {"www-authenticate": where})(scope, receive, send)
            return
        await self._app(scope, receive, send)


@asynccontextmanager
async def guarded(authority: Authority, *, is_sse: bool = False) -> AsyncIterator[str]:
    """The URL of an MCP server with the tool `echo` that wants tokens of this authority. `is_sse`: with the transport
    of 2024."""
    server = MCPServer("guarded")

    @server.tool()
    def echo(text: str) -> str:
        """Say it back."""
        return f"echo: {text}"

    mcp = Guarded(server.sse_app(sse_path="/mcp") if is_sse else server.streamable_http_app(), authority)
    async with (
        running(uvicorn.Config(authority.app(), port=0, log_config=None)) as authority.url,
        running(uvicorn.Config(mcp, port=0, log_config=None)) as origin,
    ):
        authority.resource = f"{origin}/mcp"
        yield authority.resource


def _back(address: str, brought: dict[str, str]) -> Response:
    return RedirectResponse(f"{address}?{urlencode(brought)}", 302)
