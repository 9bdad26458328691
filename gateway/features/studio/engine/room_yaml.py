"""The YAML text of rooms: writes a new one, and changes fields of an existing one without touching the rest."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent.core.bounded_yaml import YamlError, load_yaml_mapping
from agent.core.models import LOCAL_OWNER, JsonObject
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.room_store import decode_room


def write_room(fields: Mapping[str, Any]) -> str:
    """The text of a new room. Raises `ValidationError` for what YAML cannot hold."""
    return change_room("", fields)


def change_room(text: str, changes: Mapping[str, Any]) -> str:
    """The text with fields set; None removes a field, so that its default holds. Comments, order and style of
    everything else stay. Maps are merged field by field.

    Raises `ValidationError` with the stage `yaml_parse` if the text is not a room, or cannot hold a value.
    """
    before = read_fields(text) if text.strip() else {}
    changes = _keep_tool_form(before, changes)
    from gateway.features.studio.engine.room_document import edit_document  # noqa: PLC0415 - 1.5 MB that only edits need

    changed = edit_document(text, changes)
    # The two YAML libraries differ in details; what counts is what the gateway reads.
    if (read_fields(changed) if changed.strip() not in ("", "{}") else {}) != merge_fields(before, changes):
        raise ValidationError("the text of the room cannot be changed without changing other fields", "yaml_parse")
    return changed


def read_fields(text: str) -> JsonObject:
    """The fields of a text. Raises `ValidationError` with the stage `yaml_parse`."""
    try:
        return load_yaml_mapping(text)
    except YamlError as error:
        raise ValidationError(str(error), "yaml_parse") from error


def read_owner(data: bytes) -> str:
    """The owner that a stored text names; "" for a text that cannot be read."""
    try:
        return str(read_fields(decode_room(data)).get("owner", LOCAL_OWNER))
    except ValidationError:
        return ""


def keep_mark(text: str, others: Iterable[bytes | None]) -> str:
    """An earlier text of a room, with `from_outside` if any of the room's texts has it: rooms had no such mark once."""
    return change_room(text, {"from_outside": True}) if any(map(_is_marked, others)) else text


def _is_marked(data: bytes | None) -> bool:
    try:
        return data is not None and read_fields(decode_room(data)).get("from_outside") is True
    except ValidationError:
        return False


def merge_fields(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> JsonObject:
    """The fields after the changes, as RFC 7396 defines a merge patch."""
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


def _keep_tool_form(before: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the names of tools in the changes as `{tool_name: NAME}` if the text lists its tools that way."""
    earlier, names = before.get("tools"), changes.get("tools")
    if not (isinstance(earlier, list) and isinstance(names, list | tuple)):
        return changes
    if not (earlier and all(isinstance(one, dict) for one in earlier)):
        return changes
    return {**changes, "tools": [{"tool_name": one} if isinstance(one, str) else one for one in names]}
