"""From a SKILL.md to a `Skill`. Lenient: what other clients load, loads here, with a note on what is odd."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from agent.core.models import Tier
from agent.skills.front import read_fields, split_front
from agent.skills.model import DEFAULT_TURNS, Skill, is_skill_md
from agent.skills.names import our_names

MAX_SKILL_BYTES = 1_000_000
MAX_TURNS = 20
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_WORD = re.compile(r"[^\s,()\[\]\"']+(?:\([^)]{0,200}\))?")
"""A tool with its pattern, `Bash(git add:*)`; bounded, or a megabyte of `a(a(a(` would take hours."""
_COMMAND = re.compile(r"(?<![`\w])!`[^`\n]+`")
_KNOWN = frozenset(
    {
        "name", "description", "license", "compatibility", "metadata", "allowed-tools", "tools", "aliases",
        "argument-hint", "user-invocable", "disable-model-invocation",
    }
)  # fmt: skip


def read_skill(path: Path, origin: str = "shipped") -> Skill | str:
    """The skill in the file `path`, or why it cannot be loaded, in one line that names it. Never raises."""
    label = path.parent.name if is_skill_md(path.name) else path.stem
    try:
        if not path.is_file():
            return f"skill {label!r} is skipped: {path} is no file"
        if path.stat().st_size > MAX_SKILL_BYTES:
            return f"skill {label!r} is skipped: {path.name} is larger than {MAX_SKILL_BYTES:,} bytes"
        parts = split_front(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        return f"skill {label!r} is skipped: {path.name} cannot be read as UTF-8 text ({error})"
    if parts is None:
        return f"skill {label!r} is skipped: {path.name} does not begin with a `---` block of fields"
    fields, valid = read_fields(parts[0])
    if not fields:
        return f"skill {label!r} is skipped: the `---` block of {path.name} holds no `key: value` lines"
    if not _text(fields.get("description")):
        return f"skill {label!r} is skipped: it has no description"
    notes = [] if valid else ["its fields are no valid YAML and were read one by one; quote values that hold a colon"]
    return _skill(path, origin, label, fields, parts[1], notes)


def _skill(path: Path, origin: str, label: str, fields: Mapping[str, object], body: str, notes: list[str]) -> Skill:
    """Put the fields in their places; `notes` collects what is odd."""
    name = _text(fields.get("name")) or label
    metadata = _metadata(fields.get("metadata"))
    tools = _tools(_declared(fields, metadata), notes)
    notes += _oddities(path, name, fields, body)
    # A skill that only its room carries out would be in the way of planners elsewhere.
    of_a_room = _flag(metadata.get("agent-room-only"), default=False)
    return Skill(
        name=name,
        description=_text(fields.get("description")),
        path=path,
        origin=origin,
        license=_text(fields.get("license")),
        compatibility=_text(fields.get("compatibility")),
        metadata=MappingProxyType(metadata),
        allowed_tools=tools,
        aliases=_aliases(name, fields.get("aliases")),
        argument_hint=_hint(fields.get("argument-hint")),
        user_invocable=_flag(fields.get("user-invocable"), default=not of_a_room),
        model_invocable=not _flag(fields.get("disable-model-invocation"), default=of_a_room),
        tier=_tier(metadata.get("agent-model"), notes),
        max_turns=_turns(metadata.get("agent-max-turns"), notes),
        briefing=metadata.get("agent-briefing") or None,
        rules_tools=tuple(_words(metadata.get("agent-rules-tools"))),
        diagnostics=tuple(f"skill {name!r}: {note}" for note in notes),
    )


def _oddities(path: Path, name: str, fields: Mapping[str, object], body: str) -> list[str]:
    """What the format forbids, or what will not happen here, although the skill loads."""
    notes = []
    if not _NAME.fullmatch(name) or len(name) > 64:
        notes.append(f"the name {name!r} is not 1 to 64 lowercase letters, digits and single hyphens")
    if is_skill_md(path.name) and name != path.parent.name:
        notes.append(f"the name {name!r} differs from the folder {path.parent.name!r}")
    for field, longest in (("description", 1024), ("compatibility", 500)):
        if (length := len(_text(fields.get(field)))) > longest:
            notes.append(f"the {field} has {length} characters; the format allows {longest}")
    if unknown := [key for key in fields if key not in _KNOWN]:
        notes.append("unknown fields are ignored: " + ", ".join(unknown))
    if _COMMAND.search(body):
        notes.append("commands embedded in the text (!`...`) are never run")
    return notes


def _declared(fields: Mapping[str, object], metadata: Mapping[str, str]) -> list[str]:
    """The first declaration counts, even an empty one: `metadata.include_tools`, `allowed-tools`, `tools`."""
    for value in (metadata.get("include_tools"), fields.get("allowed-tools"), fields.get("tools")):
        if value is not None:
            return _words(value)
    return []


def _tools(declared: list[str], notes: list[str]) -> tuple[str, ...]:
    """The declared tools under our names, each once."""
    if unmapped := [tool for tool in declared if not our_names(tool)]:
        notes.append("no tool here is called " + ", ".join(unmapped))
    return tuple(dict.fromkeys(ours for tool in declared for ours in our_names(tool)))


def _aliases(name: str, declared: object) -> tuple[str, ...]:
    spellings = (name.replace("-", "_"), name.replace("_", "-"), *_words(declared))
    return tuple(alias for alias in dict.fromkeys(spellings) if alias != name)


def _text(value: object) -> str:
    """A scalar on one line. Anything else counts as absent: aliases in YAML can make a few lists print as
    gigabytes."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "" if text in ("null", "~") else text


def _words(value: object) -> list[str]:
    """A list, or words separated by spaces or commas; a pattern in parentheses stays with its word."""
    if isinstance(value, list):
        return [item.strip() for item in value if isinstance(item, str) and item.strip()]
    return _WORD.findall(_text(value))


def _hint(value: object) -> str | None:
    """`argument-hint: [file]` is a list to YAML, and brackets to its author."""
    if isinstance(value, list):
        return f"[{', '.join(_words(value))}]"
    return _text(value) or None


def _metadata(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(key): " ".join(_words(item)) if isinstance(item, list) else _text(item) for key, item in value.items()}


def _flag(value: object, *, default: bool) -> bool:
    word = _text(value).lower()
    if word in ("true", "yes", "on", "1"):
        return True
    return False if word in ("false", "no", "off", "0") else default


def _tier(value: str | None, notes: list[str]) -> Tier | None:
    match value:
        case None | "":
            return None
        case "fast" | "high":
            return value
        case _:
            notes.append(f"metadata agent-model is {value!r}; only fast and high are known")
            return None


def _turns(value: str | None, notes: list[str]) -> int:
    if not value:
        return DEFAULT_TURNS
    try:
        return min(MAX_TURNS, max(1, int(value)))
    except ValueError:
        notes.append(f"metadata agent-max-turns is {value[:20]!r}, not a small whole number; {DEFAULT_TURNS} is used")
        return DEFAULT_TURNS
