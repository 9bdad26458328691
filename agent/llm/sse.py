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
        texts = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        is_done = b"[DONE]" in texts
        if is_done:
            texts = texts[: texts.index(b"[DONE]")]
        try:
            events = _parse_together(texts)
        except ValueError:
            for text in texts:
                yield [_parse(text)]
        else:
            if events:
                yield events
        if is_done:
            return
    if rest.startswith(b"data:") and (data := rest[5:].strip()) != b"[DONE]":
        yield [_parse(data)]


def _parse_together(texts: list[bytes]) -> list[dict[str, Any]]:
    """Parses texts with an object each as one array, in one call of the parser. Raises `ValueError` for other texts."""
    events: list[dict[str, Any]] = from_json(b"[" + b",".join(texts) + b"]")
    if len(events) != len(texts) or not all(isinstance(event, dict) for event in events):
        raise ValueError
    return events


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
