"""Web addresses: one spelling for each page, and which belong to one site."""

import re
from urllib.parse import unquote, urlsplit

import httpx

from agent.knowledge.connectors.kinds import suffix

LONGEST = 2000
"""Longer addresses are no pages of a site but what a script made of it."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_HOST = re.compile(r"[a-z0-9._-]+(:\d+)?$|\[[0-9a-f:.]+\](:\d+)?$")
_NO_PAGE = frozenset({
    ".7z", ".aac", ".apk", ".avi", ".avif", ".bin", ".bmp", ".br", ".bz2", ".css", ".deb", ".dmg", ".eot", ".exe",
    ".flac", ".gif", ".gz", ".ico", ".iso", ".jar", ".jpeg", ".jpg", ".js", ".m4a", ".m4v", ".mjs", ".mkv", ".mov",
    ".mp3", ".mp4", ".mpeg", ".mpg", ".msi", ".ogg", ".ogv", ".opus", ".otf", ".png", ".rar", ".rpm", ".svg",
    ".tar", ".tgz", ".tif", ".tiff", ".ttf", ".wasm", ".wav", ".webm", ".webp", ".whl", ".wmv", ".woff", ".woff2",
    ".xz", ".zip", ".zst",
})  # fmt: skip
"""What nobody here reads and no server answers with a page for."""


def normal(url: str, base: str | None = None) -> str | None:
    """The one spelling of an http(s) address, resolved against `base`; None for what is no such address.

    Scheme and host in small letters, default port, dot segments, fragment and white space gone, escapes in capitals.
    A query stays as it is: what looks like tracking may choose the content."""
    text = _CONTROL.sub("", url).strip()
    if not text or len(text) > LONGEST:
        return None
    try:
        found = httpx.URL(text) if base is None else httpx.URL(base).join(text)
        if found.scheme not in ("http", "https") or not _HOST.match(found.netloc.decode()) or found.userinfo:
            return None
        whole = str(found.copy_with(fragment=None, raw_path=found.raw_path or b"/"))
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return None
    whole = _ESCAPE.sub(lambda escape: escape[0].upper(), whole)
    return whole if len(whole) <= LONGEST else None


def site(url: str) -> str:
    """What the pages of one site have in common: the host without `www.`, and the port where it is a special one.
    http and https are one site."""
    return urlsplit(url).netloc.removeprefix("www.")


def key(url: str) -> str:
    """The same for the spellings of one page that a site cannot mean two pages by."""
    return url.partition("://")[2].removeprefix("www.")


def root(url: str, path: str) -> str:
    """The address of `path` on the host of `url`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{path}"


def may_be_page(url: str) -> bool:
    """Whether it is worth asking what is there, by the ending of its path."""
    return suffix(url) not in _NO_PAGE


def shown(url: str) -> str:
    """The address as people read it."""
    text = unquote(url.partition("://")[2] or url)
    return text.rstrip("/") or text
