"""Text files of tables: their encoding, and temporary files for what is made of them."""

import codecs
import os
import tempfile
from typing import BinaryIO

_CHUNK = 1 << 20


class InputError(Exception):
    """Raised for a file that holds no table and for SQL that cannot run. The message is for the caller."""


def to_utf8(descriptor: int) -> int:
    """A descriptor of the same text in UTF-8: by its byte order mark, as UTF-8, else as Latin-1."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        encoding = detect_encoding(file)
        if encoding == "utf-8":
            return descriptor
        text = open_temporary_file()
        file.seek(0)
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        with os.fdopen(os.dup(text), "wb") as output:
            while chunk := file.read(_CHUNK):
                output.write(decoder.decode(chunk).encode())
    return text


def detect_encoding(file: BinaryIO) -> str:
    """The encoding of a text file. Raises `InputError` for binary data."""
    start = file.read(8192)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\x00" in start:
        raise InputError("the file is not a text file")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(start)
        while chunk := file.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else "utf-8"


def open_temporary_file() -> int:
    """A descriptor of a new file that has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("table")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
