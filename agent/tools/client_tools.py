"""Tools that a client offers with its request and runs itself (`client_tools: offer` of a room).

A planner may use them as steps. The run then ends with the calls, and the request that brings the results starts the
run that goes on with the plan (`agent.runs.client_results`). This gateway never runs them.
"""

import json
import re
from collections.abc import Container, Sequence
from typing import Final

from pydantic import JsonValue

from agent.core.errors import BadRequestError
from agent.core.models import AgentRequest, JsonObject, Room
from agent.tools.catalogue import is_foreign
from agent.tools.external_schema import find_schema_problem
from agent.tools.spec import ToolAnnotations, ToolSpec

CLIENT_ORIGIN: Final = "client"
MAX_OFFERED_TOOLS: Final = 64
MAX_TOOL_CHARS: Final = 10_000
"""Characters of one tool as JSON."""
MAX_TOOLS_CHARS: Final = 60_000
"""Characters of all tools as JSON. They are stored with the run, and the planner's prompt has a line for each."""
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PATTERNS: Final = frozenset({"pattern", "patternProperties"})
_VALUES: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords of a schema whose values are not schemas."""


def is_from_outside(spec: ToolSpec) -> bool:
    """Whether a foreign MCP server or the client offers the tool: its schema and names are not this gateway's."""
    return is_foreign(spec) or spec.origin == CLIENT_ORIGIN


def check_client_tools(request: AgentRequest, room: Room, taken: Container[str]) -> None:
    """Raises `BadRequestError` for tools that the room cannot offer to its planner. `taken` has the names of tools and
    skills of this gateway. Rooms that offer none take every list.
    """
    tools = request.client_tools if room.offers_client_tools else ()
    if len(tools) > MAX_OFFERED_TOOLS:
        raise BadRequestError(f"tools: {len(tools)} are given; at most {MAX_OFFERED_TOOLS} are accepted", param="tools")
    seen: set[str] = set()
    total = 0
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        total += _measure(tool, where)
        name = _check_function(tool, where)
        if name in taken or name.lower().replace("-", "_") in taken:
            message = f"{where}.function.name: {name!r} is the name of a tool or skill of this gateway; rename yours"
            raise BadRequestError(message, param=f"{where}.function.name")
        if name in seen:
            raise BadRequestError(f"{where}.function.name: {name!r} is given twice", param=f"{where}.function.name")
        seen.add(name)
    if total > MAX_TOOLS_CHARS:
        message = f"tools: they have {total:,} characters as JSON; the limit is {MAX_TOOLS_CHARS:,}"
        raise BadRequestError(message, param="tools")


def build_client_specs(tools: Sequence[JsonObject]) -> tuple[ToolSpec, ...]:
    """The tools of a checked request as a planner sees them, in order of name.

    Nothing is known about what they change, so that their effect class is `effect`.
    """
    functions = [_get_function(tool) for tool in tools]
    specs = [
        build_client_spec(str(named["name"]), str(named.get("description") or ""), named.get("parameters"))
        for named in functions
    ]
    return tuple(sorted(specs, key=lambda spec: spec.name))


def build_client_spec(name: str, description: str = "", parameters: JsonValue = None) -> ToolSpec:
    """One tool. Its results are untrusted."""
    schema = _drop_patterns(parameters) if isinstance(parameters, dict) else {}
    return ToolSpec(
        name=name,
        description=description or "a tool of the client",
        input_schema={"properties": {}, **schema, "type": "object"},
        output=None,
        annotations=ToolAnnotations(),
        tainted=True,
        origin=CLIENT_ORIGIN,
    )


def _check_function(tool: JsonObject, where: str) -> str:
    """The name of a tool that is valid otherwise."""
    function = _get_function(tool)
    if tool.get("type", "function") != "function" or not function:
        raise BadRequestError(f'{where}: expected {{"type": "function", "function": {{...}}}}', param=where)
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        message = f"{where}.function.name: a name has 1 to 64 letters, digits, - or _"
        raise BadRequestError(message, param=f"{where}.function.name")
    if parameters is None:
        return name
    problem = "it is not an object" if not isinstance(parameters, dict) else find_schema_problem(parameters)
    if problem is None and isinstance(parameters, dict) and parameters.get("type", "object") != "object":
        problem = "its type is not 'object'"
    if problem is None and isinstance(parameters, dict) and not isinstance(parameters.get("properties", {}), dict):
        problem = "its properties are not an object"
    if problem is not None:
        message = f"{where}.function.parameters: {name}: {problem}"
        raise BadRequestError(message, param=f"{where}.function.parameters")
    return name


def _measure(tool: JsonObject, where: str) -> int:
    try:
        size = len(json.dumps(tool))
    except (RecursionError, ValueError) as error:
        raise BadRequestError(f"{where}: it cannot be read: it is nested too deeply", param=where) from error
    if size > MAX_TOOL_CHARS:
        message = f"{where}: it has {size:,} characters as JSON; the limit is {MAX_TOOL_CHARS:,}"
        raise BadRequestError(message, param=where)
    return size


def _get_function(tool: JsonObject) -> JsonObject:
    function = tool.get("function")
    return function if isinstance(function, dict) else {}


def _drop_patterns(schema: JsonObject) -> JsonObject:
    """The schema without regular expressions: those of a caller could take minutes on a text."""
    without_patterns: JsonObject = {}
    for name, value in schema.items():
        if name in _PATTERNS:
            continue
        if name in ("properties", "$defs", "definitions") and isinstance(value, dict):
            without_patterns[name] = {key: _drop_from(item) for key, item in value.items()}
        else:
            without_patterns[name] = value if name in _VALUES else _drop_from(value)
    return without_patterns


def _drop_from(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _drop_patterns(value)
    return [_drop_from(item) for item in value] if isinstance(value, list) else value
