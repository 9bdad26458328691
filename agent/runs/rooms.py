"""Loads rooms from YAML files: the shipped `config/rooms` and the operator's `AGENT_ROOMS_DIR`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from pydantic import ValidationError

from agent.core.bounded_yaml import YamlError, load_yaml_mapping
from agent.core.errors import ConfigError, RoomUnknownError
from agent.core.models import MODEL_MARK, Room
from agent.core.value_faults import describe_faults


class Rooms:
    """The rooms of this gateway by id. A later folder's room replaces an earlier one with the same id."""

    def __init__(self, rooms: Iterable[Room], default: str) -> None:
        self._rooms = {room.id: room for room in rooms}
        self.default = default
        self.list_models: Callable[[], Sequence[str]] = tuple
        """The configured models, which callers may choose where a room allows it."""
        if default not in self._rooms:
            room_ids = ", ".join(sorted(self._rooms)) or "none"
            raise ConfigError(f"AGENT_DEFAULT_ROOM: there is no room {default!r}; known rooms: {room_ids}")

    def get(self, name: str | None, owner: str | None) -> Room:
        """Finds the room of this name, the default one for None. `room@model` is the room with this model for all its
        work.

        Raises `RoomUnknownError`, also for a room that `owner` may not use and for a model that may not be chosen. With
        None as `owner`, for what the operator configures, every room is found.
        """
        room_id, mark, model = (name or "").partition(MODEL_MARK)
        room = self._rooms.get(room_id or self.default)
        if room is None or not (owner is None or room.is_visible_to(owner)):
            room_ids = ", ".join(sorted(room.id for room in self.list_visible(owner)))
            raise RoomUnknownError(f"there is no room named {name!r}; known rooms: {room_ids}", room=name)
        return self._choose_model(room, model) if mark else room

    def list_choices(self, room: Room) -> list[str]:
        """Lists the models that a caller may choose in a room; none where there is no choice."""
        models = room.list_choosable(self.list_models())
        return models if len(models) > 1 or room.models else []

    def _choose_model(self, room: Room, model: str) -> Room:
        models = room.list_choosable(self.list_models())
        if model not in models:
            offered = (
                f"models to choose: {', '.join(models)}"
                if models
                else f"its callers cannot choose one: use {room.id!r}"
            )
            raise RoomUnknownError(
                f"room {room.id!r} does not offer the model {model[:100]!r}; {offered}",
                room=f"{room.id}{MODEL_MARK}{model}",
            )
        return room.model_copy(update={"fast_model": model, "high_model": model})

    def list_visible(self, owner: str | None) -> list[Room]:
        """The rooms that `owner` may use, the default one first; all for None."""
        return [room for room in self if owner is None or room.is_visible_to(owner)]

    def replace(self, rooms: Iterable[Room]) -> None:
        """Replaces all rooms at once. The default room must be among them."""
        replaced = {room.id: room for room in rooms}
        if self.default not in replaced:
            raise ValueError(f"the default room {self.default!r} is missing")
        self._rooms = replaced

    def __iter__(self) -> Iterator[Room]:
        return iter(sorted(self._rooms.values(), key=lambda room: (room.id != self.default, room.id)))


def load_rooms(
    *folders: Path,
    default: str,
    texts: Mapping[str, str] | None = None,
    guard_input: Mapping[str, str] | None = None,
    guard_output: Mapping[str, str] | None = None,
    report_fault: Callable[[ConfigError], None] | None = None,
) -> Rooms:
    """Reads every `*.yaml` of the folders in order. Raises `ConfigError` with the file and the field.

    `guard_input` and `guard_output` are the defaults for prompts and answers, by kind of finding, if a room's file does
    not set them. With `report_fault` a broken file is reported and left out. `texts` are the rooms of a database, by
    id.
    """
    guards = {"guard_input": guard_input or {}, "guard_output": guard_output or {}}
    rooms: dict[str, Room] = {}

    def add(read: Callable[[], Room]) -> None:
        try:
            room = read()
        except ConfigError as error:
            if report_fault is None:
                raise
            report_fault(error)
        else:
            rooms[room.id] = room

    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"AGENT_ROOMS_DIR: {folder} is not a folder")
        for path in sorted(folder.glob("*.yaml")):
            add(partial(_read_room, path, guards))
    for room_id, text in (texts or {}).items():
        add(partial(_parse_named_room, f"the room {room_id!r} in the database", text, room_id, guards))
    return Rooms(rooms.values(), default)


def parse_room(text: str, room_id: str, guards: Mapping[str, Mapping[str, str]]) -> Room:
    """The room that a file's text describes; `room_id` is its id if the text sets none.

    `guards` are the defaults of the fields `guard_input` and `guard_output`, by kind of finding.

    Raises `YamlError`, and pydantic's `ValidationError`. A text is parsed once: a gateway loads its rooms, and the
    editor of rooms reads the shipped ones again.
    """
    return _parse_text(text, room_id, tuple((field, tuple(given.items())) for field, given in guards.items()))


@lru_cache(maxsize=64)
def _parse_text(text: str, room_id: str, guards: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> Room:
    data = load_yaml_mapping(text)
    for field, defaults in guards:
        given = data.get(field, {})
        if isinstance(given, dict):  # YAML reads a bare `off` as false
            data[field] = {**dict(defaults), **{kind: "off" if do is False else do for kind, do in given.items()}}
    return Room.model_validate({"id": room_id, **data})


def _read_room(path: Path, guards: Mapping[str, Mapping[str, str]]) -> Room:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return _parse_named_room(str(path), text, path.stem, guards)


def _parse_named_room(where: str, text: str, room_id: str, guards: Mapping[str, Mapping[str, str]]) -> Room:
    try:
        return parse_room(text, room_id, guards)
    except ValidationError as error:
        raise ConfigError(f"{where}: {describe_faults(error)[0]}") from error
    except YamlError as error:
        raise ConfigError(f"{where}: {error}") from error
