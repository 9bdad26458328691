"""`SourceFiles`: lists the files of a source without reading them, and opens files beneath the source only."""

import asyncio
import os
import re
import shutil
import stat
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from time import monotonic

from agent.core.errors import ToolInputError
from agent.core.safe_files import open_beneath
from gateway.features.documents.engine.ingest.connectors.content_types import get_suffix
from gateway.features.documents.engine.ingest.connectors.port import Connector, FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.workspace import open_workspace
from gateway.features.documents.engine.ingest.errors import ConnectorError, ConnectorNotFoundError, ParserError
from gateway.features.documents.engine.ingest.local_files import LocalFile, NonFileEntry, list_files
from gateway.features.documents.engine.ingest.walk import close_walk
from gateway.features.documents.engine.search.models import ConnectorInput, FileType

MAX_NAMED = 100_000
"""Files that are kept by name for sampling; all are counted."""
REMOTE_FILES = 200
REMOTE_BYTES = 200 * 2**20
REMOTE_SECONDS = 120.0
"""A remote source has to be fetched to be examined; beyond any of these limits its beginning stands for the whole."""
NO_EXTENSION = "(none)"
_SIZES = ((1_000, "below 1 kB"), (100_000, "1 to 100 kB"), (1_000_000, "100 kB to 1 MB"),
          (10_000_000, "1 to 10 MB"), (100_000_000, "10 to 100 MB"))  # fmt: skip
MAX_COPY_BYTES = 100 * 2**20
"""Bytes of a file that is given to a parser; parsers open no larger ones."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source. `name` identifies it; `extension` is lower case with its dot, or `NO_EXTENSION`."""

    name: str
    extension: str
    size: int
    file_type: FileType | None


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A copy of the file `name` at `path`."""

    path: Path
    name: str

    def rename_in(self, text: str) -> str:
        """Replaces the copy's name by the file's name in a parser's message."""
        return re.sub(rf"(?<![\w.]){re.escape(self.path.name)}(?!\w)", lambda _: self.name, text)


@dataclass(slots=True)
class SizeTally:
    """How many files of a kind there are, and their sizes in bytes."""

    count: int = 0
    size: int = 0
    smallest: int = 0
    largest: int = 0

    def add(self, size: int) -> None:
        """Adds a file."""
        self.smallest = size if not self.count else min(self.smallest, size)
        self.largest = max(self.largest, size)
        self.count += 1
        self.size += size


@dataclass(slots=True)
class Listing:
    """The files of a source. `note` says why the listing is incomplete, if it is."""

    files: dict[str, SourceFile] = field(default_factory=dict)
    by_extension: dict[str, SizeTally] = field(default_factory=dict)
    by_size: Counter[str] = field(default_factory=Counter)
    total: SizeTally = field(default_factory=SizeTally)
    unreadable: list[str] = field(default_factory=list)
    unreadable_count: int = 0
    note: str = ""

    def add(self, file: SourceFile) -> None:
        """Adds a file."""
        self.total.add(file.size)
        self.by_size[_format_magnitude(file.size)] += 1
        self.by_extension.setdefault(file.extension, SizeTally()).add(file.size)
        if len(self.files) < MAX_NAMED:
            self.files[file.name] = file

    def add_unreadable(self, name: str) -> None:
        """Adds an entry that could not be read."""
        self.unreadable_count += 1
        if len(self.unreadable) < 20:
            self.unreadable.append(name)


class SourceFiles:
    """The files of one source, listed once on first use."""

    def __init__(self, request: ConnectorInput, connector: Connector, folder: Path, stack: AsyncExitStack) -> None:
        self.request = request
        self._connector = connector
        self._folder = folder
        self._stack = stack
        self._lock = asyncio.Lock()
        self._listing: Listing | None = None
        self._root = Path()
        self._places: dict[str, Path] = {}
        self._copies: Path | None = None
        self._copied = 0

    async def list_files(self) -> Listing:
        """The listing. Raises `ConnectorError` if the source cannot be read, `StoreError` for the workspace."""
        async with self._lock:
            if self._listing is None:
                local = self.request.source_type == "local"
                self._listing = await (asyncio.to_thread(self._list_local) if local else self._fetch_remote())
            return self._listing

    async def get_file(self, name: str) -> SourceFile:
        """The file of this name. Raises `ToolInputError` for a name that was not listed."""
        file = (await self.list_files()).files.get(name)
        if file is None:
            raise ToolInputError(
                f"there is no file {name[:200]!r} at this source; take the names that sample_files gives"
            )
        return file

    async def read_bytes(self, name: str, start: int, count: int) -> bytes:
        """Some bytes of a file. Raises `ToolInputError` if it can no longer be opened."""
        await self.get_file(name)
        return await asyncio.to_thread(self._read_bytes, name, start, count)

    async def copy_file(self, name: str) -> Path:
        """Copies a file, keeping its suffix, because the original may be replaced while a parser reads it.

        Raises what `read_bytes` raises, also for more than `MAX_COPY_BYTES`.
        """
        file = await self.get_file(name)
        async with self._lock:
            if self._copies is None:
                self._copies = await self._stack.enter_async_context(open_workspace(self._folder))
            self._copied += 1
            ending = "" if file.extension == NO_EXTENSION else file.extension
            target = self._copies / f"{self._copied}{ending}"
        await asyncio.to_thread(self._copy_file, name, target)
        return target

    @asynccontextmanager
    async def open_copy(self, name: str) -> AsyncIterator[FileCopy]:
        """Yields a copy and deletes it afterwards; a `ParserError` about it names the original. Raises what `copy_file`
        raises."""
        copy = FileCopy(await self.copy_file(name), name)
        try:
            yield copy
        except ParserError as error:
            error.message = copy.rename_in(error.message)
            raise
        finally:
            copy.path.unlink(missing_ok=True)

    def _list_local(self) -> Listing:
        top = Path(self.request.source_identifier).expanduser()
        try:
            self._root = top.resolve(strict=True)
            return self._build_listing(list_files(self._root, recursive=self.request.recursive))
        except FileNotFoundError as error:
            raise ConnectorNotFoundError(f"there is no file or folder {top}") from error
        except (OSError, RuntimeError, ValueError) as error:  # not ours to read; a loop of links, a NUL in the name
            raise ConnectorError(f"{top} cannot be read: {error}") from error

    def _build_listing(self, found: Iterator[object]) -> Listing:
        listing = Listing()
        single = self._root.is_file()
        root = self._root.parent if single else self._root
        for one in found:
            if isinstance(one, NonFileEntry):
                continue
            if not isinstance(one, LocalFile):
                listing.add_unreadable(str(getattr(one, "name", "")))
                continue
            try:
                size = one.path.lstat().st_size
            except OSError:
                listing.add_unreadable(one.name)
                continue
            listing.add(SourceFile(one.name, _get_extension(one.name), size, one.file_type))
            if one.name in listing.files:
                self._places[one.name] = one.path.relative_to(root)
        self._root = root
        return listing

    async def _fetch_remote(self) -> Listing:
        """Fetches the source, or its beginning; the files stay until the sub-agent is closed."""
        folder = await self._stack.enter_async_context(open_workspace(self._folder))
        downloads, copies = folder / "fetched", folder / "kept"
        for one in (downloads, copies):
            one.mkdir()
        self._root = copies
        listing, until = Listing(), monotonic() + REMOTE_SECONDS
        fetching = self._connector.fetch(self.request, downloads, {})
        async with close_walk(fetching):
            async for document in fetching:
                if isinstance(document, MissedDocument):
                    listing.add_unreadable(document.name)
                else:
                    await self._keep_fetched(document, listing, copies)
                if listing.total.count >= REMOTE_FILES or listing.total.size >= REMOTE_BYTES or monotonic() >= until:
                    listing.note = f"only the first {listing.total.count} files were fetched; there may be more"
                    break
        return listing

    async def _keep_fetched(self, found: FetchedDocument, listing: Listing, kept: Path) -> None:
        name = found.source if found.name in listing.files else found.name
        size = found.output.file_size_bytes if found.output is not None else 0
        extension = f".{found.file_type}" if found.file_type is not None else _get_extension(name)
        listing.add(SourceFile(name, extension, size, found.file_type))
        if found.output is not None:
            place = Path(str(len(self._places) + 1))
            self._places[name] = place
            await asyncio.to_thread(shutil.copyfile, found.output.file_path, kept / place)

    def _read_bytes(self, name: str, start: int, count: int) -> bytes:
        with closing(self._open(name)) as file:
            file.seek(start)
            return file.read(count)

    def _copy_file(self, name: str, target: Path) -> None:
        with closing(self._open(name)) as file:
            if os.fstat(file.fileno()).st_size > MAX_COPY_BYTES:
                raise ToolInputError(f"{name} has more than {MAX_COPY_BYTES:,} bytes, the most that is parsed")
            with target.open("xb") as out:
                shutil.copyfileobj(file, out)

    def _open(self, name: str) -> BufferedReader:
        """Opens a file folder by folder from the root, so that a link that replaced a folder cannot lead outside."""
        place = self._places.get(name)
        if place is None:
            raise ToolInputError(f"{name} was listed, but its bytes were not fetched")
        try:
            return open_file(self._root, place)
        except OSError as error:
            raise ToolInputError(f"{name} cannot be opened: {error.strerror or error}") from error


def open_file(root: Path, place: Path) -> BufferedReader:
    """Opens a regular file below `root` without following links. Raises `OSError`."""
    descriptor = open_beneath(root, place.parts)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is no longer a file")
    return os.fdopen(descriptor, "rb")


def _get_extension(name: str) -> str:
    return get_suffix(name)[:20] or NO_EXTENSION


def _format_magnitude(size: int) -> str:
    return next((name for limit, name in _SIZES if size < limit), "100 MB and more")
