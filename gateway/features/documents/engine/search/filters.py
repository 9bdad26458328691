"""Metadata filters: the field values of a passage as rows, and the filters of a query."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.core.surrogates import replace_surrogates
from gateway.features.documents.engine.search.lexical import DOCUMENT_FIELD, Passage

MAX_VALUE_CHARS = 300
"""Longer metadata values are returned with a passage, but cannot be filtered by."""
MAX_VALUES = 100
"""Values in one list, in metadata or in a filter."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Requires that a field has one of these values, formatted as in `list_facets`."""

    field: str
    values: tuple[str, ...]


def list_facets(passage: Passage) -> set[tuple[str, str]]:
    """The (field, value) pairs by which a passage can be filtered."""
    facets = {(DOCUMENT_FIELD, _format_scalar(passage.document_id))}
    for name, value in passage.metadata.items():
        if name != DOCUMENT_FIELD and len(name) <= MAX_VALUE_CHARS:
            values = value if isinstance(value, list) else [value]
            facets |= {
                (replace_surrogates(name).replace("\x00", ""), text) for text in _iter_scalars(values[:MAX_VALUES])
            }
    return facets


def parse_filters(filters: JsonObject) -> list[Filter]:
    """The filters of a query. Raises `BadRequestError` for a value that no metadata can equal."""
    conditions = []
    for name, value in filters.items():
        values = value if isinstance(value, list) else [value]
        written = tuple(_iter_scalars(values))
        if len(written) != len(values) or not written or len(written) > MAX_VALUES:
            raise BadRequestError(
                f"the filter {name!r} must be a text of at most {MAX_VALUE_CHARS} characters, a number, true or false, "
                f"or a list of 1 to {MAX_VALUES} of them",
                agent_id="memory",
                param=f"filters.{name}",
            )
        conditions.append(Filter(name, written))
    return conditions


def make_unknown_field_error(name: str, known: Sequence[str]) -> BadRequestError:
    """The error for a filter by a field that no passage has."""
    fields: list[JsonValue] = [*sorted(known)]
    return BadRequestError(
        f"nothing in this collection has the field {name!r}; its fields are: {', '.join(sorted(known))}",
        agent_id="memory",
        param=f"filters.{name}",
        known_fields=fields,
    )


def _iter_scalars(values: Sequence[JsonValue]) -> Iterator[str]:
    for value in values:
        if value is not None and not isinstance(value, list | dict):
            text = _format_scalar(value)
            if len(text) <= MAX_VALUE_CHARS:
                yield text


def _format_scalar(value: JsonValue) -> str:
    """A scalar as text in which 1 and "1" differ and 1 and 1.0 do not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return replace_surrogates(json.dumps(value, ensure_ascii=False))
