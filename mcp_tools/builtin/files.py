"""`read_file`, `list_files`, `search_files`: text files beneath the configured roots, and nothing else.

Paths come from models and users. Each component is opened without following links, from the root's own
descriptor, so that no name, link or race leads out.
"""

import asyncio
import codecs
import fnmatch
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import BaseModel, Field

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError
from agent.core.models import Source
from agent.tools import ToolContext, TypedTool

MAX_FILE_BYTES = 10_000_000
MAX_WALKED = 20_000
"""Entries a listing or search looks at; beyond it says that it stopped."""
LINE_CHARS = 400
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A path inside a root: the root, and the parts below it."""

    root: Path
    parts: tuple[str, ...]

    @property
    def shown(self) -> str:
        """As people name it: relative to its root."""
        return "/".join(self.parts) or "."


class FileRoots:
    """The folders that may be read. The first is the one relative paths are tried in first."""

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def places(self, path: str) -> list[Place]:
        """Where `path` may be; `ToolDeniedError` when it can be in no root."""
        if "\x00" in path or len(path) > 4000:
            raise ToolDeniedError("this is no path")
        given = PurePosixPath(path.strip() or ".")
        if ".." in given.parts:
            raise ToolDeniedError(f"{path!r} is refused: '..' is not followed; name a path below {self._named()}")
        if not given.is_absolute():
            return [Place(root, given.parts) for root in self.roots]
        found = [Place(root, given.relative_to(root).parts) for root in self.roots if given.is_relative_to(root)]
        if not found:
            raise ToolDeniedError(f"{path!r} is outside the folders that may be read: {self._named()}")
        return found

    def open(self, path: str) -> tuple[Place, int]:
        """The first existing place of `path`, and an open descriptor of it. `ToolError` when there is none."""
        for place in self.places(path):
            try:
                return place, _open(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ToolDeniedError(f"{path!r} is refused: {_why(error)}") from error
        raise ToolInputError(f"there is no {path!r} below {self._named()}")

    def walk(self, path: str, pattern: str, *, recursive: bool = True) -> Iterator[tuple[Place, os.stat_result]]:
        """The regular files below `path` whose relative path or name matches `pattern`, in order."""
        for place in self.places(path):
            try:
                descriptor = _open(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ToolDeniedError(f"{path!r} is refused: {_why(error)}") from error
            info = os.fstat(descriptor)
            if stat.S_ISDIR(info.st_mode):
                yield from _walk(descriptor, place, pattern, recursive=recursive)
                continue
            os.close(descriptor)
            if stat.S_ISREG(info.st_mode):
                yield place, info

    def _named(self) -> str:
        return ", ".join(str(root) for root in self.roots)


def _open(place: Place) -> int:
    """Open a place component by component, each from its parent's descriptor and none through a link."""
    # The root itself was chosen by the operator and may be a link.
    current = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in place.parts:
        try:
            below = os.open(part, _FLAGS, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def _walk(descriptor: int, place: Place, pattern: str, *, recursive: bool) -> Iterator[tuple[Place, os.stat_result]]:
    try:
        entries = sorted(os.listdir(descriptor))
        for name in entries:
            if name.startswith("."):
                continue
            here = Place(place.root, (*place.parts, name))
            try:
                info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode) and recursive:
                    yield from _walk(
                        os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=descriptor), here, pattern, recursive=True
                    )
            except OSError:
                continue  # gone or forbidden since it was listed
            if stat.S_ISREG(info.st_mode) and (fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(here.shown, pattern)):
                yield here, info
    finally:
        os.close(descriptor)


def _why(error: OSError) -> str:
    return "it is or passes through a symbolic link" if error.errno in (40, 62) else str(error.strerror)


def _read_bytes(descriptor: int, shown: str) -> bytes:
    """A regular file's bytes; closes the descriptor."""
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ToolInputError(
                f"{shown} is a folder; use list_files" if stat.S_ISDIR(info.st_mode) else f"{shown} is no file"
            )
        if info.st_size > MAX_FILE_BYTES:
            raise ToolInputError(f"{shown} has {info.st_size:,} bytes; the limit is {MAX_FILE_BYTES:,}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def decode_text(data: bytes, shown: str) -> str:
    """Text from bytes: by BOM, UTF-8, else Latin-1. `ToolError` for binary data."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, errors="replace")
    if b"\x00" in data[:8192]:
        raise ToolInputError(f"{shown} is no text file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise ToolError(f"the file cannot be read: {error.strerror}") from error


class ReadFileInput(BaseModel):
    """Which file, and which lines."""

    path: str = Field(min_length=1, description="path of a text file, relative to a readable folder")
    start_line: int = Field(default=1, ge=1, description="first line to read")
    max_lines: int = Field(default=400, ge=1, le=5000, description="how many lines to read")


class ReadFileOutput(BaseModel):
    """The lines."""

    path: str
    text: str
    start_line: int
    total_lines: int
    truncated: bool


class ReadFileTool(TypedTool[ReadFileInput, ReadFileOutput]):
    """Reads a text file."""

    name = "read_file"
    description = "Read a text file from the user's folders, whole or by lines."
    tainted = True
    keywords = ("file", "document", "read", "open", "notes", "txt", "md", "csv", "local", "folder")
    Input = ReadFileInput
    Output = ReadFileOutput

    def __init__(self, roots: FileRoots) -> None:
        super().__init__()
        self._roots = roots

    async def run(self, args: ReadFileInput, context: ToolContext) -> ReadFileOutput:
        """Open beneath a root, decode, cut."""

        def work() -> ReadFileOutput:
            place, descriptor = self._roots.open(args.path)
            lines = decode_text(_read_bytes(descriptor, place.shown), place.shown).splitlines()
            end = args.start_line - 1 + args.max_lines
            return ReadFileOutput(
                path=place.shown,
                text="\n".join(lines[args.start_line - 1 : end]),
                start_line=args.start_line,
                total_lines=len(lines),
                truncated=end < len(lines),
            )

        return await _in_thread(work)

    def text(self, output: ReadFileOutput) -> str:
        """The text, and where to read on."""
        if not output.truncated:
            return output.text
        following = output.start_line + output.text.count("\n") + 1
        return f"{output.text}\n[{output.total_lines} lines; read on with start_line={following}]"

    def sources(self, output: ReadFileOutput) -> tuple[Source, ...]:
        """The file."""
        return (Source(id=1, name=output.path, quotes=(output.text[:300],)),)


class ListFilesInput(BaseModel):
    """What to list."""

    path: str = Field(default="", description="folder, relative to a readable folder; empty for everything")
    pattern: str = Field(default="*", description="file name pattern, e.g. *.md", max_length=200)
    recursive: bool = Field(default=True, description="also folders below")
    limit: int = Field(default=200, ge=1, le=2000, description="most files returned")


class FileEntry(BaseModel):
    """One file."""

    path: str
    bytes: int


class ListFilesOutput(BaseModel):
    """The files."""

    files: list[FileEntry]
    truncated: bool


class ListFilesTool(TypedTool[ListFilesInput, ListFilesOutput]):
    """Lists files."""

    name = "list_files"
    description = "List the files in the user's folders, by folder and name pattern."
    tainted = True
    keywords = ("files", "folder", "directory", "list", "which", "documents")
    Input = ListFilesInput
    Output = ListFilesOutput

    def __init__(self, roots: FileRoots) -> None:
        super().__init__()
        self._roots = roots

    async def run(self, args: ListFilesInput, context: ToolContext) -> ListFilesOutput:
        """Walk beneath the roots."""

        def work() -> ListFilesOutput:
            files: list[FileEntry] = []
            for number, (place, info) in enumerate(self._roots.walk(args.path, args.pattern, recursive=args.recursive)):
                if len(files) >= args.limit or number >= MAX_WALKED:
                    return ListFilesOutput(files=files, truncated=True)
                files.append(FileEntry(path=place.shown, bytes=info.st_size))
            return ListFilesOutput(files=files, truncated=False)

        return await _in_thread(work)

    def text(self, output: ListFilesOutput) -> str:
        """One line a file."""
        if not output.files:
            return "No files."
        lines = [f"{entry.path} ({entry.bytes:,} bytes)" for entry in output.files]
        return "\n".join([*lines, "[more files; narrow the pattern]"] if output.truncated else lines)


class SearchFilesInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=200, description="words or a phrase; case does not matter")
    path: str = Field(default="", description="folder or file to search; empty for everything")
    pattern: str = Field(default="*", description="file name pattern, e.g. *.md", max_length=200)
    limit: int = Field(default=50, ge=1, le=500, description="most matches returned")


class Match(BaseModel):
    """One line."""

    path: str
    line: int
    text: str


class SearchFilesOutput(BaseModel):
    """The lines that match."""

    query: str
    matches: list[Match]
    truncated: bool


class SearchFilesTool(TypedTool[SearchFilesInput, SearchFilesOutput]):
    """Searches text files: lines with the phrase; where there is none, lines with every word."""

    name = "search_files"
    description = "Search the text of the user's files for words or a phrase; returns the matching lines."
    tainted = True
    keywords = ("search", "find", "files", "grep", "contains", "mention", "look", "where", "documents", "notes")
    Input = SearchFilesInput
    Output = SearchFilesOutput

    def __init__(self, roots: FileRoots) -> None:
        super().__init__()
        self._roots = roots

    async def run(self, args: SearchFilesInput, context: ToolContext) -> SearchFilesOutput:
        """Search for the phrase, else for all its words."""

        def work() -> SearchFilesOutput:
            phrase = [args.query.casefold()]
            words = args.query.casefold().split()
            found = self._matches(args, phrase)
            if not found.matches and len(words) > 1:
                found = self._matches(args, words)
            return found

        return await _in_thread(work)

    def text(self, output: SearchFilesOutput) -> str:
        """As grep prints it."""
        if not output.matches:
            return f"No file contains {output.query!r}."
        lines = [f"{match.path}:{match.line}: {match.text}" for match in output.matches]
        return "\n".join([*lines, "[more matches; narrow the search]"] if output.truncated else lines)

    def sources(self, output: SearchFilesOutput) -> tuple[Source, ...]:
        """Each file once, with its lines."""
        quotes: dict[str, list[str]] = {}
        for match in output.matches:
            quotes.setdefault(match.path, []).append(match.text)
        return tuple(Source(id=n, name=path, quotes=tuple(q[:10])) for n, (path, q) in enumerate(quotes.items(), 1))

    def _matches(self, args: SearchFilesInput, needles: list[str]) -> SearchFilesOutput:
        found: list[Match] = []
        for number, (place, _) in enumerate(self._roots.walk(args.path, args.pattern)):
            if number >= MAX_WALKED:
                return SearchFilesOutput(query=args.query, matches=found, truncated=True)
            for line_number, line in _lines(place):
                folded = line.casefold()
                if all(needle in folded for needle in needles):
                    found.append(Match(path=place.shown, line=line_number, text=line.strip()[:LINE_CHARS]))
                    if len(found) >= args.limit:
                        return SearchFilesOutput(query=args.query, matches=found, truncated=True)
        return SearchFilesOutput(query=args.query, matches=found, truncated=False)


def _lines(place: Place) -> Iterator[tuple[int, str]]:
    """A file's lines with their numbers; none for what cannot be read as text."""
    try:
        text = decode_text(_read_bytes(_open(place), place.shown), place.shown)
    except (ToolError, OSError):
        return
    yield from enumerate(text.splitlines(), start=1)
