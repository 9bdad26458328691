"""Loads table files into DuckDB: CSV, TSV, XLSX, Parquet, JSON lines.

Text columns get the first type that all their values fit. Decimal numbers become DECIMAL, so that sums are exact.
"""

import codecs
import csv
import os
import re
import tempfile
from collections.abc import Collection, Iterator
from datetime import datetime, time
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import duckdb

SAMPLE_ROWS = 1_000
"""Rows that narrow down the possible types of a column, before every row is checked."""
MAX_SCALE = 9
"""Decimal places of a column that is kept as DECIMAL; one with more becomes DOUBLE."""
MAX_INTEGER_DIGITS = 18
MAX_SHEETS = 20
MAX_COLUMNS = 1_000
MAX_OBJECT_BYTES = 16 * 1024 * 1024
"""The longest line of a JSON file; DuckDB allocates several buffers of this size."""
MAX_EXACT_INTEGER = 2**53
"""The largest integer up to which a double holds every integer."""
_CHUNK = 1 << 20
_DATA_CELL = re.compile(r"[+-]?\d+([.,]\d+)*%?|\d{4}-\d{2}-\d{2}.*")
_DESCRIPTOR_PATH = re.compile(r"/dev/fd/\d+")
_YEAR = re.compile(r"(19|20)\d\d")

Connection = Any
"""A `duckdb.DuckDBPyConnection`, which has no complete type stubs."""


class InputError(Exception):
    """Raised for a file that holds no table and for SQL that cannot run. The message is for the caller."""


class ColumnType(NamedTuple):
    """A type to try for a column of text."""

    pattern: str
    """Every value must match it."""
    expression: str
    """Converts a value: `{text}` stands for the text, `{scale}` for the most decimals of any value."""
    separator: str = ""
    """The decimal separator of an exact type; empty for the others."""


_INTEGER_PART = rf"(?:0|[1-9]\d{{0,{MAX_INTEGER_DIGITS - 1}}})"
_TYPES = (
    ColumnType(rf"[+-]?{_INTEGER_PART}", "CAST({text} AS BIGINT)"),
    ColumnType(rf"[+-]?{_INTEGER_PART}?(?:\.\d{{1,{MAX_SCALE}}})?", "CAST({text} AS DECIMAL(38, {scale}))", "."),
    # 1.234,50, as most of Europe writes it
    ColumnType(
        rf"[+-]?(?:{_INTEGER_PART}|[1-9]\d{{0,2}}(?:\.\d{{3}}){{1,5}})?(?:,\d{{1,{MAX_SCALE}}})?",
        "CAST(replace(replace({text}, '.', ''), ',', '.') AS DECIMAL(38, {scale}))",
        ",",
    ),
    # An integer of more than 15 digits would lose some: it is an identifier and stays text.
    ColumnType(
        r"[+-]?(?:(?:0|[1-9]\d{0,14})(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?|(?i:nan|[+-]?inf)", "CAST({text} AS DOUBLE)"
    ),
    ColumnType(r"\d{4}-\d{2}-\d{2}", "CAST({text} AS DATE)"),
    ColumnType(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?", "CAST({text} AS TIMESTAMP)"),
    ColumnType(r"(?i:true|false)", "CAST({text} AS BOOLEAN)"),
)
"""In order of preference. A number with leading zeros is an identifier (a postal code) and stays text."""


def load_file(connection: Connection, file: dict[str, Any], taken: Collection[str]) -> Iterator[str]:
    """Loads the tables of one file and yields their names."""
    descriptor, path, kind = int(file["descriptor"]), str(file["path"]), str(file["format"])
    stem = make_table_name(PurePosixPath(path).stem)
    if stem in list_reserved_words(connection):
        stem += "_table"
    source = f"/dev/fd/{descriptor}"
    try:
        if kind == "xlsx":
            for number, (sheet, text) in enumerate(read_sheets(descriptor)):
                name = stem if number == 0 else f"{stem}_{make_table_name(sheet)}"
                yield load_text(connection, make_unique(name, taken), text, ",", has_header=True)
        elif kind in ("csv", "tsv"):
            text = to_utf8(descriptor)
            yield load_text(connection, make_unique(stem, taken), text, "\t" if kind == "tsv" else None)
        else:
            name = make_unique(stem, taken)
            reader = (
                f"read_parquet('{source}')"
                if kind == "parquet"
                else f"read_json('{source}', format = 'auto', maximum_object_size = {MAX_OBJECT_BYTES})"
            )
            connection.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM {reader}")
            make_doubles_exact(connection, name)
            yield name
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except (duckdb.Error, InputError) as error:
        raise InputError(
            f"{path} cannot be read as {kind}: {_DESCRIPTOR_PATH.sub(lambda _: path, str(error))[:500]}"
        ) from error


def load_text(
    connection: Connection, name: str, text: int, delimiter: str | None, *, has_header: bool | None = None
) -> str:
    """Loads delimited UTF-8 text from a descriptor as table `name`; what is not given is detected. Returns the name."""
    source = f"/dev/fd/{text}"
    if os.fstat(text).st_size == 0:
        raise InputError("the file is empty")
    given = f", delim = '{delimiter}'" if delimiter else ""
    found = connection.execute(
        f"SELECT Delimiter, Quote, Escape, SkipRows FROM sniff_csv('{source}', all_varchar = true{given})"
    ).fetchone()
    delimiter = delimiter or str(found[0])
    dialect = f"delim = {quote_literal(delimiter)}, skip = {int(found[3])}, null_padding = true, strict_mode = false"
    for option, value in (("quote", found[1]), ("escape", found[2])):
        dialect += f", {option} = {quote_literal('' if value == '(empty)' else str(value))}"
    reader = f"read_csv('{source}', all_varchar = true, parallel = false, {dialect}"
    if has_header is None:
        first = connection.execute(f"SELECT * FROM {reader}, header = false) LIMIT 1").fetchone()
        has_header = first is None or not any(is_data_cell(str(cell or "").strip()) for cell in first)
    connection.execute(f"CREATE TABLE raw_text AS SELECT * FROM {reader}, header = {has_header})")
    convert_columns(connection, "raw_text", name, decimal_comma=delimiter != ",")
    connection.execute("DROP TABLE raw_text")
    return name


def convert_columns(connection: Connection, source: str, target: str, *, decimal_comma: bool) -> None:
    """Makes `target` of the text columns of `source`, each with the first type that all its values fit."""
    columns = [str(row[0]) for row in connection.execute(f"DESCRIBE {quote(source)}").fetchall()]
    if len(columns) > MAX_COLUMNS:
        raise InputError(f"the table has {len(columns):,} columns; the limit is {MAX_COLUMNS:,}")
    types = [one for one in _TYPES if decimal_comma or one.separator != ","]
    candidates = dict.fromkeys(columns, types)
    # First a sample, so that the whole is checked against the few types that are possible.
    for rows in (f"(FROM {quote(source)} LIMIT {SAMPLE_ROWS})", quote(source)):
        candidates = find_fitting_types(connection, rows, candidates)
    parts = []
    for column, fitting in candidates.items():
        convert = quote(column)
        if fitting:
            text, scale = f"nullif(trim({quote(column)}), '')", 0
            if separator := fitting[0].separator:
                decimals = f"max(length(split_part({text}, '{separator}', 2)))"
                scale = connection.execute(f"SELECT {decimals} FROM {quote(source)}").fetchone()[0]
            convert = fitting[0].expression.format(text=text, scale=scale)
        parts.append(f"{convert} AS {quote(column)}")
    connection.execute(f"CREATE TABLE {quote(target)} AS SELECT {', '.join(parts)} FROM {quote(source)}")


def find_fitting_types(
    connection: Connection, rows: str, candidates: dict[str, list[ColumnType]]
) -> dict[str, list[ColumnType]]:
    """Returns the types that all values of a column fit. A column without any value stays text."""
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
    exact = next(one for one in _TYPES if one.separator == ".")
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
    known = {name.lower() for name in tables}
    first: dict[str, str] = {}
    for table, path in tables.items():
        first.setdefault(path, table)
        first.setdefault(PurePosixPath(path).name, table)
    if len(tables) == 1:
        first["data"] = next(iter(tables))
    for alias, table in first.items():
        if alias.lower() not in known:
            known.add(alias.lower())
            connection.execute(f"CREATE VIEW {quote(alias)} AS FROM {quote(table)}")


def read_sheets(descriptor: int) -> list[tuple[str, int]]:
    """Returns the name of each sheet that is not empty, and a descriptor of its rows as CSV. Raises `InputError`."""
    # Imported here: most files are no workbooks.
    import openpyxl  # type: ignore[import-untyped]  # noqa: PLC0415

    sheets = []
    with os.fdopen(os.dup(descriptor), "rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            for sheet in book.worksheets[:MAX_SHEETS]:
                text = open_temporary_file()
                is_empty = True
                with os.fdopen(os.dup(text), "w", encoding="utf-8", newline="") as output:
                    writer = csv.writer(output)
                    for row in sheet.iter_rows(values_only=True):
                        cells = [format_cell(value) for value in row]
                        if any(cells):
                            is_empty = False
                            writer.writerow(cells)
                if not is_empty:
                    sheets.append((str(sheet.title), text))
        except MemoryError:
            raise
        except Exception as error:  # the boundary to a parser of untrusted files, which raises what it likes
            raise InputError(f"it is no readable workbook ({type(error).__name__})") from error
    return sheets


def format_cell(value: object) -> str:
    """Returns a cell of a workbook as text that `convert_columns` reads back."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_INTEGER:
        return str(int(value))
    return str(value)


def to_utf8(descriptor: int) -> int:
    """Returns a descriptor of the same text in UTF-8: by its byte order mark, as UTF-8, else as Latin-1."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        encoding = detect_encoding(file)
        if encoding == "utf-8":
            return descriptor
        text = open_temporary_file()
        file.seek(0)
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        with os.fdopen(os.dup(text), "wb") as output:
            while chunk := file.read(_CHUNK):
                output.write(decoder.decode(chunk).encode())
    return text


def detect_encoding(file: BinaryIO) -> str:
    """Returns the encoding of a text file. Raises `InputError` for binary data."""
    start = file.read(8192)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\x00" in start:
        raise InputError("the file is no text file")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(start)
        while chunk := file.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else "utf-8"


def open_temporary_file() -> int:
    """Returns a descriptor of a new file that has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("table")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def make_table_name(text: str) -> str:
    """Returns a name that needs no quotes in SQL: `2026 Q1-orders` becomes `t2026_q1_orders`."""
    name = re.sub(r"\W+", "_", text.lower()).strip("_") or "table"
    return f"t{name}" if name[0].isdigit() else name


def list_reserved_words(connection: Connection) -> set[str]:
    """Returns the words that SQL takes as no name without quotes."""
    rows = connection.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
    return {str(row[0]) for row in rows.fetchall()}


def make_unique(name: str, taken: Collection[str]) -> str:
    """Returns the name, with a number where it is taken."""
    return next(one for one in chain((name,), (f"{name}_{number}" for number in count(2))) if one not in taken)


def is_data_cell(text: str) -> bool:
    """Whether a cell of the first row is a value rather than the name of a column; a year may be a name."""
    return _DATA_CELL.fullmatch(text) is not None and _YEAR.fullmatch(text) is None


def quote(name: str) -> str:
    """Returns an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Returns an SQL string."""
    return "'" + text.replace("'", "''") + "'"
