"""Parses the server-sent events of a completion, with as little work per chunk as JSON allows."""

import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from pydantic_core import from_json

from agent.core.errors import ModelOutputError

MAX_LINE_BYTES = 4_000_000
"""A single event larger than this is no completion."""


async def iter_data_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[dict[str, Any] | None]:
    """Yields the JSON object of each `data:` line, and None for `[DONE]`.

    Raises `ModelOutputError` for anything else.
    """
    rest = b""
    async for chunk in chunks:
        rest += chunk
        if len(rest) > MAX_LINE_BYTES:
            raise ModelOutputError("the model's stream holds an event of more than 4 MB", agent_id="models")
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield _parse(line[5:].strip())
    if rest.startswith(b"data:"):
        yield _parse(rest[5:].strip())


def _parse(data: bytes) -> dict[str, Any] | None:
    if data == b"[DONE]":
        return None
    try:
        event = _parse_json(data)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"the model's stream holds no JSON: {data[:100]!r}", agent_id="models") from error
    if not isinstance(event, dict):
        raise ModelOutputError("the model's stream holds something else than objects", agent_id="models")
    return event


def _parse_json(data: bytes) -> object:
    """Parses JSON with pydantic's parser, and with Python's slower one for what pydantic refuses (lone surrogates)."""
    try:
        value: object = from_json(data)
    except ValueError:
        value = json.loads(data)
    return value
