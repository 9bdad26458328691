"""Plain text: its paragraphs. Also CSV."""

import csv
import io
import re
from collections.abc import Callable, Iterable
from functools import partial

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

_SPACES_BEHIND = re.compile(rf'(") +(?=[{DELIMITERS}\r\n]|\Z)')
_AT_END = "end of data"
"""Part of what the csv module says of a quote that is open where the text ends."""
_MAX_NAMED = 10


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
    rows = _read_rows(text, delimiter, draft)
    for title in titles:
        draft.add_text(title)
    draft.add_table(rows)
    draft.metadata |= {"delimiter": delimiter, "rows": sum(1 for row in rows if any(row))}
    return draft


def _read_rows(text: str, delimiter: str, draft: Draft) -> list[list[str]]:
    """The rows; those that a quote has drawn into one cell, because nothing closes it, are read as they stand."""
    spaced = has_spaced_quotes(text, delimiter)
    read = partial(csv.reader, delimiter=delimiter, skipinitialspace=spaced)
    lines = list(io.StringIO(text, newline=""))
    reader = read(lines)
    rows: list[list[str]] = []
    opened: list[int] = []
    unclear: list[int] = []
    start = 0
    for row in reader:
        row_lines, start = lines[start : reader.line_num], reader.line_num
        fault = _find_fault(read, row_lines) if len(row_lines) > 1 else ""
        split = list(read(row_lines, quoting=csv.QUOTE_NONE)) if fault else []
        width = len((rows or split or [row])[0])
        if _AT_END in fault:
            draft.uncertainties.append(
                f"row {len(rows) + 1}: a quote is not closed; the rows from here on are read without quotes"
            )
            rows += split
        elif fault and width > 1 and all(len(one) == width for one in split):
            opened.append(len(rows) + 1)
            rows += split
        else:
            unclear += [len(rows) + 1] if fault else []
            rows.append(row)
    if opened:
        draft.uncertainties.append(f"{_name_rows(opened)}: a quote is not closed; its lines are read without quotes")
    if unclear:
        draft.uncertainties.append(f"{_name_rows(unclear)}: quotes are not in pairs; a cell may hold the rows below it")
    return rows


def _find_fault(read: Callable[..., Iterable[list[str]]], lines: list[str]) -> str:
    """What is wrong with the quotes of a row; empty if nothing is. Spaces behind a cell are nothing wrong."""
    try:
        for _ in read(io.StringIO(_SPACES_BEHIND.sub(r"\1", "".join(lines)), newline=""), strict=True):
            pass
    except csv.Error as error:
        return str(error)
    return ""


def _name_rows(numbers: list[int]) -> str:
    listed = ", ".join(map(str, numbers[:_MAX_NAMED])) + (
        f" and {len(numbers) - _MAX_NAMED:,} more" if len(numbers) > _MAX_NAMED else ""
    )
    return f"row {listed}" if len(numbers) == 1 else f"rows {listed}"


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
