"""Calls as a Python expression: `[f(a=1), g(b="x")]` (Llama 3.2 and 4, LFM2, Gemma, Olmo)."""

import ast
import warnings

from agent.llm.call_objects import MalformedCallError, RawCall

MAX_PYTHON_CHARS = 20_000
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
"""JSON's constants, which models write in Python too."""


def parse_python_calls(text: str) -> list[RawCall]:
    """The calls of a list, or of lines with one call each. Their arguments are keywords with literal values.

    Raises `MalformedCallError` for any other text.
    """
    body = text.strip()
    if len(body) > MAX_PYTHON_CHARS:
        raise MalformedCallError(f"a call in Python's form is longer than {MAX_PYTHON_CHARS:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the model's strings
            statements = ast.parse(body).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise MalformedCallError(f"the call is not a Python expression: {body[:60]!r}") from error
    calls: list[RawCall] = []
    for statement in statements:
        if not isinstance(statement, ast.Expr):
            raise MalformedCallError(f"the reply holds Python that is not a call: {body[:60]!r}")
        value = statement.value
        entries = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        calls += [_read_call(entry) for entry in entries]
    return calls


def _read_call(node: ast.expr) -> RawCall:
    if not isinstance(node, ast.Call):
        raise MalformedCallError("the reply holds Python that is not a call")
    name = _read_name(node.func)
    arguments: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise MalformedCallError(f"the arguments of {name!r} are not keywords with values")
        arguments[keyword.arg] = _read_value(keyword.value)
    if node.args:
        raise MalformedCallError(f"the call of {name!r} has arguments without names")
    return RawCall(name, arguments)


def _read_name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise MalformedCallError("the reply holds Python that is not a call")
    return ".".join((node.id, *reversed(parts)))


def _read_value(node: ast.expr) -> object:
    """A literal as a JSON value."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_read_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_read_key(key): _read_value(value) for key, value in zip(keys, values, strict=True)}
    raise MalformedCallError("an argument is not a literal value")


def _read_key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise MalformedCallError("an argument holds an object with a key that is not text")
