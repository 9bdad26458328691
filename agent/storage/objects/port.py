"""`ObjectStore`: the contract of stores of files by name. `tests/contract/objects_contract.py` tests every driver."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Protocol

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
MAX_NAME_CHARS = 512
"""S3 allows 1024 bytes with the prefix."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """A stored object: its name and its size in bytes."""

    name: str
    size: int


class ObjectStore(Protocol):
    """Stores files by names such as `uploads/ann/2cf24d`. Methods block: call them in a thread.

    They raise ValueError for an invalid name, `StoreError` if the store cannot be used, and `StoreFullError` if it is
    full. An object is there as a whole or not at all.
    """

    @property
    def location(self) -> str:
        """Where the objects are, for people and to compare stores: `s3://bucket/prefix` or a folder. No secrets."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether every machine that has this location sees the same objects."""
        ...

    def put(self, name: str, path: Path) -> None:
        """Stores the bytes of a file, in pieces; replaces an object of this name."""
        ...

    def open(self, name: str) -> BufferedReader:
        """Opens an object for reading; it can be sought. The caller closes it. Raises `NotFoundError`."""
        ...

    def fetch(self, name: str, path: Path) -> None:
        """Writes an object to a file, in pieces. Raises `NotFoundError`, and leaves no file then."""
        ...

    def delete(self, name: str) -> None:
        """Deletes an object; deleting a missing one succeeds."""
        ...

    def delete_all(self, prefix: str) -> None:
        """Deletes the objects whose names begin with the parts of `prefix`."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yields the objects whose names begin with the parts of `prefix`, in order of their names."""
        ...

    def check(self, *, writes: bool = False) -> str:
        """Looks into the store, or with `writes` writes and deletes an object; returns the location. Raises
        `StoreError`.
        """
        ...


def validate_object_name(name: str) -> str:
    """The name. Raises ValueError unless it is made of plain parts joined by slashes."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise ValueError(f"{name[:200]!r} is not the name of an object")
    return name
