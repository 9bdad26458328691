"""`InputFile`: the bytes and options that a reader gets."""

from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from gateway.features.documents.engine.ingest.errors import ParserCorruptError, ParserTooLargeError
from gateway.features.documents.engine.search.models import FileType, ParserInput


@dataclass(frozen=True)
class InputFile:
    """A file's bytes and the options of the request. `ocr_languages` are tesseract codes (`eng+deu`)."""

    data: bytes
    file_type: FileType
    name: str = ""
    force_ocr: bool = False
    ocr_languages: str = "eng"
    deadline: float = inf
    """In `time.monotonic`; the worker is killed then."""
    password: str | None = field(default=None, repr=False)
    is_repaired: bool = False
    """Whether a reader has mended the bytes."""


def open_input_file(
    wanted: ParserInput, *, max_bytes: int, ocr_languages: str = "eng", deadline: float = inf
) -> InputFile:
    """Reads the file. Raises `ParserTooLargeError`, or `ParserCorruptError` if it cannot be read."""
    path = Path(wanted.file_path)
    try:
        if (size := path.stat().st_size) > max_bytes:
            raise ParserTooLargeError(f"{path.name} has {size} bytes, more than {max_bytes}", bytes=size)
        data = path.read_bytes()
    except OSError as error:
        message = f"{path.name} cannot be read: {error.strerror}"
        raise ParserCorruptError(message, reason="unreadable") from error
    return InputFile(data, wanted.file_type, path.name, wanted.force_ocr, ocr_languages, deadline)
