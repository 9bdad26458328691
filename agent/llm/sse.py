"""Parses the server-sent events of a completion, with as little work per chunk as JSON allows."""

import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from pydantic_core import from_json

from agent.core.errors import ModelOutputError

MAX_LINE_BYTES = 4_000_000
"""A single event larger than this is no completion."""


async def iter_data_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[list[dict[str, Any]]]:
    """Yields the JSON objects of the `data:` lines that arrive together, up to `[DONE]`.

    Raises `ModelOutputError` for anything else, after the objects before it.
    """
    rest = b""
    async for chunk in chunks:
        rest += chunk
        if len(rest) > MAX_LINE_BYTES:
            raise ModelOutputError("the model's stream holds an event of more than 4 MB", agent_id="models")
        *lines, rest = rest.split(b"\n")
        events: list[dict[str, Any]] = []
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                yield events
                return
            try:
                events.append(_parse(data))
            except ModelOutputError:
                yield events
                raise
        if events:
            yield events
    if rest.startswith(b"data:") and (data := rest[5:].strip()) != b"[DONE]":
        yield [_parse(data)]


def _parse(data: bytes) -> dict[str, Any]:
    try:
        event = from_json(data)
    except ValueError:
        event = _parse_lenient(data)
    if not isinstance(event, dict):
        raise ModelOutputError("the model's stream holds something else than objects", agent_id="models")
    return event


def _parse_lenient(data: bytes) -> object:
    """Parses what pydantic's parser refuses but Python's slower one accepts (lone surrogates)."""
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"the model's stream holds no JSON: {data[:100]!r}", agent_id="models") from error
    return value
