"""Edits the YAML document of a room and leaves comments, order and style alone.

Imported by the first edit: `ruamel.yaml` is 1.5 MB.
"""

import io
import re
from collections.abc import Mapping
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from gateway.features.studio.engine.errors import ValidationError

_NEVER_WRAPPED = 1_000_000
"""A line width: lines stay as long as they are."""
_SEQUENCE = re.compile(r"^( *)[^\s#-][^\n#]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)- ", re.MULTILINE)
"""A key with a block sequence, with the indentation of both."""


def edit_document(text: str, changes: Mapping[str, Any]) -> str:
    """The text with fields set, as `change_room` describes. Raises `ValidationError` with the stage
    `yaml_parse` for what cannot be read or written.
    """
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
    return buffer.getvalue()


def _make_editor(text: str) -> YAML:
    editor = YAML(typ="rt", pure=True)
    editor.preserve_quotes = True
    editor.width = _NEVER_WRAPPED
    editor.explicit_start = text.lstrip("\ufeff").startswith("---")
    match = _SEQUENCE.search(text)
    offset = len(match[2]) - len(match[1]) if match else 2
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
    """The value in the style that a person would choose."""
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
