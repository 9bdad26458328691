"""Plain text: its paragraphs. Also CSV."""

import csv
import io
import re

from agent.core.models import JsonObject
from agent.text.delimited import DELIMITERS, double_escaped_quotes, find_separator, find_titles, has_spaced_quotes
from agent.text.encodings import Decoded, decode
from gateway.features.documents.engine.ingest.parsers.draft import LOST_CHARACTERS, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.written_forms import decode_forms

_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+|\x0c\s*")
"""A form feed is the end of a page."""
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|.\x08")
"""What a terminal obeys and does not show (ECMA-48): colours of a log, and a letter that is struck over by the next."""


def read_plain(source: InputFile, *, is_file: bool = True) -> Draft:
    """Reads paragraphs, which blank lines separate. Only of a file, forms for programs are decoded."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    text = _TERMINAL.sub("", decoded.text.replace("\r\n", "\n").replace("\r", "\n"))
    for paragraph in _BLANK_LINES.split(decode_forms(text) if is_file else text):
        draft.add_text(paragraph)
    return draft


def read_csv(source: InputFile) -> Draft:
    """Reads the rows as one Markdown table, or as several with the same header."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    # The default takes a cell of 128 KB for an error of the file. The limit is one for the process: it may only grow.
    csv.field_size_limit(max(csv.field_size_limit(), len(source.data) + 1))
    named, skipped = find_separator(decoded.text)
    titles, length = find_titles(decoded.text[skipped:], named)
    text = double_escaped_quotes(decoded.text[skipped + length :])
    delimiter = named or _guess_delimiter(text)
    spaced = has_spaced_quotes(text, delimiter)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=spaced))
    if rows and any("\n" in cell or "\r" in cell for cell in rows[-1]):
        rows = _end_open_quote(rows, text, delimiter, draft)
    for title in titles:
        draft.add_text(title)
    draft.add_table(rows)
    draft.metadata |= {"delimiter": delimiter, "rows": sum(1 for row in rows if any(row))}
    return draft


def _end_open_quote(rows: list[list[str]], text: str, delimiter: str, draft: Draft) -> list[list[str]]:
    """The rows without what a quote that nothing closes has drawn into the last one: those are read as they stand."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    starts = [0, *(reader.line_num for _ in reader)]
    lines = list(io.StringIO(text, newline=""))[starts[len(rows) - 1] :]
    try:
        for _ in csv.reader(lines, delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        if "end of data" in str(error):
            draft.uncertainties.append(
                f"row {len(rows)}: a quote is not closed; the rows from here on are read without"
            )
            return [*rows[:-1], *csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)]
    return rows


def make_draft(decoded: Decoded) -> Draft:
    """An empty draft with the text's encoding in its metadata."""
    metadata: JsonObject = {"encoding": decoded.encoding} | ({LOST_CHARACTERS: decoded.lost} if decoded.lost else {})
    return Draft(metadata=metadata, uncertainties=list(decoded.uncertainties))


def _guess_delimiter(text: str) -> str:
    """The delimiter that splits most of the first lines into equally many fields; a comma if none does.

    Where several do, a comma is the likeliest to be part of a text or a number.
    """
    lines = text.splitlines()[:50]

    def fit(delimiter: str) -> tuple[float, int, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        common = max(set(counts), key=counts.count, default=1)
        share = counts.count(common) / len(counts) if common > 1 else 0.0
        return share, common, DELIMITERS.index(delimiter) * (1 if share else -1)

    return max(DELIMITERS, key=fit)
