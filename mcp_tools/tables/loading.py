"""Loads table files into DuckDB: CSV, TSV, XLSX, Parquet, JSON lines."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import duckdb

from mcp_tools.tables.conversion import Connection, convert_columns, make_doubles_exact, quote, quote_literal
from mcp_tools.tables.csv_text import (
    CsvTable,
    count_lines,
    find_csv_table,
    iter_tables,
    make_names,
    may_be_plain,
    square_rows,
)
from mcp_tools.tables.text_files import InputError, to_utf8
from mcp_tools.tables.totals import describe_total

MAX_OBJECT_BYTES = 16 * 1024 * 1024
"""The longest line of a JSON file; DuckDB allocates several buffers of this size."""
_DESCRIPTOR_PATH = re.compile(r"/dev/fd/\d+")

_RAW = "raw_text"
"""The table of what is not converted yet."""

__all__ = ["Connection", "LoadedTable", "add_aliases", "load_file", "quote"]


class LoadedTable(NamedTuple):
    """A table of a file: its name, how a sheet shows its columns, and what a reader should know."""

    name: str
    formats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load_file(connection: Connection, file: dict[str, Any], taken: Collection[str]) -> Iterator[LoadedTable]:
    """Loads the tables of one file and yields them."""
    descriptor, path, kind = int(file["descriptor"]), str(file["path"]), str(file["format"])
    stem = make_table_name(PurePosixPath(path).stem)
    if stem in list_reserved_words(connection):
        stem += "_table"
    source = f"/dev/fd/{descriptor}"
    try:
        if kind == "xlsx":
            yield from _load_workbook(connection, descriptor, stem, taken)
        elif kind in ("csv", "tsv"):
            for text, delimiter, before in iter_tables(_open_text(descriptor), "\t" if kind == "tsv" else ""):
                name = make_unique(stem, taken)
                notes = load_text(connection, name, text, delimiter)
                first = [f"row 1 is row {before + 1} of the file"] if before else []
                yield LoadedTable(name, notes=(*first, *notes))
        else:
            name = make_unique(stem, taken)
            reader = (
                f"read_parquet('{source}')"
                if kind == "parquet"
                else f"read_json('{source}', format = 'auto', maximum_object_size = {MAX_OBJECT_BYTES})"
            )
            connection.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM {reader}")
            make_doubles_exact(connection, name)
            yield LoadedTable(name)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except (duckdb.Error, InputError) as error:
        raise InputError(
            f"{path} cannot be read as {kind}: {_DESCRIPTOR_PATH.sub(lambda _: path, str(error))[:500]}"
        ) from error


def _load_workbook(connection: Connection, descriptor: int, stem: str, taken: Collection[str]) -> Iterator[LoadedTable]:
    # Imported here: most files are no workbooks.
    from mcp_tools.tables.workbooks import read_sheets  # noqa: PLC0415

    for number, sheet in enumerate(read_sheets(descriptor)):
        name = make_unique(stem if number == 0 else f"{stem}_{make_table_name(sheet.name)}", taken)
        _read_rows(connection, sheet.descriptor, sheet.names)
        notes = convert_columns(connection, _RAW, name, given=sheet.types)
        connection.execute(f"DROP TABLE {_RAW}")
        yield LoadedTable(name, tuple(sheet.formats), (*sheet.notes, *notes, *describe_total(connection, name)))


def _open_text(descriptor: int) -> int:
    if os.fstat(descriptor).st_size == 0:
        raise InputError("the file is empty")
    return to_utf8(descriptor)


def load_text(connection: Connection, name: str, descriptor: int, delimiter: str) -> list[str]:
    """Loads delimited text in UTF-8 as table `name`; gives notes on it. Raises `InputError`."""
    table = find_csv_table(descriptor, delimiter)
    notes = [f"above the table: {title}" for title in table.titles]
    if table.dialect.is_aligned:
        notes.append("spaces place its cells below each other: each line is one column")
    if table.header_rows > 1:
        first = table.offset - table.header_rows + 1
        notes.append(f"rows {first} to {table.offset} are the header; its names and units are joined")
    if not _read_plain_rows(connection, table):
        squared = square_rows(table)
        _read_rows(connection, squared.descriptor, squared.names)
        notes += squared.notes
    notes += convert_columns(connection, _RAW, name, decimal_mark=_guess_mark(connection, table.dialect.delimiter))
    connection.execute(f"DROP TABLE {_RAW}")
    return [*notes, *describe_total(connection, name)]


def _guess_mark(connection: Connection, delimiter: str) -> str:
    """The decimal mark that is likely beside a delimiter: most programs write points between commas, and between tabs
    too unless a comma is in a number there. Empty where any is as likely."""
    if delimiter != "\t":
        return "." if delimiter == "," else ""
    (commas,) = connection.execute(
        f"SELECT count(*) FROM {_RAW} WHERE regexp_matches(CAST({_RAW} AS VARCHAR), '\\d,\\d')"
    ).fetchone()
    return "" if commas else "."


def _read_plain_rows(connection: Connection, table: CsvTable) -> bool:
    """Reads the text as it is, by DuckDB alone, which is quick. False, and nothing is read, unless every row has as
    many cells as the first and no line is lost."""
    if not may_be_plain(table):
        return False
    try:
        _read_rows(connection, table.descriptor, table.names, table)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except duckdb.Error:
        return False
    lines = count_lines(table)
    (rows,) = connection.execute(f"SELECT count(*) FROM {_RAW}").fetchone()
    if rows != lines:  # DuckDB drops what follows a quote that nothing closes
        columns = [quote(name) for name in make_names(table.names)]
        breaks = " + ".join(f"coalesce(sum(length({one}) - length(replace({one}, chr(10), ''))), 0)" for one in columns)
        (inner,) = connection.execute(f"SELECT {breaks} FROM {_RAW}").fetchone()
        if rows + inner != lines:
            connection.execute(f"DROP TABLE {_RAW}")
            return False
    return True


def _read_rows(connection: Connection, descriptor: int, names: Sequence[str], table: CsvTable | None = None) -> None:
    """Makes the table of text of rows of CSV; shorter rows are filled up only if they are written here (no `table`)."""
    columns = ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in make_names(names))
    delimiter, skipped = (table.dialect.delimiter, table.lines) if table else (",", 0)
    connection.execute(
        f"CREATE TABLE {_RAW} AS SELECT * FROM read_csv('/dev/fd/{descriptor}', auto_detect = false, header = false, "
        f"delim = {quote_literal(delimiter)}, quote = '\"', escape = '\"', skip = {skipped}, columns = {{{columns}}}, "
        f"null_padding = {table is None}, strict_mode = true, parallel = false)"
    )


def add_aliases(connection: Connection, tables: dict[str, str]) -> None:
    """Lets SQL name a table by its file too (`FROM 'orders.csv'`), and the only table `data`."""
    table_names = {name.lower() for name in tables}
    first: dict[str, str] = {}
    for table, path in tables.items():
        first.setdefault(path, table)
        first.setdefault(PurePosixPath(path).name, table)
    if len(tables) == 1:
        first["data"] = next(iter(tables))
    for alias, table in first.items():
        if alias.lower() not in table_names:
            table_names.add(alias.lower())
            connection.execute(f"CREATE VIEW {quote(alias)} AS FROM {quote(table)}")


def make_table_name(text: str) -> str:
    """A name that needs no quotes in SQL: `2026 Q1-orders` becomes `t2026_q1_orders`."""
    name = re.sub(r"\W+", "_", text.lower()).strip("_") or "table"
    return f"t{name}" if name[0].isdigit() else name


def list_reserved_words(connection: Connection) -> set[str]:
    """The words that SQL takes as no name without quotes."""
    rows = connection.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
    return {str(row[0]) for row in rows.fetchall()}


def make_unique(name: str, taken: Collection[str]) -> str:
    """The name, with a number where it is taken."""
    return next(one for one in chain((name,), (f"{name}_{number}" for number in count(2))) if one not in taken)
