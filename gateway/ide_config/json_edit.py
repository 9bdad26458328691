"""Sets a member of a JSON object in a text, and leaves every other byte as it is, such as comments and line ends."""

import json
import re
from collections.abc import Sequence

from pydantic import JsonValue

from gateway.ide_config.json_scan import JsonScanner, MalformedJsonError, Node

__all__ = ["MalformedJsonError", "append_entry", "is_blank", "read_member", "set_member"]


def is_blank(text: str, *, comments: bool) -> bool:
    """Whether the text holds no value, only white space and, with `comments`, comments."""
    return JsonScanner(text, comments).is_blank()


def read_member(text: str, path: Sequence[str], *, comments: bool) -> JsonValue:
    """The value at `path`, or None without one. Raises `MalformedJsonError`."""
    node = _find(JsonScanner(text, comments).scan(), path)
    return None if node is None else _read_value(text, node)


def set_member(text: str, path: Sequence[str], value: JsonValue, *, comments: bool) -> str:
    """The text with `value` at `path`. Missing objects on the way are made.

    Raises `MalformedJsonError`, also if something on the way is not an object.
    """
    scanner = JsonScanner(text, comments)
    node = scanner.scan()
    for depth, key in enumerate(path):
        if node.members is None:
            if depth and _is_null(text, node):  # clients read it as an empty object
                return _replace(text, node, _nest(path[depth:], value))
            where = ".".join(path[:depth]) or "the file"
            raise MalformedJsonError(f"{where} is not an object with members")
        if key not in node.members:
            return _insert(scanner, node, f"{json.dumps(key)}: ", _nest(path[depth + 1 :], value))
        node = node.members[key]
    return _replace(text, node, value)


def append_entry(text: str, path: Sequence[str], value: JsonValue, *, comments: bool) -> str:
    """The text with `value` as the last entry of the array at `path`, which is made if it is missing.

    Raises `MalformedJsonError`, also if there is something else at `path`.
    """
    scanner = JsonScanner(text, comments)
    node = _find(scanner.scan(), path)
    if node is None or _is_null(text, node):
        return set_member(text, path, [value], comments=comments)
    if node.entries is None:
        raise MalformedJsonError(f"{'.'.join(path)} is not a list")
    return _insert(scanner, node, "", value)


def _is_null(text: str, node: Node) -> bool:
    return text[node.start : node.end] == "null"


def _nest(path: Sequence[str], value: JsonValue) -> JsonValue:
    """The value inside an object for each key of `path`."""
    for key in reversed(path):
        value = {key: value}
    return value


def _replace(text: str, node: Node, value: JsonValue) -> str:
    return text[: node.start] + _format(text, value, _read_indent(text, node.start)) + text[node.end :]


def _find(node: Node, path: Sequence[str]) -> Node | None:
    for key in path:
        if node.members is None or key not in node.members:
            return None
        node = node.members[key]
    return node


def _read_value(text: str, node: Node) -> JsonValue:
    if node.members is not None:
        return {key: _read_value(text, member) for key, member in node.members.items()}
    if node.entries is not None:
        return [_read_value(text, entry) for entry in node.entries]
    value: JsonValue = json.loads(text[node.start : node.end])
    return value


def _insert(scanner: JsonScanner, container: Node, key: str, value: JsonValue) -> str:
    """The text with a new last entry in `container`. In an object on one line it stays on that line."""
    text, newline = scanner.text, _find_newline(scanner.text)
    inside = text[container.start : container.end]
    last = container.last
    if last is None:
        outer = _read_indent(text, container.start)
        indent = outer + _find_unit(text)
        entry = f"{newline}{indent}{key}{_format(text, value, indent)}{newline}{outer}"
        beginning = text[: container.end - 1].rstrip(" \t\r\n")
        return beginning + entry + text[container.end - 1 :]
    if "\n" not in inside:
        entry = f"{' ' if container.comma is not None else ', '}{key}{json.dumps(value, ensure_ascii=False)}"
        at = last.end if container.comma is None else container.comma + 1
        return text[:at] + entry + text[at:]
    indent = _read_indent(text, last.start)
    entry = f"{newline}{indent}{key}{_format(text, value, indent)}"
    if container.comma is not None:
        at = scanner.find_line_end(container.comma + 1)
        return text[:at] + entry + text[at:]
    at = scanner.find_line_end(last.end)  # a comment behind the last entry stays behind it
    return f"{text[: last.end]},{text[last.end : at]}{entry}{text[at:]}"


def _format(text: str, value: JsonValue, indent: str) -> str:
    written = json.dumps(value, ensure_ascii=False, indent=_find_unit(text))
    return written.replace("\n", _find_newline(text) + indent)


def _find_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _find_unit(text: str) -> str:
    """The indentation of one level: that of the first indented line."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match.group(1) if match else "  "


def _read_indent(text: str, at: int) -> str:
    """The white space with which the line of `at` begins."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
