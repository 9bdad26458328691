"""Lists the files of a folder without following links."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.ingest.parsers.sniff import detect_kind
from gateway.features.documents.engine.search.models import FileType

_PICTURES_AS_TEXT = frozenset({".svg"})
"""Extensions whose files are text that nobody reads as text."""
_HEAD_BYTES = 8_192
IGNORED = (".*", "node_modules", "__pycache__", "*.tmp", "~$*", "Thumbs.db")
"""Hidden files, caches and temporary files. `.stepgateignore` in the folder adds patterns."""
IGNORE_FILE = ".stepgateignore"
_IGNORE_BYTES = 64_000
_KINDS = {
    stat.S_IFLNK: "a symbolic link, which is not followed",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A regular file; `file_type` is None if no parser reads it. `name` is for display."""

    path: Path
    name: str
    file_type: FileType | None

    @property
    def source(self) -> str:
        """The id that identifies this file among all sources."""
        return make_path_source(self.path)


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """A folder or entry that could not be read, and the system's error."""

    path: Path
    name: str
    error: OSError


@dataclass(frozen=True, slots=True)
class NonFileEntry:
    """An entry that is not a regular file, and what it is."""

    path: Path
    name: str
    description: str


def list_files(root: Path, *, recursive: bool = True) -> Iterator[LocalFile | UnreadableEntry | NonFileEntry]:
    """Yields the files of a folder in name order, or the one file; only the folder itself without `recursive`.

    Does not follow symbolic links, and does not open sockets, pipes or devices. Raises `OSError` if the path does not
    exist or cannot be opened.
    """
    top = root.resolve(strict=True)
    if top.is_file():
        yield LocalFile(top, make_printable_name(top.name), _detect_file_type(top))
        return
    os.scandir(top).close()
    ignored = (*IGNORED, *_read_ignore_file(top))
    waiting = [top]
    while waiting:
        path = waiting.pop()
        name = make_printable_name(path.relative_to(top).as_posix())
        try:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield LocalFile(path, name, _detect_file_type(path))
            elif stat.S_ISDIR(mode) and (recursive or path == top):
                waiting += _list_folder(top, path, ignored)
            elif not stat.S_ISDIR(mode):
                yield NonFileEntry(path, name, _KINDS.get(stat.S_IFMT(mode), "no file"))
        except FileNotFoundError:
            continue  # removed while we were looking
        except OSError as error:
            yield UnreadableEntry(path, name, error)


def _detect_file_type(path: Path) -> FileType | None:
    """A file's type by its extension, or by its first bytes: a message in parts, or text such as source code."""
    suffix = path.suffix.lower()
    if suffix in TYPES or suffix in _PICTURES_AS_TEXT:
        return TYPES.get(suffix)
    try:
        # Opened without blocking and without following a link that may have replaced the file since it was listed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None  # it is reported when it is read
    kind = detect_kind(head) if head.strip() else None
    return "eml" if kind == "eml" else "txt" if kind in ("text", "html") else None


def make_printable_name(name: str) -> str:
    """A file name as valid text: bytes that are not UTF-8 become `\\xff`."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name


def make_path_source(path: Path) -> str:
    """The source id of an absolute path.

    A path that is not valid text gets a second leading slash, which no other path has; otherwise it could be confused
    with a file that is really called `\\xff`.
    """
    text = path.as_posix()
    printable_name = make_printable_name(text)
    return printable_name if printable_name == text else f"/{printable_name}"


def _list_folder(root: Path, folder: Path, ignored: Sequence[str]) -> list[Path]:
    """The entries of a folder that no rule ignores, last name first."""
    with os.scandir(folder) as entries:
        names = sorted((entry.name for entry in entries), reverse=True)
    beneath = folder.relative_to(root)
    return [
        folder / name
        for name in names
        if not any(fnmatch(name, rule) or fnmatch((beneath / name).as_posix(), rule) for rule in ignored)
    ]


def _read_ignore_file(root: Path) -> list[str]:
    path = root / IGNORE_FILE
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return []  # a pipe would be waited for, a link may lead anywhere
        with path.open("rb") as file:
            lines = file.read(_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#")]
