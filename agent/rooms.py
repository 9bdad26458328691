"""Loads rooms from YAML files: the shipped `config/rooms` and the operator's `AGENT_ROOMS_DIR`."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError

from agent.core.errors import ConfigError, RoomUnknownError
from agent.core.models import Room


class Rooms:
    """The rooms of this gateway by id. A later folder's room replaces an earlier one with the same id."""

    def __init__(self, rooms: Iterable[Room], default: str) -> None:
        self._rooms = {room.id: room for room in rooms}
        self.default = default
        if default not in self._rooms:
            known = ", ".join(sorted(self._rooms)) or "none"
            raise ConfigError(f"AGENT_DEFAULT_ROOM: there is no room {default!r}; known rooms: {known}")

    def get(self, name: str | None) -> Room:
        """Returns the room of this name, the default one for None. Raises `RoomUnknownError`."""
        try:
            return self._rooms[name or self.default]
        except KeyError:
            known = ", ".join(sorted(self._rooms))
            raise RoomUnknownError(f"there is no room named {name!r}; known rooms: {known}", room=name) from None

    def __iter__(self) -> Iterator[Room]:
        return iter(sorted(self._rooms.values(), key=lambda room: (room.id != self.default, room.id)))


def load_rooms(
    *folders: Path,
    default: str,
    guard_input: Mapping[str, str] | None = None,
    guard_output: Mapping[str, str] | None = None,
) -> Rooms:
    """Reads every `*.yaml` of the folders in order. Raises `ConfigError` with the file and the field.

    `guard_input` and `guard_output` are the defaults for prompts and answers, by kind of finding, if a room's file does
    not set them.
    """
    guards = {"guard_input": guard_input or {}, "guard_output": guard_output or {}}
    rooms: dict[str, Room] = {}
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"AGENT_ROOMS_DIR: {folder} is not a folder")
        for path in sorted(folder.glob("*.yaml")):
            room = _read_room(path, guards)
            rooms[room.id] = room
    return Rooms(rooms.values(), default)


def _read_room(path: Path, guards: Mapping[str, Mapping[str, str]]) -> Room:
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
        if not isinstance(data, dict):
            raise ConfigError(f"{path}: a room file must contain `key: value` lines")
        for field, defaults in guards.items():
            given = data.get(field, {})
            if isinstance(given, dict):  # YAML reads a bare `off` as false
                data[field] = {**defaults, **{kind: "off" if do is False else do for kind, do in given.items()}}
        return Room.model_validate({"id": path.stem, **data})
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(f"{path}: {field}: {fault['msg']}") from error
