"""The YAML text of rooms: writes a new one, and changes fields of an existing one without touching the rest."""

import io
import re
from collections.abc import Mapping
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from agent.core.bounded_yaml import YamlError, load_yaml_mapping
from agent.core.models import JsonObject
from agent.studio.errors import ValidationError

_NEVER_WRAPPED = 1_000_000
"""A line width: lines stay as long as they are."""
_SEQUENCE = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)- ", re.MULTILINE)
"""A key with a block sequence, with the indentation of both."""


def write_room(fields: Mapping[str, Any]) -> str:
    """Returns the text of a new room. Raises `ValidationError` for what YAML cannot hold."""
    return change_room("", fields)


def change_room(text: str, changes: Mapping[str, Any]) -> str:
    """Returns the text with fields set; None removes a field, so that its default holds. Comments, order and style of
    everything else stay. Maps are merged field by field.

    Raises `ValidationError` with the stage `yaml_parse` if the text is no room, or cannot hold a value.
    """
    before = read_fields(text) if text.strip() else {}
    editor = _make_editor(text)
    try:
        document = editor.load(text) if text.strip() else CommentedMap()
        if document is None:
            document = CommentedMap()
        _merge(document, changes)
        buffer = io.StringIO()
        editor.dump(document, buffer)
    except (YAMLError, ValueError, RecursionError) as error:
        raise ValidationError(
            f"the text of the room cannot be edited: {' '.join(str(error).split())[:300]}", "yaml_parse"
        ) from error
    changed = buffer.getvalue()
    # The two YAML libraries differ in details; what counts is what the gateway reads.
    if (read_fields(changed) if changed.strip() not in ("", "{}") else {}) != merge_fields(before, changes):
        raise ValidationError("the text of the room cannot be changed without changing other fields", "yaml_parse")
    return changed


def read_fields(text: str) -> JsonObject:
    """Returns the fields of a text. Raises `ValidationError` with the stage `yaml_parse`."""
    try:
        return load_yaml_mapping(text)
    except YamlError as error:
        raise ValidationError(str(error), "yaml_parse") from error


def merge_fields(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> JsonObject:
    """Returns the fields after the changes, as RFC 7396 defines a merge patch."""
    merged = dict(fields)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            earlier = merged.get(name)
            merged[name] = merge_fields(earlier if isinstance(earlier, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


def _make_editor(text: str) -> YAML:
    editor = YAML(typ="rt", pure=True)
    editor.preserve_quotes = True
    editor.width = _NEVER_WRAPPED
    editor.explicit_start = text.lstrip("\ufeff").startswith("---")
    found = _SEQUENCE.search(text)
    offset = len(found[2]) - len(found[1]) if found else 2
    editor.indent(mapping=2, sequence=offset + 2, offset=offset)
    return editor


def _merge(target: CommentedMap, changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        earlier = target.get(name)
        if value is None:
            target.pop(name, None)
        elif isinstance(value, Mapping):
            if not isinstance(earlier, CommentedMap):
                earlier = target[name] = CommentedMap()
            _merge(earlier, value)
        elif isinstance(value, list | tuple) and isinstance(earlier, CommentedSeq):
            _replace_items(earlier, value)
        elif value != earlier or isinstance(value, bool) != isinstance(earlier, bool):
            target[name] = _to_node(value)


def _replace_items(items: CommentedSeq, values: list[Any] | tuple[Any, ...]) -> None:
    """Makes the sequence hold the values. Items that stay keep their comments."""
    for index in reversed(range(len(items))):
        if items[index] not in values:
            del items[index]
    for index, value in enumerate(values):
        if index >= len(items):
            items.append(_to_node(value))
        elif items[index] != value:
            items.insert(index, _to_node(value))
    del items[len(values) :]


def _to_node(value: Any) -> Any:
    """Returns the value in the style that a person would choose."""
    if isinstance(value, str):
        if "\n" in value and not re.search(r"[ \t]\n|^\s|[^\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd]", value):
            return LiteralScalarString(value)
        try:
            is_plain = yaml.safe_load(value) == value
        except (yaml.YAMLError, ValueError, RecursionError):
            is_plain = False
        return value if is_plain else DoubleQuotedScalarString(value)
    if isinstance(value, Mapping):
        return CommentedMap({name: _to_node(item) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return CommentedSeq([_to_node(item) for item in value])
    return value
