"""Reads an answer that the request wants as JSON: frees it of fences and prose, and compares it with the schema."""

import asyncio
import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

from agent.answers.schema_check import find_schema_error, get_requested_schema, list_schema_problems
from agent.core.fenced_json import iterate_json_blocks
from agent.core.models import JsonObject

MAX_PROBLEMS = 5
MAX_CANDIDATES = 50
"""Places in a text without JSON as a whole where JSON is looked for."""
INLINE_CHARS = 5_000
"""The longest schema with its answer that is compared on the event loop: each property of a schema takes 0.15 ms."""
_BRACKET = re.compile(r"[{\[]")


def wants_json(options: JsonObject) -> bool:
    """Whether `response_format` asks for JSON."""
    form = options.get("response_format")
    return isinstance(form, dict) and form.get("type") in ("json_object", "json_schema")


async def read_json_answer(text: str, options: JsonObject) -> tuple[str, str]:
    """The JSON of an answer as it is written, and how it misses the requested form ("" if it fits).

    An answer without JSON is returned unchanged. A schema that is not a JSON schema is not compared."""
    schema = get_requested_schema(options)
    size = len(text) + len(json.dumps(schema))
    return await asyncio.to_thread(_read, text, schema) if size > INLINE_CHARS else _read(text, schema)


def _read(text: str, schema: JsonObject | None) -> tuple[str, str]:
    if schema is None:
        schema = {"type": "object"}  # of `json_object`
    elif find_schema_error(schema):
        schema = {}
    best, problem = text, "it is not JSON"
    for candidate, value in _iterate_json(text):
        problems = list(list_schema_problems(value, schema))[:MAX_PROBLEMS]
        if not problems:
            return candidate, ""
        best, problem = candidate, "; ".join(problems)
    return best, problem


def _iterate_json(text: str) -> Iterator[tuple[str, JsonValue]]:
    """Yields the JSON texts of a reply with their values: the whole, those in fences, those between prose."""
    for part in (text, *(fenced[1] for fenced in iterate_json_blocks(text))):
        try:
            yield part.strip(), json.loads(part)
        except (ValueError, RecursionError):
            continue
        if part is text:
            return
    decoder = json.JSONDecoder()
    end = tried = 0
    for bracket in _BRACKET.finditer(text):
        if bracket.start() < end:
            continue
        if tried == MAX_CANDIDATES:
            return
        tried += 1
        try:
            value, end = decoder.raw_decode(text, bracket.start())
        except (ValueError, RecursionError):
            continue
        yield text[bracket.start() : end], value
