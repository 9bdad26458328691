"""The addresses that a stored secret may be sent to: that of its credential, and those below it."""

import re
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-\[\]-~]+")
"""Printable ASCII without the backslash, which some readers of addresses take for a slash."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_DECODINGS = 8
"""Each takes the time of a whole path, and one that is encoded more often was made to be misread."""


def check_secure_url(value: str) -> str:
    """The address. Raises `ValueError` for one where others can read what is sent."""
    url = urlsplit(value)
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOOPBACK_HOSTS):
        raise ValueError("must begin with https://, because secrets are sent there")
    return value


SecureUrl = Annotated[str, AfterValidator(check_secure_url)]


def is_below(url: str, place: str) -> bool:
    """Whether an address is `place` or lies below its path, with the same scheme, host and port.

    False for every address that two readers could understand differently.
    """
    one, other = _split(url), _split(place)
    if one is None or other is None or one[0] != other[0]:
        return False
    return one[1][: len(other[1])] == other[1]


def _split(url: str) -> tuple[tuple[str, str, int | None], list[str]] | None:
    """The scheme, host and port of an address, and the parts of its path."""
    try:
        parts = urlsplit(url)
        origin = (parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme))
    except ValueError:
        return None
    path = unquote(parts.path).rstrip("/").split("/")
    is_plain = _PLAIN.fullmatch(url) and "@" not in parts.netloc and not _can_climb(parts.path)
    return (origin, path) if is_plain and parts.hostname else None


def _can_climb(path: str) -> bool:
    """Whether a reader may take a part of a path for a way up: after further decoding, or without what some servers
    take off its end: parameters behind a semicolon, spaces, and what follows a control character.
    """
    for _ in range(_MAX_DECODINGS):
        decoded = unquote(path)
        if decoded == path:
            parts = (part.partition(";")[0].strip() for part in path.split("/"))
            return "\\" in path or _CONTROL.search(path) is not None or not {".", ".."}.isdisjoint(parts)
        path = decoded
    return True
