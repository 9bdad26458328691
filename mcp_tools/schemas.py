"""Whether a foreign tool's JSON schema can be used: a broken one would break every plan that looks at the catalogue."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

MAX_CHARS = 100_000
"""No sane tool describes its arguments with more; each plan would carry it along."""


def schema_problem(schema: Mapping[str, Any] | None) -> str | None:
    """What is wrong with a schema, in a few words; None for a sound one, and for none at all."""
    if schema is None:
        return None
    try:
        if len(json.dumps(schema)) > MAX_CHARS:
            return f"its schema is longer than {MAX_CHARS:,} characters"
        Draft202012Validator.check_schema(schema)
        return next(_loose_references(schema, schema), None)
    except SchemaError as error:
        return f"its schema is no JSON Schema: {error.message[:100]}"
    except (RecursionError, ValueError, TypeError):
        return "its schema cannot be read"


def _loose_references(root: Mapping[str, Any], node: object) -> Iterator[str]:
    """References that lead nowhere or out of the schema, which the check of the schema itself does not follow."""
    if isinstance(node, list):
        for item in node:
            yield from _loose_references(root, item)
    if not isinstance(node, Mapping):
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and not _leads_somewhere(root, reference):
        yield f"its schema refers to {reference[:100]!r}, which is not in it"
    for item in node.values():
        yield from _loose_references(root, item)


def _leads_somewhere(root: Mapping[str, Any], reference: str) -> bool:
    if not reference.startswith("#"):
        return False  # nothing is fetched for a schema
    here: object = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        here = here.get(name) if isinstance(here, Mapping) else None
        if here is None:
            return False
    return True
