"""Reads a tool call that is written in one field: `search`, `search({"query": "tea"})`, `search(query="tea")`, or an
object with the tool's name and its arguments.
"""

import ast
import json
import keyword
import re

from pydantic import JsonValue

from agent.core.json_texts import read_json_text
from agent.core.models.words import JsonObject

MAX_CALL_CHARS = 20_000
_CALL = re.compile(r"\s*(?P<name>[\w.-]+)\s*\((?P<inside>.*)\)\s*", re.DOTALL)
_ARGS_KEYS = ("arguments", "args", "inputs", "parameters")


def read_written_call(value: JsonValue) -> tuple[JsonValue, JsonValue]:
    """Splits a call into tool and arguments, None if it has none. What cannot be read as a call is returned as the
    tool, so that the message about an unknown tool shows it.
    """
    if isinstance(value, dict) and isinstance(value.get("name", value.get("tool")), str):
        given = next((value[key] for key in _ARGS_KEYS if key in value), None)
        return value.get("name", value.get("tool")), given
    if not isinstance(value, str) or len(value) > MAX_CALL_CHARS:
        return value, None
    match = _CALL.fullmatch(value)
    if match is None:
        return value.strip(), None
    inside = match["inside"].strip()
    args = {} if not inside else _read_object(inside) or _read_keywords(match["inside"])
    return (match["name"], args) if args is not None else (value, None)


def write_call(tool: str, args: JsonObject) -> str:
    """A call as `read_written_call` reads it: `calculator(expression='6*7')`; only the name without arguments."""
    plain = {name: _unquote(value) for name, value in args.items()}
    if not plain:
        return tool
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in plain):
        return f"{tool}({json.dumps(plain, ensure_ascii=False)})"
    return f"{tool}({', '.join(f'{name}={value!r}' for name, value in plain.items())})"


def _unquote(value: JsonValue) -> JsonValue:
    """The text of a `$literal`: a call that is read has its texts quoted again."""
    return value["$literal"] if isinstance(value, dict) and value.keys() == {"$literal"} else value


def _read_object(text: str) -> JsonObject | None:
    parsed = read_json_text(text)
    return parsed if isinstance(parsed, dict) else None


def _read_keywords(text: str) -> JsonObject | None:
    """Reads arguments that are written as in Python, with literal values. Nothing is evaluated."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(one.arg is None for one in call.keywords):
            return None
        arguments = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        return dict(json.loads(json.dumps(arguments)))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
