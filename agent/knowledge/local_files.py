"""The local connector: the files of a folder, beneath it and nowhere else."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from agent.core.errors import BadRequestError
from agent.knowledge.models import FileType

TYPES: dict[str, FileType] = {
    ".pdf": "pdf", ".html": "html", ".htm": "html", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx", ".csv": "csv",
    ".tsv": "csv", ".md": "md", ".markdown": "md", ".txt": "txt", ".text": "txt", ".log": "txt", ".rst": "txt",
    ".eml": "eml",
}  # fmt: skip
IGNORED = (".*", "node_modules", "__pycache__", "*.tmp", "~$*", "Thumbs.db")
"""Hidden things, caches and the traces of programs; `.stepgateignore` in the folder adds its own patterns."""
IGNORE_FILE = ".stepgateignore"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be read; `file_type` is None for one of a type nobody here reads. `name` is what people see."""

    path: Path
    name: str
    file_type: FileType | None

    @property
    def source(self) -> str:
        """What tells this file from all others."""
        return self.path.as_posix()


def candidates(root: Path) -> Iterator[Candidate]:
    """The files of a folder in order of their names, or the one file. Symbolic links are not followed.

    `BadRequestError` when there is no such folder or it cannot be opened."""
    if root.is_file():
        yield Candidate(root.resolve(), root.name, TYPES.get(root.suffix.lower()))
        return
    try:
        os.scandir(root).close()
    except OSError as error:
        raise BadRequestError(f"the folder {root} cannot be read: {error.strerror}", param="folder") from error
    yield from _below(root.resolve(), root.resolve(), (*IGNORED, *_own_patterns(root)))


def _below(root: Path, folder: Path, ignored: Sequence[str]) -> Iterator[Candidate]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        path = Path(entry.path)
        relative = path.relative_to(root).as_posix()
        if entry.is_symlink() or any(fnmatch(entry.name, rule) or fnmatch(relative, rule) for rule in ignored):
            continue
        if entry.is_dir():
            yield from _below(root, path, ignored)
        elif entry.is_file():
            yield Candidate(path, relative, TYPES.get(path.suffix.lower()))


def _own_patterns(root: Path) -> list[str]:
    try:
        lines = (root / IGNORE_FILE).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#")]
