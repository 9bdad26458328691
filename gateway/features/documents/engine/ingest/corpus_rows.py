"""Reads the rows of CSV-like files, JSON and JSON Lines, one row in memory at a time.

Cell contents are never interpreted: a formula is text. An invalid row is reported with its line and skipped.
"""

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import BadRequestError
from agent.text.encodings import decode
from gateway.features.documents.engine.ingest.corpus import LINE_CHARS, Faults, Progress
from gateway.features.documents.engine.ingest.corpus_json import PROGRESS_ROWS, iter_json_lines, iter_json_rows
from gateway.features.documents.engine.ingest.corpus_lines import (
    RECORD_CHARS,
    Lines,
    RecordTooLongError,
    Row,
    build_unreadable_error,
    decode_cell,
    open_text,
)
from gateway.features.documents.engine.ingest.corpus_mapping import CorpusMapping

SAMPLE_BYTES = 65_536
"""Bytes that encoding and delimiter are guessed from."""
_DELIMITERS = ",;\t|"
_JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Table:
    """A file's rows. `columns` is None if each row has its own. `form` describes how the file was read."""

    columns: Sequence[str] | None
    rows: Iterator[Row]
    form: str


def open_table(path: Path, mapping: CorpusMapping, faults: Faults, *, progress: Progress) -> Table:
    """Opens the rows of a file by its suffix and its first bytes. Raises `BadRequestError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            sample = file.read(SAMPLE_BYTES)
    except OSError as error:
        raise build_unreadable_error(path, error) from error
    if not sample.strip(b"\x00\t\r\n \xef\xbb\xbf"):
        raise BadRequestError(f"{path}: is empty", agent_id="corpus")
    encoding = _find_encoding(mapping.encoding or _guess_encoding(sample), path)
    start = sample.decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")
    if path.suffix.lower() in _JSON_LINES:
        return Table(None, iter_json_lines(path, encoding, faults, progress), "JSON Lines")
    if path.suffix.lower() == ".json" or (start.startswith(("[{", '{"')) and path.suffix.lower() != ".csv"):
        return Table(None, iter_json_rows(path, encoding, mapping.rows, faults), "JSON")
    delimiter = mapping.delimiter or _guess_delimiter(start, tab_first=path.suffix.lower() in (".tsv", ".tab"))
    delimiter_name = {"\t": "tabs", ",": "commas", ";": "semicolons"}.get(delimiter, repr(delimiter))
    reader = _DelimitedReader(path, encoding, delimiter, faults, progress)
    return Table(reader.columns, reader.iter_rows(), f"{encoding}, separated by {delimiter_name}")


class _DelimitedReader:
    """Reads CSV, TSV and similar. The first row that is not empty names the columns."""

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
        self.columns = _make_unique_names(header)

    def iter_rows(self) -> Iterator[Row]:
        """Yields the rows below the header."""
        for line, cells, mended in self._records:
            yield Row(line, dict(zip(self.columns, cells, strict=False)), mended)

    def _read(self) -> Iterator[tuple[int, list[str], bool]]:
        try:
            with self._path.open("rb") as raw, open_text(raw, self._encoding, newline="") as file:
                size = self._path.stat().st_size
                lines = Lines(file, self._refuse_too_long)
                yield from self._iter_cells(lines, lambda: self._progress(self._path.name, raw.tell(), size))
                self._progress(self._path.name, size, size)
        except OSError as error:
            raise build_unreadable_error(self._path, error) from error

    def _iter_cells(self, lines: Lines, report: Callable[[], None]) -> Iterator[tuple[int, list[str], bool]]:
        # The limit is the module's own, for all readers: it may be raised, and must not be lowered.
        csv.field_size_limit(max(csv.field_size_limit(), LINE_CHARS + RECORD_CHARS))
        # Strict: what is badly quoted would be read as something else, across rows.
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        width = count = 0
        while True:
            lines.begin_record()
            try:
                cells = next(reader, None)
                problem = None
            except RecordTooLongError:
                cells, problem = [], f"a quotation that is not closed within {RECORD_CHARS:,} characters"
            except csv.Error as error:
                cells, problem = [], f"badly quoted: {error}"
            if cells is None:
                return
            problem = problem or _find_width_problem(cells, width)
            count += 1
            if problem is not None:
                self._faults.add(self._path.name, lines.first, problem)
                lines.restore()
            elif any(cell.strip() for cell in cells):
                width = width or len(cells)
                mended = [decode_cell(cell) for cell in cells]
                yield lines.first, mended, mended != cells
            if count % PROGRESS_ROWS == 0:
                report()

    def _refuse_too_long(self, line: int) -> None:
        self._faults.add(self._path.name, line, f"longer than {LINE_CHARS:,} characters")


def _find_width_problem(cells: list[str], width: int) -> str | None:
    """The problem of a row whose cell count differs from the header's; extra empty cells are accepted."""
    if not width or len(cells) == width or not any(cell.strip() for cell in cells):
        return None
    if len(cells) > width and not any(cell.strip() for cell in cells[width:]):
        return None
    return f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'} where the header has {width}"


def _make_unique_names(header: Sequence[str]) -> list[str]:
    """Unique column names; a column without a name is called by its number."""
    names: list[str] = []
    for place, cell in enumerate(header, start=1):
        name = cell.replace("\ufeff", "").strip() or f"column {place}"
        count = 2
        distinct = name
        while distinct in names:
            distinct, count = f"{name} {count}", count + 1
        names.append(distinct)
    return names


def _guess_encoding(sample: bytes) -> str:
    """The encoding of a file that starts with these bytes. Single foreign bytes do not change it."""
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


def _find_encoding(name: str, path: Path) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise BadRequestError(f"{path}: there is no encoding {name!r}", agent_id="corpus") from None


def _guess_delimiter(sample: str, *, tab_first: bool) -> str:
    """The delimiter that splits most of the first lines into equally many cells; a comma if none does."""
    lines = sample.splitlines(keepends=True)[:50]
    lines = lines[:-1] if len(lines) > 2 else lines  # the last one may be cut

    def fit(delimiter: str) -> tuple[float, int, bool, int]:
        counts = [len(row) for row in csv.reader((line.replace("\x00", "") for line in lines), delimiter=delimiter)]
        counts = [count for count in counts if count]
        common = max(set(counts), key=counts.count, default=1)
        share = counts.count(common) / len(counts) if common > 1 else 0.0
        return share, common, tab_first and delimiter == "\t", -_DELIMITERS.index(delimiter)

    return max(_DELIMITERS, key=fit)
