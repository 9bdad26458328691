"""A temporary folder for downloads, deleted at the end of the work, also after a crash."""

import asyncio
import fcntl
import logging
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.core.errors import StoreError

_LOG = logging.getLogger(__name__)
_PREFIX = "work-"
_LOCK = ".lock"


@asynccontextmanager
async def open_workspace(parent: Path) -> AsyncIterator[Path]:
    """Creates an empty folder below `parent` and deletes it at the end. Deletes leftovers of dead processes first.

    Raises `StoreError` if `parent` cannot be written.
    """
    try:
        path, lock = await asyncio.to_thread(_create, parent)
    except OSError as error:
        raise StoreError(f"no workspace can be made in {parent}: {error.strerror}") from error
    try:
        yield path
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, path, lock))


def _create(parent: Path) -> tuple[Path, int]:
    parent.mkdir(parents=True, exist_ok=True)
    for lock_path in parent.glob(f"{_PREFIX}*{_LOCK}"):
        lock = _try_lock(lock_path)
        if lock is not None:
            _remove(lock_path.with_name(lock_path.name.removesuffix(_LOCK)), lock)
    while True:
        path = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        lock = _try_lock(_lock_path(path), create=True)
        if lock is not None:  # else another process took it for a leftover in the moment between making and locking
            path.mkdir()
            return path, lock


def _remove(path: Path, lock: int) -> None:
    """Deletes the folder before its lock, so that a crash in between leaves a lock that the next process finds."""

    def note(_: object, name: str, failure: tuple[object, BaseException, object]) -> None:
        if not isinstance(failure[1], FileNotFoundError):
            _LOG.warning("%s of a finished workspace cannot be removed: %s", name, failure[1])

    shutil.rmtree(path, onerror=note)
    if not path.exists():
        _lock_path(path).unlink(missing_ok=True)
    os.close(lock)


def _try_lock(path: Path, *, create: bool = False) -> int | None:
    """The locked file descriptor, or None if a living process holds the lock or the file is gone.

    The lock, not the process id, shows who is alive: ids are reused, and differ between containers on the same disk.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}{_LOCK}")
