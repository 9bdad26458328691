"""The web page: `GET /` for browsers, and its files under `/web/`. The files are read once at start."""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from agent.core.errors import NotFoundError
from gateway.access.refusal_page import wants_html
from gateway.doors.deferred_route import OpenRoute

WEB_FOLDER: Final = Path(__file__).resolve().parents[1] / "web"
INDEX: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_METHODS: Final = ["GET", "HEAD"]
HEADERS: Final = {
    # Only our own files, and no way from text to scripts: texts of models and web pages are untrusted.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        # One way, with a name, to parse HTML: `html.js` copies from what it parses by a list of its own.
        "trusted-types stepgate"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # Revalidated each time, with a 304 by ETag: the page names the edition of its files.
    "cache-control": "no-cache",
}
EDITION_CACHE: Final = "public, max-age=31536000, immutable"
"""For a file under the edition that is served: its bytes never change, so that a reload asks for none of them."""
_EDITION: Final = re.compile(r"[0-9a-f]{12}")


class BrowserRoute(OpenRoute):
    """A route for browsers only; another route serves the same path to other clients."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """No match for a client whose Accept header lacks `text/html`."""
        matched = super().matches(scope)
        return matched if matched[0] is not Match.FULL or wants_html(scope) else (Match.NONE, {})


router = APIRouter(route_class=OpenRoute, include_in_schema=False)


async def get_page(http: Request) -> Response:
    """Return the page."""
    return _respond(http, INDEX, vary="accept, accept-encoding")


@router.api_route("/web/{name:path}", methods=_METHODS)
async def get_page_file(name: str, http: Request) -> Response:
    """Return a file of the page, by its name or by `EDITION/name`; 404 for any other name.

    The page names the edition that it was made for, and modules import each other relative to it. Another edition, of a
    gateway that was replaced meanwhile, gets today's file, revalidated each time.
    """
    edition, slash, rest = name.partition("/")
    if slash and _EDITION.fullmatch(edition):
        lasting = EDITION_CACHE if edition == get_edition() else HEADERS["cache-control"]
        return _respond(http, rest, vary="accept-encoding", cache_control=lasting)
    return _respond(http, name, vary="accept-encoding")


router.add_api_route("/", get_page, methods=_METHODS, route_class_override=BrowserRoute)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent, plain and compressed. `etag` is made from its content."""

    content_type: str
    plain: bytes
    gzipped: bytes
    etag: str


@cache
def load_files() -> dict[str, PageFile]:
    """The files by name. A requested name is only looked up here; no path is built from it."""
    named = f'"web/{get_edition()}/'.encode()
    return {
        name: _pack(name, text.replace(b'"web/', named) if name == INDEX else text)
        for name, text in _read_all().items()
    }


@cache
def get_edition() -> str:
    """The version of the files: a digest of their names and contents."""
    digest = hashlib.sha256()
    for name, text in _read_all().items():
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:12]


@cache
def _read_all() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(WEB_FOLDER.iterdir()) if path.suffix in _TYPES}


def _pack(name: str, plain: bytes) -> PageFile:
    # A fixed time, so that the same content always gives the same bytes.
    packed = gzip.compress(plain, mtime=0)
    return PageFile(_TYPES[Path(name).suffix], plain, packed, hashlib.sha256(plain).hexdigest()[:20])


def _respond(http: Request, name: str, *, vary: str, cache_control: str = HEADERS["cache-control"]) -> Response:
    file = load_files().get(name)
    if file is None:
        raise NotFoundError(f"there is nothing at {http.method} {http.url.path}")
    packs = "gzip" in http.headers.get("accept-encoding", "")
    # Different bytes need a different tag (RFC 9110, section 8.8.3).
    tag = f'"{file.etag}-gz"' if packs else f'"{file.etag}"'
    headers = {**HEADERS, "cache-control": cache_control, "etag": tag, "vary": vary}
    etags = {one.strip().removeprefix("W/") for one in http.headers.get("if-none-match", "").split(",")}
    if tag in etags or "*" in etags:
        return Response(status_code=304, headers=headers)
    if packs:
        headers["content-encoding"] = "gzip"
    return Response(file.gzipped if packs else file.plain, headers=headers, media_type=file.content_type)
