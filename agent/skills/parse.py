"""Parses a SKILL.md into a `Skill`. Lenient: what other clients load also loads here, with a note on problems."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from agent.core.models import Tier
from agent.skills.front import read_fields, split_front_matter
from agent.skills.model import DEFAULT_TURNS, Skill, is_skill_md
from agent.skills.names import map_tool_name

MAX_SKILL_BYTES = 1_000_000
MAX_TURNS = 20
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_WORD = re.compile(r"[^\s,()\[\]\"']+(?:\([^)]{0,200}\))?")
"""A tool with its pattern, as in `Bash(git add:*)`. Bounded, because a megabyte of `a(a(a(` would take hours."""
_COMMAND = re.compile(r"(?<![`\w])!`[^`\n]+`")
_KNOWN = frozenset(
    {
        "name", "description", "license", "compatibility", "metadata", "allowed-tools", "tools", "aliases",
        "argument-hint", "user-invocable", "disable-model-invocation",
    }
)  # fmt: skip


def read_skill(path: Path, origin: str = "shipped") -> Skill | str:
    """The skill in the file `path`, or one line that says why it cannot be loaded. Never raises."""
    label = path.parent.name if is_skill_md(path.name) else path.stem
    try:
        if not path.is_file():
            return f"skill {label!r} is skipped: {path} is not a file"
        if path.stat().st_size > MAX_SKILL_BYTES:
            return f"skill {label!r} is skipped: {path.name} is larger than {MAX_SKILL_BYTES:,} bytes"
        parts = split_front_matter(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        return f"skill {label!r} is skipped: {path.name} cannot be read as UTF-8 text ({error})"
    if parts is None:
        return f"skill {label!r} is skipped: {path.name} does not start with a `---` block of fields"
    fields, valid = read_fields(parts[0])
    if not fields:
        return f"skill {label!r} is skipped: the `---` block of {path.name} contains no `key: value` lines"
    if not _parse_line(fields.get("description")):
        return f"skill {label!r} is skipped: it has no description"
    notes = (
        [] if valid else ["its fields are not valid YAML and were read one by one; quote values that contain a colon"]
    )
    return _build_skill(path, origin, label, fields, parts[1], notes)


def _build_skill(
    path: Path, origin: str, label: str, fields: Mapping[str, object], body: str, notes: list[str]
) -> Skill:
    """Builds the skill from its fields; `notes` collects problems."""
    name = _parse_line(fields.get("name")) or label
    metadata = _parse_metadata(fields.get("metadata"))
    tools = _map_tools(_get_declared_tools(fields, metadata), notes)
    notes += _list_warnings(path, name, fields, body)
    # A skill for one room only would distract planners of other rooms.
    of_a_room = _parse_flag(metadata.get("agent-room-only"), default=False)
    return Skill(
        name=name,
        description=_parse_line(fields.get("description")),
        path=path,
        origin=origin,
        license=_parse_line(fields.get("license")),
        compatibility=_parse_line(fields.get("compatibility")),
        metadata=MappingProxyType(metadata),
        allowed_tools=tools,
        aliases=_list_aliases(name, fields.get("aliases")),
        argument_hint=_parse_hint(fields.get("argument-hint")),
        user_invocable=_parse_flag(fields.get("user-invocable"), default=not of_a_room),
        model_invocable=not _parse_flag(fields.get("disable-model-invocation"), default=of_a_room),
        tier=_parse_tier(metadata.get("agent-model"), notes),
        max_turns=_parse_max_turns(metadata.get("agent-max-turns"), notes),
        briefing=metadata.get("agent-briefing") or None,
        rules_tools=tuple(_split_words(metadata.get("agent-rules-tools"))),
        diagnostics=tuple(f"skill {name!r}: {note}" for note in notes),
    )


def _list_warnings(path: Path, name: str, fields: Mapping[str, object], body: str) -> list[str]:
    """Lists what the format forbids, or what has no effect here, although the skill loads."""
    notes = []
    if not _NAME.fullmatch(name) or len(name) > 64:
        notes.append(f"the name {name!r} is not 1 to 64 lowercase letters, digits and single hyphens")
    if is_skill_md(path.name) and name != path.parent.name:
        notes.append(f"the name {name!r} differs from the folder {path.parent.name!r}")
    for field, longest in (("description", 1024), ("compatibility", 500)):
        if (length := len(_parse_line(fields.get(field)))) > longest:
            notes.append(f"the {field} has {length} characters; the format allows {longest}")
    if unknown := [key for key in fields if key not in _KNOWN]:
        notes.append("unknown fields are ignored: " + ", ".join(unknown))
    if _COMMAND.search(body):
        notes.append("commands embedded in the text (!`...`) are never run")
    return notes


def _get_declared_tools(fields: Mapping[str, object], metadata: Mapping[str, str]) -> list[str]:
    """The first declaration, even an empty one: `metadata.include_tools`, `allowed-tools`, `tools`."""
    for value in (metadata.get("include_tools"), fields.get("allowed-tools"), fields.get("tools")):
        if value is not None:
            return _split_words(value)
    return []


def _map_tools(declared: list[str], notes: list[str]) -> tuple[str, ...]:
    """The declared tools under our names, each once."""
    if unmapped := [tool for tool in declared if not map_tool_name(tool)]:
        notes.append("there is no tool called " + ", ".join(unmapped))
    return tuple(dict.fromkeys(ours for tool in declared for ours in map_tool_name(tool)))


def _list_aliases(name: str, declared: object) -> tuple[str, ...]:
    spellings = (name.replace("-", "_"), name.replace("_", "-"), *_split_words(declared))
    return tuple(alias for alias in dict.fromkeys(spellings) if alias != name)


def _parse_line(value: object) -> str:
    """A scalar on one line. Anything else counts as absent: YAML aliases can expand lists to gigabytes."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "" if text in ("null", "~") else text


def _split_words(value: object) -> list[str]:
    """Splits a list, or words separated by spaces or commas. A pattern in parentheses stays with its word."""
    if isinstance(value, list):
        return [item.strip() for item in value if isinstance(item, str) and item.strip()]
    return _WORD.findall(_parse_line(value))


def _parse_hint(value: object) -> str | None:
    """Parses the hint. `argument-hint: [file]` is a list to YAML, and text in brackets to its author."""
    if isinstance(value, list):
        return f"[{', '.join(_split_words(value))}]"
    return _parse_line(value) or None


def _parse_metadata(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        str(key): " ".join(_split_words(item)) if isinstance(item, list) else _parse_line(item)
        for key, item in value.items()
    }


def _parse_flag(value: object, *, default: bool) -> bool:
    word = _parse_line(value).lower()
    if word in ("true", "yes", "on", "1"):
        return True
    return False if word in ("false", "no", "off", "0") else default


def _parse_tier(value: str | None, notes: list[str]) -> Tier | None:
    match value:
        case None | "":
            return None
        case "fast" | "high":
            return value
        case _:
            notes.append(f"metadata agent-model is {value!r}; only fast and high are known")
            return None


def _parse_max_turns(value: str | None, notes: list[str]) -> int:
    if not value:
        return DEFAULT_TURNS
    try:
        return min(MAX_TURNS, max(1, int(value)))
    except ValueError:
        notes.append(f"metadata agent-max-turns is {value[:20]!r}, not a small whole number; {DEFAULT_TURNS} is used")
        return DEFAULT_TURNS
