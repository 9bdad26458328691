"""`Uploads`: files that came over the wire, kept by their checksum, so that what was cited can be opened later.

Nothing of a sender's words becomes part of a path: the folder is named by the owner's hash where the owner's name could
mean something to a file system, the file by the SHA-256 of its bytes.
"""

import asyncio
import errno
import hashlib
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from agent.core.errors import StoreError, StoreFullError, TooLargeError
from agent.knowledge.documents import Document
from agent.knowledge.errors import ParserError, ParserUnsupportedError
from agent.knowledge.local_files import TYPES
from agent.knowledge.models import FileType
from agent.knowledge.parsers.draft import LOST
from agent.knowledge.parsers.sniff import found
from agent.knowledge.pipeline import FILE_TYPES
from agent.knowledge.shelf import Shelf
from agent.knowledge.workshop import Made, Workshop

SOURCE = "upload:"
"""How the `source` of an uploaded document begins; its checksum follows."""
NAME_CHARS = 200
_OWNER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 1024 * 1024
_HEAD = 8192
_ZIPPED: tuple[FileType, ...] = ("docx", "pptx", "xlsx")
_TEXTS: tuple[FileType, ...] = ("html", "csv", "md", "txt", "eml")


@dataclass(frozen=True, slots=True)
class Stored:
    """An uploaded file as it lies there."""

    path: Path
    checksum: str
    size: int

    @property
    def source(self) -> str:
        """What tells the document from all others: its bytes."""
        return f"{SOURCE}{self.checksum}"


@dataclass(frozen=True, slots=True)
class Added:
    """An uploaded document. `is_new` is False when the collection had these bytes already; `note` says why it has no
    vectors, if an embedder failed."""

    document: Document
    is_new: bool
    note: str = ""


class Uploads:
    """The uploaded files below a folder. Its methods block: call them in a thread."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def take(self, owner: str, data: BinaryIO) -> Stored:
        """Keep the bytes; the same ones twice are one file. Raises `TooLargeError`, `StoreFullError`, `StoreError`."""
        folder = self._folder / _folder_of(owner)
        part = folder / f".part-{secrets.token_hex(8)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                checksum, size = self._copy(data, part)
                path = folder / checksum
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFullError("the disk of the data folder is full; free space and send it again") from error
            raise StoreError(f"the upload cannot be kept in {folder}: {error.strerror}") from error
        return Stored(path, checksum, size)

    def path(self, owner: str, checksum: str) -> Path:
        """Where these bytes lie, if they do. ValueError for what is no checksum."""
        if not _SHA256.fullmatch(checksum):
            raise ValueError(f"{checksum!r} is no SHA-256")
        return self._folder / _folder_of(owner) / checksum

    def remove(self, owner: str, checksum: str) -> None:
        """Forget these bytes; removing what is not there is done already."""
        self.path(owner, checksum).unlink(missing_ok=True)

    def forget(self, owner: str) -> None:
        """Remove everything an owner has uploaded."""
        shutil.rmtree(self._folder / _folder_of(owner), ignore_errors=True)

    def _copy(self, data: BinaryIO, part: Path) -> tuple[str, int]:
        digest, size = hashlib.sha256(), 0
        with part.open("xb") as file:
            while piece := data.read(_PIECE):
                size += len(piece)
                if size > self._max_bytes:
                    raise TooLargeError(f"the file is larger than {self._max_bytes:,} bytes (AGENT_MAX_UPLOAD_BYTES)")
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest(), size


def shown_name(sent: str | None) -> str:
    """The name that a sender gave a file, fit to be shown: its last part, without control characters."""
    last = PureWindowsPath(PurePosixPath(sent or "").name).name
    shown = "".join(letter for letter in last if letter.isprintable()).strip()[:NAME_CHARS]
    return shown if shown.strip(".") else "upload"


def likely_type(path: Path, name: str) -> FileType:
    """What a file is by its first bytes, and by its name where the bytes leave a choice. A parser looks closer, and
    says what it is instead (`details["found"]`)."""
    with path.open("rb") as file:
        looks_like = found(file.read(_HEAD))
    named = TYPES.get(PurePosixPath(name).suffix.lower())
    if looks_like == "pdf":
        return "pdf"
    if looks_like in _ZIPPED or looks_like in ("a zip archive", "an old or encrypted Office document"):
        return named if named in _ZIPPED else "docx"
    if looks_like == "html":
        return named if named in _TEXTS and named != "txt" else "html"
    return named or "txt"


def _folder_of(owner: str) -> str:
    if _OWNER.fullmatch(owner):
        return owner
    return f"owner-{hashlib.blake2b(owner.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"


async def read_upload(
    shelf: Shelf, workshop: Workshop, stored: Stored, sent_name: str | None, known: Document | None, *, at: float
) -> Added:
    """Read an uploaded file into the collection that the shelf writes into. Raises the narrowest `ParserError`."""
    name = shown_name(sent_name)
    if known is not None and workshop.is_current(known, embedder=shelf.makes_vectors):
        return Added(known, is_new=False)
    try:
        file_type, made = await _read(workshop, stored, name)
    except ParserError as error:
        error.message = error.message.replace(stored.checksum, name)  # the sender knows the file by its name
        raise
    document = made.document(
        collection=shelf.hold.collection,
        source=stored.source,
        name=name,
        file_type=file_type,
        source_type="local",
        size=stored.size,
        url=None,
        at=at,
    )
    way = workshop.route(file_type)
    placed = await shelf.place(document, made.chunks, known, vectors=way is not None and way.wants_vectors)
    return Added(placed, is_new=True, note=shelf.no_vectors)


async def _read(workshop: Workshop, stored: Stored, name: str) -> tuple[FileType, Made]:
    """What the file is, and what is in it: as the type it looks like, else as the one that a parser says it is."""
    likely = await asyncio.to_thread(likely_type, stored.path, name)
    is_named = PurePosixPath(name).suffix.lower() in TYPES
    try:
        made = await workshop.read(str(stored.path), likely)
        if likely == "txt" and not is_named and made.parsed.metadata.get(LOST):
            # Nothing says that it is text but that it could be read as one, and it cannot.
            raise ParserUnsupportedError(
                f"{stored.checksum} looks like no type that is read; if it is text, send it as UTF-8, or with a name "
                "that ends in .txt",
                expected="txt",
                found="binary data",
            )
        return likely, made
    except ParserUnsupportedError as error:
        other = next((kind for kind in FILE_TYPES if kind == error.details.get("found") and kind != likely), None)
        if other is None:
            raise
        return other, await workshop.read(str(stored.path), other)
