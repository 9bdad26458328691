"""`Uploads`: uploaded files, stored by checksum, so that what was cited can be opened later.

Nothing that a sender names becomes part of a name there: it is made of the owner (hashed if unsafe) and the SHA-256.
"""

import asyncio
import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from agent.core.errors import TooLargeError
from agent.storage.objects import ObjectStore
from agent.storage.objects.folder import open_for_writing, to_store_error
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor, ProcessedDocument
from gateway.features.documents.engine.ingest.errors import ParserError, ParserUnsupportedError
from gateway.features.documents.engine.ingest.file_types import BUILT_IN_TYPES, TYPES, list_file_types
from gateway.features.documents.engine.ingest.index_writer import IndexWriter, PreparedDocument
from gateway.features.documents.engine.ingest.parsers.draft import LOST_CHARACTERS
from gateway.features.documents.engine.ingest.parsers.sniff import detect_kind
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import FileType

SOURCE_PREFIX = "upload:"
"""Prefix of an uploaded document's source id; its checksum follows."""
UPLOADS = "uploads"
"""First part of the names of uploads among the objects."""
FETCHED = "fetched"
"""First part of the names of files between the walk of a job and the reading of their batch."""
NAME_CHARS = 200
_OWNER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 1024 * 1024
_HEAD = 8192
_ZIPPED: tuple[FileType, ...] = ("docx", "pptx", "xlsx")
_TEXTS: tuple[FileType, ...] = ("html", "csv", "md", "txt", "eml")


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """A stored upload. `path` is a copy of it in the workspace of the request, from which it is parsed."""

    path: Path
    checksum: str
    size: int

    @property
    def source(self) -> str:
        """The source id: the bytes' checksum."""
        return f"{SOURCE_PREFIX}{self.checksum}"


@dataclass(frozen=True, slots=True)
class AddedUpload:
    """An uploaded document. `is_new` is False if the collection had these bytes; `note` says why it has no vectors."""

    document: Document
    is_new: bool
    note: str = ""


class Uploads:
    """The uploaded files in a store of objects. Methods block: call them in a thread."""

    def __init__(self, objects: ObjectStore, max_bytes: int) -> None:
        self.objects = objects
        self._max_bytes = max_bytes

    def store(self, owner: str, data: BinaryIO, workspace: Path) -> StoredUpload:
        """Stores the bytes; equal bytes are one object. They are received in `workspace` first, so that a sender who
        breaks off leaves nothing. Raises `TooLargeError`, `StoreFullError`, `StoreError`.
        """
        part = workspace / f"part-{secrets.token_hex(8)}"
        try:
            with open_for_writing(part) as file:
                checksum, size = self._copy(data, file)
            path = part.replace(workspace / checksum)
        except OSError as error:
            raise to_store_error(error, str(workspace)) from error
        self.objects.put(self.name(owner, checksum), path)
        return StoredUpload(path, checksum, size)

    def open(self, owner: str, checksum: str) -> BufferedReader:
        """Opens these bytes. Raises ValueError for an invalid checksum, `NotFoundError`, `StoreError`."""
        return self.objects.open(self.name(owner, checksum))

    def remove(self, owner: str, checksum: str) -> None:
        """Deletes these bytes; deleting missing ones succeeds."""
        self.objects.delete(self.name(owner, checksum))

    def remove_owner(self, owner: str) -> None:
        """Deletes everything an owner uploaded."""
        for top in (UPLOADS, FETCHED):
            self.objects.delete_all(f"{top}/{_get_owner_folder(owner)}")

    @staticmethod
    def get_fetched_name(owner: str, job_id: str) -> str:
        """The first parts of the names of files that a job has fetched and not read yet."""
        return f"{FETCHED}/{_get_owner_folder(owner)}/{job_id}"

    @staticmethod
    def name(owner: str, checksum: str) -> str:
        """The name of the object that holds these bytes. Raises ValueError for an invalid checksum."""
        if not _SHA256.fullmatch(checksum):
            raise ValueError(f"{checksum!r} is not a SHA-256")
        return f"{UPLOADS}/{_get_owner_folder(owner)}/{checksum}"

    def _copy(self, data: BinaryIO, file: BinaryIO) -> tuple[str, int]:
        digest, size = hashlib.sha256(), 0
        while piece := data.read(_PIECE):
            size += len(piece)
            if size > self._max_bytes:
                raise TooLargeError(f"the file is larger than {self._max_bytes:,} bytes (AGENT_MAX_UPLOAD_BYTES)")
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        return digest.hexdigest(), size


def display_name(sent: str | None) -> str:
    """A sender's file name for display: its last part, without control characters."""
    last = PureWindowsPath(PurePosixPath(sent or "").name).name
    printable = "".join(letter for letter in last if letter.isprintable()).strip()[:NAME_CHARS]
    return printable if printable.strip(".") else "upload"


def guess_type(path: Path, name: str) -> FileType:
    """A file's type by its first bytes, and by its name if they leave a choice. Parsers check more closely."""
    with path.open("rb") as file:
        looks_like = detect_kind(file.read(_HEAD))
    named = TYPES.get(PurePosixPath(name).suffix.lower())
    if named is not None and named not in BUILT_IN_TYPES:
        return named
    if looks_like == "pdf":
        return "pdf"
    if looks_like in _ZIPPED or looks_like in ("a zip archive", "an old or encrypted Office document"):
        return named if named in _ZIPPED else "docx"
    if looks_like == "eml" and named not in ("md", "csv"):
        return "eml"
    if looks_like == "html":
        return named if named in _TEXTS and named != "txt" else "html"
    return named or "txt"


def _get_owner_folder(owner: str) -> str:
    if _OWNER.fullmatch(owner):
        return owner
    return f"owner-{hashlib.blake2b(owner.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"


async def ingest_upload(
    writer: IndexWriter,
    processor: DocumentProcessor,
    stored: StoredUpload,
    sent_name: str | None,
    known: Document | None,
    *,
    at: float,
) -> AddedUpload:
    """Reads an uploaded file into the writer's collection. Raises the narrowest `ParserError`."""
    name = display_name(sent_name)
    if known is not None and processor.is_current(known, embedder=writer.makes_vectors):
        return AddedUpload(known, is_new=False)
    try:
        file_type, made = await _read(processor, stored, name)
    except ParserError as error:
        error.message = error.message.replace(stored.checksum, name)  # the sender knows the file by its name
        raise
    document = made.to_document(
        collection=writer.lock.collection,
        source=stored.source,
        name=name,
        file_type=file_type,
        source_type="local",
        size=stored.size,
        url=None,
        at=at,
    )
    route = processor.find_route(file_type)
    prepared = PreparedDocument(document, made.chunks, known, route is not None and route.wants_vectors)
    (placed,) = await writer.write_documents(await writer.embed_documents([prepared]))
    return AddedUpload(placed, is_new=True, note=writer.vector_failure)


async def _read(processor: DocumentProcessor, stored: StoredUpload, name: str) -> tuple[FileType, ProcessedDocument]:
    """The file's type and content: as the likely type, else as the type that a parser detects."""
    likely = await asyncio.to_thread(guess_type, stored.path, name)
    is_named = PurePosixPath(name).suffix.lower() in TYPES
    try:
        made = await processor.process(str(stored.path), likely)
        if likely == "txt" and not is_named and made.parsed.metadata.get(LOST_CHARACTERS):
            # Nothing says that it is text but that it could be read as one, and it cannot.
            raise ParserUnsupportedError(
                f"{stored.checksum} is not of a supported type; if it is text, send it as UTF-8, or with a name "
                "that ends in .txt",
                expected="txt",
                found="binary data",
            )
        return likely, made
    except ParserUnsupportedError as error:
        other = str(error.details.get("found"))
        if other == likely or other not in list_file_types():
            raise
        return other, await processor.process(str(stored.path), other)
