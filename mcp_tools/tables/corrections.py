"""Columns of a statement that no table has: what is meant, if only one thing can be.

Models write `WHERE paid` for a value of `status`, `customer` for `customer_id`, `month` for the month of the only date,
and a column of a second table without joining it. Where exactly one reading fits the tables, the statement is corrected
and the result says so; else the error names what there is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import duckdb

from mcp_tools.tables.loading import Connection, quote

MAX_CORRECTIONS = 4
"""Corrections of one statement; each runs it again."""
SHORTEST_PREFIX = 4
"""Characters of a column's name from which on its beginning stands for it."""
_UNKNOWN_COLUMN = re.compile(r'Referenced column "([^"]{1,200})" not found')
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_CONDITION_BEFORE = re.compile(r"(?:\b(?:WHERE|AND|OR|NOT|ON|HAVING)|\()\s*\Z", re.IGNORECASE)
_CONDITION_AFTER = re.compile(r"\s*(?:\Z|;|\)|(?:AND|OR|GROUP|ORDER|LIMIT|HAVING|QUALIFY)\b)", re.IGNORECASE)
_COMPARED_BEFORE = re.compile(r"(?:=|<>|!=|\bIN\s*\([^()]*,?|\bLIKE)\s*\Z", re.IGNORECASE)
DATE_PARTS = ("year", "quarter", "month", "week", "day", "weekday", "hour")
"""Functions of a date whose names models write as if they were columns."""
NAMED_PARTS = {"month": "monthname", "day": "dayname", "weekday": "dayname"}
"""The function for the name of a part."""
_DATE = re.compile(r"DATE\Z|TIMESTAMP")
_VALUE = r"(?:'[^']*'|\d+)"
_COMPARED_WITH = re.compile(
    rf"\s*(?:=|<>|!=|(?:NOT\s+)?(?:IN\s*\(|LIKE\b)|(<|>|BETWEEN\b)=?)\s*({_VALUE}(?:\s*,\s*{_VALUE})*)", re.IGNORECASE
)
"""What follows a compared column: the comparison, if it is about an order, and the values."""
_SINGLE_FROM = re.compile(r"\bFROM\s+\"?(\w+)\"?(?=\s|;|\Z)(?!\s*,)", re.IGNORECASE)

Columns = Mapping[str, Sequence[str]]
"""The columns of each table."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected statement and what was read in another way than it was written."""

    sql: str
    note: str


def correct_column(connection: Connection, sql: str, error: str, tables: Sequence[str]) -> Correction | None:
    """The statement with an unknown column replaced by the one thing that it can mean; None if there is none."""
    unknown = _UNKNOWN_COLUMN.search(error)
    if unknown is None:
        return None
    name = unknown[1]
    columns = _list_columns(connection, tables)
    part = _take_date_part(connection, sql, name.lower(), tables) if name.lower() in DATE_PARTS else None
    other = _read_as_known(connection, sql, name, columns)
    return part or other if part is None or other is None else None


def _read_as_known(connection: Connection, sql: str, name: str, columns: Columns) -> Correction | None:
    """The statement with the column or the value that an unknown name stands for."""
    near = _find_near_column(name, columns, sql)
    if near:
        return _replace(sql, name, quote(near), f"{name} was read as the column {near}")
    values = list(islice(_iterate_values(connection, name, [*columns]), 2))
    if len(values) == 1:
        return _correct_value(sql, name, *values[0])
    return _join_table(sql, name, columns)


def explain_column(connection: Connection, error: str, tables: Sequence[str]) -> str:
    """Where a column that the query does not find is: in another table, or as a value of a column; "" if nowhere."""
    unknown = _UNKNOWN_COLUMN.search(error)
    if unknown is None:
        return ""
    columns = _list_columns(connection, tables)
    for table, own in columns.items():
        if unknown[1].lower() in map(str.lower, own):
            other, key = next(_iterate_keys(table, columns), ("", ""))
            join = f": write FROM {quote(other)} JOIN {quote(table)} USING ({quote(key)})" if key else ""
            return f"; {unknown[1]!r} is a column of {table}{join}"
    for column, value in _iterate_values(connection, unknown[1], tables):
        return f"; {unknown[1]!r} is not a column but a value of {column}: write {column} = '{value}'"
    return ""


def _list_columns(connection: Connection, tables: Sequence[str]) -> dict[str, list[str]]:
    described = {name: connection.execute(f"DESCRIBE {quote(name)}").fetchall() for name in tables}
    return {table: [str(column) for column, *_ in rows] for table, rows in described.items()}


def _find_near_column(name: str, columns: Columns, sql: str) -> str:
    """The only column that begins with the unknown name, in a table that the statement names; "" if there is none."""
    named = {table: columns[table] for table in _list_named(sql, [*columns])}
    if len(name) < SHORTEST_PREFIX or any(name.lower() == one.lower() for own in columns.values() for one in own):
        return ""
    near = {one for own in named.values() for one in own if one.lower().startswith(name.lower())}
    return next(iter(near)) if len(near) == 1 else ""


def _iterate_values(connection: Connection, value: str, tables: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields each text column that has a value, and the value as it is written there."""
    for table in tables:
        for column, kind, *_ in connection.execute(f"DESCRIBE {quote(table)}").fetchall():
            if str(kind) != "VARCHAR":
                continue
            own = quote(str(column))
            search = f"SELECT {own} FROM {quote(table)} WHERE lower({own}) = lower(?) LIMIT 1"
            row = connection.execute(search, [value]).fetchone()
            if row is not None:
                yield str(column), str(row[0])


def _take_date_part(connection: Connection, sql: str, part: str, tables: Sequence[str]) -> Correction | None:
    """The statement with `month` and the like taken from the only date of the tables that it names."""
    dates = [one for one in _iterate_columns(connection, _list_named(sql, tables)) if _DATE.match(one[1])]
    function = _choose_function(connection, sql, part)
    if len(dates) != 1 or not function or (part == "hour" and dates[0][1] == "DATE"):
        return None
    value = f"{function}({quote(dates[0][0])})"
    return _replace(sql, part, value, f"{part} was read as {value}")


def _choose_function(connection: Connection, sql: str, part: str) -> str:
    """The function that gives what a statement takes a part of a date for: its name if it is compared with words, as in
    `month = 'October'`, else its number. "" if that is open: `day` alone may be the date itself, calendars number the
    days of the week in different ways, and no month is called `Oct`, so that a condition would silently hold for none.
    """
    compared = [_COMPARED_WITH.match(sql[end:]) for _, end in _find_places(sql, part)]
    values = [value.strip("'") for one in compared if one is not None for value in re.findall(_VALUE, one[2])]
    if not all(map(str.isdecimal, values)):
        name = "" if any(one is not None and one[1] for one in compared) else NAMED_PARTS.get(part, "")
        return name if name and all(_is_name(connection, name, value) for value in values) else ""
    is_open = part == "weekday" or (part == "day" and not all(compared))
    return "" if is_open else part


def _is_name(connection: Connection, function: str, word: str) -> bool:
    """Whether `monthname` or `dayname` gives this word, or one like this pattern, for any day of a year."""
    days = "range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 DAY) AS days(day)"
    search = f"SELECT 1 FROM {days} WHERE {function}(day) LIKE ? LIMIT 1"
    return connection.execute(search, [word]).fetchone() is not None


def _list_named(sql: str, tables: Sequence[str]) -> list[str]:
    """The tables that a statement names; all, if it names none."""
    words = {word.lower() for word in re.findall(r"\w+", _QUOTED.sub("", sql))}
    return [table for table in tables if table.lower() in words] or [*tables]


def _iterate_columns(connection: Connection, tables: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the name and the type of each column."""
    for table in tables:
        for column, kind, *_ in connection.execute(f"DESCRIBE {quote(table)}").fetchall():
            yield str(column), str(kind)


def _iterate_keys(table: str, columns: Columns) -> Iterator[tuple[str, str]]:
    """Yields the other tables that share a column with a table, and the column."""
    own = columns[table]
    yield from ((other, name) for other in columns for name in columns[other] if other != table and name in own)


def _correct_value(sql: str, name: str, column: str, value: str) -> Correction | None:
    """The statement with a bare value as a comparison, or in quotes where it is compared already."""
    literal = "'" + value.replace("'", "''") + "'"
    places = list(_find_places(sql, name))
    if not places:
        return None
    if all(_COMPARED_BEFORE.search(sql[:start]) for start, _ in places):
        return _replace(sql, name, literal, f"{name} was read as the text {literal}")
    if all(_CONDITION_BEFORE.search(sql[:start]) and _CONDITION_AFTER.match(sql[end:]) for start, end in places):
        condition = f"{quote(column)} = {literal}"
        return _replace(sql, name, condition, f"{name} was read as {condition}")
    return None


def _join_table(sql: str, name: str, columns: Columns) -> Correction | None:
    """The statement with the table that has the column joined, by the only column that both have. A column that is just
    named `id` numbers the rows of its own table."""
    owners = [table for table, own in columns.items() if name.lower() in map(str.lower, own)]
    bare = _QUOTED.sub(lambda text: " " * len(text[0]), sql)
    sources = list(_SINGLE_FROM.finditer(bare))
    if len(owners) != 1 or len(sources) != 1 or re.search(r"\bJOIN\b", bare, re.IGNORECASE):
        return None
    base = next((table for table in columns if table.lower() == sources[0][1].lower()), "")
    keys = [key for other, key in _iterate_keys(owners[0], columns) if other == base]
    if not base or len(keys) != 1 or keys[0].lower() == "id":
        return None
    joined = f"{quote(base)} JOIN {quote(owners[0])} USING ({quote(keys[0])})"
    start, end = sources[0].span()
    return Correction(f"{sql[:start]}FROM {joined}{sql[end:]}", f"{owners[0]} was joined by {keys[0]}, for {name}")


def _find_places(sql: str, name: str) -> Iterator[tuple[int, int]]:
    """Yields the places of a name in a statement, outside of text in quotes."""
    bare = _QUOTED.sub(lambda text: " " * len(text[0]), sql)
    for match in re.finditer(rf'(?<![\w."])(?:"{re.escape(name)}"|{re.escape(name)})(?![\w"(])', bare, re.IGNORECASE):
        yield match.span()


def _replace(sql: str, name: str, text: str, note: str) -> Correction | None:
    corrected, last = "", 0
    for start, end in _find_places(sql, name):
        corrected += sql[last:start] + text
        last = end
    return Correction(corrected + sql[last:], note) if last else None


def find_corrected(
    connection: Connection, sql: str, error: duckdb.BinderException, tables: Sequence[str]
) -> tuple[str, list[str]]:
    """A statement that can run once its unknown columns are corrected, and what was corrected. Raises the first error
    if there is none."""
    notes: list[str] = []
    failure: duckdb.Error = error
    while len(notes) < MAX_CORRECTIONS and isinstance(failure, duckdb.BinderException):
        corrected = correct_column(connection, sql, str(failure), tables)
        if corrected is None:
            break
        sql = corrected.sql
        notes.append(corrected.note)
        try:
            connection.execute(f"EXPLAIN {sql}")
        except duckdb.Error as again:
            failure = again
        else:
            return sql, notes
    raise error
