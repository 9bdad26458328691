"""Calls as JSON objects: `{"name": ..., "arguments": {...}}` and its relatives."""

import ast
import json
import re
import warnings
from collections.abc import Collection
from typing import NamedTuple

from pydantic import JsonValue

from agent.core.models import JsonObject

MAX_REPAIRED_CHARS = 20_000
"""Longer JSON is not repaired: its repair may take quadratic time."""
_ARGUMENT_KEYS = ("arguments", "parameters", "inputs", "args", "input", "params", "action_input", "tool_input")
_NAME_KEYS = ("name", "tool_name", "function", "tool", "action")
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "calls", "call", "actions", "action")
"""What an object is called that holds a call, or a list of them."""
_CALL_KEYS = frozenset({"id", "type", "index", "tool_call_id", *_ARGUMENT_KEYS, *_NAME_KEYS})
"""The fields of a call. An object with others is something else, such as the description of a tool."""

_NAMESPACE = re.compile(r"\A(?:functions|default_api)[.:]")
"""That of the tools, which templates write before their names (gpt-oss, Gemini)."""
_CALL_NUMBER = re.compile(r"(?:\.call|:\d+)\Z")
"""What templates write behind a tool's name (Kimi numbers the calls)."""
_MARKER = "<|"
"""Servers leave the tokens behind a name in it (gpt-oss on vLLM: `search<|channel|>commentary`)."""


class MalformedCallError(Exception):
    """Raised for a reply that holds no readable call. Its message says why. Does not leave `read_calls`."""


class RawCall(NamedTuple):
    """A call as it was written. `arguments` may be an object, or JSON text."""

    name: str
    arguments: object


def unwrap_calls(value: object) -> list[RawCall]:
    """The calls in a JSON value: an object, a list of them, or either under a name such as `tool_calls`.

    Raises `MalformedCallError` for any other value.
    """
    wrapped = get_wrapped(value) if isinstance(value, dict) and len(value) == 1 else None
    value = value if wrapped is None else wrapped
    entries = value if isinstance(value, list) else [value]
    return [_read_call_object(entry) for entry in entries]


def read_named_calls(value: object) -> list[RawCall]:
    """The calls in a list of objects whose one key is the name, as Apertus writes them. Raises `MalformedCallError` for
    any other value."""
    if not isinstance(value, list) or not all(isinstance(one, dict) and len(one) == 1 for one in value):
        raise MalformedCallError("the reply holds JSON that is not a call")
    return [RawCall(name, arguments) for one in value for name, arguments in one.items()]


def get_wrapped(value: JsonObject) -> JsonValue:
    """The object or list under a name for calls; None if there is none."""
    wrapped = (value.get(name) for name in _WRAPPERS)
    return next((one for one in wrapped if isinstance(one, dict | list)), None)


def read_call_fields(value: JsonObject) -> tuple[str, JsonValue]:
    """The name and the arguments of a call, whatever its fields are called and whatever other fields it has; "" and
    None for those that are missing."""
    nested = value.get("function")
    value = {**value, **nested} if isinstance(nested, dict) else value
    names = (name for key in _NAME_KEYS if isinstance(name := value.get(key), str) and name)
    return next(names, ""), next((value[key] for key in _ARGUMENT_KEYS if key in value), None)


def match_tool_name(name: str, tools: Collection[str]) -> str | None:
    """The tool that a call names, also within what its template writes around names, or in another spelling that only
    one has (`CurrentTime`); None if there is none."""
    bare = name.partition(_MARKER)[0].strip()
    local = _NAMESPACE.sub("", bare)
    # A tool may itself be called `functions.list` or `weather.call`: what looks like a template's may be its own.
    written = (name, bare, local, _CALL_NUMBER.sub("", bare), _CALL_NUMBER.sub("", local))
    exact = next((one for one in written if one in tools), None)
    if exact is not None:
        return exact
    same = [one for one in tools if _spell(one) == _spell(local)]
    return same[0] if len(same) == 1 else None


def _spell(name: str) -> str:
    """The letters and digits of a name: models write it as their training has it, `GetWeather` or `get-weather`."""
    return "".join(char for char in name.casefold() if char.isalnum())


def list_other_fields(value: JsonObject) -> JsonObject:
    """The fields of an object that no call has."""
    return {key: item for key, item in value.items() if key not in _CALL_KEYS}


def to_arguments(name: str, arguments: object) -> JsonObject:
    """The arguments of a call as an object. Raises `MalformedCallError` for anything else."""
    value = arguments
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}", strict=False)
        except (ValueError, RecursionError):
            value = repair_json(value)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise MalformedCallError(f"the arguments of {name!r} are not an object")
    return value


def repair_json(text: str) -> object:
    """The value of slightly wrong JSON: single quotes, Python's constants, commas too many, raw newlines.

    Raises `MalformedCallError` for text that is not closed: a call that was cut off must not be completed.
    """
    body = text.strip()
    if len(body) > MAX_REPAIRED_CHARS or not _is_closed(body):
        raise MalformedCallError(f"the call is not complete JSON: {body[:60]!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the model's strings
            value: object = ast.literal_eval(body)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        import json_repair  # noqa: PLC0415 - few replies are damaged

        try:
            value = json_repair.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedCallError(f"the call is not JSON: {body[:60]!r}") from error
    try:
        value = json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:  # sets, bytes and other values of Python
        raise MalformedCallError(f"the call is not JSON: {body[:60]!r}") from error
    if not isinstance(value, dict | list):
        raise MalformedCallError(f"the call is not JSON: {body[:60]!r}")
    return value


def _is_closed(body: str) -> bool:
    return (
        body[-1:] in ("}", "]")
        and body.count("{") == body.count("}")
        and body.count("[") == body.count("]")
        and (body.count('"') - body.count('\\"')) % 2 == 0
    )


def _read_call_object(value: object) -> RawCall:
    if not isinstance(value, dict):
        raise MalformedCallError("the reply holds JSON that is not a call")
    function = value.get("function")
    if isinstance(function, dict) and not value.keys() - {"id", "type", "index", "function"}:
        value = function
    names = [name for key in _NAME_KEYS if isinstance(name := value.get(key), str) and name]
    given = [value[key] for key in _ARGUMENT_KEYS if key in value]
    if value.keys() - _CALL_KEYS or len(names) != 1 or len(given) != 1 or _is_schema(given[0]):
        raise MalformedCallError("the reply holds JSON that is not a call")
    return RawCall(names[0], given[0])


def _is_schema(arguments: object) -> bool:
    """Whether the value describes arguments, as in the definition of a tool."""
    return isinstance(arguments, dict) and arguments.get("type") == "object" and "properties" in arguments
