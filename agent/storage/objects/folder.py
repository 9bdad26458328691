"""`FolderObjectStore`: objects as files of a folder, which other machines may share."""

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from agent.core.errors import NotFoundError, StoreError, StoreFullError
from agent.storage.objects.port import ObjectInfo, validate_object_name

_PART = ".part-"
"""Prefix of a file that is being written. No object is named like it."""
_OLD_SECONDS = 86_400
"""A part that is older was left by a process that died."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Follow no link and wait for no pipe that may have replaced the file."""


class FolderObjectStore:
    """Implements `ObjectStore`. `is_shared` says that other machines see the same folder."""

    def __init__(self, folder: Path, *, is_shared: bool = False) -> None:
        self._folder = folder
        self._is_shared = is_shared

    @property
    def location(self) -> str:
        """See `ObjectStore.location`."""
        return str(self._folder.absolute())

    @property
    def is_shared(self) -> bool:
        """See `ObjectStore.is_shared`."""
        return self._is_shared

    def put(self, name: str, path: Path) -> None:
        """See `ObjectStore.put`."""
        target = self._get_path(name)
        with self._translate_errors():
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_old_parts(target.parent)
            part = target.with_name(f"{_PART}{secrets.token_hex(8)}")
            try:
                _link_or_copy(path, part)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)

    def open(self, name: str) -> BufferedReader:
        """See `ObjectStore.open`."""
        path = self._get_path(name)
        with self._translate_errors():
            try:
                file = os.fdopen(os.open(path, _FLAGS), "rb")
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                raise NotFoundError(f"{name} is not in {self.location}", agent_id="store") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise NotFoundError(f"{name} is not a file in {self.location}", agent_id="store")
        return file

    def fetch(self, name: str, path: Path) -> None:
        """See `ObjectStore.fetch`."""
        with self.open(name) as file, self._translate_errors(), open_for_writing(path) as out:
            shutil.copyfileobj(file, out, 1 << 20)

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`."""
        with self._translate_errors():
            self._get_path(name).unlink(missing_ok=True)

    def delete_all(self, prefix: str) -> None:
        """See `ObjectStore.delete_all`."""
        with self._translate_errors():
            try:
                shutil.rmtree(self._get_path(prefix))
            except FileNotFoundError:
                return

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        top = self._get_path(prefix)
        with self._translate_errors():
            try:
                top.stat()
            except FileNotFoundError:
                return
            objects = sorted(self._walk(top), key=lambda one: one.name)
        yield from objects

    def check(self, *, writes: bool = False) -> str:
        """See `ObjectStore.check`."""
        with self._translate_errors():
            self._folder.mkdir(parents=True, exist_ok=True)
            if writes:
                part = self._folder / f"{_PART}{secrets.token_hex(8)}"
                part.write_bytes(b"")
                part.unlink()
        return self.location

    def _walk(self, top: Path) -> Iterator[ObjectInfo]:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder, name)
                if not name.startswith(".") and path.is_file():
                    yield ObjectInfo(path.relative_to(self._folder).as_posix(), path.stat().st_size)

    def _get_path(self, name: str) -> Path:
        return self._folder / validate_object_name(name)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise to_store_error(error, self.location) from error


def to_store_error(error: OSError, location: str) -> StoreError:
    """The error of the store that a failure of a file system means."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"the disk of {location} is full; free space and send it again", agent_id="store")
    return StoreError(f"{location} cannot be used: {error.strerror or error}", agent_id="store")


@contextmanager
def open_for_writing(path: Path) -> Iterator[BinaryIO]:
    """Opens a new file and deletes it if the block fails."""
    with path.open("xb") as file:
        try:
            yield file
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _link_or_copy(path: Path, part: Path) -> None:
    """Makes `part` a second name of the file where that is possible, else a durable copy."""
    try:
        os.link(path, part)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        with path.open("rb") as source, part.open("xb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
            out.flush()
            os.fsync(out.fileno())


def _remove_old_parts(folder: Path) -> None:
    for part in folder.glob(f"{_PART}*"):
        try:
            if part.stat().st_mtime < time.time() - _OLD_SECONDS:
                part.unlink()
        except FileNotFoundError:
            continue
