"""`prepare_corpus`: converts tables to one corpus in constant memory. Row state is in a temporary database beside the
output."""

import hashlib
import math
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO

from agent.core.errors import BadRequestError
from gateway.features.documents.engine.ingest.corpus import CorpusDocument, Faults, Progress
from gateway.features.documents.engine.ingest.corpus_lines import Row
from gateway.features.documents.engine.ingest.corpus_mapping import CorpusMapping, Dedup, RowMapper
from gateway.features.documents.engine.ingest.corpus_rows import open_table


@dataclass(slots=True)
class PrepareReport:
    """The result of a conversion. `superseded` counts rows replaced by a later version, `refused` invalid ones;
    `faults` lists these and lines that are not rows."""

    path: Path
    rows: int = 0
    documents: int = 0
    superseded: int = 0
    duplicates: int = 0
    refused: int = 0
    mended: int = 0
    seconds: float = 0.0
    forms: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    @property
    def notes(self) -> list[str]:
        """How the files were read."""
        mended = f"{self.mended} rows hold bytes of another encoding, read as Windows-1252"
        return [*self.forms, *([mended] if self.mended else [])]


def prepare(
    mapping: CorpusMapping, files: Sequence[Path], out: Path, *, progress: Progress = lambda _, __, ___: None
) -> PrepareReport:
    """Writes the documents of all rows to `out`, completely or not at all; without documents `out` stays unchanged.

    Raises `BadRequestError` for a missing file or column, and if `out` cannot be written.
    """
    started = monotonic()
    report = PrepareReport(out)
    try:
        with _open_draft(out) as (draft, seen):
            dedup = mapping.dedup
            keep = _LatestWins(seen, report, dedup) if dedup is not None else _FirstWins(seen, report)
            for path in files:
                if path.resolve() == out.resolve():
                    raise BadRequestError(f"{out} is both an input and the output; name another -o", agent_id="corpus")
                table = open_table(path, mapping, report.faults, progress=progress)
                report.forms.append(f"{path.name}: {table.form}")
                mapper = RowMapper(mapping, table.columns, path.name)
                for row in table.rows:
                    report.rows += 1
                    report.mended += row.mended
                    _add_row(mapper, row, path.name, keep, draft, report)
            keep.finish(draft)
    except OSError as error:
        raise BadRequestError(f"{out}: cannot be written: {error.strerror}", agent_id="corpus") from error
    except sqlite3.Error as error:
        raise BadRequestError(f"{out.parent}: cannot be written: {error}", agent_id="corpus") from error
    report.rows += report.faults.count - report.refused  # those that were no rows
    report.seconds = monotonic() - started
    return report


def _add_row(
    mapper: RowMapper,
    row: Row,
    file: str,
    keep: "_FirstWins | _LatestWins",
    draft: "_CorpusWriter",
    report: PrepareReport,
) -> None:
    try:
        document = mapper.build_document(row.values)
        keep.add(document, mapper, row, file, draft)
    except ValueError as error:
        report.refused += 1
        report.faults.add(file, row.line, str(error))


class _CorpusWriter:
    """Writes the corpus."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.count = 0

    def write(self, line: str) -> None:
        self._file.write(f"{line}\n")
        self.count += 1


@contextmanager
def _open_draft(out: Path) -> Iterator[tuple[_CorpusWriter, sqlite3.Connection]]:
    """Opens a temporary corpus that replaces `out` at the end, and a database for row state, in a folder beside `out`.

    The folder is on the same disk as `out`, which the system's temporary folder may not be.
    """
    with tempfile.TemporaryDirectory(prefix=f".{out.name[:40]}.", dir=out.parent) as folder:
        with closing(sqlite3.connect(Path(folder) / "seen.db")) as seen:
            seen.execute("PRAGMA journal_mode = OFF")
            seen.execute("PRAGMA synchronous = OFF")
            path = Path(folder) / "corpus.jsonl"
            with path.open("w", encoding="utf-8", newline="\n") as file:
                draft = _CorpusWriter(file)
                yield draft, seen
                file.flush()
                os.fsync(file.fileno())
            seen.rollback()
        if draft.count:
            path.replace(out)


class _FirstWins:
    """Without versions, a second document of the same id is a fault."""

    def __init__(self, seen: sqlite3.Connection, report: PrepareReport) -> None:
        self._seen = seen
        self._report = report
        seen.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, file TEXT, line INTEGER) WITHOUT ROWID")

    def add(self, document: CorpusDocument, mapper: RowMapper, row: Row, file: str, draft: _CorpusWriter) -> None:
        """Writes the document. Raises `ValueError` if its id was written before."""
        key = _compute_key(document.doc_id)
        added = self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?,?,?)", (key, file, row.line))
        if added.rowcount:
            draft.write(document.to_json_line())
            return
        first = self._seen.execute("SELECT file, line FROM seen WHERE id = ?", (key,)).fetchone()
        self._report.duplicates += 1
        raise ValueError(f"the id {document.doc_id[:80]!r} is that of {first[0]} line {first[1]}, which is kept")

    def finish(self, draft: _CorpusWriter) -> None:
        """Counts the documents; they are written already."""
        self._report.documents = draft.count


class _LatestWins:
    """Keeps the latest row of each thing; of equal versions, the last."""

    def __init__(self, seen: sqlite3.Connection, report: PrepareReport, dedup: Dedup) -> None:
        self._seen = seen
        self._report = report
        self._dedup = dedup
        seen.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, number REAL, text TEXT, place INTEGER, line TEXT)")

    def add(self, document: CorpusDocument, mapper: RowMapper, row: Row, file: str, draft: _CorpusWriter) -> None:
        """Stores the row unless a later version is known. Raises `ValueError` if it lacks the key."""
        thing = mapper.get_value(row.values, self._dedup.key)
        if not thing:
            raise ValueError(f"{self._dedup.key} is empty")
        order = _get_version_order(mapper.get_value(row.values, self._dedup.latest))
        seen_row = self._seen.execute("SELECT number, text FROM seen WHERE id = ?", (_compute_key(thing),)).fetchone()
        if seen_row is not None:
            self._report.superseded += 1
            if order < seen_row:
                return
        self._seen.execute(
            "INSERT INTO seen VALUES (?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET number = excluded.number, "
            "text = excluded.text, line = excluded.line",
            (_compute_key(thing), *order, self._report.rows, document.to_json_line()),
        )

    def finish(self, draft: _CorpusWriter) -> None:
        """Writes the documents in the order in which their things first appeared."""
        for (line,) in self._seen.execute("SELECT line FROM seen ORDER BY place"):
            draft.write(line)
        self._report.documents = draft.count


_BEFORE_NUMBERS = -sys.float_info.max


def _get_version_order(version: str) -> tuple[float, str]:
    """The sort key of a version: texts first, then numbers by value."""
    try:
        number = float(version)
    except ValueError:
        return _BEFORE_NUMBERS, version
    return (number, "") if math.isfinite(number) else (_BEFORE_NUMBERS, version)


def _compute_key(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).digest()
