"""`FileRoomStore`: rooms as YAML files of one folder, which people edit and git can hold.

Which rooms are managed is kept in a file of its own, outside of the folder: rooms hold nothing but their fields.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent.core.bounded_yaml import MAX_BYTES
from agent.core.errors import AgentError, ConflictError, NotFoundError, StoreError, StoreFullError
from gateway.features.studio.engine.errors import RollbackRegistry, VersionConflictError
from gateway.features.studio.engine.room_store import CheckText, StoredRoom, decode_room

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
LOCK_SECONDS = 10.0
"""How long a change waits for the changes of other processes, which take milliseconds."""
_POLL_SECONDS = 0.02


class FileRoomStore:
    """The room files of `folder`. `marks` is the file that lists the managed rooms; a lock file stands beside it."""

    def __init__(self, folder: Path, marks: Path) -> None:
        self.folder = folder
        self._marks = marks

    def close(self) -> None:
        """Does nothing: no file is held open."""

    def list_stamps(self) -> Mapping[str, tuple[int, ...]] | None:
        """Inode, size and times of each file."""
        stamps = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".yaml") and not entry.name.startswith("."):
                        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile, or is a broken link
                            status = entry.stat()
                            stamps[entry.name.removesuffix(".yaml")] = (
                                status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
                            )  # fmt: skip
        except FileNotFoundError:
            return {} if self.folder.parent.is_dir() else None
        except OSError:
            return None
        return stamps

    def read(self, room_id: str) -> StoredRoom | None:
        """A room with at most one byte more than may be read, so that a huge file is refused, not loaded."""
        data = self._read_bytes(room_id)
        return None if data is None else StoredRoom(room_id, data, room_id in self._read_marks())

    def list_revisions(self, room_id: str) -> None:
        """Always None: files keep no earlier texts. The folder can be a repository of git."""

    def create(self, room_id: str, data: bytes, check: CheckText) -> StoredRoom:
        """Writes a new file."""
        with self._hold_lock(), self._undo_on_error() as undo:
            if self._get_path(room_id).exists():
                raise ConflictError(f"there is a room {room_id!r} already; choose another id", stage="identifier")
            # The mark comes first: after a crash a mark without a file remains, which is as good as none.
            self._set_mark(room_id, managed=True, undo=undo)
            undo.register(lambda: self._get_path(room_id).unlink(missing_ok=True))
            self._write_checked(room_id, data, check)
            return StoredRoom(room_id, data, is_managed=True)

    def edit(
        self,
        room_id: str,
        change: Callable[[str], str],
        check: CheckText,
        *,
        version: str | None,
        managed: bool | None = None,
    ) -> StoredRoom:
        """Replaces a file at once. A person who saves it at the same moment is not overwritten but reported."""
        with self._hold_lock(), self._undo_on_error() as undo:
            stored = self._get(room_id, version)
            data = change(decode_room(stored.data)).encode()
            if managed is not None:
                self._set_mark(room_id, managed=managed, undo=undo)
            if data != stored.data:
                self._write_checked(room_id, data, check, undo=undo, earlier=stored)
            return StoredRoom(room_id, data, stored.is_managed if managed is None else managed)

    def delete(self, room_id: str, *, version: str | None) -> None:
        """Removes the file, then its mark."""
        with self._hold_lock():
            self._get(room_id, version)
            try:
                self._get_path(room_id).unlink()
                self._sync_folder(self.folder)
            except OSError as error:
                raise _to_store_error(self._get_path(room_id), error) from error
            # A mark without a file is as good as none, and the next change removes it.
            with contextlib.suppress(StoreError):
                self._set_mark(room_id, managed=False, undo=RollbackRegistry())

    def erase(self, is_erased: Callable[[bytes], bool]) -> None:
        """Removes these rooms: no earlier texts are kept."""
        stamps = self.list_stamps()
        if stamps is None:
            raise StoreError(f"{self.folder} cannot be read", agent_id="studio", stage="read")
        for room_id in stamps:
            stored = self.read(room_id)
            if stored is not None and stored.is_managed and is_erased(stored.data):
                with contextlib.suppress(NotFoundError):  # it was removed meanwhile
                    self.delete(room_id, version=None)

    def _get(self, room_id: str, version: str | None) -> StoredRoom:
        stored = self.read(room_id)
        if stored is None:
            raise NotFoundError(f"there is no room file {room_id}.yaml", stage="identifier")
        if version not in (None, stored.version):
            raise VersionConflictError(f"the room {room_id!r}", stored.version)
        return stored

    def _write_checked(
        self,
        room_id: str,
        data: bytes,
        check: CheckText,
        *,
        undo: RollbackRegistry | None = None,
        earlier: StoredRoom | None = None,
    ) -> None:
        """Writes the file, reads it back and checks it as it then stands on the disk."""
        check(decode_room(data))
        path = self._get_path(room_id)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write_temporary(path, data)
            if earlier is not None and undo is not None:
                if self._read_bytes(room_id) != earlier.data:
                    raise VersionConflictError(f"the room {room_id!r}", None)
                undo.register(lambda: self._restore(path, earlier.data))
            _get_temporary_path(path).replace(path)
            self._sync_folder(self.folder)
        except OSError as error:
            raise _to_store_error(path, error) from error
        finally:
            with contextlib.suppress(OSError):
                _get_temporary_path(path).unlink(missing_ok=True)
        written = self._read_bytes(room_id)
        if written != data:
            raise StoreError(f"{path} does not hold what was written", agent_id="studio", stage="write")
        check(decode_room(written))

    def _restore(self, path: Path, data: bytes) -> None:
        if path.read_bytes() != data:
            self._write_temporary(path, data)
            _get_temporary_path(path).replace(path)

    @staticmethod
    def _write_temporary(path: Path, data: bytes) -> None:
        """Writes and syncs the file beside `path` that will replace it, with the mode that `path` has."""
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        with open(_get_temporary_path(path), "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def _sync_folder(folder: Path) -> None:
        """Makes a rename in the folder durable."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _get_path(self, room_id: str) -> Path:
        return self.folder / f"{room_id}.yaml"

    def _read_bytes(self, room_id: str) -> bytes | None:
        try:
            with self._get_path(room_id).open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _to_store_error(self._get_path(room_id), error) from error

    def _read_marks(self) -> dict[str, float]:
        """The time at which each managed room was marked, in UTC seconds since 1970."""
        try:
            marks = json.loads(self._marks.read_text("utf-8"))
            return {str(name): float(at) for name, at in marks.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            message = f"{self._marks} cannot be read ({error}); correct it, or remove it: then no room is managed"
            raise StoreError(message, agent_id="studio", stage="read") from error

    def _set_mark(self, room_id: str, *, managed: bool, undo: RollbackRegistry) -> None:
        """Marks a room. Forgets the marks of rooms whose file is gone."""
        before = self._marks.read_bytes() if self._marks.exists() else None
        marks = {
            name: at for name, at in self._read_marks().items() if self._get_path(name).exists() and name != room_id
        }
        if managed:
            marks[room_id] = time.time()
        try:
            undo.register(
                lambda: self._marks.unlink(missing_ok=True) if before is None else self._restore(self._marks, before)
            )
            self._write_temporary(self._marks, json.dumps(marks, indent=1).encode())
            _get_temporary_path(self._marks).replace(self._marks)
            self._sync_folder(self._marks.parent)
        except OSError as error:
            raise _to_store_error(self._marks, error) from error

    @contextlib.contextmanager
    def _undo_on_error(self) -> Iterator[RollbackRegistry]:
        """Undoes what was done if the body raises. What cannot be undone is in the error's `rollback_errors`."""
        undo = RollbackRegistry()
        try:
            yield undo
            undo.clear()
        except BaseException as error:
            if failed := undo.rollback_all():
                if isinstance(error, AgentError):
                    error.details["rollback_errors"] = [*failed]
                error.add_note(f"not undone: {'; '.join(failed)}")
            raise

    @contextlib.contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Holds the lock of this store, against threads and processes. The system frees it if the process dies."""
        path = self._marks.with_suffix(".lock")
        try:
            self._marks.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _to_store_error(path, error) from error
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        message = "another program is changing rooms; try again"
                        raise StoreError(message, agent_id="studio", stage="write") from None
                    time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(handle)


def _get_temporary_path(path: Path) -> Path:
    """The path of the file that will replace `path`. No pattern of room files matches it."""
    return path.with_name(f".{path.name}.new")


def _to_store_error(path: Path, error: OSError) -> StoreError:
    kind = StoreFullError if error.errno in _FULL else StoreError
    return kind(
        f"{path.name} cannot be written or read: {error.strerror}; nothing was changed",
        agent_id="studio",
        stage="write",
    )
