"""Leaves out invalid parts of an external tool's schema, so that they do not cost the tool.

A keyword whose value has not its form (`minLength: "3"`, `properties: []`), and a reference to what the schema does not
contain, say nothing; the server checks its arguments itself.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent.core.models import JsonObject
from agent.tools.external_schema import find_schema_problem, is_resolvable

_MAX_REPAIRS = 50


def repair_schema(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The schema without what cannot be read, and the places that were left out. A schema that stays invalid, or is too
    long, is returned as it is."""
    try:
        text = json.dumps(schema)
    except (ValueError, TypeError, RecursionError):
        return schema, ()
    repaired, places = _repair(text)
    return (json.loads(repaired), places) if places else (schema, ())


@lru_cache(maxsize=2_000)
def _repair(text: str) -> tuple[str, tuple[str, ...]]:
    schema = json.loads(text)
    if find_schema_problem(schema) is None:
        return "", ()
    places = ["/".join(place) for place in _drop_references(schema, schema, ())]
    for _ in range(_MAX_REPAIRS):
        fault = _find_fault(schema)
        if fault is None:
            break
        _drop(schema, fault)
        places.append("/".join(map(str, fault)))
    return (json.dumps(schema), tuple(places)) if find_schema_problem(schema) is None else ("", ())


def _find_fault(schema: JsonObject) -> list[str | int] | None:
    """The path to a value that is not of its keyword's form; None if there is none, or only the whole schema."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 60 ms that most starts do not need

    # Without formats, as `find_schema_problem`: patterns are ECMA-262.
    error = next(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema), None)
    return list(error.absolute_path) or None if error is not None else None


def _drop(schema: Any, path: Sequence[str | int]) -> None:
    """Removes what the path leads to, or the list that it is in; an argument keeps its name."""
    last = max(at for at, step in enumerate(path) if isinstance(step, str))
    for step in path[:last]:
        schema = schema[step]
    if last and path[last - 1] == "properties":
        schema[path[last]] = {}
    else:
        del schema[path[last]]


def _drop_references(root: Mapping[str, Any], node: Any, place: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Removes references that lead nowhere. Returns where they were."""
    if isinstance(node, list):
        return [one for at, item in enumerate(node) for one in _drop_references(root, item, (*place, str(at)))]
    if not isinstance(node, dict):
        return []
    places: list[tuple[str, ...]] = []
    if isinstance(node.get("$ref"), str) and not is_resolvable(root, node["$ref"]):
        del node["$ref"]
        places.append((*place, "$ref"))
    return places + [one for key, item in node.items() for one in _drop_references(root, item, (*place, key))]
