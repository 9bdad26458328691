"""The `---` block at the start of a SKILL.md: split from the text below and parsed into fields."""

import re
import textwrap
from typing import Any

import yaml

from agent.core.bounded_yaml import YamlError, check_structure

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""libyaml is ten times faster; not every build of PyYAML has it. It recurses without a limit: check the depth first."""

# The head keeps its last newline: a block scalar at its end would lose it otherwise.
_FRONT = re.compile(r"\A\s*---[ \t]*\n(?P<head>.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD_START = re.compile(r"^(?=[A-Za-z][\w-]*:(?:\s|$))", re.MULTILINE)
_NESTED = re.compile(r"\A[ \t]*\n(?:[ \t]+[A-Za-z][\w-]*:(?:\s|$))")


def split_front_matter(text: str) -> tuple[str, str] | None:
    """The lines of the block and the text below, or None if the file does not start with such a block."""
    match = _FRONT.match(text)
    return (match["head"], text[match.end() :].strip()) if match else None


def read_fields(head: str) -> tuple[dict[str, object], bool]:
    """The fields, every scalar as a string, and whether the whole block was valid YAML.

    If it is not valid YAML (most often because of an unquoted colon), parses field by field. Returns no fields if it is
    no `key: value` block at all. Never raises.
    """
    data = _load_yaml(head)
    if isinstance(data, dict):
        return {str(key): value for key, value in data.items()}, True
    return _parse_field_by_field(head), False


def _parse_field_by_field(head: str, *, nested: bool = False) -> dict[str, object]:
    """Parses each field on its own. A field that is not valid YAML becomes text and does not affect the others.

    Does the same one level down (`metadata`), and no deeper.
    """
    fields: dict[str, object] = {}
    for block in _FIELD_START.split(head):
        key, colon, rest = block.partition(":")
        if not colon or not _FIELD_START.match(block):
            continue
        data = _load_yaml(block)
        if isinstance(data, dict):
            fields |= data
        elif not nested and _NESTED.match(rest):
            fields[key] = _parse_field_by_field(textwrap.dedent(rest), nested=True)
        else:
            fields[key] = " ".join(rest.split()).strip("\"'")
    return fields


def _load_yaml(text: str) -> object:
    """The value with all scalars as strings (1.10 stays 1.10, `no` stays `no`), or None for YAML that is
    invalid or nested too deeply."""
    try:
        check_structure(text)
        return yaml.load(text, _Loader)  # noqa: S506 - this loader makes only str, list and dict
    except (yaml.YAMLError, YamlError):
        return None
