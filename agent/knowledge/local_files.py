"""The files of a folder, beneath it and nowhere else."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from agent.knowledge.models import FileType

TYPES: dict[str, FileType] = {
    ".pdf": "pdf", ".html": "html", ".htm": "html", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx", ".csv": "csv",
    ".tsv": "csv", ".md": "md", ".markdown": "md", ".txt": "txt", ".text": "txt", ".log": "txt", ".rst": "txt",
    ".eml": "eml",
}  # fmt: skip
IGNORED = (".*", "node_modules", "__pycache__", "*.tmp", "~$*", "Thumbs.db")
"""Hidden things, caches and the traces of programs; `.stepgateignore` in the folder adds its own patterns."""
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
class Candidate:
    """A file that may be read; `file_type` is None for one of a type nobody here reads. `name` is what people see."""

    path: Path
    name: str
    file_type: FileType | None

    @property
    def source(self) -> str:
        """What tells this file from all others."""
        return source_of(self.path)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder or an entry that could not be looked into, and the system's reason."""

    path: Path
    name: str
    error: OSError


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An entry that is no file to be read, and what it is."""

    path: Path
    name: str
    what: str


def walk(root: Path, *, recursive: bool = True) -> Iterator[Candidate | Unreadable | PassedOver]:
    """The files of a folder in order of their names, or the one file; without `recursive` those of the folder itself.
    Symbolic links are not followed, and what is neither file nor folder (sockets, pipes, devices) is not opened.

    `OSError` when there is no such file or folder, or it cannot be opened."""
    top = root.resolve(strict=True)
    if top.is_file():
        yield Candidate(top, legible(top.name), TYPES.get(top.suffix.lower()))
        return
    os.scandir(top).close()
    ignored = (*IGNORED, *_own_patterns(top))
    waiting = [top]
    while waiting:
        path = waiting.pop()
        name = legible(path.relative_to(top).as_posix())
        try:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield Candidate(path, name, TYPES.get(path.suffix.lower()))
            elif stat.S_ISDIR(mode) and (recursive or path == top):
                waiting += _inside(top, path, ignored)
            elif not stat.S_ISDIR(mode):
                yield PassedOver(path, name, _KINDS.get(stat.S_IFMT(mode), "no file"))
        except FileNotFoundError:
            continue  # removed while we were looking
        except OSError as error:
            yield Unreadable(path, name, error)


def legible(name: str) -> str:
    """A file name as text: bytes that are no UTF-8 are written `\\xff`."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name


def source_of(path: Path) -> str:
    """An absolute path as a document's source. One that is no text gets a second slash in front, which no other path
    has: else it could be taken for a file that is really called `\\xff`."""
    text = path.as_posix()
    shown = legible(text)
    return shown if shown == text else f"/{shown}"


def _inside(root: Path, folder: Path, ignored: Sequence[str]) -> list[Path]:
    """What a folder holds and no rule leaves out, the last name first."""
    with os.scandir(folder) as entries:
        names = sorted((entry.name for entry in entries), reverse=True)
    beneath = folder.relative_to(root)
    return [
        folder / name
        for name in names
        if not any(fnmatch(name, rule) or fnmatch((beneath / name).as_posix(), rule) for rule in ignored)
    ]


def _own_patterns(root: Path) -> list[str]:
    path = root / IGNORE_FILE
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return []  # a pipe would be waited for, a link may lead anywhere
        with path.open("rb") as file:
            lines = file.read(_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#")]
