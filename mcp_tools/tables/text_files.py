"""Text files of tables: their encoding, and temporary files for what is made of them."""

import codecs
import os
import tempfile
from typing import BinaryIO

_CHUNK = 1 << 20
_START = 8192
"""Bytes in which a zero says that a file is binary, or UTF-16."""
_WHOLE = 64 * 1024 * 1024
"""Bytes of a text that are decoded at once."""


class InputError(Exception):
    """Raised for a file that holds no table and for SQL that cannot run. The message is for the caller."""


def to_utf8(descriptor: int) -> int:
    """A descriptor of the same text in UTF-8, read as ingestion reads it. Raises `InputError` for binary data."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        if _is_utf8(file):
            return descriptor
        # Imported here: most files are UTF-8, and the guess of another encoding needs much.
        from agent.text.encodings import decode, find_encoding  # noqa: PLC0415

        file.seek(0)
        data = file.read(_WHOLE + 1)
        encoding = find_encoding(data[:_WHOLE])
        if encoding is None:
            raise InputError("the file is not a text file")
        text = open_temporary_file()
        with os.fdopen(os.dup(text), "wb") as output:
            if len(data) <= _WHOLE:
                output.write(decode(data).text.encode())
                return text
            # A text this long is read in pieces: two copies of it would fill the worker's memory.
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            while data:
                output.write(decoder.decode(data).encode())
                data = file.read(_CHUNK)
    return text


def _is_utf8(file: BinaryIO) -> bool:
    """Whether a text is UTF-8 without a byte order mark and without a zero."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
        return False
    file.seek(0)
    try:
        start = file.read(_START)
        if b"\x00" in start:
            return False
        decoder.decode(start)
        while chunk := file.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def open_temporary_file() -> int:
    """A descriptor of a new file that has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("table")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
