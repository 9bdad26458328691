"""The web page: `GET /` for browsers, and its files under `/web/`. Plain files beside this package, read once."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from agent.core.errors import NotFoundError

FOLDER: Final = Path(__file__).resolve().parents[1] / "web"
INDEX: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_METHODS: Final = ["GET", "HEAD"]
HEADERS: Final = {
    # Nothing but our own files, and no text that becomes HTML by any way: what models and pages say is a stranger's.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # Asked for again each time, answered with 304 by the ETag: a new version is never mixed with an old one.
    "cache-control": "no-cache",
}


class BrowserRoute(APIRoute):
    """A route for browsers alone: where HTML is not asked for, the same path is somebody else's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """No match for a client that does not name `text/html` in its Accept header."""
        matched = super().matches(scope)
        return matched if matched[0] is not Match.FULL or wants_html(scope) else (Match.NONE, {})


front = APIRouter(route_class=BrowserRoute, include_in_schema=False)
router = APIRouter(include_in_schema=False)


@front.api_route("/", methods=_METHODS)
async def page(http: Request) -> Response:
    """The page."""
    return _answer(http, INDEX, vary="accept, accept-encoding")


@router.api_route("/web/{name:path}", methods=_METHODS)
async def file(name: str, http: Request) -> Response:
    """A file of the page; 404 for every name that is none of them."""
    return _answer(http, name, vary="accept-encoding")


router.include_router(front)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent, plain and packed. `tag` is made of its content."""

    content_type: str
    plain: bytes
    packed: bytes
    tag: str


@cache
def files() -> dict[str, PageFile]:
    """The files by their names. A name of a request is only ever looked up here, and no path is made of it."""
    found = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in _TYPES:
            plain = path.read_bytes()
            # A fixed time within: the same content is the same bytes, whenever the gateway was started.
            packed = gzip.compress(plain, mtime=0)
            found[path.name] = PageFile(_TYPES[path.suffix], plain, packed, hashlib.sha256(plain).hexdigest()[:20])
    return found


def wants_html(scope: Scope) -> bool:
    """Whether a browser asks: one whose Accept header names HTML. `*/*` alone is a program's."""
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepted.lower()


def _answer(http: Request, name: str, *, vary: str) -> Response:
    found = files().get(name)
    if found is None:
        raise NotFoundError(f"there is nothing at {http.method} {http.url.path}")
    packs = "gzip" in http.headers.get("accept-encoding", "")
    # Another tag for other bytes (RFC 9110, section 8.8.3).
    tag = f'"{found.tag}-gz"' if packs else f'"{found.tag}"'
    headers = {**HEADERS, "etag": tag, "vary": vary}
    known = {one.strip().removeprefix("W/") for one in http.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    if packs:
        headers["content-encoding"] = "gzip"
    return Response(found.packed if packs else found.plain, headers=headers, media_type=found.content_type)
