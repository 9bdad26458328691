"""The location of a job's files, so that a process takes part only where it sees the same ones.

A place is the location of a shared store of objects, or a folder with the numbers of its inode and of its file system:
a folder of a shared file system has the same ones on every machine that mounts it. Under the same path, the empty
folder of a machine that does not mount it, or a volume of another machine, has others.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from agent.storage.objects import ObjectStore


def describe_folder(path: Path) -> str:
    """The place of a folder, or of the folder that holds a file. Raises `OSError` if there is none."""
    folder = path.resolve(strict=True)
    folder = folder if folder.is_dir() else folder.parent
    return f"{folder}#{folder.stat().st_ino}@{os.statvfs(folder).f_fsid:x}"


def describe_objects(objects: ObjectStore) -> str:
    """The place of a store of objects. Raises `OSError` if its folder does not exist."""
    return objects.location if "://" in objects.location else describe_folder(Path(objects.location))


def is_visible(place: str, objects: ObjectStore, roots: Sequence[Path]) -> bool:
    """Whether this process sees a place: its own store of objects, or a folder below one of the roots."""
    if "://" in place:
        return place == objects.location
    folder = Path(place.rpartition("#")[0])
    try:
        if describe_folder(folder) != place:
            return False
    except OSError:
        return False
    return _is_below(folder, [Path(objects.location), *roots])


def _is_below(folder: Path, roots: Sequence[Path]) -> bool:
    return any(folder.is_relative_to(root.resolve()) for root in roots)
