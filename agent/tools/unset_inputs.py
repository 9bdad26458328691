"""Optional inputs that a model fills though it has nothing to say: an empty text, null, a line 0."""

from pydantic import JsonValue

from agent.core.json_schema import iter_violations
from agent.core.models import JsonObject
from agent.tools.spec import ToolSpec


def drop_unset_inputs(spec: ToolSpec, inputs: JsonObject) -> JsonObject:
    """The inputs without optional ones that mean "not given"; never without a required one.

    In our own tools an empty text and null mean that, unless the tool changes something: then an empty text may clear a
    value. Of a foreign tool that only reads, an empty value or 0 is dropped if the tool's own schema refuses it.
    """
    properties, required = spec.input_schema.get("properties"), spec.input_schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    unset = [
        name
        for name, value in inputs.items()
        if name not in needed and isinstance(known.get(name), dict) and _is_unset(spec, known[name], value)
    ]
    return {name: value for name, value in inputs.items() if name not in unset} if unset else inputs


def _is_unset(spec: ToolSpec, schema: JsonValue, value: JsonValue) -> bool:
    if isinstance(value, bool) or value not in (None, "", 0, [], {}):
        return False
    if spec.origin == "builtin" and value != 0 and (value is None or spec.effect == "read"):
        return True
    if spec.effect != "read" or not isinstance(schema, dict):
        return False
    # A reference into the definitions of the whole schema cannot be compared alone.
    return "$ref" not in str(schema) and next(iter_violations(schema, value), None) is not None
