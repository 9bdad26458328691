"""`PostgresRoomStore`: the YAML of rooms in PostgreSQL, each change as a row of its own, for several gateways on one
database. The texts are those of files: comments and style stay.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from agent.core.errors import ConflictError, NotFoundError, StoreError, StoreFullError
from gateway.features.studio.engine.errors import VersionConflictError
from gateway.features.studio.engine.room_store import CheckText, RoomRevision, StoredRoom, decode_room

MAX_REVISIONS = 100
"""Rows of one room that are kept; the oldest ones are dropped."""
LOCK_SECONDS = 10
"""How long a change waits for another one of the same room, and a statement for an answer."""
CONNECT_SECONDS = 5

_Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresRoomStore:
    """The rooms in the database at `url`. Holds one connection, which is opened when it is needed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: _Connection | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._drop_connection()

    def list_stamps(self) -> Mapping[str, tuple[int, ...]] | None:
        """The revision of each room."""
        try:
            with self._begin() as db:
                rows = db.execute(
                    "SELECT room_id, revision FROM (SELECT DISTINCT ON (room_id) room_id, revision, data FROM "
                    "room_versions ORDER BY room_id, revision DESC) AS newest WHERE data IS NOT NULL"
                ).fetchall()
        except StoreError:
            return None
        return {str(room_id): (int(revision),) for room_id, revision in rows}

    def read(self, room_id: str) -> StoredRoom | None:
        """The newest revision."""
        with self._begin() as db:
            return _read_newest(db, room_id)[0]

    def list_revisions(self, room_id: str) -> Sequence[RoomRevision]:
        """The last revisions."""
        with self._begin() as db:
            rows = db.execute(
                "SELECT revision, data, at FROM room_versions WHERE room_id = %s ORDER BY revision DESC",
                (room_id.replace("\x00", ""),),
            ).fetchall()
        return [RoomRevision(int(row[0]), None if row[1] is None else bytes(row[1]), float(row[2])) for row in rows]

    def create(self, room_id: str, data: bytes, check: CheckText) -> StoredRoom:
        """Adds the first revision, or the one after a deletion."""
        check(decode_room(data))
        with self._begin(room_id) as db:
            stored, revision = _read_newest(db, room_id)
            if stored is not None:
                raise ConflictError(f"there is a room {room_id!r} already; choose another id", stage="identifier")
            return _add_revision(db, StoredRoom(room_id, data, is_managed=True), revision + 1, check)

    def edit(
        self,
        room_id: str,
        change: Callable[[str], str],
        check: CheckText,
        *,
        version: str | None,
        managed: bool | None = None,
    ) -> StoredRoom:
        """Adds a revision; nothing if the text and the mark stay."""
        with self._begin(room_id) as db:
            stored, revision = _require(db, room_id, version)
            data = change(decode_room(stored.data)).encode()
            check(decode_room(data))
            changed = StoredRoom(room_id, data, stored.is_managed if managed is None else managed)
            return stored if changed == stored else _add_revision(db, changed, revision + 1, check)

    def delete(self, room_id: str, *, version: str | None) -> None:
        """Adds a row without a text: the earlier revisions stay."""
        with self._begin(room_id) as db:
            _, revision = _require(db, room_id, version)
            _insert(db, room_id, revision + 1, None, is_managed=False)

    def erase(self, is_erased: Callable[[bytes], bool]) -> None:
        """Removes the rows of these texts. Where one of them was the newest, a row without a text follows it, so that
        no number is given twice.
        """
        with self._begin() as db:
            room_ids = [str(row[0]) for row in db.execute("SELECT DISTINCT room_id FROM room_versions").fetchall()]
        for room_id in room_ids:
            with self._begin(room_id) as db:
                stored, newest = _read_newest(db, room_id)
                is_newest = stored is not None and is_erased(stored.data)
                if stored is not None and is_newest and not stored.is_managed:
                    continue
                rows = db.execute(
                    "SELECT revision, data FROM room_versions WHERE room_id = %s AND data IS NOT NULL", (room_id,)
                ).fetchall()
                revisions = [int(row[0]) for row in rows if is_erased(bytes(row[1]))]
                if is_newest:
                    _insert(db, room_id, newest + 1, None, is_managed=False)
                db.execute("DELETE FROM room_versions WHERE room_id = %s AND revision = ANY(%s)", (room_id, revisions))

    @contextmanager
    def _begin(self, room_id: str | None = None) -> Iterator[_Connection]:
        """Yields the connection in a transaction, which holds the lock of a room if one is named. It is committed at
        the end and rolled back on every error. Raises `StoreError` and `StoreFullError`.
        """
        with self._lock:
            try:
                db = self._connect()
                with db.transaction():
                    if room_id is not None:
                        db.execute("SELECT pg_advisory_xact_lock(%s)", (_make_lock_key(room_id),))
                    yield db
            except psycopg.Error as error:
                self._drop_connection()
                raise _to_store_error(error) from error

    def _connect(self) -> _Connection:
        """The connection, a new one if the old one was lost. Raises `psycopg.Error`."""
        if self._connection is not None and not _is_alive(self._connection):
            self._drop_connection()
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                options=f"-c lock_timeout={LOCK_SECONDS * 1000} -c statement_timeout={LOCK_SECONDS * 1000}",
            )
        return self._connection

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_alive(db: _Connection) -> bool:
    if db.closed:
        return False
    try:
        db.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _read_newest(db: _Connection, room_id: str) -> tuple[StoredRoom | None, int]:
    """The newest revision and its number; None after a deletion, 0 if there never was one."""
    row = db.execute(
        "SELECT data, managed, revision FROM room_versions WHERE room_id = %s ORDER BY revision DESC LIMIT 1",
        (room_id.replace("\x00", ""),),
    ).fetchone()
    if row is None:
        return None, 0
    data, managed, revision = row
    return (None if data is None else StoredRoom(room_id, bytes(data), bool(managed))), int(revision)


def _require(db: _Connection, room_id: str, version: str | None) -> tuple[StoredRoom, int]:
    stored, revision = _read_newest(db, room_id)
    if stored is None:
        raise NotFoundError(f"there is no room {room_id!r} in the database", stage="identifier")
    if version not in (None, stored.version):
        raise VersionConflictError(f"the room {room_id!r}", stored.version)
    return stored, revision


def _add_revision(db: _Connection, room: StoredRoom, revision: int, check: CheckText) -> StoredRoom:
    """Inserts a revision, and checks it as the database then has it."""
    _insert(db, room.room_id, revision, room.data, is_managed=room.is_managed)
    written, _ = _read_newest(db, room.room_id)
    if written != room:
        raise StoreError(f"the room {room.room_id!r} does not hold what was written", agent_id="studio", stage="write")
    check(decode_room(room.data))
    db.execute(
        "DELETE FROM room_versions WHERE room_id = %s AND revision <= %s", (room.room_id, revision - MAX_REVISIONS)
    )
    return room


def _insert(db: _Connection, room_id: str, revision: int, data: bytes | None, *, is_managed: bool) -> None:
    db.execute(
        "INSERT INTO room_versions (room_id, revision, data, managed, at) VALUES (%s, %s, %s, %s, %s)",
        (room_id, revision, data, is_managed, time.time()),
    )


def _make_lock_key(room_id: str) -> int:
    """A number for an advisory lock, the same in every process."""
    return int.from_bytes(hashlib.sha256(f"stepgate room {room_id}".encode()).digest()[:8], "big", signed=True)


def _to_store_error(error: psycopg.Error) -> StoreError:
    if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
        return StoreError("another program is changing this room; try again", agent_id="studio", stage="write")
    kind = StoreFullError if isinstance(error, psycopg.errors.DiskFull) else StoreError
    why = " ".join(str(error).split())[:200]
    return kind(f"the rooms in the database cannot be read or written: {why}", agent_id="studio", stage="write")
