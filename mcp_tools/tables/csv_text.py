"""CSV text as a table: its dialect, its header, and its rows made equally long."""

import csv
import io
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

from agent.text.csv_rows import MAX_NAMED, CsvRows, UnevenRows
from agent.text.delimited import Dialect, find_dialect, has_escaped_quotes, has_spaced_quotes, swap_quotes
from agent.text.table_head import classify_text, find_text_head, split_tables
from mcp_tools.tables.text_files import InputError, open_temporary_file

_HEAD_BYTES = 65_536
_HEAD_ROWS = 100
_MAX_SPLIT_BYTES = 8_000_000
"""A longer text is one table: programs that write several write short ones."""
_EMPTY_ROW = re.compile(r"^[\s,;|\"]*\n", re.MULTILINE)
_LONE_RETURN = re.compile("\r(?!\n)")
_CHUNK_LINES = 10_000


class CsvTable(NamedTuple):
    """A table of CSV text behind a descriptor. `lines` are those above the first row of values, `offset` the rows."""

    descriptor: int
    dialect: Dialect
    names: tuple[str, ...]
    titles: tuple[str, ...] = ()
    lines: int = 0
    offset: int = 0
    is_plain: bool = True
    """Whether nothing in the dialect needs more than a delimiter and doubled quotes."""
    header_rows: int = 0


class SquaredRows(NamedTuple):
    """Rows of equal length as CSV behind a descriptor; `names` has one for each cell of a row."""

    descriptor: int
    names: tuple[str, ...]
    notes: tuple[str, ...]


def iter_tables(descriptor: int, delimiter: str) -> Iterator[tuple[int, str, int]]:
    """Yields each table of UTF-8 text: a descriptor, its delimiter, and how many rows of the file are before it. A file
    has several where empty rows divide rows that each have a header of their own."""
    data = os.pread(descriptor, _MAX_SPLIT_BYTES + 1, 0)
    text = data.decode("utf-8", "replace") if len(data) <= _MAX_SPLIT_BYTES else ""
    dialect = find_dialect(text[:_HEAD_BYTES], delimiter)
    reader = CsvRows(io.StringIO(text[dialect.skipped :], newline=""), dialect)
    rows: list[list[str]] = []
    ends = [0]
    for row in reader if _EMPTY_ROW.search(text) else ():
        rows.append(row)
        ends.append(reader.line_count)
    parts = split_tables(rows) if rows else []
    if len(parts) < 2:
        yield descriptor, delimiter, 0
        return
    head, lines = text[: dialect.skipped], list(io.StringIO(text[dialect.skipped :], newline=""))
    before = 0
    for part in parts:
        table = open_temporary_file()
        with os.fdopen(os.dup(table), "w", encoding="utf-8", newline="") as output:
            output.write(head)
            output.writelines(lines[ends[before] : ends[before + len(part)]])
        yield table, dialect.delimiter, before + dialect.lines if before else 0
        head, before = "", before + len(part)


def find_csv_table(descriptor: int, delimiter: str) -> CsvTable:
    """The table of UTF-8 text. Raises `InputError` for text without any cell."""
    data = os.pread(descriptor, _HEAD_BYTES, 0)
    text = data.decode("utf-8", "ignore")
    if len(data) == _HEAD_BYTES:  # the last line may be cut
        text = text[: text.rfind("\n") + 1] or text
    dialect = find_dialect(text, delimiter)
    reader = CsvRows(io.StringIO(text[dialect.skipped :], newline=""), dialect)
    rows, ends = [], []
    for row in reader:
        rows.append(row)
        ends.append(reader.line_count)
        if len(rows) == _HEAD_ROWS:
            break
    head = find_text_head(rows)
    if not any(map(any, rows)):
        raise InputError("the file has no cells")
    titles = (*dialect.titles, *(" ".join(filter(None, map(str.strip, row))) for row in rows[: head.top] if any(row)))
    lines = ends[head.bottom - 1] if head.bottom else 0
    above = text[: dialect.skipped].count("\n")
    is_plain = not (
        dialect.has_escapes
        or dialect.has_spaces
        or dialect.is_drawn
        or dialect.has_apostrophes
        or dialect.has_formulas
        or _LONE_RETURN.search(text)
    )
    names = head.names if head.has_names else ("",) * len(rows[head.top])
    offset = dialect.lines + head.bottom
    return CsvTable(descriptor, dialect, names, titles, above + lines, offset, is_plain, head.bottom - head.top)


def may_be_plain(table: CsvTable) -> bool:
    """Whether no quote in the whole text is behind a space or a backslash."""
    sign = table.dialect.delimiter.encode()
    with mmap.mmap(table.descriptor, 0, prot=mmap.PROT_READ) as data:
        return table.is_plain and data.find(sign + b' "') < 0 and data.find(b'\\"') < 0


def count_lines(table: CsvTable) -> int:
    """The lines below the header."""
    lines = 0
    with os.fdopen(os.dup(table.descriptor), "rb") as file:
        file.seek(0)
        last = b"\n"
        while chunk := file.read(1 << 20):
            lines += chunk.count(b"\n")
            last = chunk[-1:]
    return lines + (last != b"\n") - table.lines


def square_rows(table: CsvTable) -> SquaredRows:
    """The rows below the header, each as long as the longest, without empty ones."""
    if not table.is_plain or not may_be_plain(table):
        table = table._replace(dialect=_find_quotes(table))
    text = open_temporary_file()
    own = len(table.names)
    widest, uneven = own, UnevenRows(own)
    starts_with_text = has_rows = False
    below: list[tuple[int, list[str]]] = []
    reader = CsvRows(_iter_lines(table, table.lines), table.dialect, offset=table.offset)
    with os.fdopen(os.dup(text), "w", encoding="utf-8", newline="") as output:
        writer = csv.writer(output, quoting=csv.QUOTE_ALL)
        for number, row in enumerate(reader, table.offset + 1):
            length = len(row)
            if length > own and not any(row[own:]):
                row, length = row[:own], own  # noqa: PLW2901 - the row without empty cells at its end
            if not any(row):
                continue
            is_text = not starts_with_text and classify_text(row[0]) == "text"
            if (is_text or table.dialect.is_drawn) and length == 1 < own and has_rows:  # perhaps a line below the table
                below.append((number, row))
                continue
            starts_with_text, has_rows = starts_with_text or is_text, True
            for place, line in below:
                uneven.add(place, 1)
                writer.writerow(line)
            below.clear()
            widest = max(widest, length)
            uneven.add(number, length)
            writer.writerow(row)
    notes = [*reader.describe_faults(), *uneven.describe()]
    notes += [f"below the table: {line[0].strip()}" for _, line in below[:MAX_NAMED]]
    return SquaredRows(text, (*table.names, *[""] * (widest - own)), tuple(notes))


def make_names(names: Sequence[str]) -> list[str]:
    """The names of columns, each once: an empty one is `column` and its place, from 0."""
    unique: list[str] = []
    used: set[str] = set()
    for place, given in enumerate(names):
        name = " ".join(given.split()) or f"column{place}"
        name = next(
            one for one in chain((name,), (f"{name}_{number}" for number in count(1))) if one.lower() not in used
        )
        used.add(name.lower())
        unique.append(name)
    return unique


def _iter_lines(table: CsvTable, skipped: int = 0) -> Iterator[str]:
    with os.fdopen(os.dup(table.descriptor), "rb") as file:
        file.seek(0)
        for number, line in enumerate(io.TextIOWrapper(file, encoding="utf-8", newline="")):
            if number >= skipped:
                yield line


def _find_quotes(table: CsvTable) -> Dialect:
    """The dialect, with what only quotes far below the header show of it."""
    dialect, delimiter = table.dialect, table.dialect.delimiter
    lines = _iter_lines(table, table.lines)
    while chunk := "".join(islice(lines, _CHUNK_LINES)):
        chunk = swap_quotes(chunk) if dialect.has_apostrophes else chunk
        dialect = dialect._replace(
            has_spaces=dialect.has_spaces or has_spaced_quotes(chunk, delimiter),
            has_escapes=dialect.has_escapes or has_escaped_quotes(chunk),
        )
    return dialect
