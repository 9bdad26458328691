"""The rooms' part of the composition root: rooms and skills from their folders, checked against what exists."""

import difflib
import logging
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agent.core.errors import ConfigError
from agent.core.models import Room
from agent.core.settings import Settings
from agent.execution.gates import validate_room_gates
from agent.rooms import Rooms
from agent.run_context.extensions import Extensions
from agent.skills import SkillLibrary, check_room_skills, list_skill_roots
from agent.tools import ToolRegistry
from gateway.bootstrap_studio import load_configured_rooms
from gateway.packaged_files import PACKAGE_ROOT, SHIPPED_VIEWS
from mcp_tools.server.views import check_rooms, load_configured_views

log = logging.getLogger(__name__)


def load_rooms_and_skills(
    settings: Settings, extensions: Extensions, *, skip_broken: bool = False
) -> tuple[Rooms, SkillLibrary]:
    """Loads the rooms and the skills. Raises `ConfigError` for a broken room, an unknown gate or skill of a room, and
    an unknown room of tasks or of an MCP view.

    With `skip_broken` the faults of rooms are left to the editor, which reports them.
    """
    rooms = load_configured_rooms(settings, _log_skipped if skip_broken else None)
    if not skip_broken:
        validate_room_gates(rooms, extensions)
    if settings.task_room not in (known := [room.id for room in rooms]):
        raise ConfigError(f"AGENT_TASK_ROOM: there is no room {settings.task_room!r}; known rooms: {', '.join(known)}")
    check_rooms(load_configured_views(settings, SHIPPED_VIEWS).values(), rooms)
    return rooms, _load_skills(settings, () if skip_broken else rooms)


def list_required_rooms(settings: Settings) -> list[str]:
    """Returns the rooms that settings and MCP views name."""
    views = load_configured_views(settings, SHIPPED_VIEWS).values()
    return [settings.task_room, *(view.room for view in views if view.room is not None)]


def _log_skipped(error: ConfigError) -> None:
    log.debug("skipped: %s", error.message)


def _load_skills(settings: Settings, rooms: Iterable[Room]) -> SkillLibrary:
    """Loads the skills and logs their problems. Raises `ConfigError` for a room whose skill does not exist."""
    roots = list_skill_roots(settings, shipped=PACKAGE_ROOT / "skills", cwd=Path.cwd(), home=Path.home())
    skills = SkillLibrary.load(roots)
    for diagnostic in skills.diagnostics:
        log.warning("%s", diagnostic)
    check_room_skills(rooms, skills)
    return skills


def check_room_contents(
    rooms: Iterable[Room], registry: ToolRegistry, skills: SkillLibrary, servers: Collection[str]
) -> None:
    """Raises `ConfigError` that names every tool and skill of a room that does not exist.

    Tools of the foreign MCP `servers` are `server__tool`; which ones there are is known once a server has answered.
    """
    tools, skill_names = [spec.name for spec in registry.list_specs()], [skill.name for skill in skills]
    problems: list[str] = []
    for room in rooms:
        for name in _list_named_tools(room):
            if name in registry or registry.get_withheld_reason(name) or name.partition("__")[0] in servers:
                continue
            problems.append(f"room {room.id!r}: there is no tool {name!r}{_suggest(name, tools)}")
        problems += [
            f"room {room.id!r}: there is no skill {name!r}{_suggest(name, skill_names)}"
            for name in room.skills or ()
            if name not in skills
        ]
    if problems:
        raise ConfigError("; ".join(problems))


def _list_named_tools(room: Room) -> Iterator[str]:
    """Yields the tools that a room allows or requires, each once."""
    required = (name for names in room.tools_by_topic.values() for name in names)
    yield from dict.fromkeys((*(room.tools or ()), *room.required_tools, *required))


def _suggest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    return f" (did you mean {', '.join(near)}?)" if near else ""
