"""Parses the authority of a `Host` header, of an `Origin` header, and of settings that name hosts and origins.

RFC 3986, 3.2.2; RFC 9110, 7.2; RFC 6454, 7.
"""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

_CACHED = 256
"""Headers whose result is kept: a gateway is called by few names, and a caller may send any number of others."""
_MAX_CHARS = 512
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]+)(?::([1-9][0-9]{0,4}))?")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
"""A label of a host name, with the underscore that names of containers may have."""
_ZONE = re.compile(r"%(?:25)?[A-Za-z0-9._~-]+\Z")
"""The zone of a link-local address (RFC 6874)."""
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#@\\\s]+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Authority:
    """A host with its port. Names are in lower case without the dot at their end; IPv6 addresses have no brackets."""

    host: str
    port: int | None
    """None if the header names none: the default port of a scheme, which the header does not name."""
    is_address: bool
    """Whether the host is an IP address, which no name server can point elsewhere."""


@lru_cache(maxsize=_CACHED)
def parse_host_header(value: bytes) -> Authority | None:
    """Parses a `Host` header; None if it is not exactly a host and optionally a port."""
    value = value.strip(b" \t")  # not part of the value (RFC 9110, 5.5); httptools leaves those at the end
    return parse_authority(value.decode("ascii")) if value.isascii() else None


def parse_authority(text: str) -> Authority | None:
    """The host and port that a text names, or None. A port is a number from 1 to 65535."""
    match = _AUTHORITY.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        return None
    port = int(match[2]) if match[2] else None
    if port is not None and port > 65_535:
        return None
    if match[1].startswith("["):
        address = _parse_address(_ZONE.sub("", match[1][1:-1]), version=6)
        return None if address is None else Authority(address, port, is_address=True)
    address = _parse_address(match[1], version=4)
    if address is not None:
        return Authority(address, port, is_address=True)
    name = match[1].removesuffix(".")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, name.split("."))):
        return None
    return Authority(name.lower(), port, is_address=False)


def parse_host_setting(text: str) -> Authority | None:
    """The host that a setting names: as `parse_authority`, but also `::1` without brackets, and names with
    letters beyond ASCII, which browsers send encoded.
    """
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    address = _parse_address(text, version=6)
    return parse_authority(text) if address is None else Authority(address, None, is_address=True)


def check_http_url(value: str) -> str:
    """The web address without a slash at its end. Raises `ValueError` for another text; the message repeats nothing
    of it.
    """
    if not value.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    try:
        is_whole = bool(urlsplit(value).hostname) and urlsplit(value).port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError("has no valid host and port")
    return value.rstrip("/")


@dataclass(frozen=True, slots=True)
class WebOrigin:
    """The parts of an origin such as `https://app.example.org:8443`."""

    scheme: str
    authority: Authority

    def is_at(self, host: Authority) -> bool:
        """Whether the origin has the host and port of a `Host` header. `http` or `https` does not count: behind
        a proxy with TLS the gateway cannot know which it is.
        """
        default = _DEFAULT_PORTS.get(self.scheme)
        if default is None or self.authority.host != host.host:
            return False
        return (self.authority.port or default) == (host.port or default)


@lru_cache(maxsize=_CACHED)
def parse_origin(value: str) -> WebOrigin | None:
    """The parts of an origin as browsers write it, or None: for `null`, a path, user information, an empty or
    malformed host.
    """
    match = _ORIGIN.fullmatch(value) if len(value) <= _MAX_CHARS else None
    authority = parse_authority(match[2]) if match is not None else None
    return WebOrigin(match[1], authority) if match is not None and authority is not None else None


def format_origin(url: str) -> str | None:
    """The origin of a URL as browsers write it, without a default port; None for a URL without a host."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    authority = parse_host_setting(re.split(r"[/?#]", rest)[0])
    if authority is None:
        return None
    host = f"[{authority.host}]" if ":" in authority.host else authority.host
    port = "" if authority.port in (None, _DEFAULT_PORTS.get(scheme)) else f":{authority.port}"
    return f"{scheme}://{host}{port}"


def _parse_address(text: str, *, version: int) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(address) if address.version == version else None
