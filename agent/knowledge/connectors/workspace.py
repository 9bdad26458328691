"""A folder for what is downloaded, which is gone when the work is done, and also when the work's process has died."""

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
async def workspace(parent: Path) -> AsyncIterator[Path]:
    """An empty folder of its own below `parent`, named with this process' id and removed at the end. What processes
    that are gone have left there is removed first. `StoreError` when `parent` cannot be written."""
    try:
        path, lock = await asyncio.to_thread(_make, parent)
    except OSError as error:
        raise StoreError(f"no workspace can be made in {parent}: {error.strerror}") from error
    try:
        yield path
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, path, lock))


def _make(parent: Path) -> tuple[Path, int]:
    parent.mkdir(parents=True, exist_ok=True)
    for lock_path in parent.glob(f"{_PREFIX}*{_LOCK}"):
        lock = _locked(lock_path)
        if lock is not None:
            _remove(lock_path.with_name(lock_path.name.removesuffix(_LOCK)), lock)
    while True:
        path = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        lock = _locked(_lock_of(path), create=True)
        if lock is not None:  # else another process took it for a leftover in the moment between making and locking
            path.mkdir()
            return path, lock


def _remove(path: Path, lock: int) -> None:
    """The folder first: what is left after a crash in between is found by its lock."""

    def note(_: object, name: str, failure: tuple[object, BaseException, object]) -> None:
        if not isinstance(failure[1], FileNotFoundError):
            _LOG.warning("%s of a finished workspace cannot be removed: %s", name, failure[1])

    shutil.rmtree(path, onerror=note)
    if not path.exists():
        _lock_of(path).unlink(missing_ok=True)
    os.close(lock)


def _locked(path: Path, *, create: bool = False) -> int | None:
    """The open, locked file; None when it belongs to a living process or is gone. The lock and not the process id says
    who lives: ids are used again, and mean nothing in another container on the same disk."""
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


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_LOCK}")
