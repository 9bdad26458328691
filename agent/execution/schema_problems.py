"""Checks arguments and results of tools against their schemas."""

from agent.core.json_schema import Violation, iter_violations
from agent.core.models import JsonObject
from agent.execution.arguments import find_undeclared_args
from agent.tools import ToolResult, ToolSpec


def find_argument_problem(spec: ToolSpec, args: JsonObject) -> str | None:
    """The problem of the arguments in one sentence, or None. Arguments that are not declared are one."""
    if undeclared := find_undeclared_args(spec, args):
        properties = spec.input_schema.get("properties")
        declared = ", ".join(properties if isinstance(properties, dict) else ()) or "none"
        return f"{spec.name}: unknown argument {', '.join(map(repr, undeclared))}; known: {_shorten(declared)}"
    fault = _find_first_violation(spec.input_schema, args)
    if fault is None:
        return None
    return f"{spec.name}: {fault.where or 'arguments'}: {_shorten(fault.message)}"


def find_output_problem(spec: ToolSpec, result: ToolResult) -> str | None:
    """Returns how the result violates the tool's output schema, or None. See `ToolSpec.is_output_binding`."""
    if spec.output_schema is None or not spec.is_output_binding:
        return None
    fault = _find_first_violation(spec.output_schema, result.value)
    if fault is None:
        return None
    where = fault.where or "result"
    return f"{spec.name} returned something else than it promises: {where}: {_shorten(fault.message)}"


def _find_first_violation(schema: JsonObject, instance: object) -> Violation | None:
    return next(iter_violations(schema, instance), None)


def _shorten(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
