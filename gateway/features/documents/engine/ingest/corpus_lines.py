"""Reads the lines of a table with a length limit; keeps bytes of another encoding so they can be repaired."""

import io
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.corpus import LINE_CHARS, TEXT_CHARS

RECORD_CHARS = 2 * TEXT_CHARS
"""Characters of a row. An unclosed quotation ends here instead of at the end of the file."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row, the line it starts at (in a JSON file, its number), and whether bytes of another encoding were
    repaired."""

    line: int
    values: JsonObject
    mended: bool = False


class Lines:
    """The lines of a file, each limited in length, with a way back after a broken record."""

    def __init__(self, file: TextIO, on_long: Callable[[int], None]) -> None:
        self._file = file
        self._on_long = on_long
        self._waiting: deque[str] = deque()
        self._read = 0
        self._chars = 0
        self.record: list[str] = []

    @property
    def first(self) -> int:
        """The line the record starts at, from 1."""
        return self._read - len(self._waiting) - max(len(self.record) - 1, 0)

    def begin_record(self) -> None:
        """Starts a new record."""
        self.record, self._chars = [], 0

    def restore(self) -> None:
        """Gives the record up except for its first line, so that its other lines are read again."""
        self._waiting.extendleft(reversed(self.record[1:]))
        del self.record[1:]

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        if self._chars > RECORD_CHARS:
            raise RecordTooLongError
        line = self._waiting.popleft() if self._waiting else self._read_next_line()
        if not line:
            raise StopIteration
        self.record.append(line)
        self._chars += len(line)
        return line.replace("\x00", "")

    def _read_next_line(self) -> str:
        line = self._file.readline(LINE_CHARS)
        self._read += bool(line)
        if len(line) == LINE_CHARS and not line.endswith(("\n", "\r")):
            self._on_long(self._read)
            while (piece := self._file.readline(LINE_CHARS)) and not piece.endswith(("\n", "\r")):
                pass
            return "\n"
        return line


class RecordTooLongError(Exception):
    """Raised for a record that does not end within `RECORD_CHARS`."""


def open_text(raw: BinaryIO, encoding: str, *, newline: str) -> TextIO:
    """Opens the file as text. In UTF-8, invalid bytes become surrogates, which `decode_cell` repairs."""
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
    return io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline=newline)


def decode_cell(cell: str) -> str:
    """A cell whose bytes are not valid in the file's encoding, decoded as Windows-1252."""
    if cell.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in cell):
        return cell
    return cell.encode("utf-8", "surrogateescape").decode("cp1252", "replace")


def build_unreadable_error(path: Path, error: OSError) -> BadRequestError:
    """The error for a file that cannot be opened or read."""
    return BadRequestError(f"{path}: cannot be read: {error.strerror}", agent_id="corpus")
