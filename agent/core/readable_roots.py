"""`ReadableRoots`: the folders that may be read. The operator can add some while the gateway runs."""

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, overload

from agent.core.atomic_write import write_atomically
from agent.core.errors import ConfigError

MAX_ADDED: Final = 50
"""Most folders that are added."""


class AddedRoots:
    """The folders that the operator added, in a JSON file of the data folder. Every process reads the same file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, ...] | None = None
        self._known: tuple[Path, ...] = ()

    def read(self) -> tuple[Path, ...]:
        """The folders in their order. Raises `ConfigError` if the file cannot be used."""
        try:
            status = self.path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if stamp != self._stamp:
                self._known, self._stamp = _parse(self.path.read_text("utf-8")), stamp
        except FileNotFoundError:
            self._known, self._stamp = (), None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.path} cannot be used: {error}. Repair it or delete it") from error
        return self._known

    def write(self, roots: Sequence[Path]) -> None:
        """Replaces the file at once. Raises `ConfigError` if it cannot be written."""
        if len(roots) > MAX_ADDED:
            raise ConfigError(f"at most {MAX_ADDED} folders are added; remove one first")
        try:
            write_atomically(self.path, json.dumps({"roots": [str(root) for root in roots]}, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from error


class ReadableRoots(Sequence[Path]):
    """The configured folders, then the added ones as they are now. If the file of the added ones cannot be used, none
    of them may be read. One that was replaced by a link since it was added may not be read either.
    """

    def __init__(self, configured: tuple[Path, ...], added: AddedRoots | None = None) -> None:
        self._configured = configured
        self._added = added

    def _list(self) -> tuple[Path, ...]:
        if self._added is None:
            return self._configured
        with contextlib.suppress(ConfigError):
            added = (root for root in self._added.read() if os.path.realpath(root) == str(root))
            return tuple(dict.fromkeys((*self._configured, *added)))
        return self._configured

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Path, ...]: ...
    def __getitem__(self, index: int | slice) -> Path | tuple[Path, ...]:
        return self._list()[index]

    def __len__(self) -> int:
        return len(self._list())


def _parse(text: str) -> tuple[Path, ...]:
    roots = json.loads(text).get("roots") if text.lstrip().startswith("{") else None
    if not isinstance(roots, list) or not all(isinstance(one, str) and one.startswith("/") for one in roots):
        raise ValueError('it must hold {"roots": [...]} with absolute paths')
    return tuple(Path(one) for one in roots[:MAX_ADDED])
