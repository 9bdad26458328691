"""Opening files below a folder, so that no link and no race leads out of it."""

import os
from collections.abc import Sequence
from pathlib import Path


def open_beneath(root: Path, parts: Sequence[str]) -> int:
    """An open descriptor of a file or folder below `root`: each component is opened from its parent's
    descriptor, and none through a link. Raises `OSError`.
    """
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the root may be a link
    for part in parts:
        try:
            below = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current
