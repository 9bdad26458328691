"""`list_folders`: the folders below the file roots, one level at a time, for a person who picks one."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.errors import ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput

MAX_FOLDERS: Final = 500
"""Most folders of one list."""
MAX_ENTRIES: Final = 20_000
"""Most entries of a folder that are looked at."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with its absolute path."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class FolderList:
    """The folders in `path`; the roots themselves where it is None. `parent` is None at a root.

    `files` counts the files in the folder itself. Hidden entries and links are left out, because links may lead out of
    the roots. `is_cut` says that there is more than is listed.
    """

    path: str | None
    parent: str | None
    folders: tuple[Folder, ...]
    files: int = 0
    is_cut: bool = False


def list_folders(path: str | None, roots: Sequence[Path]) -> FolderList:
    """Lists the folders in a folder, by name. Blocks while it reads the disk.

    Raises `ConnectorAuthError` for a path outside the roots, `ConnectorNotFoundError` if it is not a folder that can be
    read.
    """
    bases = [base for root in roots if (base := root.resolve()).is_dir()]
    if path is None:
        return FolderList(None, None, tuple(Folder(base.name or str(base), str(base)) for base in dict.fromkeys(bases)))
    request = ConnectorInput(source_type="local", source_identifier=path)
    folder = Path(resolve_allowed(request, roots).source_identifier)
    names, files, is_cut = _scan(folder)
    listed_names = sorted(names, key=str.casefold)[:MAX_FOLDERS]
    return FolderList(
        str(folder),
        None if folder in bases else str(folder.parent),
        tuple(Folder(name, str(folder / name)) for name in listed_names),
        files,
        is_cut or len(names) > MAX_FOLDERS,
    )


def _scan(folder: Path) -> tuple[list[str], int, bool]:
    """Reads the names of the folders, the number of files, and whether there is more."""
    names: list[str] = []
    files = 0
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number == MAX_ENTRIES:
                    return names, files, True
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                else:
                    files += entry.is_file(follow_symlinks=False)
    except OSError as error:
        raise ConnectorNotFoundError(f"the folder {str(folder)!r} cannot be read: {error.strerror}") from error
    return names, files, False
