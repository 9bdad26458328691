"""Checks arguments and results of tools against their schemas."""

import json
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError as SchemaViolation

from agent.core.models import JsonObject
from agent.tools import ToolResult, ToolSpec


def find_argument_problem(spec: ToolSpec, args: JsonObject) -> str | None:
    """Returns the problem of the arguments in one sentence, or None."""
    fault = _find_first_violation(spec.input_schema, args)
    if fault is None:
        return None
    where = ".".join(str(part) for part in fault.absolute_path) or "arguments"
    return f"{spec.name}: {where}: {_shorten(fault.message)}"


def find_output_problem(spec: ToolSpec, result: ToolResult) -> str | None:
    """Returns how the result violates the tool's output schema, or None."""
    if spec.output_schema is None:
        return None
    fault = _find_first_violation(spec.output_schema, result.value)
    if fault is None:
        return None
    where = ".".join(str(part) for part in fault.absolute_path) or "result"
    return f"{spec.name} returned something else than it promises: {where}: {_shorten(fault.message)}"


def _find_first_violation(schema: JsonObject, instance: object) -> SchemaViolation | None:
    validator = _build_validator(json.dumps(schema, sort_keys=True))
    return next(iter(validator.iter_errors(instance)), None)


@lru_cache(maxsize=512)
def _build_validator(schema: str) -> Any:
    return Draft202012Validator(json.loads(schema))


def _shorten(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
