"""Metadata as rows that a search can be filtered by, and filters as the caller wrote them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.codec import whole
from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.knowledge.lexical import DOCUMENT_FIELD, Passage

MAX_VALUE_CHARS = 300
"""Longer metadata is told with a passage, not filtered by."""
MAX_VALUES = 100
"""Values of one list, in metadata or in a filter."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A field must have one of these values, written as `facets` writes them."""

    field: str
    values: tuple[str, ...]


def facets(passage: Passage) -> set[tuple[str, str]]:
    """The fields and values a passage can be filtered by."""
    found = {(DOCUMENT_FIELD, _written(passage.document_id))}
    for name, value in passage.metadata.items():
        if name != DOCUMENT_FIELD and len(name) <= MAX_VALUE_CHARS:
            values = value if isinstance(value, list) else [value]
            found |= {(whole(name).replace("\x00", ""), text) for text in _scalars(values[:MAX_VALUES])}
    return found


def read_filters(filters: JsonObject) -> list[Filter]:
    """The filters of a query. `BadRequestError` for a value that no metadata could equal."""
    found = []
    for name, value in filters.items():
        values = value if isinstance(value, list) else [value]
        written = tuple(_scalars(values))
        if len(written) != len(values) or not written or len(written) > MAX_VALUES:
            raise BadRequestError(
                f"the filter {name!r} must be a text of at most {MAX_VALUE_CHARS} characters, a number, a truth, or a "
                f"list of 1 to {MAX_VALUES} of them",
                agent_id="memory",
                param=f"filters.{name}",
            )
        found.append(Filter(name, written))
    return found


def unknown_field(name: str, known: Sequence[str]) -> BadRequestError:
    """The refusal of a filter by a field that no passage has."""
    fields: list[JsonValue] = [*sorted(known)]
    return BadRequestError(
        f"nothing in this collection has the field {name!r}; its fields are: {', '.join(sorted(known))}",
        agent_id="memory",
        param=f"filters.{name}",
        known_fields=fields,
    )


def _scalars(values: Sequence[JsonValue]) -> Iterator[str]:
    for value in values:
        if value is not None and not isinstance(value, list | dict):
            text = _written(value)
            if len(text) <= MAX_VALUE_CHARS:
                yield text


def _written(value: JsonValue) -> str:
    """A scalar as text that tells 1 from "1", and does not tell 1 from 1.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole(json.dumps(value, ensure_ascii=False))
