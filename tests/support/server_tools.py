"""The tools of tests/support/data/server_inputs.yaml, as other people's servers describe theirs.

A line names a tool and its inputs. `name!` is required; `s`, `n`, `i`, `b`, `o`, `any` are a text, a number, an
integer, a boolean, an open object and any value; `s+` is a list of types with null, `s|null` a union, `a/b` an
enumeration, `i1..5` an integer between limits, `[s]` a list. An object has inputs of its own; under `^` stands a JSON
schema as it is, and under `$` what stands beside the inputs.
"""

import re
from pathlib import Path
from typing import Any

from agent.core.bounded_yaml import load_trusted_yaml
from agent.tools import ToolAnnotations, ToolSpec

DATA = Path(__file__).parent / "data" / "server_inputs.yaml"
_WORDS: dict[str, Any] = {
    "s": {"type": "string"},
    "n": {"type": "number"},
    "i": {"type": "integer"},
    "b": {"type": "boolean"},
    "o": {"type": "object"},
    "null": {"type": "null"},
    "any": {},
    "date": {"type": "string", "format": "date-time"},
    "uri": {"type": "string", "format": "uri"},
    "uuid": {"type": "string", "format": "uuid"},
}


def load_server_tools() -> list[ToolSpec]:
    """All tools, under the names that the gateway gives tools of servers."""
    servers = load_trusted_yaml(DATA.read_text("utf-8"))
    return [
        ToolSpec(
            f"{server}__{name}",
            f"{name} of {server}.",
            _expand_object(inputs),
            None,
            ToolAnnotations(),
            tainted=True,
            origin=server,
        )
        for server, tools in servers.items()
        for name, inputs in tools.items()
    ]


def _expand_object(inputs: dict[str, Any]) -> dict[str, Any]:
    if "^" in inputs:
        made: dict[str, Any] = _expand_schema(inputs["^"])
        return made
    beside = inputs.get("$", {})
    named = {name: value for name, value in inputs.items() if name != "$"}
    properties = {name.removesuffix("!"): _expand(value) for name, value in named.items()}
    required = [name.removesuffix("!") for name in named if name.endswith("!")]
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **beside}


def _expand(value: Any) -> Any:
    if isinstance(value, dict):
        return _expand_object(value)
    if isinstance(value, list):
        return {"type": "array", "items": _expand(value[0])}
    if value in _WORDS:
        return _WORDS[value]
    if value.endswith("+"):
        return {"type": [_WORDS[value[:-1]]["type"], "null"]}
    if "|" in value:
        return {"anyOf": [_WORDS[word] for word in value.split("|")], "default": None}
    if limits := re.fullmatch(r"i(\d+)\.\.(\d*)", value):
        most = {"maximum": int(limits[2])} if limits[2] else {}
        return {"type": "integer", "minimum": int(limits[1]), **most}
    return {"type": "string", "enum": value.split("/")}


def _expand_schema(schema: Any) -> Any:
    """A schema as it is, but for those that are made: `gen` values, an object of `wide` inputs, one that is `deep`."""
    match schema:
        case {"gen": int(count)}:
            return {"type": "string", "enum": [f"value-{number}" for number in range(count)]}
        case {"wide": int(count)}:
            return {"type": "object", "properties": {f"option_{number}": {"type": "string"} for number in range(count)}}
        case {"deep": int(levels)}:
            made: dict[str, Any] = {"type": "string"}
            for _ in range(levels):
                made = {
                    "type": "object",
                    "properties": {"inner": made, "n": {"type": "integer"}},
                    "required": ["inner"],
                }
            return made
    return schema
