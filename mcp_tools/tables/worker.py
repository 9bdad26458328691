"""`python -m mcp_tools.tables.worker`: loads table files into DuckDB and runs one SQL statement on them.

Started by `mcp_tools.tables.process`: request as JSON on standard input, reply as JSON on standard output. The files
arrive as open file descriptors, so this process opens no path that a caller wrote.

Why a process: DuckDB cannot interrupt a single function call (`levenshtein` of two long texts ran for 200 s) and does
not count such a call's memory (`repeat('x', 2000000000)` took 4 GB under a limit of 256 MB). The kernel bounds the
address space here, and the parent kills the process when the time is over.
"""

import json
import math
import sys
import threading
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb

from agent.core.process_limits import leave_network, limit_memory, limit_time
from mcp_tools.tables.corrections import explain_column, find_corrected
from mcp_tools.tables.loading import Connection, LoadedTable, add_aliases, load_file, quote
from mcp_tools.tables.text_files import InputError

MAX_VALUES, MAX_VALUE_CHARS = 10, 40
"""A column with at most so many values, none longer than that, has them listed in its description."""
MAX_CELL_CHARS = 2_000
"""Longer text in a cell of the result is cut."""
MAX_ITEMS = 100
"""Items of a list or struct in a cell of the result."""
MAX_JSON_INTEGER = 2**53
"""Larger integers lose digits in JSON readers that use doubles, so they are returned as text."""


def main() -> None:
    """Serve one request."""
    request = json.load(sys.stdin)
    leave_network()
    limit_time(request["seconds"])
    try:
        reply = serve(request)
    except InputError as error:
        reply = {"problem": str(error)}
    except duckdb.InterruptException:
        reply = {"problem": "time"}
    except (MemoryError, duckdb.OutOfMemoryException):
        reply = {"problem": "memory"}
    except (duckdb.Error, ValueError, OSError) as error:
        reply = {"problem": f"the file cannot be read as a table: {error}"}
    json.dump(reply, sys.stdout, ensure_ascii=False)


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """The tables' descriptions and, if the request has SQL, its result. Raises `InputError`."""
    connection: Connection = duckdb.connect(
        ":memory:",
        config={
            "threads": "1",
            "memory_limit": f"{request['memory_bytes'] // 2}B",
            "temp_directory": "",  # nothing is spilled to disk
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # Else a FROM clause could name a Python variable of this module.
            "python_enable_replacements": "false",
        },
    )
    connection.execute("SELECT 1")  # DuckDB reserves its address space now, so that the limit is on top of that
    limit_memory(request["memory_bytes"])
    timer = threading.Timer(request["seconds"], connection.interrupt)
    timer.daemon = True
    timer.start()
    names: dict[str, str] = {}
    loaded: list[LoadedTable] = []
    for file in request["files"]:
        for table in load_file(connection, file, names):
            names[table.name] = file["path"]
            loaded.append(table)
    add_aliases(connection, names)
    # From here on SQL of the caller runs: no file, no extension, and no way to change that.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    if request.get("sql") is None:
        return {"tables": [describe(connection, table, names[table.name], request["rows"]) for table in loaded]}
    result = run_query(connection, request["sql"], request["rows"], list(names))
    tables = [{"table": one.name, "path": names[one.name], "notes": list(one.notes)} for one in loaded]
    return {"tables": tables, **result}


def run_query(connection: Connection, sql: str, limit: int, tables: Sequence[str]) -> dict[str, Any]:
    """Columns and rows of one SELECT statement, at most `limit` rows, and what was corrected in it. Raises
    `InputError`."""
    notes: list[str] = []
    try:
        _check_statement(connection, sql)
        try:
            connection.execute(sql)
        except duckdb.BinderException as error:
            sql, notes = find_corrected(connection, sql, error, tables)
            connection.execute(sql)
        columns = [{"name": str(column[0]), "type": str(column[1])} for column in connection.description or ()]
        rows = connection.fetchmany(limit + 1)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except duckdb.Error as error:
        hint = f"; the tables are {', '.join(tables)}" if isinstance(error, duckdb.CatalogException) else ""
        if "(INTERVAL)" in str(error):
            hint += "; add up or average spans as seconds: to_seconds(sum(epoch(column)))"
        if isinstance(error, duckdb.BinderException):
            hint += explain_column(connection, str(error), tables)
        raise InputError(f"{str(error).strip()}{hint}") from error
    return {
        "columns": columns,
        "rows": [[to_json(value) for value in row] for row in rows[:limit]],
        "more": len(rows) > limit,
        "corrections": notes,
    }


def _check_statement(connection: Connection, sql: str) -> None:
    """Raises `InputError` for anything but one SELECT statement."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise InputError(f"give exactly one SQL statement, not {len(statements)}")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI):
        kind = str(statements[0].type).rpartition(".")[2]
        raise InputError(f"only SELECT statements are allowed, this is {kind}")


def describe(connection: Connection, loaded: LoadedTable, path: str, sample: int) -> dict[str, Any]:
    """The size of a table and, for each column, its type and format, how many values are missing, the extremes, and
    all values of a text that has only a few."""
    table = loaded.name
    formats = loaded.formats
    schema = connection.execute(f"DESCRIBE {quote(table)}").fetchall()
    parts = ["count(*)"]
    for name, kind, *_ in schema:
        is_nested = "(" in kind.removeprefix("DECIMAL(") or kind.endswith("]")
        extremes = ("NULL", "NULL") if is_nested else (f"min({quote(name)})", f"max({quote(name)})")
        different = f"approx_count_distinct({quote(name)})" if kind == "VARCHAR" else "NULL"
        parts += [f"count({quote(name)})", *extremes, different]
    count, *figures = connection.execute(f"SELECT {', '.join(parts)} FROM {quote(table)}").fetchone()
    columns = [
        {
            "name": name,
            "type": kind,
            "format": formats[at] if at < len(formats) else "",
            "missing": count - figures[4 * at],
            "min": to_json(figures[4 * at + 1]),
            "max": to_json(figures[4 * at + 2]),
            "values": list_values(connection, table, name, figures[4 * at + 3]),
        }
        for at, (name, kind, *_) in enumerate(schema)
    ]
    rows = connection.execute(f"SELECT * FROM {quote(table)} LIMIT {int(sample)}").fetchall()
    sample_rows = [[to_json(value) for value in row] for row in rows]
    return {
        "table": table,
        "path": path,
        "row_count": count,
        "columns": columns,
        "sample": sample_rows,
        "notes": list(loaded.notes),
    }


def list_values(connection: Connection, table: str, column: str, different: int | None) -> list[str]:
    """All values of a text column with at most `MAX_VALUES` short ones; else none. They say what a condition can ask
    for. `different` is about how many there are; None for other columns."""
    if different is None or different > 2 * MAX_VALUES:
        return []
    name = quote(column)
    rows = connection.execute(
        f"SELECT DISTINCT {name} FROM {quote(table)} WHERE {name} IS NOT NULL ORDER BY {name} LIMIT {MAX_VALUES + 1}"
    ).fetchall()
    texts = [str(value) for (value,) in rows]
    is_few = len(texts) <= MAX_VALUES and all(len(text) <= MAX_VALUE_CHARS for text in texts)
    return texts if is_few else []


def to_json(value: Any) -> Any:
    """A value of a result as JSON can hold it without loss; what it cannot hold as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_JSON_INTEGER else str(value)
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return to_json(int(value))
        return float(value) if len(value.as_tuple().digits) <= 15 else str(value.normalize())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time | timedelta):
        return format_span(value) if isinstance(value, timedelta) else value.isoformat()
    if isinstance(value, bytes):
        return value.hex()[:MAX_CELL_CHARS]
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value[:MAX_ITEMS]]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in list(value.items())[:MAX_ITEMS]}
    return str(value)[:MAX_CELL_CHARS]


def format_span(span: timedelta) -> str:
    """A span as hours, minutes and seconds: 27:05:00."""
    seconds = abs(span).total_seconds()
    whole = int(seconds)
    part = f"{seconds - whole:.3f}"[1:].rstrip("0").rstrip(".")
    sign = "-" if span < timedelta() else ""
    return f"{sign}{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}{part}"


if __name__ == "__main__":
    main()
