"""ASGI middleware that checks Host and Origin: a web page must not use the gateway of the person who looks at it.

A page can send requests to this machine in two ways. It can send them from its own origin: then the browser names that
origin, or says that the request comes from another site. Or its name can be pointed to this machine once it is loaded
(DNS rebinding): then the requests look like those of the gateway's own page, but carry the foreign name as their Host.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.authorities import Authority, parse_host_header
from agent.core.errors import AgentError, AuthError
from agent.core.settings import Settings
from gateway.access.authentication import Caller
from gateway.access.origin_rules import HostRules, OriginRules
from gateway.access.refusal_page import build_refusal_page
from gateway.render.error_responses import HostError, MediaTypeError, OriginError, build_error_response
from gateway.render.errors import RequestFormatError, get_http_status

PROBE_PATHS = frozenset({"/health", "/healthz", "/ready", "/readyz"})
"""Paths that answer to every host: load balancers ask them by names that nobody configures."""
EXPOSED_HEADERS = b"mcp-session-id, x-request-id, x-stepgate-run-id, retry-after, www-authenticate"
"""Headers of responses that pages of allowed origins can read."""
_PREFLIGHT_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_PREFLIGHT_SECONDS = "600"
"""How long a browser keeps the answer to a preflight: a changed setting holds after that."""
_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~ ,-]{1,4000}")

_HOST, _ORIGIN, _FETCH_SITE = b"host", b"origin", b"sec-fetch-site"
_READ = frozenset({_HOST, _ORIGIN, _FETCH_SITE})
_OWN_SITES = (b"same-origin", b"none")
"""Values of `Sec-Fetch-Site` for requests of the gateway's own page and of a person: an address typed, a bookmark."""


class OriginCheckMiddleware:
    """Refuses requests to foreign names and of foreign pages. `authenticate` raises `AuthError` for an invalid key.

    It leaves CORS headers in the scope's state as `cors_headers`: `RequestMiddleware`, which is around it, adds them to
    every response.
    """

    def __init__(self, app: ASGIApp, settings: Settings, authenticate: Callable[[Headers], Awaitable[Caller]]) -> None:
        self._app = app
        self._hosts = HostRules.from_settings(settings)
        self._origins = OriginRules.from_settings(settings)
        self._authenticate = authenticate
        self._varies = bool(settings.cors_origins)
        """Whether a response that is cached for one origin could be used for another."""
        # Nearly all requests have one of a few values.
        self._is_host_allowed = lru_cache(maxsize=256)(self._check_host)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handles one request. Not a coroutine function: a request of a program needs no more than this."""
        if scope["type"] == "lifespan":
            return self._app(scope, receive, send)
        pairs = [pair for pair in scope["headers"] if pair[0] in _READ]
        if len(pairs) == 1 and pairs[0][0] == _HOST and self._is_host_allowed(pairs[0][1]):
            if self._varies:
                scope.setdefault("state", {})["cors_headers"] = [(b"vary", b"Origin")]
            return self._app(scope, receive, send)
        return self._check(_Source.read(pairs), scope, receive, send)

    def _check_host(self, value: bytes) -> bool:
        host = parse_host_header(value)
        return host is not None and self._hosts.allows(host)

    async def _check(self, source: "_Source", scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.setdefault("state", {})
        is_foreign_page = self._is_foreign_page(source, scope)
        if source.origins and not is_foreign_page:
            state["cors_headers"] = _build_cors_headers(source.origins[0])
        elif source.origins or self._varies:
            state["cors_headers"] = [(b"vary", b"Origin")]
        try:
            if is_foreign_page:
                raise _describe_foreign_page(source)
            preflight = _answer_preflight(source, scope)
            if preflight is not None:
                # Whatever its host is: it tells nothing, and has no key yet that the request itself may have.
                await preflight(scope, receive, send)
                return
            state["is_host_allowed"] = await self._admit_host(source, scope)
        except AgentError as error:
            await _refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign_page(self, source: "_Source", scope: Scope) -> bool:
        """Whether a page may have caused this request that is neither the gateway's own nor allowed."""
        if source.origins:
            origin = source.origins[0].decode("latin-1")
            return len(source.origins) > 1 or not self._origins.allows(origin, source.host)
        # Browsers name the origin in every request that is to change something or to be read from elsewhere. Programs
        # send neither header; some send other `Sec-Fetch-*`, but not this one, which says where the request comes from.
        return any(site not in _OWN_SITES for site in source.sites) and not _is_navigation(scope)

    async def _admit_host(self, source: "_Source", scope: Scope) -> bool:
        """Whether the host is allowed; False where it need not be. Raises `AgentError` where it must be."""
        if source.host is not None and self._hosts.allows(source.host):
            return True
        if scope["path"] in PROBE_PATHS:
            return False
        if source.host is None:
            raise RequestFormatError(_describe_broken_host(source))
        if not await self._has_valid_key(scope):
            raise HostError(
                f"this gateway does not answer to the host name {source.host.host!r}. If it is yours, add it to "
                "AGENT_ALLOWED_HOSTS, or set AGENT_PUBLIC_URL to the address at which others reach this gateway; "
                "requests with a valid API key and addresses such as 127.0.0.1 need no setting"
            )
        return True

    async def _has_valid_key(self, scope: Scope) -> bool:
        """Whether the request has a key or token that is verified, not only tolerated. Raises `AgentError` if the store
        cannot be read.
        """
        try:
            return (await self._authenticate(Headers(scope=scope))).key is not None
        except AuthError:
            return False


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the headers say that a request comes from. `host` is None unless there is exactly one, well formed."""

    host: Authority | None
    hosts: tuple[bytes, ...]
    origins: tuple[bytes, ...]
    sites: tuple[bytes, ...]

    @classmethod
    def read(cls, found: Iterable[tuple[bytes, bytes]]) -> "_Source":
        """Parses these headers."""
        named: dict[bytes, list[bytes]] = {_HOST: [], _ORIGIN: [], _FETCH_SITE: []}
        for name, value in found:
            named[name].append(value.strip(b" \t"))
        hosts = named[_HOST]
        host = parse_host_header(hosts[0]) if len(hosts) == 1 else None
        return cls(host, tuple(hosts), tuple(named[_ORIGIN]), tuple(named[_FETCH_SITE]))


def _is_navigation(scope: Scope) -> bool:
    """Whether a person follows a link in the browser's window. No GET request changes anything, and a page
    cannot read what its window shows of another site.
    """
    headers = Headers(scope=scope)
    return (
        scope.get("method") == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _describe_broken_host(source: _Source) -> str:
    if not source.hosts:
        return "the request needs a Host header"
    if len(source.hosts) > 1:
        return f"the request has {len(source.hosts)} Host headers; send one"
    value = source.hosts[0][:100].decode("latin-1")
    return f"the Host header {value!r} is not a host name or IP address, optionally with a port"


def _describe_foreign_page(source: _Source) -> OriginError:
    if not source.origins:
        return OriginError(
            "a page of another site cannot load this. Open it in a window of its own, or add that page's origin to "
            "AGENT_CORS_ORIGINS and request it with CORS"
        )
    if len(source.origins) > 1:
        return OriginError("the request has several Origin headers; send one")
    origin = source.origins[0][:200].decode("latin-1")
    if origin == "null":
        return OriginError(
            "a page without an origin (a local file, a sandboxed frame) may not call this gateway. Serve the page from "
            "an address, and add that to AGENT_CORS_ORIGINS"
        )
    return OriginError(
        f"a page of the origin {origin!r} may not call this gateway. If you trust it, add it to AGENT_CORS_ORIGINS; if "
        "it is this gateway behind a reverse proxy, set AGENT_PUBLIC_URL"
    )


def _build_cors_headers(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    ]


def _answer_preflight(source: _Source, scope: Scope) -> Response | None:
    """The answer to a browser's question before a request of an allowed origin; None for other requests."""
    if scope.get("method") != "OPTIONS" or not source.origins:
        return None
    headers = Headers(scope=scope)
    if "access-control-request-method" not in headers:
        return None
    answer = {"access-control-allow-methods": _PREFLIGHT_METHODS, "access-control-max-age": _PREFLIGHT_SECONDS}
    requested = headers.get("access-control-request-headers", "")
    if _HEADER_NAMES.fullmatch(requested):
        answer["access-control-allow-headers"] = requested
    if headers.get("access-control-request-private-network") == "true":
        answer["access-control-allow-private-network"] = "true"
    return Response(status_code=204, headers=answer)


async def _refuse(error: AgentError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:100]})
        return
    # After a malformed Host nothing else on this connection is read: it may be one that was smuggled through a proxy.
    headers = {"connection": "close"} if get_http_status(error.code) == 400 else {}
    response = build_refusal_page(error, scope) or build_error_response(error, scope["path"], headers=headers)
    await response(scope, receive, send)


_BODY_HEADERS = frozenset({b"content-type", b"content-length", b"transfer-encoding"})
_JSON = re.compile(rb"application/json|[\w!#$&^.+-]+/[\w!#$&^.+-]+\+json", re.IGNORECASE)
_FORM = b"multipart/form-data"


class BodyTypeMiddleware:
    """Refuses with 415 a body that is not sent as JSON, or at `form_paths` as a form.

    An empty body needs no type, nor does that of a GET request, which changes nothing and which no door reads.
    """

    def __init__(self, app: ASGIApp, form_paths: frozenset[str]) -> None:
        self._app = app
        self._form_paths = form_paths

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handles one request. Not a coroutine function: nearly all requests have JSON or no body."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return self._app(scope, receive, send)
        headers = [pair for pair in scope["headers"] if pair[0] in _BODY_HEADERS]
        if not headers and scope.get("http_version", "1.1").startswith("1"):
            return self._app(scope, receive, send)
        kinds = [value for name, value in headers if name == b"content-type"]
        if len(kinds) == 1 and (is_json(kinds[0]) or (scope["path"] in self._form_paths and _is_form(kinds[0]))):
            return self._app(scope, receive, send)
        return self._check(dict(headers), kinds, scope, receive, send)

    async def _check(
        self, headers: dict[bytes, bytes], kinds: list[bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes on a request without a body, and refuses one with a body."""
        length = headers.get(b"content-length")
        if b"transfer-encoding" in headers or length is None:
            # In pieces, or by a protocol without lengths: only what arrives says whether there is a body.
            empty = await _receive_empty_body(receive)
            if empty is not None:
                await self._app(scope, _replay(empty, receive), send)
                return
        elif not length.strip(b"0 \t"):
            await self._app(scope, receive, send)
            return
        error = _describe_type(kinds, is_form=scope["path"] in self._form_paths)
        await build_error_response(error, scope["path"])(scope, receive, send)


@lru_cache(maxsize=256)
def is_json(content_type: bytes) -> bool:
    """Whether a content type is JSON: `application/json` or one that ends with `+json`, with any parameters."""
    return _JSON.fullmatch(content_type.split(b";")[0].strip(b" \t")) is not None


def _is_form(content_type: bytes) -> bool:
    return content_type.split(b";")[0].strip(b" \t").lower() == _FORM


def _describe_type(kinds: list[bytes], *, is_form: bool) -> MediaTypeError:
    expected = "a file as `multipart/form-data`" if is_form else "JSON with `content-type: application/json`"
    if len(kinds) > 1:
        return MediaTypeError(f"The body has {len(kinds)} content types; send {expected}.")
    kind = kinds[0].split(b";")[0].strip(b" \t").decode("latin-1")[:80] if kinds else ""
    sent = f"as `{kind}`" if kind else "without a content type"
    return MediaTypeError(f"The body was sent {sent}; send {expected}.")


async def _receive_empty_body(receive: Receive) -> Message | None:
    """The last message of an empty body, or the client's disconnect; None as soon as there is a body."""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        if message.get("body", b""):
            return None
        if not message.get("more_body", False):
            return message


def _replay(first: Message, receive: Receive) -> Receive:
    """A `receive` that begins with a message that was received before."""
    waiting = [first]

    async def receive_next() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_next
