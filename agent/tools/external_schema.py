"""Validates the JSON schemas of external tools: a broken one would break every plan that includes the tool."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MAX_CHARS = 100_000
"""The longest schema: it is part of each planner prompt with the tool."""


def find_schema_problem(schema: Mapping[str, Any] | None) -> str | None:
    """Describes what is wrong with a schema, in a few words; None for a valid or missing one."""
    if schema is None:
        return None
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - 60 ms that most starts do not need
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        if len(json.dumps(schema)) > MAX_CHARS:
            return f"its schema is longer than {MAX_CHARS:,} characters"
        # Without formats: they require that Python's `re` compiles each `pattern`, but patterns are ECMA-262.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
        return next(_find_broken_references(schema, schema), None)
    except SchemaError as error:
        return f"its schema is not a valid JSON Schema: {error.message[:100]}"
    except (RecursionError, ValueError, TypeError):
        return "its schema cannot be read"


def _find_broken_references(root: Mapping[str, Any], node: object) -> Iterator[str]:
    """Yields `$ref`s that do not resolve within the schema. Validation of the schema itself does not follow them."""
    if isinstance(node, list):
        for item in node:
            yield from _find_broken_references(root, item)
    if not isinstance(node, Mapping):
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and not is_resolvable(root, reference):
        yield f"its schema refers to {reference[:100]!r}, which it does not contain"
    for item in node.values():
        yield from _find_broken_references(root, item)


def is_resolvable(root: Mapping[str, Any], reference: str) -> bool:
    """Whether a schema contains what a reference in it leads to."""
    if not reference.startswith("#"):
        return False  # external references are not fetched
    here: object = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        here = here.get(name) if isinstance(here, Mapping) else None
        if here is None:
            return False
    return True
