"""The header of a table: the row that names what is below it. Used for CSV files and for sheets."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice, pairwise, zip_longest
from typing import Literal, NamedTuple

from agent.text.units import is_unit

Kind = Literal["", "text", "label", "moment", "number"]
"""What a cell is: empty, a text, a year or month that may name a column, a date or time, or a number."""

_SAMPLE = 60
"""Rows from the first on that show where the table begins."""
_MAX_TOP = 20
_BODY = 12
"""Rows below a header that show what is in its columns."""
_SAME = 0.8
"""The share of a column's cells that are of one kind, from which on it has that kind."""
_WIDTH_SHARE = 0.5
_CLEAR = 2
"""Columns in which a row below an empty one must differ more from those below it than a plain header does."""
_LONGEST_UNIT = 12
_DAYS = 3
"""Numbers that follow each other, from which on they may name days."""
_DIGITS = re.compile(r"\d+")

_SIGN = r"[-+\u2212]"
_UNIT = r"(?:[€$£¥%]|[A-Z]{3}|kr)"
_NUMBER = re.compile(
    rf"\(?{_SIGN}?[\s\u00a0]?(?:{_UNIT}[\s\u00a0]?)?{_SIGN}?\d[\d.,'\u00a0\u202f ]*(?:[eE][-+]?\d+)?"
    rf"[\s\u00a0]?{_SIGN}?(?:{_UNIT})?\)?|[.,]\d+"
)
_LABEL = re.compile(r"(?:19|20)\d\d|(?:0?[1-9]|1[0-2])[./-](?:19|20)\d\d|(?:19|20)\d\d[./-](?:0?[1-9]|1[0-2])")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}.*|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})(?: .*)?|\d{1,2}:\d{2}(?::\d{2})?")
NO_VALUES = (
    *("-", "--", "\u2013", "\u2014", "?", "n/a", "N/A", "NA", "#N/A", "n.a.", "N.A.", "null", "NULL", "Null"),
    *("nan", "NaN", "NAN", "<NA>", "None", "NaT"),
)
"""What people and programs write in a cell that has no value."""


class HeadCell(NamedTuple):
    """A cell as far as the search for a header needs it."""

    kind: Kind
    text: str


class Head(NamedTuple):
    """Where a table begins: its header are the rows from `top` to before `bottom`, those above are titles. Without a
    header both are the first row of values, and `names` is empty."""

    top: int = 0
    bottom: int = 0
    names: tuple[str, ...] = ()

    @property
    def has_names(self) -> bool:
        """Whether the table has a header."""
        return self.bottom > self.top


class _Table(NamedTuple):
    """A table of a text, as far as it is compared with the one above it."""

    top: int
    names: Sequence[str]
    kinds: Sequence[Kind]
    contrast: int


def find_text_head(rows: Sequence[Sequence[str]]) -> Head:
    """The head of a table of texts, whose rows are as long as they are written."""
    return _find_head_of(_classify(rows))


def split_tables(rows: Sequence[Sequence[str]]) -> list[Sequence[Sequence[str]]]:
    """The rows of each table of a text: there are several where empty rows divide rows that each have a header of their
    own. Lines of one cell between two tables are above the lower one."""
    starts = [0]
    below, has_title = 0, False
    above: _Table | None = None
    for begin, end in _iter_blocks(rows):
        block = rows[begin:end]
        table = _find_table(block, is_first=above is None)
        has_title |= table is not None and table.top > 0 and not _has_cells(block[: table.top])
        if table is not None and (above is None or has_title or not _goes_on(above, table)):
            if above is not None:
                starts.append(below)
            below, above, has_title = end, table, False
        elif _has_cells(block):
            below, has_title = end, False
        else:
            has_title = True
    return [rows[start:stop] for start, stop in pairwise([*starts, len(rows)])]


def _iter_blocks(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Yields where rows begin and end that follow each other without an empty one."""
    for is_filled, group in groupby(range(len(rows)), key=lambda index: any(rows[index])):
        if is_filled:
            places = list(group)
            yield places[0], places[-1] + 1


def _has_cells(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row has more than one filled cell."""
    return any(sum(map(bool, row)) > 1 for row in rows)


def _find_table(rows: Sequence[Sequence[str]], *, is_first: bool) -> _Table | None:
    """The table of rows that have a header, which names values of another kind below it: in half of its columns if
    the first one has but one row. `Firm,Sample,Ltd` above `Day,2024-01-01,x` are lines with a label each."""
    grid = _classify(rows)
    head = _find_head_of(grid)
    contrast = count_contrast(grid, head.bottom - 1) if head.has_names and head.bottom < len(grid) else 0
    are_labels = is_first and len(grid) == head.bottom + 1 and contrast * 2 < len(head.names)
    is_table = contrast > 0 and not are_labels
    return _Table(head.top, head.names, _find_kinds(grid[head.bottom :]), contrast) if is_table else None


def _goes_on(above: _Table, table: _Table) -> bool:
    """Whether what looks like a header is a row of the table above that lacks a value, such as `open` in a column of
    numbers: it repeats no name, and what is below it fits that table."""
    pairs = zip_longest(above.kinds, table.kinds)
    fits = all(one == other or "" in (one, other) for one, other in pairs)
    return fits and table.contrast < _CLEAR and set(above.names).isdisjoint(filter(None, table.names))


def _classify(rows: Sequence[Sequence[str]]) -> list[list[HeadCell]]:
    first = islice(rows, _SAMPLE + _BODY)
    return [[HeadCell(classify_text(text), " ".join(text.split())) for text in row] for row in first]


def _find_head_of(grid: Sequence[Sequence[HeadCell]]) -> Head:
    start = _count_short_rows(grid)
    head = find_head(grid[start:])
    return Head(head.top + start, head.bottom + start, head.names)


def _count_short_rows(rows: Sequence[Sequence[HeadCell]]) -> int:
    """The rows above a table that are shorter than its rows. A single one is a header that lacks a name, unless an
    empty row follows."""
    lengths = Counter(len(row) for row in rows if _count_filled(row))
    if not lengths:
        return 0
    length, count = lengths.most_common(1)[0]
    start = next(index for index, row in enumerate(rows) if len(row) == length and _count_filled(row))
    above = [_count_filled(row) for row in rows[:start]]
    is_above = count > len(rows) * _WIDTH_SHARE and all(len(row) < length for row in rows[:start])
    return start if is_above and len(above) > 1 else 0


def classify_text(text: str) -> Kind:
    """What a text is."""
    text = text.strip()
    if not text or text in NO_VALUES:
        return ""
    if _LABEL.fullmatch(text):
        return "label"
    if _MOMENT.fullmatch(text):
        return "moment"
    return "number" if _NUMBER.fullmatch(text) else "text"


def find_head(
    rows: Sequence[Sequence[HeadCell]], default: int | None = None, *, gaps: Collection[int] | None = None
) -> Head:
    """The head of a table by its first rows: the first wide row (`default` if it is given) if it has no values, unless
    a later one differs from what is below it in more columns. One that names each column only gives way to a row below
    a gap. `gaps` are the rows that follow empty ones (default: as `rows` has them)."""
    if not any(map(_count_filled, rows)):
        return Head()
    default = _find_wide_row(rows) if default is None else default
    if gaps is None:
        gaps = {index for index in range(1, len(rows)) if not _count_filled(rows[index - 1])}
    top = _choose_row(rows, default, gaps)
    is_axis = _is_axis(rows, default)
    if is_axis and (top is None or _is_first_row(rows, default, top, gaps)):
        top = default
    if top is None:
        return Head(default, default)
    bottom = _find_bottom(rows, top)
    has_groups = top > 0 and _is_group_row(rows[top - 1], rows[top])
    is_below_axis = is_axis and top == default + 1 and top not in gaps
    first = top - 1 if has_groups or is_below_axis else top
    return Head(first, bottom, _join_names(rows[first:bottom], groups=has_groups))


def _is_axis(rows: Sequence[Sequence[HeadCell]], index: int) -> bool:
    """Whether a row names columns by dates, times or the numbers of days, as rosters do: each once, above values of
    another form."""
    row = rows[index]
    places = [column for column, cell in enumerate(row) if cell.kind in {"moment", "number"}]
    texts = [row[column].text for column in places]
    are_days = all(text.isdecimal() for text in texts) and len(texts) >= _DAYS
    if are_days and any(int(after) - int(before) != 1 for before, after in pairwise(texts)):
        return False
    if not are_days and any(row[column].kind == "number" for column in places):
        return False
    if len(texts) < 2 or len(set(texts)) < len(texts) or places[-1] - places[0] >= 2 * len(places):
        return False
    body = [below for below in rows[index + 1 :] if _count_filled(below)][:_BODY]
    pairs = [(row[column], below[column]) for below in body for column in places if column < len(below)]
    pairs = [(name, cell) for name, cell in pairs if cell.kind]
    alike = sum(cell.kind == "number" if are_days else _write_form(name) == _write_form(cell) for name, cell in pairs)
    return bool(pairs) and alike <= (1 - _SAME) * len(pairs)


def _write_form(cell: HeadCell) -> str:
    """A text with a sign for each group of digits: `#-#-#` of a date."""
    return _DIGITS.sub("#", cell.text)


def _is_first_row(rows: Sequence[Sequence[HeadCell]], axis: int, row: int, gaps: Collection[int]) -> bool:
    """Whether what looks like a header below an axis is the first of its rows: it names values of another kind in fewer
    columns than the axis does."""
    is_apart = any(place in gaps for place in range(axis + 1, row + 1))
    named = sum(cell.kind in {"moment", "number"} for cell in rows[axis])
    return row > axis and not is_apart and (row > axis + 1 or count_contrast(rows, row) < named)


def count_contrast(rows: Sequence[Sequence[HeadCell]], row: int) -> int:
    """The columns in which a row names values of another kind below it, less those in which it is such a value."""
    return sum(
        (cell.kind != kind) - (cell.kind == kind)
        for cell, kind in zip(rows[row], _find_kinds(rows[row + 1 :]), strict=False)
        if cell.kind and kind not in {"", "text"}
    )


def _find_wide_row(rows: Sequence[Sequence[HeadCell]]) -> int:
    """The first row that is about as wide as the table."""
    width = max(map(_count_filled, rows))
    wide = (index for index, row in enumerate(rows[: _MAX_TOP + 1]) if _is_wide(row, width))
    return next(wide, next(index for index, row in enumerate(rows) if _count_filled(row)))


def _names_columns(row: Sequence[HeadCell], other: Sequence[HeadCell]) -> bool:
    """Whether a row is a plain header: each column that another row fills has a name of its own. The column that names
    the rows may lack one where the other row would give some columns the same name."""
    names = [cell.text for cell in row if cell.text]
    if len(set(names)) < len(names) or any(cell.kind in {"moment", "number"} for cell in row):
        return False
    unnamed = [at for at, cell in enumerate(other) if cell.text and not (at < len(row) and row[at].text)]
    return not unnamed or (unnamed == [0] and _has_repeats(other))


def _has_repeats(row: Sequence[HeadCell]) -> bool:
    texts = [cell.text for cell in row if cell.text]
    return len(set(texts)) < len(texts)


def _choose_row(rows: Sequence[Sequence[HeadCell]], default: int, gaps: Collection[int]) -> int | None:
    """The row that names the columns; None if none does."""
    own = count_contrast(rows, default)
    has_values = any(cell.kind in {"moment", "number"} for cell in rows[default])
    best, chosen = 0, default
    for index, row in enumerate(rows[: _MAX_TOP + 1]):
        width = max(map(_count_filled, rows[index : index + _BODY]))
        if index == default or not _is_wide(row, width) or any(cell.kind in {"moment", "number"} for cell in row):
            continue
        is_plain = index > default and _names_columns(rows[default], row)
        if is_plain and not any(place in gaps for place in range(default + 1, index + 1)):
            continue  # first rows without values, such as tests that nobody has taken yet
        if _has_repeats(row) and (is_plain or not index or not _is_group_row(rows[index - 1], row)):
            continue
        contrast = count_contrast(rows, index)
        if contrast >= max(own + (_CLEAR if is_plain else 1), best + 1, 1):
            best, chosen = contrast, index
    if chosen == default and has_values and (own < 1 or any(cell.kind == "number" for cell in rows[default])):
        return None
    return chosen


def _find_bottom(rows: Sequence[Sequence[HeadCell]], top: int) -> int:
    """The row after the header: behind one of units too."""
    if top + 2 >= len(rows):
        return top + 1
    kinds = _find_kinds(rows[top + 2 :])
    units: list[HeadCell] = []
    others: list[HeadCell] = []
    for cell, kind in zip(rows[top + 1], kinds, strict=False):
        (units if kind in {"moment", "number"} else others).append(cell)
    texts = [cell.text for cell in units if cell.kind == "text"]
    is_unit_row = (
        bool(texts)
        and all(cell.kind in {"", "text"} and len(cell.text) <= _LONGEST_UNIT for cell in units)
        and not any(cell.text for cell in others)
        and 2 * len(texts) >= len(units)
        # Texts such as `open` above the first number are values.
        and 2 * sum(map(is_unit, texts)) >= len(texts)
    )
    return top + 2 if is_unit_row else top + 1


def _is_group_row(row: Sequence[HeadCell], names: Sequence[HeadCell]) -> bool:
    """Whether a row names groups of columns: sparse, above names of which some repeat or are empty below it."""
    filled = _count_filled(row)
    has_moments = filled > 1 and not row[0].text and len({cell.text for cell in row if cell.text}) == filled
    values = {"number"} if has_moments else {"moment", "number"}
    if not filled or filled >= len(names) or any(cell.kind in values for cell in row):
        return False
    return _has_repeats(names) and (filled > 1 or not row[0].text)


def _join_names(rows: Sequence[Sequence[HeadCell]], *, groups: bool) -> tuple[str, ...]:
    width = max(map(len, rows))
    lines = [[cell.text for cell in row] + [""] * (width - len(row)) for row in rows]
    if groups:
        for column in range(1, width):
            lines[0][column] = lines[0][column] or lines[0][column - 1]
    return tuple(" ".join(dict.fromkeys(filter(None, texts))) for texts in zip(*lines, strict=True))


def _find_kinds(rows: Sequence[Sequence[HeadCell]]) -> list[Kind]:
    """The kind of each column by its first cells; empty where they differ."""
    body = [row for row in rows if _count_filled(row)][:_BODY]
    kinds: list[Kind] = []
    for column in range(max(map(len, body), default=0)):
        counts = Counter(row[column].kind for row in body if column < len(row) and row[column].kind)
        kind, count = counts.most_common(1)[0] if counts else ("", 0)
        kinds.append(kind if count >= _SAME * counts.total() else "")
    return kinds


def _is_wide(row: Sequence[HeadCell], width: int) -> bool:
    filled = _count_filled(row)
    return filled >= _WIDTH_SHARE * width and (filled >= 2 or width < 2)


def _count_filled(row: Sequence[HeadCell]) -> int:
    return sum(bool(cell.text) for cell in row)
