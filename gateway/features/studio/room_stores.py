"""Chooses the store of the operator's rooms."""

from contextlib import closing

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.features.studio.engine.room_files import FileRoomStore
from gateway.features.studio.engine.room_store import RoomStore


def build_room_store(settings: Settings) -> RoomStore:
    """The store of the operator's rooms. Raises `ConfigError` if it needs a database that is not set."""
    if settings.room_store == "files":
        return FileRoomStore(settings.rooms_path, settings.data_dir / "managed_rooms.json")
    if settings.database_url is None:
        raise ConfigError("AGENT_ROOM_STORE: set AGENT_DATABASE_URL to keep rooms in the database, or choose `files`")
    from gateway.features.studio.engine.room_database import PostgresRoomStore  # noqa: PLC0415 - its driver is not needed for files

    return PostgresRoomStore(settings.database_url.get_secret_value())


def read_room_texts(settings: Settings) -> dict[str, str]:
    """The texts of the rooms in the store by id. Raises `ConfigError` and `StoreError`."""
    with closing(build_room_store(settings)) as store:
        stored = [store.read(room_id) for room_id in sorted(store.list_stamps() or ())]
    return {room.room_id: room.data.decode("utf-8", "replace") for room in stored if room is not None}
