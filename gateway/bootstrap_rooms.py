"""The rooms' part of the composition root: rooms and skills from their folders."""

import logging
from contextlib import AsyncExitStack
from pathlib import Path

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.rooms import Rooms
from agent.skills import SkillLibrary, list_skill_roots
from agent.studio.room_store import RoomStore
from gateway.bootstrap_studio import build_room_store, load_configured_rooms
from gateway.packaged_files import PACKAGE_ROOT, SHIPPED_VIEWS
from mcp_tools.server.views import check_rooms, load_configured_views

log = logging.getLogger(__name__)


def load_rooms_and_skills(
    settings: Settings, stack: AsyncExitStack, *, skip_broken: bool = False
) -> tuple[RoomStore, Rooms, SkillLibrary]:
    """Loads the rooms from their store, which `stack` closes, and the skills.

    Raises `ConfigError` for a room that cannot be read, and for an unknown room of tasks or of an MCP view. What rooms
    name is checked later, when the tools are there.

    With `skip_broken` the faults of rooms are left to the editor, which reports them.
    """
    store = build_room_store(settings)
    stack.callback(store.close)
    rooms = load_configured_rooms(settings, store, _log_skipped if skip_broken else None)
    if settings.task_room not in (known := [room.id for room in rooms]):
        raise ConfigError(f"AGENT_TASK_ROOM: there is no room {settings.task_room!r}; known rooms: {', '.join(known)}")
    check_rooms(load_configured_views(settings, SHIPPED_VIEWS).values(), rooms)
    return store, rooms, _load_skills(settings)


def list_required_rooms(settings: Settings) -> list[str]:
    """Returns the rooms that settings and MCP views name."""
    views = load_configured_views(settings, SHIPPED_VIEWS).values()
    return [settings.task_room, *(view.room for view in views if view.room is not None)]


def _log_skipped(error: ConfigError) -> None:
    log.debug("skipped: %s", error.message)


def _load_skills(settings: Settings) -> SkillLibrary:
    """Loads the skills and logs their problems."""
    roots = list_skill_roots(settings, shipped=PACKAGE_ROOT / "skills", cwd=Path.cwd(), home=Path.home())
    skills = SkillLibrary.load(roots)
    for diagnostic in skills.diagnostics:
        log.warning("%s", diagnostic)
    return skills
