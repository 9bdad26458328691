"""Runs one program inside the sandbox and writes its result as JSON. Everything here is in the program's reach."""

import ast
import dataclasses
import io
import json
import math
import os
import sys
import traceback
import types
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from typing import Any

FILE_NAME = "<program>"
MAX_EXACT_INTEGER = 2**53
"""Larger integers lose digits in JSON readers that use doubles, so they are returned as text."""
MAX_ITEMS = 100_000
"""Items of an iterator in the result."""
MAX_DEPTH = 50
_MAX_FRAMES = 6
_MAX_MESSAGE_CHARS = 2_000


def run_program(code: str, inputs: Mapping[str, Any], result_pipe: int, max_result_bytes: int) -> None:
    """Runs the program and writes `{"value": ...}` or `{"error": ..., "kind": ...}` to the pipe. Never returns.

    `kind` is `memory`, `result` (a value that cannot be returned) or `program`.
    """
    try:
        reply: dict[str, Any] = {"value": to_json(_execute(code, inputs))}
        encoded = json.dumps(reply, allow_nan=False)
        if len(encoded) > max_result_bytes:
            message = f"the result has {len(encoded):,} characters, the limit is {max_result_bytes:,}; return less"
            encoded = json.dumps({"error": message, "kind": "result"})
    except MemoryError:
        encoded = json.dumps({"error": "the program needs more memory than it may use", "kind": "memory"})
    except BaseException as error:  # noqa: BLE001 - any error of the program is its result, SystemExit too
        encoded = json.dumps({"error": describe_error(error, code), "kind": "program"})
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        data = encoded.encode()
        while data:
            data = data[os.write(result_pipe, data) :]
        os._exit(0)


def _execute(code: str, inputs: Mapping[str, Any]) -> object:
    """The value of the last expression, else of the variable `result`, else None."""
    tree = ast.parse(code, FILE_NAME)
    # Classes look up their module in sys.modules.
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["inputs"] = inputs
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, FILE_NAME, "exec"), module.__dict__)  # noqa: S102 - this is the sandbox
    value = None
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), FILE_NAME, "eval"), module.__dict__)  # noqa: S307 - likewise
    return module.__dict__.get("result") if value is None else value


def to_json(value: Any, depth: int = 0) -> Any:
    """The value with JSON types: dates, decimals and large integers as text, tables as lists of rows, anything
    unknown as its `repr`. Raises ValueError for deep nesting and endless iterators.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"the result is nested more than {MAX_DEPTH} levels deep, or contains itself")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode()
    if isinstance(value, int):
        return int(value) if abs(value) <= MAX_EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item, depth + 1) for key, item in value.items()}
    if (simpler := _simplify(value)) is not value:
        return to_json(simpler, depth + 1)
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | type | io.IOBase):
        items = [to_json(item, depth + 1) for item in islice(value, MAX_ITEMS + 1)]
        if len(items) > MAX_ITEMS:
            raise ValueError(f"the result has a list of more than {MAX_ITEMS:,} items")
        return sorted(items, key=repr) if isinstance(value, AbstractSet) else items
    return repr(value)


def _simplify(value: Any) -> Any:
    """The parts of an object of a known kind, or the object itself."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(getattr(value, "to_dict", None)):  # pandas: a table, then a column
        return value.to_dict("records") if getattr(value, "ndim", 1) == 2 else value.to_dict()
    if callable(getattr(value, "tolist", None)):  # NumPy: an array or a number
        return value.tolist()
    if callable(getattr(value, "isoformat", None)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | Fraction | complex) else value


def describe_error(error: BaseException, code: str) -> str:
    """The program's own lines of the traceback and the message. Lines of libraries are left out."""
    try:
        message = f"{type(error).__name__}: {error}"[:_MAX_MESSAGE_CHARS].encode("utf-8", "replace").decode()
        source = code.splitlines()
        if isinstance(error, SyntaxError) and error.filename == FILE_NAME:
            return f"line {error.lineno}: {(error.text or '').strip()}\n{type(error).__name__}: {error.msg}"
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE_NAME]
        lines = []
        for frame in frames[-_MAX_FRAMES:]:
            number = frame.lineno or 0
            where = "" if frame.name == "<module>" else f", in {frame.name}"
            text = source[number - 1].strip() if 0 < number <= len(source) else ""
            lines.append(f"line {number}{where}: {text[:200]}")
        return "\n".join([*lines, message])
    except Exception:  # noqa: BLE001 - the program's own exception class can fail in any way when it is shown
        return "the program failed with an error that cannot be shown"
