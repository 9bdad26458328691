"""Opens the file that a document was read from, if it is unchanged, so that a citation shows what was cited."""

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from agent.core.errors import ConflictError, NotFoundError
from gateway.features.documents.engine.ingest.uploads import SOURCE_PREFIX, Uploads
from gateway.features.documents.engine.search.documents import Document

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Follow no link and wait for no pipe that may have replaced the file."""


def open_source_file(document: Document, uploads: Uploads, owner: str) -> BinaryIO:
    """Opens the bytes that were read. Blocks; the caller closes the file.

    Raises `NotFoundError` if the file is not on this machine or is gone, `ConflictError` if it changed since it was
    read.
    """
    if document.source.startswith(SOURCE_PREFIX):
        return _open_upload(document, uploads, owner)
    path = _get_path(document)
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        why = "it was replaced by a link" if error.errno == errno.ELOOP else error.strerror
        raise NotFoundError(f"{document.name} can no longer be opened: {why}", agent_id="library") from error
    file = os.fdopen(descriptor, "rb")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotFoundError(f"{document.name} is no longer a file", agent_id="library")
    except BaseException:
        file.close()
        raise
    return _check_unchanged(file, document)


def _open_upload(document: Document, uploads: Uploads, owner: str) -> BufferedReader:
    try:
        file = uploads.open(owner, document.source.removeprefix(SOURCE_PREFIX))
    except NotFoundError as error:
        raise NotFoundError(f"{document.name} can no longer be opened: {error.message}", agent_id="library") from error
    return _check_unchanged(file, document)


def _check_unchanged(file: BufferedReader, document: Document) -> BufferedReader:
    """Opens the file at its start. Raises `ConflictError`, and closes it, if its bytes are not those that were
    read."""
    try:
        if hashlib.file_digest(file, "sha256").hexdigest() != document.checksum:
            raise ConflictError(
                f"{document.name} has changed since it was read; read it again to cite what it says now",
                agent_id="library",
            )
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _get_path(document: Document) -> Path:
    path = Path(document.source)
    # Two slashes begin the source of a file whose name is no text; the name cannot be recovered from it.
    if document.source_type != "local" or not path.is_absolute() or document.source.startswith("//"):
        where = f"; it lies at {document.url}" if document.url else ""
        raise NotFoundError(f"{document.name} is not kept on this machine{where}", agent_id="library")
    return path
