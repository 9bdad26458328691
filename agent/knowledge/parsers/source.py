"""The file a reader gets: its bytes, read once, and what they are."""

from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from agent.knowledge.errors import ParserCorruptError, ParserTooLargeError
from agent.knowledge.models import FileType, ParserInput


@dataclass(frozen=True)
class Source:
    """A file's bytes and the wishes that came with it. `ocr_languages` is in tesseract's words (`eng+deu`)."""

    data: bytes
    file_type: FileType
    name: str = ""
    force_ocr: bool = False
    ocr_languages: str = "eng"
    deadline: float = inf
    """Of `time.monotonic`; the worker is killed then."""
    password: str | None = field(default=None, repr=False)


def open_source(wanted: ParserInput, *, max_bytes: int, ocr_languages: str = "eng", deadline: float = inf) -> Source:
    """Read the file. Raises `ParserTooLargeError`, or `ParserCorruptError` when it cannot be read at all."""
    path = Path(wanted.file_path)
    try:
        if (size := path.stat().st_size) > max_bytes:
            raise ParserTooLargeError(f"{path.name} has {size} bytes, more than {max_bytes}", bytes=size)
        data = path.read_bytes()
    except OSError as error:
        message = f"{path.name} cannot be read: {error.strerror}"
        raise ParserCorruptError(message, reason="unreadable") from error
    return Source(data, wanted.file_type, path.name, wanted.force_ocr, ocr_languages, deadline)
