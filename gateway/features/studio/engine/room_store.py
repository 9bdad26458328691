"""`RoomStore`: where the texts of the operator's rooms are kept. `room_files` is the driver for a folder,
`room_database` the one for PostgreSQL.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.core.bounded_yaml import MAX_BYTES
from gateway.features.studio.engine.errors import ValidationError

CheckText = Callable[[str], None]
"""Checks the text of a room. Raises `gateway.features.studio.engine.errors.ValidationError`."""


@dataclass(frozen=True, slots=True)
class StoredRoom:
    """The YAML text of a room. `is_managed`: programs may edit and delete it. `version` changes with every byte."""

    room_id: str
    data: bytes
    is_managed: bool

    @property
    def version(self) -> str:
        """The version, a checksum of the text."""
        return hashlib.sha256(self.data).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RoomRevision:
    """A text that a room had. `data` is None for a deletion. `at` is when it was stored, in UTC seconds since 1970."""

    revision: int
    data: bytes | None
    at: float


class RoomStore(Protocol):
    """The texts of rooms by id. All methods block; call them in a thread. They raise `StoreError`.

    A change happens as a whole or not at all, also if the process is killed. Changes of several processes are made one
    after another. `version` is the one that the caller has read; None accepts every version.
    """

    def close(self) -> None:
        """Frees what the store holds. It must not be used afterwards."""
        ...

    def list_stamps(self) -> Mapping[str, tuple[int, ...]] | None:
        """A stamp for each room that differs after a change; None if the store cannot be read now."""
        ...

    def read(self, room_id: str) -> StoredRoom | None:
        """A room, or None if there is none."""
        ...

    def list_revisions(self, room_id: str) -> Sequence[RoomRevision] | None:
        """The texts that a room had, newest first, those before a deletion too; None if none are kept."""
        ...

    def create(self, room_id: str, data: bytes, check: CheckText) -> StoredRoom:
        """Stores a new managed room. Raises `ConflictError` for an id that exists, and what `check` raises."""
        ...

    def edit(
        self,
        room_id: str,
        change: Callable[[str], str],
        check: CheckText,
        *,
        version: str | None,
        managed: bool | None = None,
    ) -> StoredRoom:
        """Replaces the text of a room by `change` of it, and its mark by `managed` if given.

        Raises `NotFoundError`, `VersionConflictError`, and what `change` and `check` raise.
        """
        ...

    def delete(self, room_id: str, *, version: str | None) -> None:
        """Removes a room. Raises `NotFoundError` and `VersionConflictError`."""
        ...

    def erase(self, is_erased: Callable[[bytes], bool]) -> None:
        """Removes the managed rooms with such a text, and such texts that rooms had before; rooms that people edit
        stay.
        """
        ...


def decode_room(data: bytes) -> str:
    """The text of a room. Raises `ValidationError` with the stage `yaml_parse`."""
    if len(data) > MAX_BYTES:
        raise ValidationError(f"a room's text has at most {MAX_BYTES:,} bytes", "yaml_parse")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValidationError(f"the room's text is not UTF-8: {error}", "yaml_parse") from error
