"""Checks of a room: its id, the sizes and values of its fields, and that everything it names exists."""

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pydantic

from agent.core.errors import ConfigError
from agent.core.models import LOCAL_OWNER, Room
from agent.core.models.room import Budgets
from agent.core.surrogates import has_surrogates
from agent.core.value_faults import describe_faults
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.room_yaml import read_fields
from mcp_tools.client.room_server_rules import find_server_problems

MAX_NAME_CHARS = 100
MAX_DESCRIPTION_CHARS = 2_000
MAX_PROMPT_CHARS = 50_000
"""For the prompt and the persona. Every run stores its room, and every call of a model carries the prompt."""
MAX_SUGGESTIONS = 20
MAX_SUGGESTION_CHARS = 300
MAX_COLLECTION_CHARS = 200
MAX_LISTED = 40
"""How many allowed names an error lists."""
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

ReadRoom = Callable[[str, str], Room]
"""The room of a text and an id, with the operator's defaults. Raises `YamlError` and pydantic's error."""


@dataclass(frozen=True, slots=True)
class RoomRegistries:
    """The names that a room may refer to, as they are now."""

    tools: Callable[[str], Collection[str]]
    """Those that the rooms of an owner may name: no other owner's."""
    skills: Callable[[], Collection[str]]
    gates: Callable[[], Collection[str]]
    topics: Callable[[], Collection[str]]
    has_skill: Callable[[str], bool]
    """Whether a skill has this name or alias."""
    server_prefixes: Callable[[str], Collection[str] | None]
    """The prefixes of the tool names of foreign MCP servers, before the `__`; None if they are unknown."""
    open_tools: Callable[[Room], Sequence[str]]
    """The tools that a room has while its list is not set: not every tool that there is."""

    def list_allowed(self, field: str, room: Room) -> list[str] | None:
        """The entries that a room allows while this list of it is not set; None if nobody can list them."""
        if field == "tools":
            return [*self.open_tools(room)]
        return sorted(self.skills()) if field == "skills" else None


def make_room_id(name: str) -> str:
    """The id for a room's name: `Support Team` becomes `support-team`. Raises `ValidationError`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    made = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if not made:
        raise ValidationError(
            f"no id can be made from the name {name[:50]!r}; give an `id` of the letters a to z", "identifier"
        )
    return check_room_id(made[:64].rstrip("-"))


def check_room_id(room_id: str) -> str:
    """The id. Raises `ValidationError` for one that is neither a file name nor a model id."""
    if not _ID.fullmatch(room_id):
        raise ValidationError(
            f"{room_id[:80]!r} cannot be a room's id: use 1 to 64 of the characters a-z, 0-9, '-', '_' and '.', "
            "beginning with a letter or digit",
            "identifier",
        )
    return room_id


def check_name(name: object) -> str:
    """A room's name without surrounding spaces. Raises `ValidationError`."""
    if not isinstance(name, str) or not name.strip():
        raise ValidationError("a room needs a `name`: give one", "identifier")
    if problem := next(_find_name_problems(name.strip()), None):
        raise ValidationError(problem, "identifier")
    return name.strip()


def check_field_names(fields: Mapping[str, object]) -> None:
    """Raises `ValidationError` with every field that rooms do not have."""
    problems = [
        _describe_unknown(f"{prefix}{name}", "{}", "field", [f"{prefix}{field}" for field in allowed])
        for prefix, given, allowed in (
            ("", fields, list(Room.model_fields)),
            ("budgets.", fields.get("budgets"), list(Budgets.model_fields)),
        )
        if isinstance(given, Mapping)
        for name in given
        if name not in allowed
    ]
    if problems:
        raise ValidationError("; ".join(problems), "fields", problems=problems)


def check_texts(fields: Mapping[str, object]) -> None:
    """Raises `ValidationError` for texts that no file can hold."""
    problems = [
        f"{name}: a text holds a lone surrogate, half of a character: write the character, or leave it out"
        for name, value in fields.items()
        if has_surrogates(json.dumps(value, ensure_ascii=False, default=str))
    ]
    if problems:
        raise ValidationError("; ".join(problems), "check_config", problems=problems)


def check_room_text(
    text: str, room_id: str, read: ReadRoom, registries: RoomRegistries, *, renames: bool = False
) -> Room:
    """The room of a text; with `renames` the text may set another id than `room_id`.

    Raises `ValidationError` with everything that is wrong, each with its field. Stages: `yaml_parse` for a text that is
    not YAML, `fields` for unknown fields, else `check_config`.
    """
    check_field_names(read_fields(text))
    try:
        room = read(text, room_id)
    except pydantic.ValidationError as error:
        faults = describe_faults(error)
        raise ValidationError("; ".join(faults[:10]), "check_config", problems=faults[:100]) from error
    if room.id != room_id and not renames:
        message = f"id: the room of the file {room_id}.yaml has the id {room_id!r}, not {room.id!r}; leave it out"
        raise ValidationError(message, "check_config")
    if problems := find_problems(room, registries):
        raise ValidationError("; ".join(problems[:10]), "check_config", problems=problems[:100])
    return room


def check_rooms_at_start(rooms: Iterable[Room], registries: RoomRegistries) -> None:
    """Raises `ConfigError` with everything that is wrong with the shared rooms. A room of another owner, which may
    name what is gone by now, keeps no gateway from starting: `LiveRooms` reports it.
    """
    shared = [room for room in rooms if room.owner == LOCAL_OWNER]
    problems = [f"room {room.id!r}: {problem}" for room in shared for problem in find_problems(room, registries)]
    if problems:
        raise ConfigError("; ".join(problems))


def find_problems(room: Room, registries: RoomRegistries) -> list[str]:
    """Describes what is wrong with the values of a room, one line each, with the names that are allowed."""
    try:
        room.model_dump_json()
    except ValueError:  # pydantic's serializer refuses what no UTF-8 text can hold
        return ["a text holds half of a character (a lone surrogate)"]
    return [
        *_find_size_problems(room),
        *find_server_problems(room),
        *_find_reference_problems(room, registries),
    ]


def _find_size_problems(room: Room) -> Iterator[str]:
    yield from _find_name_problems(room.name)
    for field, text, limit in (
        ("description", room.description, MAX_DESCRIPTION_CHARS),
        ("system_prompt", room.system_prompt, MAX_PROMPT_CHARS),
        ("persona", room.persona, MAX_PROMPT_CHARS),
    ):
        if len(text) > limit:
            yield f"{field}: it has {len(text):,} characters; at most {limit:,} are allowed"
    if len(room.suggestions) > MAX_SUGGESTIONS:
        yield f"suggestions: there are {len(room.suggestions)}; at most {MAX_SUGGESTIONS} are allowed"
    for number, collection in enumerate(room.collections or ()):
        if not collection.strip() or len(collection) > MAX_COLLECTION_CHARS:
            yield f"collections.{number}: use 1 to {MAX_COLLECTION_CHARS} characters"
    for number, suggestion in enumerate(room.suggestions[:MAX_SUGGESTIONS]):
        if not suggestion.strip() or len(suggestion) > MAX_SUGGESTION_CHARS:
            yield f"suggestions.{number}: use 1 to {MAX_SUGGESTION_CHARS} characters"


def _find_name_problems(name: str) -> Iterator[str]:
    if len(name) > MAX_NAME_CHARS:
        yield f"name: it has {len(name):,} characters; at most {MAX_NAME_CHARS} are allowed"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name):
        yield "name: it holds a line break or a control character"


def _find_reference_problems(room: Room, registries: RoomRegistries) -> Iterator[str]:
    tools, skills = registries.tools(room.owner), registries.skills()
    named: list[tuple[str, str, Collection[str]]] = [
        *(("tools", name, tools) for name in room.tools or ()),
        *(("required_tools", name, tools) for name in room.required_tools),
        *((f"topic_tools.{topic}", name, tools) for topic, names in room.tools_by_topic.items() for name in names),
        *(("skills", name, skills) for name in room.skills or () if not registries.has_skill(name)),
        *(("skill", name, skills) for name in (room.skill,) if name is not None and not registries.has_skill(name)),
        *(("gates", name, registries.gates()) for name in room.gates),
        *(("topic_tools", topic, registries.topics()) for topic in room.tools_by_topic),
    ]
    prefixes = registries.server_prefixes(room.owner)
    for field, name, valid_names in named:
        prefix, separator, _ = name.partition("__")
        # Which tools a server has is known once it has answered, and it may be down now.
        may_come = valid_names is tools and bool(separator) and (prefixes is None or prefix in prefixes)
        if name not in valid_names and not may_come:
            kind = {"topic_tools": "topic"}.get(field, field.partition(".")[0].removesuffix("s"))
            yield _describe_unknown(name, f"{field}: {{}}", "tool" if valid_names is tools else kind, valid_names)


def _describe_unknown(name: str, form: str, kind: str, known: Collection[str]) -> str:
    """A line that names what is unknown, the nearest allowed names, or all of them."""
    excerpt = name[:80]
    near = difflib.get_close_matches(excerpt, known, n=3)
    listed = sorted(known)
    allowed = ", ".join(listed[:MAX_LISTED]) + (f" and {len(listed) - MAX_LISTED} more" if listed[MAX_LISTED:] else "")
    hint = f"did you mean {', '.join(near)}? " if near else ""
    return form.format(f"there is no {kind} {excerpt!r}; {hint}allowed: {allowed or 'none'}")
