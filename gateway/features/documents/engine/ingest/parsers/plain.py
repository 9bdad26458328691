"""Plain text: its paragraphs. Also CSV."""

import io
import re
from collections.abc import Iterator, Sequence

from agent.core.models import JsonObject
from agent.text.csv_rows import CsvRows, UnevenRows
from agent.text.delimited import find_dialect
from agent.text.encodings import Decoded, decode
from agent.text.html.encoding import decode_page
from agent.text.table_head import Head, classify_text, find_text_head, split_tables
from gateway.features.documents.engine.ingest.parsers.draft import LOST_CHARACTERS, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.written_forms import decode_forms, leave_out_data

_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+|\x0c(?:[^\S\n\x0c]*\n)*")
"""A form feed is the end of a page."""
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|.\x08")
"""What a terminal obeys and does not show (ECMA-48): colours of a log, and a letter that is struck over by the next."""


def read_plain(source: InputFile, *, is_file: bool = True) -> Draft:
    """Reads paragraphs, which blank lines separate. Only of a file, forms for programs are decoded."""
    # An XML file may declare its encoding, as pages do.
    decoded = decode_page(source.data) if source.data.startswith(b"<?xml") else decode(source.data)
    draft = make_draft(decoded)
    text = _TERMINAL.sub("", decoded.text.replace("\r\n", "\n").replace("\r", "\n"))
    text, left_out = leave_out_data(decode_forms(text)) if is_file else (text, 0)
    if left_out:
        draft.uncertainties.append(f"pictures or other files within the text were left out ({left_out:,} characters)")
    for paragraph in _BLANK_LINES.split(text):
        draft.add_text(paragraph)
    return draft


def read_csv(source: InputFile) -> Draft:
    """Reads the rows as Markdown tables: a long one as several with the same header, each of a file of several with its
    own."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    dialect = find_dialect(decoded.text)
    if dialect.is_aligned:
        return read_plain(source)
    lines = io.StringIO(decoded.text[dialect.skipped :], newline="")
    reader = CsvRows(lines, dialect, offset=dialect.lines)
    rows = list(reader)
    draft.uncertainties += reader.describe_faults()
    for title in dialect.titles:
        draft.add_text(title)
    number, count = dialect.lines, 0
    for part in split_tables(rows):
        count += _add_rows(draft, part, number)
        number += len(part)
    draft.metadata |= {"delimiter": dialect.delimiter, "rows": count}
    return draft


def _add_rows(draft: Draft, rows: Sequence[Sequence[str]], offset: int) -> int:
    """Adds a table with the lines above it, and counts its rows. The file has `offset` rows before these."""
    head = find_text_head(rows)
    draft.uncertainties += _describe_uneven(rows, head, offset)
    for row in rows[: head.top]:
        draft.add_text(" ".join(filter(None, row)))
    draft.add_table([head.names, *rows[head.bottom :]] if head.has_names else rows[head.top :])
    return sum(1 for row in rows[head.top :] if any(row))


def _describe_uneven(rows: Sequence[Sequence[str]], head: Head, offset: int) -> Iterator[str]:
    """Yields which rows may have values in the columns of others: longer ones, and shorter ones whose last cell is of
    another kind than its column. Many programs leave out the empty cells at the end of a row."""
    width = len(rows[head.top]) if rows else 0
    uneven = UnevenRows(width)
    below = rows[head.bottom :]
    kinds = [{classify_text(row[column]) for row in below if len(row) >= width} - {""} for column in range(width)]
    for number, row in enumerate(below, head.bottom + offset + 1):
        filled = max((place for place, cell in enumerate(row, 1) if cell), default=0)
        if filled > width or (
            1 < len(row) < width and filled and classify_text(row[filled - 1]) not in kinds[filled - 1]
        ):
            uneven.add(number, len(row))
    return uneven.describe()


def make_draft(decoded: Decoded) -> Draft:
    """An empty draft with the text's encoding in its metadata."""
    metadata: JsonObject = {"encoding": decoded.encoding} | ({LOST_CHARACTERS: decoded.lost} if decoded.lost else {})
    return Draft(metadata=metadata, uncertainties=list(decoded.uncertainties))
