"""`read_file`, `list_files`, `search_files`: access to text files below the configured roots, and to nothing else.

Paths come from models and users. Each component is opened from its parent's descriptor without following links, so
that no name, link or race leads out of a root. Errors never contain the path of a root.
"""

import asyncio
import codecs
import fnmatch
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError
from agent.core.models import Source
from agent.text.terms import extract_terms, fold, map_query_terms
from agent.tools import ToolContext, TypedTool

MAX_FILE_BYTES = 10_000_000
MAX_WALKED_ENTRIES = 20_000
"""Entries that a listing or search visits before it stops and says so."""
MAX_LINE_CHARS = 400
MAX_COLLECTED = 20
"""Matches that a search collects before it stops, as a multiple of its limit."""
MAX_SIMILAR = 3
"""Similar names in the error for a missing file."""
_SIMILAR = 0.6
"""The lowest likeness of a similar name, from 0 to 1."""
_PREFIX_CHARS = 3
"""Characters that a word and its stem have in common."""
_RELATIVE = "give a path relative to a readable folder"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FilePath:
    """A path inside a root: the root and the parts below it."""

    root: Path
    parts: tuple[str, ...]

    @property
    def display_path(self) -> str:
        """The path relative to its root, as people write it."""
        return "/".join(self.parts) or "."


class FileRoots:
    """The readable folders. A relative path is looked for in each, in order."""

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def candidates(self, path: str) -> list[FilePath]:
        """Returns where `path` may be. Raises `ToolDeniedError` if it can be in no root."""
        if "\x00" in path or len(path) > 4000:
            raise ToolDeniedError("the path is invalid")
        given = PurePosixPath(path.strip() or ".")
        if ".." in given.parts:
            raise ToolDeniedError(f"{path!r} is refused: '..' is not followed; {_RELATIVE}")
        if not given.is_absolute():
            return [FilePath(root, given.parts) for root in self.roots]
        found = [FilePath(root, given.relative_to(root).parts) for root in self.roots if given.is_relative_to(root)]
        if not found:
            raise ToolDeniedError(f"{path!r} is outside the readable folders; {_RELATIVE}")
        return found

    def open(self, path: str) -> tuple[FilePath, int]:
        """Returns the first existing file or folder of this path and an open descriptor.

        Raises `ToolInputError` with similar names if there is none, and `ToolDeniedError`."""
        for place in self.candidates(path):
            try:
                return place, _open_path(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ToolDeniedError(f"{path!r} is refused: {_explain_error(error)}") from error
        similar = ", ".join(self._find_similar(path))
        hint = f"did you mean {similar}?" if similar else "list_files shows the files"
        raise ToolInputError(f"there is no file {path!r}; {hint}")

    def walk(self, path: str, pattern: str, *, recursive: bool = True) -> Iterator[tuple[FilePath, os.stat_result]]:
        """Yields the regular files below `path` whose relative path or name matches `pattern`, in order."""
        for place in self.candidates(path):
            try:
                descriptor = _open_path(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ToolDeniedError(f"{path!r} is refused: {_explain_error(error)}") from error
            info = os.fstat(descriptor)
            if stat.S_ISDIR(info.st_mode):
                yield from _walk(descriptor, place, pattern, recursive=recursive)
                continue
            os.close(descriptor)
            if stat.S_ISREG(info.st_mode):
                yield place, info

    def _find_similar(self, path: str) -> list[str]:
        """Returns the paths of files with a similar name, the most similar first."""
        wanted = PurePosixPath(path.strip().casefold())
        ranked: list[tuple[float, str]] = []
        for place, _ in islice(self.walk("", "*"), MAX_WALKED_ENTRIES):
            name = PurePosixPath(place.display_path.casefold())
            likeness = SequenceMatcher(None, wanted.stem, name.stem).ratio()
            if wanted.stem and (wanted.stem in name.stem or name.stem in wanted.stem):
                likeness = max(likeness, _SIMILAR)
            if likeness >= _SIMILAR:
                ranked.append((-likeness, place.display_path))
        return [shown for _, shown in sorted(ranked)[:MAX_SIMILAR]]


def _open_path(place: FilePath) -> int:
    """Opens each component from its parent's descriptor, and none through a link."""
    # The operator chose the root, so it may be a link.
    current = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in place.parts:
        try:
            below = os.open(part, _FLAGS, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def _walk(
    descriptor: int, place: FilePath, pattern: str, *, recursive: bool
) -> Iterator[tuple[FilePath, os.stat_result]]:
    try:
        entries = sorted(os.listdir(descriptor))
        for name in entries:
            if name.startswith("."):
                continue
            here = FilePath(place.root, (*place.parts, name))
            try:
                info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode) and recursive:
                    yield from _walk(
                        os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=descriptor), here, pattern, recursive=True
                    )
            except OSError:
                continue  # gone or forbidden since it was listed
            if stat.S_ISREG(info.st_mode) and (
                fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(here.display_path, pattern)
            ):
                yield here, info
    finally:
        os.close(descriptor)


def _explain_error(error: OSError) -> str:
    return "it is or passes through a symbolic link" if error.errno in (40, 62) else str(error.strerror)


def _read_bytes(descriptor: int, shown: str) -> bytes:
    """Returns a regular file's bytes and closes the descriptor."""
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
    """Returns text: by byte order mark, as UTF-8, else Latin-1. Raises `ToolInputError` for binary data."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, errors="replace")
    if b"\x00" in data[:8192]:
        raise ToolInputError(f"{shown} is no text file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


async def _run_in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise ToolError(f"the file cannot be read: {error.strerror}") from error


class ReadFileInput(BaseModel):
    """Arguments of `read_file`."""

    path: str = Field(min_length=1, description="path of a text file, relative to a readable folder")
    start_line: int = Field(default=1, ge=1, description="first line to read")
    max_lines: int = Field(default=400, ge=1, le=5000, description="how many lines to read")
    line_numbers: bool = Field(default=False, description="true: number the lines; needed to cite lines")


class ReadFileOutput(BaseModel):
    """The lines. `text` is the file's own text, without line numbers."""

    path: str
    text: str
    start_line: int
    total_lines: int
    truncated: bool
    line_numbers: bool = Field(default=False, description="whether the text result numbers the lines")


class ReadFileTool(TypedTool[ReadFileInput, ReadFileOutput]):
    """Reads a text file."""

    name = "read_file"
    description = (
        "Read a text file from the user's folders, completely or by lines; with line numbers if lines are cited."
    )
    tainted = True
    keywords = ("file", "document", "read", "open", "notes", "txt", "md", "csv", "local", "folder")
    Input = ReadFileInput
    Output = ReadFileOutput

    def __init__(self, roots: FileRoots) -> None:
        super().__init__()
        self._roots = roots

    async def run(self, args: ReadFileInput, context: ToolContext) -> ReadFileOutput:
        """Opens the file below a root, decodes it, and selects the lines."""

        def work() -> ReadFileOutput:
            place, descriptor = self._roots.open(args.path)
            lines = decode_text(_read_bytes(descriptor, place.display_path), place.display_path).splitlines()
            end = args.start_line - 1 + args.max_lines
            return ReadFileOutput(
                path=place.display_path,
                text="\n".join(lines[args.start_line - 1 : end]),
                start_line=args.start_line,
                total_lines=len(lines),
                truncated=end < len(lines),
                line_numbers=args.line_numbers,
            )

        return await _run_in_thread(work)

    def format_text(self, output: ReadFileOutput) -> str:
        """Returns the text, with line numbers if they were requested, and where to continue."""
        lines = output.text.split("\n") if output.text else []
        text = output.text
        if output.line_numbers:
            text = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, output.start_line))
        if not output.truncated:
            return text
        return f"{text}\n[{output.total_lines} lines; continue with start_line={output.start_line + len(lines)}]"

    def list_sources(self, output: ReadFileOutput) -> tuple[Source, ...]:
        """Returns the file as the source."""
        return (Source(id=1, name=output.path, quotes=(output.text[:300],)),)


class ListFilesInput(BaseModel):
    """Arguments of `list_files`."""

    path: str = Field(default="", description="folder, relative to a readable folder; empty for everything")
    pattern: str = Field(default="*", description="file name pattern, e.g. *.md", max_length=200)
    recursive: bool = Field(default=True, description="also folders below")
    limit: int = Field(default=200, ge=1, le=2000, description="most files returned")


class FileEntry(BaseModel):
    """A file."""

    path: str
    bytes: int


class ListFilesOutput(BaseModel):
    """The files."""

    files: list[FileEntry]
    truncated: bool
    hint: str = Field(default="", description="where files come from, if there are none")


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
        """Walks the folders below the roots."""

        def work() -> ListFilesOutput:
            files: list[FileEntry] = []
            for number, (place, info) in enumerate(self._roots.walk(args.path, args.pattern, recursive=args.recursive)):
                if len(files) >= args.limit or number >= MAX_WALKED_ENTRIES:
                    return ListFilesOutput(files=files, truncated=True)
                files.append(FileEntry(path=place.display_path, bytes=info.st_size))
            return ListFilesOutput(files=files, truncated=False, hint="" if files else self._explain_none(args))

        return await _run_in_thread(work)

    def format_text(self, output: ListFilesOutput) -> str:
        """Returns one line for each file."""
        if not output.files:
            return f"No files. {output.hint}".strip()
        lines = [f"{entry.path} ({entry.bytes:,} bytes)" for entry in output.files]
        return "\n".join([*lines, "[more files; narrow the pattern]"] if output.truncated else lines)

    def _explain_none(self, args: ListFilesInput) -> str:
        if args.path or args.pattern != "*":
            return "Nothing fits this folder and pattern; leave them out to see every file."
        folders = ", ".join(map(str, self._roots.roots))
        return f"Put some into {folders}, or set AGENT_FILE_ROOTS to folders of yours."


class SearchFilesInput(BaseModel):
    """Arguments of `search_files`."""

    query: str = Field(min_length=1, max_length=200, description="words or a phrase; case and word forms do not matter")
    path: str = Field(default="", description="folder or file to search; empty for everything")
    pattern: str = Field(default="*", description="file name pattern, e.g. *.md", max_length=200)
    limit: int = Field(default=50, ge=1, le=500, description="most matches returned")


class Match(BaseModel):
    """A matching line."""

    path: str
    line: int
    text: str


class SearchFilesOutput(BaseModel):
    """The matching lines: those with the exact phrase first."""

    query: str
    matches: list[Match]
    truncated: bool


class SearchFilesTool(TypedTool[SearchFilesInput, SearchFilesOutput]):
    """Searches text files for lines with the phrase, then for lines with every word in any form."""

    name = "search_files"
    description = (
        "Search the text of the user's files for words or a phrase; returns the lines that contain all of them, in any "
        "form and order."
    )
    tainted = True
    keywords = ("search", "find", "files", "grep", "contains", "mention", "look", "where", "documents", "notes")
    Input = SearchFilesInput
    Output = SearchFilesOutput

    def __init__(self, roots: FileRoots) -> None:
        super().__init__()
        self._roots = roots

    async def run(self, args: SearchFilesInput, context: ToolContext) -> SearchFilesOutput:
        """Searches the files below the roots."""
        return await _run_in_thread(lambda: self._search(args))

    def format_text(self, output: SearchFilesOutput) -> str:
        """Returns the lines as `path:line: text`."""
        if not output.matches:
            return f"No file contains {output.query!r}."
        lines = [f"{match.path}:{match.line}: {match.text}" for match in output.matches]
        return "\n".join([*lines, "[more matches; narrow the search]"] if output.truncated else lines)

    def list_sources(self, output: SearchFilesOutput) -> tuple[Source, ...]:
        """Returns each file once, with its lines."""
        quotes: dict[str, list[str]] = {}
        for match in output.matches:
            quotes.setdefault(match.path, []).append(match.text)
        return tuple(Source(id=n, name=path, quotes=tuple(q[:10])) for n, (path, q) in enumerate(quotes.items(), 1))

    def _search(self, args: SearchFilesInput) -> SearchFilesOutput:
        matcher = _LineMatcher(args.query)
        phrase: list[Match] = []
        words: list[Match] = []
        is_complete = True
        for number, (place, _) in enumerate(self._roots.walk(args.path, args.pattern)):
            # A search for common words must not collect every line of every file.
            is_complete = (
                number < MAX_WALKED_ENTRIES
                and len(phrase) <= args.limit
                and len(phrase) + len(words) <= MAX_COLLECTED * args.limit
            )
            if not is_complete:
                break
            for line_number, line in _read_lines(place):
                kind = matcher.match(line)
                if kind is not None:
                    found = Match(path=place.display_path, line=line_number, text=line.strip()[:MAX_LINE_CHARS])
                    (phrase if kind == "phrase" else words).append(found)
        matches = [*phrase, *words]
        truncated = not is_complete or len(matches) > args.limit
        return SearchFilesOutput(query=args.query, matches=matches[: args.limit], truncated=truncated)


class _LineMatcher:
    """Compares lines with a query: as a phrase, else by all its words, each as written or by its stem."""

    def __init__(self, query: str) -> None:
        self._phrase = " ".join(query.casefold().split())
        self._terms = {term: word for term, word in map_query_terms(query).items() if word}

    def match(self, line: str) -> Literal["phrase", "words"] | None:
        """Returns how the line matches; None if it does not."""
        if self._phrase in " ".join(line.casefold().split()):
            return "phrase"
        if not self._terms:
            return None
        folded = fold(line)
        # Stemming every line is slow, so the starts of the words are compared first.
        if not all(word in folded or term[:_PREFIX_CHARS] in folded for term, word in self._terms.items()):
            return None
        stems = frozenset(extract_terms(line))
        return "words" if all(word in folded or term in stems for term, word in self._terms.items()) else None


def _read_lines(place: FilePath) -> Iterator[tuple[int, str]]:
    """Yields a file's lines with their numbers; none if it is not a readable text file."""
    try:
        text = decode_text(_read_bytes(_open_path(place), place.display_path), place.display_path)
    except (ToolError, OSError):
        return
    yield from enumerate(text.splitlines(), start=1)
