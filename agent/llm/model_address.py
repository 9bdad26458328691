"""Addresses of model endpoints as people write them: without a scheme or `/v1`, or with the path of an operation."""

import ipaddress
import re
from urllib.parse import urlsplit

_OPERATION = re.compile(r"/(?:chat/completions|completions|embeddings|responses|models)/*$")
_LOCAL_NAMES = (".local", ".lan", ".internal", ".home.arpa")


def read_address(written: str) -> str:
    """The base URL that is meant, without a slash at its end. Without a scheme it is http:// in the own network, where
    programs serve models without TLS, and https:// elsewhere, because a key may be sent.

    Raises `ValueError` for a text that is not an HTTP address.
    """
    text = written.strip()
    if text and "://" not in text:
        scheme = "http" if _is_near(urlsplit(f"//{text}").hostname or "") else "https"
        text = f"{scheme}://{text}"
    address = urlsplit(text)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError("must begin with http:// or https:// and a host")
    return _OPERATION.sub("", text.rstrip("/")).rstrip("/")


def list_roots(base_url: str) -> tuple[str, ...]:
    """The base URLs at which the API may be, the likelier one first: without a path, below `/v1`, or there itself."""
    return (base_url,) if urlsplit(base_url).path.strip("/") else (f"{base_url}/v1", base_url)


def _is_near(host: str) -> bool:
    """Whether a host is this machine or one of its own network, as far as its name or address says."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_NAMES)
