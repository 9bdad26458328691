"""Requests an access token from an OAuth token endpoint (RFC 6749)."""

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.connectors.source_client import SourceClient
from gateway.features.documents.engine.ingest.errors import ConnectorError

EARLY_SECONDS = 60.0
"""A token this close to its expiry is renewed first, so it does not expire during a request."""
_UNKNOWN_LIFE_SECONDS = 300.0
_MAX_REPLY_BYTES = 100_000


async def request_token(client: SourceClient, token_uri: str, form: Mapping[str, str]) -> tuple[str, float]:
    """A token and its lifetime in seconds. Raises `ConnectorError` and its subclasses."""
    content = urlencode(form).encode()
    reply = await client.read(
        token_uri, method="POST", content=content, headers=_build_form_headers, max_bytes=_MAX_REPLY_BYTES
    )
    data = parse_object(reply.body)
    token, life = data.get("access_token"), data.get("expires_in")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise ConnectorError(f"{token_uri} answered without an access token; try again later")
    return token, float(life) if isinstance(life, int | float) and life > 0 else _UNKNOWN_LIFE_SECONDS


def parse_object(body: bytes) -> JsonObject:
    """Parses a JSON object; returns an empty one for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


async def _build_form_headers(_: str) -> Mapping[str, str]:
    return {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
