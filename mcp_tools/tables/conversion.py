"""Gives columns of text the types that their values fit. Decimal numbers become DECIMAL, so that sums are exact.

What a point or a comma in a number means, and what comes first in a date, is decided once for a file: by the columns
that can be read in one way only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.text.table_head import NO_VALUES
from mcp_tools.tables.moments import MOMENTS, SHORT_MOMENT, names_dates
from mcp_tools.tables.numbers import EXACT_POINT, NUMBERS, PLAIN_NUMBERS, ColumnType
from mcp_tools.tables.text_files import InputError

SAMPLE_ROWS = 1_000
"""Rows that narrow down the possible types of a column, before every row is checked."""
_SAMPLE_CELLS = 100_000
MAX_COLUMNS = 1_000
NUMBER = "NUMBER"
"""The given type of a column whose numbers are written with a decimal point."""
_NEARLY_ALL = 0.8
"""The share of a text column's values that fit a type, from which on a note says which do not."""
_FEWEST = 5
"""Values of a text column from which on that share says something."""
_MAX_NOTED = 10
"""Columns with notes of one kind."""
TYPES = (*NUMBERS, *MOMENTS, ColumnType(r"(?i:true|false)", "CAST({text} AS BOOLEAN)"))
_DECIMALS = frozenset({".", ","})

Connection = Any
"""A `duckdb.DuckDBPyConnection`, which has no complete type stubs."""


@dataclass
class _Column:
    """A column of text: the types that it may have, and what was counted for each."""

    name: str
    types: Sequence[ColumnType]
    is_evidence: bool = True
    """Whether its values say how the file writes numbers."""
    fitting: list[ColumnType] = field(default_factory=list)
    nearest: ColumnType | None = None
    """The type that most values fit where no type fits all."""
    left_out: int = 0
    """Cells that say that they have no value."""

    @property
    def text(self) -> str:
        """An SQL expression of a value's text; NULL where there is no value."""
        column = quote(self.name)
        return f"CASE WHEN trim({column}) IN ({_NOTHING}) THEN NULL ELSE trim({column}) END"

    @property
    def marks(self) -> set[str]:
        """What the types that fit say of the file."""
        return set() if self.fitting and not self.fitting[0].mark else {one.mark for one in self.fitting if one.mark}


def convert_columns(
    connection: Connection, source: str, target: str, *, decimal_mark: str = "", given: Sequence[str] = ()
) -> list[str]:
    """Makes `target` of the text columns of `source`, each with its `given` type, or the first that all its values fit.

    `decimal_mark` is what is likely where no column decides. Gives notes on what a reader of the table should know.
    """
    names = [str(row[0]) for row in connection.execute(f"DESCRIBE {quote(source)}").fetchall()]
    if len(names) > MAX_COLUMNS:
        raise InputError(f"the table has {len(names):,} columns; the limit is {MAX_COLUMNS:,}")
    kinds = dict(zip(names, [*given, *[""] * len(names)], strict=False))
    columns = [
        _Column(name, PLAIN_NUMBERS if kinds[name] == NUMBER else TYPES, kinds[name] != NUMBER)
        for name in names
        if kinds[name] in {"", NUMBER}
    ]
    _find_types(connection, source, columns)
    notes: list[str] = []
    chosen = _choose_types(connection, source, columns, decimal_mark, notes)
    scales = _count_decimals(connection, source, columns, chosen)
    by_name = {column.name: column for column in columns}
    parts = []
    for name in names:
        convert = quote(name)
        if name not in by_name:
            convert = f"CAST(nullif(trim({quote(name)}), '') AS {kinds[name]})"
        elif (column_type := chosen.get(name)) is not None:
            text = column_type.clean.format(text=by_name[name].text)
            convert = column_type.expression.format(text=text, scale=scales.get(name, 0))
        parts.append(f"{convert} AS {quote(name)}")
    is_filled = f"coalesce({', '.join(map(quote, names))}) IS NOT NULL"
    connection.execute(
        f"CREATE TABLE {quote(target)} AS SELECT {', '.join(parts)} FROM {quote(source)} WHERE {is_filled}"
    )
    return [*notes, *_describe_values(connection, source, columns, chosen)]


def _find_types(connection: Connection, source: str, columns: Sequence[_Column]) -> None:
    """Finds the types that all values of a column fit: a sample first, so that the whole is checked against few."""
    limit = max(100, min(SAMPLE_ROWS, _SAMPLE_CELLS // max(1, len(columns))))
    names = ", ".join(quote(column.name) for column in columns)
    rows = connection.execute(f"SELECT {names or 'NULL'} FROM {quote(source)} LIMIT {limit}").fetchall()
    samples = {
        column.name: Counter(text for row in rows if (text := (row[at] or "").strip(" ")) not in _NO_TEXTS)
        for at, column in enumerate(columns)
    }
    first: dict[str, list[ColumnType]] = {}
    for column in columns:
        possible = _list_possible(column, samples[column.name], is_first=True)
        if possible:
            first[column.name] = list(_take_first(possible))
    rest: dict[str, list[ColumnType]] = {}
    for types in (first, rest):
        for column, misfits, values in _count_misfits(connection, quote(source), types, columns):
            checked = types[column.name]
            column.fitting = [one for one, count in zip(checked, misfits, strict=True) if not count and values]
            if types is first and values and not column.fitting:
                others = [one for one in _list_possible(column, samples[column.name]) if one not in checked]
                rest |= {column.name: others} if others else {}


def _list_possible(column: _Column, sample: Counter[str], *, is_first: bool = False) -> list[ColumnType]:
    """The types whose pattern all values of a sample have; only the preferred one, if it fits any file and `is_first`.
    Notes the nearest type too. A column without values in the sample may have any."""
    allowed = (1 - _NEARLY_ALL) * sample.total()
    possible: list[ColumnType] = []
    fewest = allowed
    for column_type in column.types:
        misfits = 0
        for text, count in sample.items():
            misfits += 0 if column_type.matches(text) else count
            if misfits > allowed:
                break
        if not misfits:
            possible.append(column_type)
            if is_first and not column_type.mark and sample:
                break
        if misfits <= fewest and sample.total() >= _FEWEST and (column.nearest is None or misfits < fewest):
            column.nearest, fewest = column_type, misfits
    return possible


def _take_first(types: Sequence[ColumnType]) -> Iterator[ColumnType]:
    """Yields the types to check first: the preferred one if it fits any file, else the first for each mark."""
    if not types[0].mark:
        yield types[0]
        return
    marks = dict.fromkeys(one.mark for one in types if one.mark)
    yield from (next(one for one in types if one.mark == mark) for mark in marks)


def _count_misfits(
    connection: Connection, rows: str, types: Mapping[str, Sequence[ColumnType]], columns: Sequence[_Column]
) -> Iterator[tuple[_Column, list[int], int]]:
    """Yields each column with how many of its values do not fit each type, and how many there are."""
    parts = ["count(*)"]
    for column in columns:
        if column.name in types:
            parts += [f"count(nullif(trim({quote(column.name)}), ''))", f"count({column.text})"]
            parts += [f"count(*) FILTER (NOT {_make_condition(one, column.text)})" for one in types[column.name]]
    figures = iter(connection.execute(f"SELECT {', '.join(parts)} FROM {rows}").fetchone()[1:])
    for column in columns:
        if column.name in types:
            cells, values = next(figures), next(figures)
            column.left_out = cells - values
            yield column, [next(figures) for _ in types[column.name]], values


def _make_condition(column_type: ColumnType, text: str) -> str:
    matches = f"regexp_full_match({text}, {quote_literal(column_type.pattern)})"
    if not column_type.check:
        return matches
    return f"(CASE WHEN {matches} THEN {column_type.check.format(text=text)} ELSE {text} IS NULL END)"


def _choose_types(
    connection: Connection, source: str, columns: Sequence[_Column], likely: str, notes: list[str]
) -> dict[str, ColumnType]:
    """The type of each column that is not text. Adds a note for each that can be read in two ways."""
    decided = [next(iter(one.marks)) for one in columns if one.is_evidence and len(one.marks) == 1]
    decimals = {mark for mark in decided if mark in _DECIMALS}
    orders = {mark for mark in decided if mark not in _DECIMALS}
    if not orders and decimals == {","}:
        orders = {"day"}  # no country that writes a decimal comma puts the month first
    is_likely = not decimals and bool(likely)
    decimals = {likely} if is_likely else decimals
    chosen: dict[str, ColumnType] = {}
    noted = 0
    has_short_dates = _has_short_dates(columns)
    for column in columns:
        marks = column.marks
        if column.fitting and column.fitting[0].is_code_like and not has_short_dates:
            if noted < _MAX_NOTED:
                noted += 1
                notes.append(_describe_code(connection, source, column))
            column.nearest = None
            continue
        if len(marks) > 1:
            is_decimal = marks <= _DECIMALS
            marks = decimals if is_decimal else orders
            if (len(marks) != 1 or (is_decimal and is_likely)) and noted < _MAX_NOTED:
                noted += 1
                notes.append(_describe_choice(connection, source, column, marks, is_decimal=is_decimal))
            if len(marks) != 1:
                column.nearest = None
                continue
        fitting = [one for one in column.fitting if not marks or one.mark in marks]
        if fitting:
            chosen[column.name] = fitting[0]
    return chosen


def _has_short_dates(columns: Sequence[_Column]) -> bool:
    """Whether the values of the form of codes are dates: one such column has a name of dates, or times too."""
    return any(
        (one.fitting[0].is_code_like and names_dates(one.name)) or one.fitting[0] is SHORT_MOMENT
        for one in columns
        if one.fitting
    )


def _describe_code(connection: Connection, source: str, column: _Column) -> str:
    """What the values of a column may be besides codes."""
    (example,) = connection.execute(f"SELECT min({column.text}) FROM {quote(source)}").fetchone()
    return (
        f"column {column.name} is compared as text: {example} may be a date or a code; for dates write "
        f"strptime({quote(column.name)}, '%d.%m.%y')"
    )


def _describe_choice(
    connection: Connection, source: str, column: _Column, marks: Iterable[str], *, is_decimal: bool
) -> str:
    """What a value of a column may mean, and how it was read."""
    name = quote(column.name)
    (example,) = connection.execute(
        f"SELECT trim({name}) FROM {quote(source)} WHERE regexp_matches({name}, '[.,/-]') LIMIT 1"
    ).fetchone()
    if not is_decimal:
        sign = "-" if "-" in example else "/"
        year = "%Y" if len(example.split()[0].rpartition(sign)[2]) == 4 else "%y"
        formats = [f"strptime({name}, '{sign.join(parts)}')" for parts in (("%d", "%m", year), ("%m", "%d", year))]
        return (
            f"column {column.name} is compared as text: in {example} the day or the month may come first; write "
            f"{formats[0]} or {formats[1]}"
        )
    mark = next(iter(marks), "") if len(set(marks)) == 1 else ""
    if mark:
        other = "," if mark == "." else "."
        groups = "groups of thousands" if other in example else "a decimal mark"
        return (
            f"column {column.name}: the {_name_mark(example)} in {example} was read as {groups}; no column decides it"
        )
    sign, decimal = (",", f"replace({name}, ',', '.')") if "," in example else (".", name)
    return (
        f"column {column.name} is compared as text: the {_name_mark(example)} in {example} may be a decimal mark or "
        f"group thousands; write CAST({decimal} AS DECIMAL(18, 3)) or CAST(replace({name}, '{sign}', '') AS BIGINT)"
    )


def _name_mark(example: str) -> str:
    return "comma" if "," in example else "point"


def _count_decimals(
    connection: Connection, source: str, columns: Sequence[_Column], chosen: Mapping[str, ColumnType]
) -> dict[str, int]:
    """The most decimals of any value, for each exact column."""
    exact = [column for column in columns if column.name in chosen and chosen[column.name].is_decimal]
    if not exact:
        return {}
    parts = []
    for column in exact:
        column_type = chosen[column.name]
        text = column_type.clean.format(text=column.text)
        parts.append(f"coalesce(max(length(split_part({text}, '{column_type.mark}', 2))), 0)")
    scales = connection.execute(f"SELECT {', '.join(parts)} FROM {quote(source)}").fetchone()
    return {column.name: int(scale) for column, scale in zip(exact, scales, strict=True)}


def _describe_values(
    connection: Connection, source: str, columns: Sequence[_Column], chosen: Mapping[str, ColumnType]
) -> Iterator[str]:
    """Yields which cells have no value, which units a column mixes, and why a column of numbers is text."""
    for column in [one for one in columns if one.name in chosen and one.left_out][:_MAX_NOTED]:
        cells = "1 cell" if column.left_out == 1 else f"{column.left_out:,} cells"
        yield f"column {column.name}: {cells} such as - or n/a have no value here"
    for column in [one for one in columns if one.name in chosen and chosen[one.name].is_amount][:_MAX_NOTED]:
        yield from _describe_units(connection, source, column)
    for column in [one for one in columns if one.name not in chosen and one.nearest is not None][:_MAX_NOTED]:
        yield from _describe_misfits(connection, source, column)


def _describe_units(connection: Connection, source: str, column: _Column) -> Iterator[str]:
    unit = f"regexp_replace({column.text}, '[^€$£¥%A-Za-z]', '', 'g')"
    (units,) = connection.execute(f"SELECT list_sort(list(DISTINCT {unit})) FROM {quote(source)}").fetchone()
    if note := describe_units(column.name, [one for one in units or () if one is not None]):
        yield note
    elif units and "%" in units:
        yield f"column {column.name} is in per cent: 5 is 5 %"


def describe_units(column: str, units: Sequence[str]) -> str:
    """A note if the numbers of a column have several units, or only some are in per cent; empty otherwise. An empty
    unit is that of a bare number."""
    named = [one for one in units if one]
    if len(named) < 2 and not (len(units) > 1 and "%" in named):
        return ""
    listed = ", ".join([*named, *(["no unit"] if "" in units else [])])
    return f"column {column} mixes units ({listed}); the values are their bare numbers"


def _describe_misfits(connection: Connection, source: str, column: _Column) -> Iterator[str]:
    assert column.nearest is not None
    fits = _make_condition(column.nearest, column.text)
    misfits, example, values = connection.execute(
        f"SELECT count(*) FILTER (NOT {fits}), arg_min({column.text}, rowid) FILTER (NOT {fits}), count({column.text}) "
        f"FROM {quote(source)}"
    ).fetchone()
    # A code with a zero before it is right as text.
    if 0 < misfits <= (1 - _NEARLY_ALL) * values and not (example.isdecimal() and example.startswith("0")):
        what = "a date or a time" if column.nearest in MOMENTS else "a number"
        verb = "values is" if misfits == 1 else "values are"
        yield (
            f"column {column.name} is compared as text, because {misfits:,} of {values:,} {verb} not {what}, such as "
            f"{' '.join(example.split())[:40]!r}; use TRY_CAST"
        )


def make_doubles_exact(connection: Connection, table: str) -> None:
    """Turns columns of DOUBLE with few decimals into DECIMAL: JSON and Parquet hold prices as doubles."""
    doubles = [
        str(name) for name, kind, *_ in connection.execute(f"DESCRIBE {quote(table)}").fetchall() if kind == "DOUBLE"
    ]
    for column in doubles:
        text = f"rtrim(rtrim(CAST({quote(column)} AS VARCHAR), '0'), '.')"
        misfits, scale = connection.execute(
            f"SELECT count(*) FILTER (NOT regexp_full_match({text}, {quote_literal(EXACT_POINT.pattern)})), "
            f"coalesce(max(length(split_part({text}, '.', 2))), 0) FROM {quote(table)}"
        ).fetchone()
        if misfits == 0:
            connection.execute(
                f"ALTER TABLE {quote(table)} ALTER {quote(column)} TYPE DECIMAL(38, {scale}) "
                f"USING CAST(CAST({quote(column)} AS VARCHAR) AS DECIMAL(38, {scale}))"
            )


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


_NO_TEXTS = frozenset({"", *NO_VALUES})
_NOTHING = ", ".join(map(quote_literal, ("", *NO_VALUES)))
