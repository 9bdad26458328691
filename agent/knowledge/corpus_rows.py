"""The rows of a table in a file: CSV and its relatives, JSON and JSON Lines. One row in memory at a time.

Nothing in a cell means anything here: a formula is text. What cannot be a row is told with its line; the next one is
tried all the same.
"""

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import BadRequestError
from agent.knowledge.corpus import LINE_CHARS, Faults, Progress
from agent.knowledge.corpus_json import REPORTED_EVERY, json_lines, json_rows
from agent.knowledge.corpus_lines import (
    RECORD_CHARS,
    Lines,
    RecordTooLongError,
    Row,
    as_text,
    mended_text,
    unreadable,
)
from agent.knowledge.corpus_mapping import CorpusMapping
from agent.knowledge.parsers.plain import decode

SAMPLE_BYTES = 65_536
"""What encoding and delimiter are guessed from."""
_DELIMITERS = ",;\t|"
_JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Table:
    """A file's rows. `columns` is None where each row has its own. `form` tells people how it was read."""

    columns: Sequence[str] | None
    rows: Iterator[Row]
    form: str


def open_table(path: Path, mapping: CorpusMapping, faults: Faults, *, progress: Progress) -> Table:
    """The rows of a file, by its ending and its beginning. `BadRequestError` where it cannot be read at all."""
    try:
        with path.open("rb") as file:
            sample = file.read(SAMPLE_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error
    if not sample.strip(b"\x00\t\r\n \xef\xbb\xbf"):
        raise BadRequestError(f"{path}: is empty", agent_id="corpus")
    encoding = _encoding(mapping.encoding or _guessed(sample), path)
    start = sample.decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")
    if path.suffix.lower() in _JSON_LINES:
        return Table(None, json_lines(path, encoding, faults, progress), "JSON Lines")
    if path.suffix.lower() == ".json" or (start.startswith(("[{", '{"')) and path.suffix.lower() != ".csv"):
        return Table(None, json_rows(path, encoding, mapping.rows, faults), "JSON")
    delimiter = mapping.delimiter or _delimiter(start, tab_first=path.suffix.lower() in (".tsv", ".tab"))
    shown = {"\t": "tabs", ",": "commas", ";": "semicolons"}.get(delimiter, repr(delimiter))
    reader = _Delimited(path, encoding, delimiter, faults, progress)
    return Table(reader.columns, reader.rows(), f"{encoding}, separated by {shown}")


class _Delimited:
    """CSV, TSV and the like. The first row that is not empty names the columns."""

    def __init__(self, path: Path, encoding: str, delimiter: str, faults: Faults, progress: Progress) -> None:
        self._path = path
        self._encoding = encoding
        self._faults = faults
        self._progress = progress
        self._delimiter = delimiter
        self._records = self._read()
        _, header, _ = next(self._records, (0, [], False))
        if not any(cell.strip() for cell in header):
            raise BadRequestError(f"{path}: has no row that names the columns", agent_id="corpus")
        self.columns = _distinct(header)

    def rows(self) -> Iterator[Row]:
        """The rows below the header."""
        for line, cells, mended in self._records:
            yield Row(line, dict(zip(self.columns, cells, strict=False)), mended)

    def _read(self) -> Iterator[tuple[int, list[str], bool]]:
        try:
            with self._path.open("rb") as raw, as_text(raw, self._encoding, newline="") as file:
                size = self._path.stat().st_size
                lines = Lines(file, self._too_long)
                yield from self._cells(lines, lambda: self._progress(self._path.name, raw.tell(), size))
                self._progress(self._path.name, size, size)
        except OSError as error:
            raise unreadable(self._path, error) from error

    def _cells(self, lines: Lines, report: Callable[[], None]) -> Iterator[tuple[int, list[str], bool]]:
        # The limit is the module's own, for all readers: it may be raised, and must not be lowered.
        csv.field_size_limit(max(csv.field_size_limit(), LINE_CHARS + RECORD_CHARS))
        # Strict: what is badly quoted would be read as something else, across rows.
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        width = count = 0
        while True:
            lines.begin()
            try:
                cells = next(reader, None)
                problem = None
            except RecordTooLongError:
                cells, problem = [], f"a quotation that is not closed within {RECORD_CHARS:,} characters"
            except csv.Error as error:
                cells, problem = [], f"badly quoted: {error}"
            if cells is None:
                return
            problem = problem or _ragged(cells, width)
            count += 1
            if problem is not None:
                self._faults.add(self._path.name, lines.first, problem)
                lines.back()
            elif any(cell.strip() for cell in cells):
                width = width or len(cells)
                mended = [mended_text(cell) for cell in cells]
                yield lines.first, mended, mended != cells
            if count % REPORTED_EVERY == 0:
                report()

    def _too_long(self, line: int) -> None:
        self._faults.add(self._path.name, line, f"longer than {LINE_CHARS:,} characters")


def _ragged(cells: list[str], width: int) -> str | None:
    """Whether a row has another number of cells than the header; empty ones too many are none."""
    if not width or len(cells) == width or not any(cell.strip() for cell in cells):
        return None
    if len(cells) > width and not any(cell.strip() for cell in cells[width:]):
        return None
    return f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'} where the header has {width}"


def _distinct(header: Sequence[str]) -> list[str]:
    """The names of the columns, made distinct; one without a name is called by its number."""
    names: list[str] = []
    for place, cell in enumerate(header, start=1):
        name = cell.replace("\ufeff", "").strip() or f"column {place}"
        count = 2
        distinct = name
        while distinct in names:
            distinct, count = f"{name} {count}", count + 1
        names.append(distinct)
    return names


def _guessed(sample: bytes) -> str:
    """The encoding of a file that begins like this. Single bytes of another one do not make it the file's."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)):
        return decode(sample).encoding
    for place, name in ((1, "utf-16-le"), (0, "utf-16-be")):  # Excel's "Unicode text" without its mark
        half = sample[place:4_096:2]
        if half.count(0) > 0.6 * len(half):
            return name
    text = sample.decode("utf-8", "surrogateescape")
    strange = sum("\udc80" <= letter <= "\udcff" for letter in text)
    right = sum(letter > "\x7f" for letter in text) - strange
    cut = 3 if len(sample) == SAMPLE_BYTES else 0  # the last letter may be cut in half
    return "utf-8" if strange <= right + cut else decode(sample).encoding


def _encoding(name: str, path: Path) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise BadRequestError(f"{path}: there is no encoding {name!r}", agent_id="corpus") from None


def _delimiter(sample: str, *, tab_first: bool) -> str:
    """The delimiter that cuts the first lines into equally many cells, most of them; a comma when none does."""
    lines = sample.splitlines(keepends=True)[:50]
    lines = lines[:-1] if len(lines) > 2 else lines  # the last one may be cut

    def fit(delimiter: str) -> tuple[float, int, bool, int]:
        counts = [len(row) for row in csv.reader((line.replace("\x00", "") for line in lines), delimiter=delimiter)]
        counts = [count for count in counts if count]
        common = max(set(counts), key=counts.count, default=1)
        share = counts.count(common) / len(counts) if common > 1 else 0.0
        return share, common, tab_first and delimiter == "\t", -_DELIMITERS.index(delimiter)

    return max(_DELIMITERS, key=fit)
