"""`FileRoots`: access to files below the configured folders, and to nothing else.

Paths come from models and users. Each component is opened from its parent's descriptor without following links, so
that no name, link or race leads out of a root. Errors never contain the path of a root.
"""

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath

from agent.core.errors import ToolDeniedError, ToolInputError
from agent.core.safe_files import open_beneath
from agent.tools import TypedTool
from agent.tools.tool import In, Out

MAX_FILE_BYTES = 10_000_000
MAX_WALKED_ENTRIES = 20_000
"""Entries that a listing or search visits before it stops and says so."""
MAX_SIMILAR = 3
"""Similar names in the error for a missing file."""
_SIMILAR = 0.6
"""The lowest likeness of a similar name, from 0 to 1."""
_RELATIVE = "give a path relative to a readable folder"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ADVICE = "documents such as PDF or Word can be read once they are in a collection, sheets by query_table"


@dataclass(frozen=True, slots=True)
class FilePath:
    """A path inside a root: the root and the parts below it."""

    root: Path
    parts: tuple[str, ...]

    @property
    def display_path(self) -> str:
        """The path relative to its root, as people write it."""
        return "/".join(self.parts) or "."


class WalkLimit:
    """Ends a walk after `MAX_WALKED_ENTRIES`, whether they fit its pattern or not."""

    def __init__(self) -> None:
        self._left = MAX_WALKED_ENTRIES
        self.is_reached = False
        """Whether there were more entries."""

    def count_entry(self) -> bool:
        """Counts an entry. Returns False for one too many."""
        self._left -= 1
        self.is_reached = self._left < 0
        return not self.is_reached


class FileRoots:
    """The readable folders. A relative path is looked for in each, in order."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders as they are now, without links."""
        return tuple(root.resolve() for root in self._roots)

    def list_candidates(self, path: str) -> list[FilePath]:
        """Finds where `path` may be. Raises `ToolDeniedError` if it can be in no root."""
        if "\x00" in path or len(path) > 4000:
            raise ToolDeniedError("the path is invalid")
        given = PurePosixPath(path.strip() or ".")
        if ".." in given.parts:
            raise ToolDeniedError(f"{path!r} is refused: '..' is not followed; {_RELATIVE}")
        if not given.is_absolute():
            return _leave_out_hidden([FilePath(root, given.parts) for root in self.roots], path)
        candidates = [
            FilePath(root, given.relative_to(root).parts) for root in self.roots if given.is_relative_to(root)
        ]
        if not candidates:
            raise ToolDeniedError(f"{path!r} is outside the readable folders; {_RELATIVE}")
        return _leave_out_hidden(candidates, path)

    def open(self, path: str) -> tuple[FilePath, int]:
        """The first existing file or folder of this path and an open descriptor.

        Raises `ToolInputError` with similar names if there is none, and `ToolDeniedError`."""
        for place in self.list_candidates(path):
            try:
                return place, open_beneath(place.root, place.parts)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ToolDeniedError(f"{path!r} is refused: {_explain_error(error)}") from error
        similar = ", ".join(self._find_similar(path))
        hint = f"did you mean {similar}?" if similar else "list_files shows the files"
        raise ToolInputError(f"there is no file {path!r}; {hint}")

    def walk(
        self, path: str, pattern: str, *, recursive: bool = True, limit: WalkLimit | None = None
    ) -> Iterator[tuple[FilePath, os.stat_result]]:
        """Yields the regular files below `path` whose relative path or name matches `pattern`, in order.

        Ends early if `limit`, or one of its own, is reached.
        """
        pattern, limit = _complete_pattern(pattern), limit or WalkLimit()
        for place in self.list_candidates(path):
            try:
                descriptor = open_beneath(place.root, place.parts)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ToolDeniedError(f"{path!r} is refused: {_explain_error(error)}") from error
            info = os.fstat(descriptor)
            if stat.S_ISDIR(info.st_mode):
                yield from _walk(descriptor, place, pattern, limit, recursive=recursive)
                continue
            os.close(descriptor)
            if stat.S_ISREG(info.st_mode):
                yield place, info

    def _find_similar(self, path: str) -> list[str]:
        """The paths of files with a similar name, the most similar first."""
        wanted = PurePosixPath(path.strip().casefold())
        ranked: list[tuple[float, str]] = []
        for place, _ in self.walk("", "*"):
            name = PurePosixPath(place.display_path.casefold())
            likeness = SequenceMatcher(None, wanted.stem, name.stem).ratio()
            if wanted.stem and (wanted.stem in name.stem or name.stem in wanted.stem):
                likeness = max(likeness, _SIMILAR)
            if likeness >= _SIMILAR:
                ranked.append((-likeness, place.display_path))
        return [display_path for _, display_path in sorted(ranked)[:MAX_SIMILAR]]


class FileTool(TypedTool[In, Out]):
    """The base of the tools that read files below the roots."""

    def __init__(self, roots: FileRoots) -> None:
        super().__init__()
        self._roots = roots


def _leave_out_hidden(candidates: list[FilePath], path: str) -> list[FilePath]:
    """The candidates that pass through no name with a dot before it, such as `.env`. Lists do not show them either."""
    visible = [one for one in candidates if not any(part.startswith(".") for part in one.parts)]
    if candidates and not visible:
        raise ToolDeniedError(f"{path!r} is refused: hidden files (with a dot before the name) often hold keys")
    return visible


def _walk(
    descriptor: int, place: FilePath, pattern: str, limit: WalkLimit, *, recursive: bool
) -> Iterator[tuple[FilePath, os.stat_result]]:
    try:
        entries = sorted(os.listdir(descriptor))
        for name in entries:
            if not limit.count_entry():
                return
            if name.startswith("."):
                continue
            here = FilePath(place.root, (*place.parts, name))
            try:
                info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode) and recursive:
                    yield from _walk(
                        os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=descriptor), here, pattern, limit, recursive=True
                    )
            except OSError:
                continue  # gone or forbidden since it was listed
            if stat.S_ISREG(info.st_mode) and (
                fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(here.display_path, pattern)
            ):
                yield here, info
    finally:
        os.close(descriptor)


def _complete_pattern(pattern: str) -> str:
    """The pattern as it is meant: an ending alone (`.txt`) is that of any name, `**/` any folder and none. Files whose
    names begin with a dot are never listed, so that nothing is lost."""
    name = pattern.removeprefix("**/")
    return f"*{name}" if name.startswith(".") and not any(sign in name for sign in "*?[/") else name


def _explain_error(error: OSError) -> str:
    return "it is or passes through a symbolic link" if error.errno in (40, 62) else str(error.strerror)


def read_text(descriptor: int, shown: str) -> str:
    """Reads a regular file's text and closes the descriptor. `shown` names the file in errors.

    Raises `ToolInputError` for a folder, a file that is too large, and binary data."""
    return _decode_text(_read_bytes(descriptor, shown), shown)


def _read_bytes(descriptor: int, shown: str) -> bytes:
    """Reads a regular file's bytes and closes the descriptor."""
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise ToolInputError(
                f"{shown} is a folder; use list_files" if stat.S_ISDIR(info.st_mode) else f"{shown} is not a file"
            )
        if info.st_size > MAX_FILE_BYTES:
            raise ToolInputError(f"{shown} has {info.st_size:,} bytes; the limit is {MAX_FILE_BYTES:,}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def _decode_text(data: bytes, shown: str) -> str:
    """The text, in the encoding that ingestion and `query_table` read it in. Raises `ToolInputError` for binary
    data."""
    if data.startswith(b"%PDF-"):  # its first bytes may be text
        raise ToolInputError(f"{shown} is not a text file; {_ADVICE}")
    try:
        if b"\x00" not in data[:8192]:
            return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    # Imported here: most files are UTF-8, and the guess of another encoding needs much.
    from agent.text.encodings import decode, find_encoding  # noqa: PLC0415

    if find_encoding(data) is None:
        raise ToolInputError(f"{shown} is not a text file; {_ADVICE}")
    return decode(data).text
