"""The rooms' part of the composition root: rooms from their store, and skills from their folders."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import ConfigError
from agent.core.models import Room
from agent.core.settings import Settings
from agent.runs.rooms import Rooms, load_rooms
from agent.skills import SkillLibrary, list_skill_roots
from gateway.bootstrap_context import BuildContext
from gateway.configured_features import explain_feature_errors
from gateway.feature_loader import KERNEL, VARIABLE, LoadedFeatures, claim, find_folder, find_hook, import_target
from gateway.packaged_files import PACKAGE_ROOT, SHIPPED_VIEWS
from mcp_tools.server.toolsets import Toolsets
from mcp_tools.server.views import View, check_rooms, load_configured_views

SHIPPED_ROOMS = PACKAGE_ROOT / "config" / "rooms"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedRooms:
    """The rooms as they are at the start, and the skills."""

    rooms: Rooms
    skills: SkillLibrary


def load_rooms_and_skills(context: BuildContext, *, skip_broken: bool) -> LoadedRooms:
    """Loads the rooms from their store, and the skills.

    Raises `ConfigError` for a room that cannot be read, and for an unknown room of tasks or of an MCP view. What rooms
    name is checked later, when the tools are there.

    With `skip_broken` the faults of rooms are left to the editor, which reports them.
    """
    settings = context.settings
    rooms = _load_configured_rooms(settings, context.features, _log_skipped if skip_broken else None)
    missing = context.features.list_missing_rooms()
    if missing:
        rooms.replace([room for room in rooms if room.id not in missing])
    known_room_ids = [room.id for room in rooms]
    if settings.task_room not in known_room_ids and settings.task_room not in missing:
        raise ConfigError(f"tasks need the room {settings.task_room!r}; known rooms: {', '.join(known_room_ids)}")
    views = _load_views(settings, context.features)
    check_rooms([view for view in views if view.room not in missing], rooms)
    return LoadedRooms(rooms, _load_skills(settings))


def list_checked_rooms(context: BuildContext, loaded: LoadedRooms) -> list[Room]:
    """The rooms whose tools must be there: while a feature is off, shipped rooms do without its tools."""
    files = list_room_files(context.features) if context.features.are_some_off else []
    shipped = {path.stem for path in files}
    return [room for room in loaded.rooms if room.id not in shipped]


def list_room_files(features: LoadedFeatures) -> list[Path]:
    """The files of the rooms that Stepgate ships, and of those that features in use bring. Raises `ConfigError` if two
    claim one room, or a folder is not there."""
    return [path for folder in _list_room_folders(features) for path in sorted(folder.glob("*.yaml"))]


def _list_room_folders(features: LoadedFeatures) -> list[Path]:
    folders = [SHIPPED_ROOMS]
    claims = {path.stem: KERNEL for path in SHIPPED_ROOMS.glob("*.yaml")}
    with explain_feature_errors():
        for feature in features:
            if feature.room_folder:
                folders.append(folder := find_folder(feature.room_folder))
                for path in folder.glob("*.yaml"):
                    claim(claims, path.stem, feature.name, "the room")
    return folders


def _load_configured_rooms(
    settings: Settings, features: LoadedFeatures, report_fault: Callable[[ConfigError], None] | None
) -> Rooms:
    """The rooms as they are at the start. Raises `ConfigError` for a broken room, unless faults are
    reported, and `StoreError`.
    """
    is_in_files = settings.room_store == "files"
    if settings.rooms_dir is not None and not settings.rooms_dir.is_dir():
        raise ConfigError(f"AGENT_ROOMS_DIR: {settings.rooms_dir} is not a folder")
    rooms = load_rooms(
        *_list_room_folders(features),
        *([settings.rooms_path] if is_in_files and settings.rooms_path.is_dir() else []),
        default=settings.default_room,
        texts={} if is_in_files else _read_texts(settings, features),
        guard_input=get_default_guards(settings)["guard_input"],
        guard_output=get_default_guards(settings)["guard_output"],
        report_fault=report_fault,
    )
    rooms.replace([allow_room_without_model(room, settings) for room in rooms])
    return rooms


def get_default_guards(settings: Settings) -> dict[str, dict[str, str]]:
    """The guards of rooms for findings in prompts and answers if their file does not say so."""
    return {
        "guard_input": {
            "injection": settings.guard_injection,
            "pii": settings.guard_pii,
            # Reported only: a person may ask what such code or such a sentence does.
            "hate_speech": "flag",
            "malicious_code": "flag",
        },
        "guard_output": {"pii": settings.guard_answer_pii},
    }


def list_required_rooms(settings: Settings, features: LoadedFeatures) -> list[str]:
    """The rooms that settings and MCP views name, without those of features that are off."""
    missing, views = features.list_missing_rooms(), _load_views(settings, features)
    named = [settings.task_room, *(view.room for view in views if view.room is not None)]
    return [room for room in named if room not in missing]


def _load_views(settings: Settings, features: LoadedFeatures) -> Collection[View]:
    return load_configured_views(settings, SHIPPED_VIEWS, Toolsets(features.list_toolsets())).values()


def _log_skipped(error: ConfigError) -> None:
    log.debug("skipped: %s", error.message)


def _load_skills(settings: Settings) -> SkillLibrary:
    """Loads the skills and logs their problems."""
    roots = list_skill_roots(settings, shipped=PACKAGE_ROOT / "skills")
    skills = SkillLibrary.load(roots)
    for diagnostic in skills.diagnostics:
        log.warning("%s", diagnostic)
    return skills


def _read_texts(settings: Settings, features: LoadedFeatures) -> dict[str, str]:
    """The texts of rooms in the database by id. Raises `ConfigError` without a feature that keeps them there,
    and `StoreError`.
    """
    with explain_feature_errors():
        hook = find_hook(features, lambda feature: feature.room_texts, "rooms in the database")
        read = import_target(hook) if hook is not None else None
    if read is None:
        raise ConfigError(
            f"AGENT_ROOM_STORE: rooms in the database need the feature 'studio'; {VARIABLE} leaves it out"
        )
    texts: dict[str, str] = read(settings)
    return texts


def allow_room_without_model(room: Room, settings: Settings) -> Room:
    """The room; if conversations may run without a model, it requires none."""
    if settings.conversations_require_llm:
        return room
    return room.model_copy(update={"requires_model": False})
