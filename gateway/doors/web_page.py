"""The web page: `GET /` for browsers, and its files under `/web/`. The files are read once, at the first request."""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from agent.core.errors import NotFoundError
from gateway.access.refusal_page import wants_html
from gateway.doors.deferred_route import OpenRoute
from gateway.feature import PagePart
from gateway.feature_loader import find_folder
from gateway.feature_page import CollectedPage

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


def make_router(files: "PageFiles") -> APIRouter:
    """The routes of a page."""
    router = APIRouter(route_class=OpenRoute, include_in_schema=False)

    async def get_page(http: Request) -> Response:
        """Return the page."""
        return _respond(http, files.packed.get(INDEX), vary="accept, accept-encoding")

    @router.api_route("/web/{name:path}", methods=_METHODS)
    async def get_page_file(name: str, http: Request) -> Response:
        """Return a file of the page, by its name or by `EDITION/name`; 404 for any other name.

        The page names the edition that it was made for, and modules import each other relative to it. A page of another
        edition, which is still open since before an upgrade, gets no file: in it, a module of today would be mixed with
        those of then.
        """
        edition, slash, rest = name.partition("/")
        if slash and _EDITION.fullmatch(edition):
            file = files.packed.get(rest) if edition == files.edition else None
            return _respond(http, file, vary="accept-encoding", cache_control=EDITION_CACHE)
        return _respond(http, files.packed.get(name), vary="accept-encoding")

    router.add_api_route("/", get_page, methods=_METHODS, route_class_override=BrowserRoute)
    return router


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file as it is sent, plain and compressed. `etag` is made from its content."""

    content_type: str
    plain: bytes
    gzipped: bytes
    etag: str


class PageFiles:
    """The files of a page with its parts, and the parts as the page lists them. Files are read when they are needed."""

    def __init__(self, page: CollectedPage) -> None:
        self._page = page

    @cached_property
    def packed(self) -> dict[str, PackedFile]:
        """The files by name. A requested name is only looked up here; no path is built from it."""
        named = f'"web/{self.edition}/'.encode()
        return {
            name: _pack(name, text.replace(b'"web/', named) if name == INDEX else text)
            for name, text in self._texts.items()
        }

    @cached_property
    def edition(self) -> str:
        """The version of the files: a digest of their names and contents."""
        digest = hashlib.sha256()
        for name, text in self._texts.items():
            digest.update(f"{name} {len(text)}\n".encode() + text)
        return digest.hexdigest()[:12]

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        texts = {
            prefix + path.name: path.read_bytes()
            for prefix, folder in self._page.folders.items()
            for path in sorted(find_folder(folder).iterdir())
            if path.suffix in _TYPES
        }
        return {**texts, INDEX: self._list_parts(texts[INDEX].decode()).encode()}

    def _list_parts(self, index: str) -> str:
        """The page with links to its views, and with what `parts.js` reads of its other parts."""
        page = self._page
        links = [_format_part("views", one, f' href="#/{one.name}"') for one in page.views]
        others = [
            *(_format_part("studio", one) for one in page.studio),
            *(_format_part("run-offers", one) for one in page.run_offers),
            *(_format_part("room-offers", one) for one in page.room_offers),
            *(_format_part(one.name, one) for one in (page.attachments, page.citations) if one is not None),
        ]
        index = index.replace("<!-- views -->", "\n        ".join(links))
        return index.replace("<!-- parts -->", "\n      ".join(["", *others]) + "\n    ")


def _format_part(slot: str, part: PagePart, attributes: str = "") -> str:
    fields = {"slot": slot, "name": part.name, "module": part.module, "scope": part.scope}
    if part.rooms:
        fields["rooms"] = " ".join(part.rooms)
    data = "".join(f' data-{name}="{escape(value)}"' for name, value in fields.items())
    return f"<a{attributes}{data}>{escape(part.label)}</a>"


def _pack(name: str, plain: bytes) -> PackedFile:
    # A fixed time, so that the same content always gives the same bytes.
    packed = gzip.compress(plain, mtime=0)
    return PackedFile(_TYPES[Path(name).suffix], plain, packed, hashlib.sha256(plain).hexdigest()[:20])


def _respond(
    http: Request, file: PackedFile | None, *, vary: str, cache_control: str = HEADERS["cache-control"]
) -> Response:
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
