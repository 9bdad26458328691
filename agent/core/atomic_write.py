"""`write_atomically`: replaces a whole file, as the lists and credentials of the data folder are stored."""

import contextlib
import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: str | bytes, *, mode: int | None = None) -> None:
    """Replaces a file at once: neither a reader nor a crash ever sees half of it. Blocks; folders that are missing are
    made.

    The file gets `mode`; without one it keeps its permissions, and a new one is readable by its owner only. A link
    stays a link. Raises `OSError`; the file is then as it was.
    """
    path = path.resolve()  # a link into a folder of dotfiles, or to a mounted file
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode if mode is not None else _read_mode(path))
        draft.replace(path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _read_mode(path: Path) -> int:
    """The permissions of a file; those of a new one if it is not there."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return 0o600
