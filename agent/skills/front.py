"""The `---` block that opens a SKILL.md: parted from the text below it, and read into fields."""

import re
import textwrap

import yaml

_FRONT = re.compile(r"\A\s*---[ \t]*\n(?P<head>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD_START = re.compile(r"^(?=[A-Za-z][\w-]*:(?:\s|$))", re.MULTILINE)
_NESTED = re.compile(r"\A[ \t]*\n(?:[ \t]+[A-Za-z][\w-]*:(?:\s|$))")


def split_front(text: str) -> tuple[str, str] | None:
    """The block's lines and the text below; None when the file does not open with such a block."""
    match = _FRONT.match(text)
    return (match["head"], text[match.end() :].strip()) if match else None


def read_fields(head: str) -> tuple[dict[str, object], bool]:
    """The fields, every scalar as the words that were written, and whether all of it was valid YAML.

    What is no YAML (an unquoted colon, most often) is read field by field; there are no fields when it is no
    `key: value` block at all. Never raises."""
    data = _yaml(head)
    if isinstance(data, dict):
        return {str(key): value for key, value in data.items()}, True
    return _field_by_field(head), False


def _field_by_field(head: str, *, nested: bool = False) -> dict[str, object]:
    """Each field on its own: one that is no YAML is taken as text, and does the others no harm.

    One level down (`metadata`) the same is done once more, and no further."""
    fields: dict[str, object] = {}
    for block in _FIELD_START.split(head):
        key, colon, rest = block.partition(":")
        if not colon or not _FIELD_START.match(block):
            continue
        data = _yaml(block)
        if isinstance(data, dict):
            fields |= data
        elif not nested and _NESTED.match(rest):
            fields[key] = _field_by_field(textwrap.dedent(rest), nested=True)
        else:
            fields[key] = " ".join(rest.split()).strip("\"'")
    return fields


def _yaml(text: str) -> object:
    """The value, its scalars as strings (1.10 stays 1.10, `no` stays `no`); None for what is no YAML."""
    try:
        return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - this loader makes only str, list and dict
    except (yaml.YAMLError, RecursionError):  # a few thousand brackets are enough for the latter
        return None
