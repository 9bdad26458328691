"""The schemas of an external server's tools, kept out of the SDK's sight where it would reject them.

The SDK rejects the whole list for one schema that is not of type `object`, and a result that does not match the tool's
output schema, although the call has had its effect. So schemas are set aside in `_meta` while the SDK reads the list,
and put back afterwards: tools are pinned with them as the server wrote them.
"""

import json
from typing import Any

import mcp_types as types

from mcp_tools.client.response_defaults import CACHE_DEFAULTS
from mcp_tools.client.valid_fields import Validate, is_valid

_INPUT, _OUTPUT = "stepgate/inputSchema", "stepgate/outputSchema"
_ANY_OBJECT = {"type": "object"}


def set_schemas_aside(result: dict[str, Any], validate: Validate) -> list[str]:
    """Moves output schemas, and input schemas that the SDK would reject, to `_meta`. Returns a line for each tool whose
    schema is missing or unusable.
    """
    faults: list[str] = []
    tools = result.get("tools")
    if isinstance(tools, dict):
        tools = result["tools"] = _list_tools(tools)
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            faults += [f"{tool.get('name')}: {fault}" for fault in _set_aside(tool, validate)]
    return faults


def _list_tools(tools: dict[str, Any]) -> list[Any]:
    """The tools of an object by their names."""
    return [{"name": name, **tool} if isinstance(tool, dict) else tool for name, tool in tools.items()]


def restore_schemas(tool: types.Tool) -> types.Tool:
    """The tool with the schemas that the server wrote."""
    meta = dict(tool.meta or {})
    given, output = meta.pop(_INPUT, None), meta.pop(_OUTPUT, None)
    update: dict[str, Any] = {"meta": meta or None, "output_schema": output}
    return tool.model_copy(update=update if given is None else {**update, "input_schema": given})


def _set_aside(tool: dict[str, Any], validate: Validate) -> list[str]:
    faults: list[str] = []
    meta = tool["_meta"] if isinstance(tool.get("_meta"), dict) else {}
    aside = {key: value for key, value in meta.items() if key not in (_INPUT, _OUTPUT)}
    output = tool.pop("outputSchema", None)
    if isinstance(output, dict):
        aside[_OUTPUT] = output
    elif output is not None:
        faults.append("its output schema is not an object, so it is ignored")
    for name in tool.keys() & {"inputSchema", "input_schema", "parameters"}:
        tool[name] = _parse_schema(tool[name])
    given = tool.get("inputSchema")
    if given is None:
        given = tool["inputSchema"] = _take_other_schema(tool)
    if not isinstance(given, dict) or not given:
        tool["inputSchema"] = _ANY_OBJECT
        faults.append("its input schema is missing, so it takes any arguments")
    elif not is_valid(_build_probe(given), validate):
        tool["inputSchema"] = _ANY_OBJECT
        aside[_INPUT] = given
    if aside or "_meta" in tool:
        tool["_meta"] = aside
    return faults


def _parse_schema(schema: Any) -> Any:
    """The schema, also if it is written as a JSON text; unchanged if it cannot be read."""
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError):
        return schema


def _take_other_schema(tool: dict[str, Any]) -> dict[str, Any] | None:
    """Takes the schema of a tool's arguments that has its name of another protocol; None without one. `parameters` may
    as well be a mapping of parameters, and then it is not a schema."""
    schema, parameters = tool.pop("input_schema", None), tool.pop("parameters", None)
    if isinstance(schema, dict) and schema:
        return schema
    if not isinstance(parameters, dict):
        return None
    is_schema = parameters.get("type") == "object" or isinstance(parameters.get("properties"), dict)
    return parameters if is_schema else None


def _build_probe(schema: dict[str, Any]) -> dict[str, Any]:
    """A list with a tool of this schema and nothing else that could be invalid."""
    probe = {"name": "x", "inputSchema": schema}
    return {"tools": [probe], "resultType": "complete", **CACHE_DEFAULTS}
