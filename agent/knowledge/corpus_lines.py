"""The lines of a file of rows: none longer than is good, bytes of another encoding kept for whoever mends them."""

import io
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.knowledge.corpus import LINE_CHARS, TEXT_CHARS

RECORD_CHARS = 2 * TEXT_CHARS
"""Characters of a row. A quotation that is never closed ends here, and not with the file."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row, the line it begins at (in a JSON file, its number), and whether some of its bytes were of another
    encoding than the file's."""

    line: int
    values: JsonObject
    mended: bool = False


class Lines:
    """The lines of a file, none of them longer than is good, and the way back when a record was none."""

    def __init__(self, file: TextIO, on_long: Callable[[int], None]) -> None:
        self._file = file
        self._on_long = on_long
        self._waiting: deque[str] = deque()
        self._read = 0
        self._chars = 0
        self.record: list[str] = []

    @property
    def first(self) -> int:
        """The line the record begins at, from 1."""
        return self._read - len(self._waiting) - max(len(self.record) - 1, 0)

    def begin(self) -> None:
        """What comes next is a new record."""
        self.record, self._chars = [], 0

    def back(self) -> None:
        """Give the record up, but for its first line."""
        self._waiting.extendleft(reversed(self.record[1:]))
        del self.record[1:]

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        if self._chars > RECORD_CHARS:
            raise RecordTooLongError
        line = self._waiting.popleft() if self._waiting else self._next_line()
        if not line:
            raise StopIteration
        self.record.append(line)
        self._chars += len(line)
        return line.replace("\x00", "")

    def _next_line(self) -> str:
        line = self._file.readline(LINE_CHARS)
        self._read += bool(line)
        if len(line) == LINE_CHARS and not line.endswith(("\n", "\r")):
            self._on_long(self._read)
            while (piece := self._file.readline(LINE_CHARS)) and not piece.endswith(("\n", "\r")):
                pass
            return "\n"
        return line


class RecordTooLongError(Exception):
    """A record has no end within reach."""


def as_text(raw: BinaryIO, encoding: str, *, newline: str) -> TextIO:
    """The file as text. In UTF-8, bytes of another encoding become half characters, as `mended_text` takes them."""
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
    return io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline=newline)


def mended_text(cell: str) -> str:
    """A cell whose bytes are not of the file's encoding, read as Windows-1252."""
    if cell.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in cell):
        return cell
    return cell.encode("utf-8", "surrogateescape").decode("cp1252", "replace")


def unreadable(path: Path, error: OSError) -> BadRequestError:
    """The refusal of a file that cannot be opened or read."""
    return BadRequestError(f"{path}: cannot be read: {error.strerror}", agent_id="corpus")
