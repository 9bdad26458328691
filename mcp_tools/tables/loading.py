"""Loads table files into DuckDB: CSV, TSV, XLSX, Parquet, JSON lines.

Text columns get the first type that all their values fit. Decimal numbers become DECIMAL, so that sums are exact.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import duckdb

from mcp_tools.tables.csv_text import PreparedText, prepare_text
from mcp_tools.tables.numbers import TYPES, ColumnType
from mcp_tools.tables.text_files import InputError, to_utf8

SAMPLE_ROWS = 1_000
"""Rows that narrow down the possible types of a column, before every row is checked."""
MAX_COLUMNS = 1_000
MAX_OBJECT_BYTES = 16 * 1024 * 1024
"""The longest line of a JSON file; DuckDB allocates several buffers of this size."""
_DATA_CELL = re.compile(r"[+-]?\d+([.,]\d+)*%?|\d{4}-\d{2}-\d{2}.*")
_DESCRIPTOR_PATH = re.compile(r"/dev/fd/\d+")
_YEAR = re.compile(r"(19|20)\d\d")

_OWN_DIALECT = """delim = ',', quote = '"', escape = '"', skip = 0, null_padding = true"""
"""Of the text that is made of a sheet."""

Connection = Any
"""A `duckdb.DuckDBPyConnection`, which has no complete type stubs."""


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
            text_file = prepare_text(to_utf8(descriptor), "\t" if kind == "tsv" else None)
            name = load_text(connection, make_unique(stem, taken), text_file)
            yield LoadedTable(name, notes=tuple(f"above the table: {title}" for title in text_file.titles))
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
        reader = f"read_csv('/dev/fd/{sheet.descriptor}', all_varchar = true, parallel = false, {_OWN_DIALECT}"
        connection.execute(f"CREATE TABLE raw_text AS SELECT * FROM {reader}, header = {sheet.has_header})")
        convert_columns(connection, "raw_text", name, decimal_comma=False, given=sheet.types)
        connection.execute("DROP TABLE raw_text")
        yield LoadedTable(name, tuple(sheet.formats), tuple(sheet.notes))


def load_text(connection: Connection, name: str, found: PreparedText) -> str:
    """Loads delimited UTF-8 text from a descriptor as table `name`; what is not known is detected. Returns the name."""
    source = f"/dev/fd/{found.descriptor}"
    if os.fstat(found.descriptor).st_size == 0:
        raise InputError("the file is empty")
    given = f", delim = {quote_literal(found.delimiter)}" if found.delimiter else ""
    sniffed = connection.execute(
        f"SELECT Delimiter, Quote, Escape, SkipRows FROM sniff_csv('{source}', all_varchar = true{given})"
    ).fetchone()
    delimiter = found.delimiter or str(sniffed[0])
    dialect = f"delim = {quote_literal(delimiter)}, skip = {int(sniffed[3])}, null_padding = true, strict_mode = false"
    for option, value in (("quote", sniffed[1]), ("escape", found.escape or sniffed[2])):
        dialect += f", {option} = {quote_literal('' if value == '(empty)' else str(value))}"
    reader = f"read_csv('{source}', all_varchar = true, parallel = false, {dialect}"
    first = connection.execute(f"SELECT * FROM {reader}, header = false) LIMIT 1").fetchone()
    has_header = first is None or not any(is_data_cell(str(cell or "").strip()) for cell in first)
    connection.execute(f"CREATE TABLE raw_text AS SELECT * FROM {reader}, header = {has_header})")
    convert_columns(connection, "raw_text", name, decimal_comma=delimiter != ",")
    connection.execute("DROP TABLE raw_text")
    return name


def convert_columns(
    connection: Connection, source: str, target: str, *, decimal_comma: bool, given: Sequence[str] = ()
) -> None:
    """Makes `target` of the text columns of `source`, each with its `given` type, or the first that all its values
    fit."""
    columns = [str(row[0]) for row in connection.execute(f"DESCRIBE {quote(source)}").fetchall()]
    if len(columns) > MAX_COLUMNS:
        raise InputError(f"the table has {len(columns):,} columns; the limit is {MAX_COLUMNS:,}")
    types = [one for one in TYPES if decimal_comma or one.separator != ","]
    known_kinds = {column: kind for column, kind in zip(columns, given, strict=False) if kind}
    candidates = {column: types for column in columns if column not in known_kinds}
    # First a sample, so that the whole is checked against the few types that are possible.
    for rows in (f"(FROM {quote(source)} LIMIT {SAMPLE_ROWS})", quote(source)):
        candidates = find_fitting_types(connection, rows, candidates)
    parts = []
    for column in columns:
        text, scale = f"nullif(trim({quote(column)}), '')", 0
        fitting = candidates.get(column)
        convert = f"CAST({text} AS {known_kinds[column]})" if column in known_kinds else quote(column)
        if fitting:
            text = fitting[0].clean.format(text=text)
            if separator := fitting[0].separator:
                decimals = f"max(length(split_part({text}, '{separator}', 2)))"
                scale = connection.execute(f"SELECT {decimals} FROM {quote(source)}").fetchone()[0]
            convert = fitting[0].expression.format(text=text, scale=scale)
        parts.append(f"{convert} AS {quote(column)}")
    connection.execute(f"CREATE TABLE {quote(target)} AS SELECT {', '.join(parts)} FROM {quote(source)}")


def find_fitting_types(
    connection: Connection, rows: str, candidates: dict[str, list[ColumnType]]
) -> dict[str, list[ColumnType]]:
    """The types that all values of a column fit. A column without any value stays text."""
    parts = ["count(*)"]
    for column, types in candidates.items():
        text = f"nullif(trim({quote(column)}), '')"
        parts.append(f"count({text})")
        parts += [f"count(*) FILTER (NOT regexp_full_match({text}, {quote_literal(one.pattern)}))" for one in types]
    figures = iter(connection.execute(f"SELECT {', '.join(parts)} FROM {rows}").fetchone()[1:])
    fitting: dict[str, list[ColumnType]] = {}
    for column, types in candidates.items():
        has_values = next(figures) > 0
        fits = [next(figures) == 0 for _ in types]
        fitting[column] = [one for one, fit in zip(types, fits, strict=True) if fit and has_values]
    return fitting


def make_doubles_exact(connection: Connection, table: str) -> None:
    """Turns columns of DOUBLE with few decimals into DECIMAL: JSON and Parquet hold prices as doubles."""
    doubles = [
        str(name) for name, kind, *_ in connection.execute(f"DESCRIBE {quote(table)}").fetchall() if kind == "DOUBLE"
    ]
    exact = next(one for one in TYPES if one.separator == ".")
    for column in doubles:
        text = f"rtrim(rtrim(CAST({quote(column)} AS VARCHAR), '0'), '.')"
        misfits, scale = connection.execute(
            f"SELECT count(*) FILTER (NOT regexp_full_match({text}, {quote_literal(exact.pattern)})), "
            f"coalesce(max(length(split_part({text}, '.', 2))), 0) FROM {quote(table)}"
        ).fetchone()
        if misfits == 0:
            connection.execute(
                f"ALTER TABLE {quote(table)} ALTER {quote(column)} TYPE DECIMAL(38, {scale}) "
                f"USING CAST(CAST({quote(column)} AS VARCHAR) AS DECIMAL(38, {scale}))"
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


def is_data_cell(text: str) -> bool:
    """Whether a cell of the first row is a value rather than the name of a column; a year may be a name."""
    return _DATA_CELL.fullmatch(text) is not None and _YEAR.fullmatch(text) is None


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"
