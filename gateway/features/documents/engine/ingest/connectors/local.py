"""`LocalConnector`: files of this machine, read in place."""

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
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.errors import (
    ConnectorAuthError,
    ConnectorError,
    ConnectorNotFoundError,
    ParserUnsupportedError,
)
from gateway.features.documents.engine.ingest.local_files import (
    LocalFile,
    NonFileEntry,
    UnreadableEntry,
    list_files,
    make_path_source,
    make_printable_name,
)
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput, SourceType

MAX_READS = 3
"""How often a file that is being written is read before it is left for the next walk."""
_FRESH_NS = 2_000_000_000
"""A file changed this recently may change again within the same timestamp (FAT has a resolution of 2 s), so the
timestamp does not identify its content."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""An entry may have been replaced since it was listed: follow no link, wait for no pipe."""
_PIECE = 1024 * 1024


class LocalConnector:
    """Yields files and folders by path, without copying.

    With `roots`, only what lies beneath one of them is read; without, everything this process may read.
    """

    source_type: SourceType = "local"

    def __init__(self, roots: Sequence[Path] | None = None, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._roots = None if roots is None else tuple(root.resolve() for root in roots)
        self._now_ns = now_ns

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Implements `Connector.fetch`. A file whose time and size match `known` is not opened."""
        files = await asyncio.to_thread(self._list_files, request)
        total = sum(isinstance(one, LocalFile) for one in files)
        for one in files:
            if isinstance(one, NonFileEntry):
                error = ParserUnsupportedError(f"it is {one.description}", found=one.description)
                yield MissedDocument(make_path_source(one.path), one.name, error, gone=True)
                continue
            if isinstance(one, UnreadableEntry):
                for missed in _list_missed_below(one, known):
                    yield missed
                continue
            version = known.get(one.source, "")
            yield await asyncio.to_thread(self._fetch_file, one, version, workspace, total)

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Implements `Connector.covers`. Ignored files are covered too, so that they are removed."""
        root = f"/{make_path_source(_parse_path(request).resolve()).strip('/')}"
        path = f"/{source.lstrip('/')}"
        if path == root:
            return True
        below = path.removeprefix(f"{root.rstrip('/')}/")
        return below != path and (request.recursive or "/" not in below)

    def _list_files(self, request: ConnectorInput) -> list[LocalFile | UnreadableEntry | NonFileEntry]:
        path = _parse_path(request)
        printable_name = make_printable_name(str(path))
        try:
            top = path.resolve(strict=True)
            if self._roots is not None and not any(top.is_relative_to(root) for root in self._roots):
                raise ConnectorAuthError(
                    f"{printable_name} lies outside the folders that may be read (AGENT_FILE_ROOTS)"
                )
            return list(list_files(top, recursive=request.recursive))
        except FileNotFoundError as error:
            raise ConnectorNotFoundError(f"there is no file or folder {printable_name}") from error
        except PermissionError as error:
            raise ConnectorAuthError(f"{printable_name} may not be read by this process: {error.strerror}") from error
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
            raise ConnectorError(f"{printable_name} cannot be read: {error}") from error

    def _fetch_file(
        self, candidate: LocalFile, known: str, workspace: Path, total: int
    ) -> FetchedDocument | MissedDocument:
        if candidate.file_type is None:
            return FetchedDocument(candidate.source, candidate.name, None, None, total=total)
        try:
            output, version = self._build_output(candidate, known, workspace)
        except AgentError as error:
            if isinstance(error, StoreError):
                raise
            return MissedDocument(
                candidate.source, candidate.name, error, gone=isinstance(error, ConnectorNotFoundError)
            )
        return FetchedDocument(candidate.source, candidate.name, candidate.file_type, output, version, total=total)

    def _build_output(self, candidate: LocalFile, known: str, workspace: Path) -> tuple[ConnectorOutput | None, str]:
        path, name = candidate.path, candidate.name
        try:
            if known and _read_version(path.lstat()) == known:
                return None, known
            is_text = make_printable_name(str(path)) == str(path)
            copy = None if is_text else workspace / f"named-in-bytes{path.suffix.lower()}"
            read = _read_stable(path, copy)
        except FileNotFoundError as error:
            raise ConnectorNotFoundError(f"{name} was removed while the folder was read") from error
        except PermissionError as error:
            raise ConnectorAuthError(f"{name} may not be read by this process: {error.strerror}") from error
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreFullError("the disk of the workspace is full: free some space and start again") from error
            raise ConnectorError(f"{name} cannot be read: {error.strerror}") from error
        if read is None:
            raise ConnectorError(f"{name} was being written to each of the {MAX_READS} times it was read; try again")
        output = ConnectorOutput(
            file_path=str(copy or path),
            file_size_bytes=read.status.st_size,
            source_metadata={
                "path": make_printable_name(path.as_posix()),
                "modified": datetime.fromtimestamp(read.status.st_mtime, UTC).isoformat(),
            },
            checksum=read.checksum,
        )
        fresh = self._now_ns() - max(read.status.st_mtime_ns, read.status.st_ctime_ns) < _FRESH_NS
        return output, "" if fresh else _read_version(read.status)


@dataclass(frozen=True, slots=True)
class _FileState:
    checksum: str
    status: os.stat_result


def _parse_path(request: ConnectorInput) -> Path:
    return Path(request.source_identifier).expanduser()


def _list_missed_below(one: UnreadableEntry, known: Mapping[str, str]) -> list[MissedDocument]:
    """The unreadable folder and every known document in it as missed, so they are not removed."""
    display_name = one.name if one.name != "." else make_printable_name(str(one.path))
    error: ConnectorError = ConnectorAuthError(f"{display_name} may not be read by this process: {one.error.strerror}")
    if not isinstance(one.error, PermissionError):
        error = ConnectorError(f"{display_name} cannot be read: {one.error.strerror}")
    folder = make_path_source(one.path)
    below = f"/{folder.strip('/')}/"
    inside = sorted(source for source in known if f"/{source.lstrip('/')}".startswith(below))
    return [MissedDocument(folder, one.name, error), *(MissedDocument(source, source, error) for source in inside)]


def _read_stable(path: Path, copy: Path | None) -> _FileState | None:
    """The file's checksum and status if it did not change while it was read, else None after `MAX_READS`.

    With `copy`, also copies the bytes, for callers that cannot handle a file name that is not valid text.
    """
    for _ in range(MAX_READS):
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise OSError(0, "it is no longer a file")
            checksum, size = _hash(file, copy)
            after = os.fstat(file.fileno())
        there = path.lstat()
        if size == after.st_size and _read_version(before) == _read_version(after) == _read_version(there):
            return _FileState(checksum, after)
    return None


def _hash(file: BufferedReader, copy: Path | None) -> tuple[str, int]:
    if copy is not None:
        with copy.open("wb") as out:
            shutil.copyfileobj(file, out, _PIECE)
        file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return digest, file.tell()


def _read_version(status: os.stat_result) -> str:
    """Time, size and inode change time. A copy that keeps its original's time (`cp -p`) differs in
    the latter."""
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ctime_ns}"
