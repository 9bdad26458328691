"""Finds where an issuer of tokens publishes its keys, by its metadata (OpenID Connect Discovery 1.0, RFC 8414)."""

import json
import urllib.error
import urllib.request
from typing import Any

from agent.core.errors import StoreError

METADATA_PATHS = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")
FALLBACK_PATH = "/.well-known/jwks.json"
"""Where the keys are looked for if the issuer has no metadata."""
TIMEOUT_SECONDS = 5
MAX_BYTES = 1_000_000


def find_keys_url(issuer: str) -> str:
    """The address of the issuer's keys. Blocks; asks the issuer.

    Raises `StoreError` if the issuer cannot be reached, or if its metadata cannot be trusted: it must name this issuer,
    because others may be able to publish pages on its host, and must not lead from HTTPS to HTTP.
    """
    base = issuer.rstrip("/")
    for path in METADATA_PATHS:
        metadata = _read_metadata(f"{base}{path}")
        if metadata is not None:
            return _check_keys_url(f"{base}{path}", base, metadata)
    return f"{base}{FALLBACK_PATH}"


def _read_metadata(url: str) -> dict[str, Any] | None:
    """The JSON object at an address; None if there is none."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the issuer is an HTTP address
            body: bytes = response.read(MAX_BYTES + 1)
        data = json.loads(body) if len(body) <= MAX_BYTES else None
    except urllib.error.HTTPError as error:
        if error.code >= 500 or error.code == 429:
            raise StoreError(f"{url} fails with HTTP {error.code}; try again", agent_id="tokens") from error
        return None
    except OSError as error:
        raise StoreError(f"the token's issuer cannot be reached at {url}; try again", agent_id="tokens") from error
    except ValueError:  # a page for people, or no JSON at all
        return None
    return data if isinstance(data, dict) else None


def _check_keys_url(url: str, base: str, metadata: dict[str, Any]) -> str:
    named, keys_url = metadata.get("issuer"), metadata.get("jwks_uri")
    if not isinstance(named, str) or named.rstrip("/") != base:
        raise StoreError(f"{url} is the metadata of {named!r}, not of AGENT_JWT_ISSUER={base}", agent_id="tokens")
    schemes = ("https://",) if base.startswith("https://") else ("https://", "http://")
    if not isinstance(keys_url, str) or not keys_url.startswith(schemes):
        raise StoreError(f"{url} names no usable `jwks_uri`: {keys_url!r}", agent_id="tokens")
    return keys_url
