"""`LocalConnector`: the files of this machine, where they lie."""

import asyncio
import errno
import hashlib
import os
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path

from agent.core.errors import AgentError, StoreError, StoreFullError
from agent.knowledge.connectors.port import Fetched, Missed
from agent.knowledge.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError, ParserUnsupportedError
from agent.knowledge.local_files import Candidate, PassedOver, Unreadable, legible, source_of, walk
from agent.knowledge.models import ConnectorInput, ConnectorOutput, SourceType

READ_TIMES = 3
"""How often a file that is being written to is read before it is left for the next time."""
_FRESH_NS = 2_000_000_000
"""A file changed this recently may change again without its time changing (FAT counts in steps of 2 s): such a time
tells no contents apart."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""An entry may have been replaced since it was listed: no link is followed, no pipe is waited for."""
_PIECE = 1024 * 1024


class LocalConnector:
    """Files and folders by path. A file is yielded where it lies; nothing is copied.

    With `roots`, only what lies beneath one of them is read; without, whatever this process may read."""

    source_type: SourceType = "local"

    def __init__(self, roots: Sequence[Path] | None = None, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._roots = None if roots is None else tuple(root.resolve() for root in roots)
        self._now_ns = now_ns

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[Fetched | Missed]:
        """See `Connector.fetch`. A file whose time and size are those of `known` is not opened."""
        found = await asyncio.to_thread(self._list, request)
        total = sum(isinstance(one, Candidate) for one in found)
        for one in found:
            if isinstance(one, PassedOver):
                error = ParserUnsupportedError(f"it is {one.what}", found=one.what)
                yield Missed(source_of(one.path), one.name, error, gone=True)
                continue
            if isinstance(one, Unreadable):
                for missed in _unreadable(one, known):
                    yield missed
                continue
            version = known.get(one.source, "")
            yield await asyncio.to_thread(self._look, one, version, workspace, total)

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """See `Connector.covers`. What an ignore rule leaves out is covered too: it is to be removed."""
        root = f"/{source_of(_path(request).resolve()).strip('/')}"
        path = f"/{source.lstrip('/')}"
        if path == root:
            return True
        below = path.removeprefix(f"{root.rstrip('/')}/")
        return below != path and (request.recursive or "/" not in below)

    def _list(self, request: ConnectorInput) -> list[Candidate | Unreadable | PassedOver]:
        path = _path(request)
        shown = legible(str(path))
        try:
            top = path.resolve(strict=True)
            if self._roots is not None and not any(top.is_relative_to(root) for root in self._roots):
                raise ConnectorAuthError(f"{shown} lies outside the folders that may be read (AGENT_FILE_ROOTS)")
            return list(walk(top, recursive=request.recursive))
        except FileNotFoundError as error:
            raise ConnectorNotFoundError(f"there is no file or folder {shown}") from error
        except PermissionError as error:
            raise ConnectorAuthError(f"{shown} may not be read by this process: {error.strerror}") from error
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
            raise ConnectorError(f"{shown} cannot be read: {error}") from error

    def _look(self, candidate: Candidate, known: str, workspace: Path, total: int) -> Fetched | Missed:
        if candidate.file_type is None:
            return Fetched(candidate.source, candidate.name, None, None, total=total)
        try:
            output, version = self._output(candidate, known, workspace)
        except AgentError as error:
            if isinstance(error, StoreError):
                raise
            return Missed(candidate.source, candidate.name, error, gone=isinstance(error, ConnectorNotFoundError))
        return Fetched(candidate.source, candidate.name, candidate.file_type, output, version, total=total)

    def _output(self, candidate: Candidate, known: str, workspace: Path) -> tuple[ConnectorOutput | None, str]:
        path, name = candidate.path, candidate.name
        try:
            if known and _version(path.lstat()) == known:
                return None, known
            is_text = legible(str(path)) == str(path)
            copy = None if is_text else workspace / f"named-in-bytes{path.suffix.lower()}"
            read = _read_still(path, copy)
        except FileNotFoundError as error:
            raise ConnectorNotFoundError(f"{name} was removed while the folder was read") from error
        except PermissionError as error:
            raise ConnectorAuthError(f"{name} may not be read by this process: {error.strerror}") from error
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreFullError("the disk of the workspace is full: free some space and start again") from error
            raise ConnectorError(f"{name} cannot be read: {error.strerror}") from error
        if read is None:
            raise ConnectorError(f"{name} was being written to each of the {READ_TIMES} times it was read; try again")
        output = ConnectorOutput(
            file_path=str(copy or path),
            file_size_bytes=read.status.st_size,
            source_metadata={
                "path": legible(path.as_posix()),
                "modified": datetime.fromtimestamp(read.status.st_mtime, UTC).isoformat(),
            },
            checksum=read.checksum,
        )
        fresh = self._now_ns() - max(read.status.st_mtime_ns, read.status.st_ctime_ns) < _FRESH_NS
        return output, "" if fresh else _version(read.status)


@dataclass(frozen=True, slots=True)
class _Read:
    checksum: str
    status: os.stat_result


def _path(request: ConnectorInput) -> Path:
    return Path(request.source_identifier).expanduser()


def _unreadable(one: Unreadable, known: Mapping[str, str]) -> list[Missed]:
    """The folder itself, and each document known to lie in it: they are missed, not gone."""
    shown = one.name if one.name != "." else legible(str(one.path))
    error: ConnectorError = ConnectorAuthError(f"{shown} may not be read by this process: {one.error.strerror}")
    if not isinstance(one.error, PermissionError):
        error = ConnectorError(f"{shown} cannot be read: {one.error.strerror}")
    folder = source_of(one.path)
    below = f"/{folder.strip('/')}/"
    inside = sorted(source for source in known if f"/{source.lstrip('/')}".startswith(below))
    return [Missed(folder, one.name, error), *(Missed(source, source, error) for source in inside)]


def _read_still(path: Path, copy: Path | None) -> _Read | None:
    """The file's checksum, and its status if it was the same before and after; None if it never was. With `copy`, the
    bytes that were read are there too: for those who cannot be told a name that is no text."""
    for _ in range(READ_TIMES):
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise OSError(0, "it is no file any more")
            checksum, size = _digest(file, copy)
            after = os.fstat(file.fileno())
        there = path.lstat()
        if size == after.st_size and _version(before) == _version(after) == _version(there):
            return _Read(checksum, after)
    return None


def _digest(file: BufferedReader, copy: Path | None) -> tuple[str, int]:
    if copy is not None:
        with copy.open("wb") as out:
            shutil.copyfileobj(file, out, _PIECE)
        file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return digest, file.tell()


def _version(status: os.stat_result) -> str:
    """With the time of the inode: a copy that keeps the time of its original (`cp -p`, `rsync -t`) has another."""
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ctime_ns}"
