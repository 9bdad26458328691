"""Addresses of model endpoints as people write them, and their keys: without a scheme or `/v1`, with the path of an
operation, with a login. Each is parsed once, where it is typed.
"""

import base64
import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from agent.core.authorities import parse_authority

BASIC: Final = "Basic "
"""Begins a key that is a login (RFC 7617) and not a bearer key."""
_OPERATION = re.compile(
    r"(?:/(?:chat/completions|completions|embeddings|responses|models)|(?<=/api)/(?:chat|generate|tags|embed))/*\Z",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/+")
_VERSION = re.compile(r"/v\d+[a-z0-9]*\Z", re.IGNORECASE)
_SIGN = re.compile(r"[^\w\-.~:/?#\[\]@!$&'()*+,;=%]")
"""What no address has (RFC 3986). Letters of every language are in names of hosts."""
_KEY_SIGN = re.compile(r"[^!-~]")
_LOCAL_NAMES = (".local", ".lan", ".internal", ".home.arpa", ".ts.net")


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """Where an API is, and the login that was written into it as a key; None without one."""

    base_url: str
    login: str | None = None


def read_address(written: str) -> ModelAddress:
    """The address that is meant, without a slash at its end. Without a scheme it is http:// in the own network, where
    programs serve models without TLS, and https:// elsewhere, because a key may be sent.

    Raises `ValueError` for a text that is not an HTTP address. No message repeats the text, which may hold a password.
    """
    text = re.sub(r"^[\s\u200b-\u200f\u2060\ufeff]+|[\s\u200b-\u200f\u2060\ufeff]+$", "", written)
    if (wrong := _SIGN.search(text)) is not None:
        raise ValueError(f"has the character {wrong[0]!r} (U+{ord(wrong[0]):04X}), which an address cannot have")
    scheme = _SCHEME.match(text)
    rest = text if scheme is None else text[scheme.end() :]
    parts = _split(f"//{rest}")
    host = parts.netloc.rpartition("@")[2]
    if not host or (scheme is not None and scheme[1].lower() not in ("http", "https")):
        raise ValueError("must begin with http:// or https:// and a host")
    if parse_authority(_to_ascii(host)) is None:
        raise ValueError("has no valid host and port: a port is a number from 1 to 65535, an IPv6 address in brackets")
    if parts.query or parts.fragment:
        raise ValueError("has a query or a fragment (`?` or `#`): leave it out")
    kind = scheme[1].lower() if scheme is not None else "http" if _is_near(parts.hostname or "") else "https"
    path = _OPERATION.sub("", parts.path.rstrip("/")).rstrip("/")
    path = _VERSION.sub(lambda version: version[0].lower(), path)
    return ModelAddress(f"{kind}://{host}{path}", _read_login(parts))


def split_login(base_url: str) -> ModelAddress:
    """An address of a setting or a file, whose login is shown nowhere."""
    before, mark, rest = base_url.partition("://")
    netloc, slash, path = rest.partition("/")
    if not mark or "@" not in netloc:
        return ModelAddress(base_url)
    login = _read_login(urlsplit(base_url))
    return ModelAddress(f"{before}://{netloc.rpartition('@')[2]}{slash}{path}", login)


def list_roots(base_url: str) -> tuple[str, ...]:
    """The base URLs at which the API may be, the likelier one first: there, below `/v1`, and below the host's `/v1`. An
    address without a path is meant below `/v1`; one that ends in a version is meant as it is.
    """
    path = urlsplit(base_url).path
    if not path.strip("/"):
        return f"{base_url}/v1", base_url
    if _VERSION.search(path):
        return (base_url,)
    return base_url, f"{base_url}/v1", f"{base_url.removesuffix(path)}/v1"


def read_key(written: str) -> str:
    """A key as it is sent, without `Bearer` before it. Raises `ValueError` for one that no header can hold."""
    key = re.sub(r"\Abearer\s+", "", written.strip(), flags=re.IGNORECASE)
    if fault := find_key_fault(key):
        raise ValueError(fault)
    return key


def find_key_fault(key: str) -> str:
    """Why a key cannot be sent in a header; "" if it can."""
    wrong = _KEY_SIGN.search(key.removeprefix(BASIC))
    if wrong is not None:
        return (
            f"has the character {wrong[0]!r} (U+{ord(wrong[0]):04X}) at place {wrong.start() + 1}: give the key alone"
        )
    return "" if key else "is empty"


def build_authorization(key: str) -> str:
    """The `Authorization` header for a key."""
    return key if key.startswith(BASIC) else f"Bearer {key}"


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        raise ValueError("has brackets around something that is not an IPv6 address") from None


def _read_login(parts: SplitResult) -> str | None:
    if "@" not in parts.netloc:
        return None
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"{BASIC}{base64.b64encode(login.encode()).decode()}"


def _to_ascii(host: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return ""


def _is_near(host: str) -> bool:
    """Whether a host is this machine or one of its own network, as far as its name or address says."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)
