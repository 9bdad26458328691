"""The dialect of a CSV file: the `sep=` of Excel, lines above the table, its delimiter, quotes that a backslash
escapes, frames of dashes and pipes."""

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

DELIMITERS = ",;|\t"
"""From the one that texts contain most often."""
_SEPARATOR = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
_ESCAPED = re.compile(r'(?:^|[,;\t|])"[^"\n]*\\"[^,;\t|\r\n]', re.MULTILINE)
_ESCAPE = re.compile(r'\\(["\\])')
_DECIMAL = re.compile(r"[-+]?\d+(?:[.\u00a0' ]\d{3})*(?:,\d+)?(?: ?[^\W\d_]{1,3}| ?[%€$£])?")
_CSV_LINE = re.compile(r"[^\d\s,],\S|\S,[^\d\s,]")
_QUOTED_CELL = re.compile(r'"[^"\n]*"')
_RULE = re.compile(r"[-+|=:\u2500-\u257f\s]+")
_DASHES = re.compile(r"[-=\u2500]{3}")
_FRAMED = re.compile(r"\s*\|.*\|\s*", re.DOTALL)
_APOSTROPHES = re.compile(r"(?:^|(?<=[,;\t|])) ?'(?:[^'\\]|''|\\.)*+' ?(?=[,;\t|\r\n]|\Z)", re.MULTILINE | re.DOTALL)
_OPEN_APOSTROPHE = re.compile(r"(?:^|[,;\t|]) ?'", re.MULTILINE)
_OPEN_QUOTE = re.compile(r'(?:^|[,;\t|]) ?"', re.MULTILINE)
_FORMULA = '="'
"""What begins a text that Excel should not take for a number: `="00123"`."""
_SWAPPED = str.maketrans("'\"", "\"'")
_SAMPLE = 10_000
_MAX_TITLES = 10
_GUESS_LINES = 50
_EVEN = 0.95
"""The share of lines with equally many cells from which on a delimiter divides a table evenly."""
_DIVIDING_COMMA = re.compile(r",(?! )(?!(?<=\d,)\d)")
"""A comma that is not part of a number or a text."""
_OTHER_DELIMITER = re.compile(f"[{DELIMITERS[1:]}]")
_WIDE_GAP = re.compile(r"[^\s,] {2,}\S")
_ALIGNED = 0.8
"""The share of lines with such gaps from which on spaces place their cells."""


class Dialect(NamedTuple):
    """How the rows of a text are written, and what is above them.

    `skipped` counts the characters before the table, `lines` those lines of them that are rows of the file.
    """

    delimiter: str = ","
    skipped: int = 0
    titles: tuple[str, ...] = ()
    lines: int = 0
    has_escapes: bool = False
    """Whether quotes in cells have a backslash before them."""
    has_spaces: bool = False
    """Whether quoted cells are behind a space."""
    has_frame: bool = False
    """Whether rows begin and end with a pipe."""
    is_drawn: bool = False
    """Whether cells are padded, and lines of dashes are drawn between the rows."""
    has_apostrophes: bool = False
    """Whether apostrophes are the quotes: the rest describes the text with `swap_quotes`."""
    has_formulas: bool = False
    """Whether cells are formulas of nothing but a text."""
    is_aligned: bool = False
    """Whether spaces alone place the cells below each other: no delimiter divides them, also the one that is named."""


def find_dialect(text: str, delimiter: str = "") -> Dialect:
    """The dialect of a text, or of its beginning. A delimiter that the file names says more than the given one."""
    if _has_apostrophes(text[:_SAMPLE]):
        dialect = _find_quoted_dialect(swap_quotes(text), delimiter)
        return dialect._replace(titles=tuple(map(swap_quotes, dialect.titles)), has_apostrophes=True)
    return _find_quoted_dialect(text, delimiter)


def _has_apostrophes(text: str) -> bool:
    """Whether apostrophes are the quotes of cells: each that begins a cell has another at its end, and no cell begins
    with a quote."""
    if "'" not in text or _OPEN_QUOTE.search(text):
        return False
    rest, count = _APOSTROPHES.subn("", text[: text.rfind("\n") + 1] or text)
    return count > 1 and not _OPEN_APOSTROPHE.search(rest)


def swap_quotes(text: str) -> str:
    """The text with apostrophes for its quotes, and quotes for its apostrophes."""
    return text.translate(_SWAPPED)


def _find_quoted_dialect(text: str, delimiter: str) -> Dialect:
    named, separator = find_separator(text)
    delimiter = (named if separator else delimiter or named) or ""
    if not delimiter and _is_aligned(text.split("\n", _GUESS_LINES)[:_GUESS_LINES]):
        return Dialect("\t", is_aligned=True)
    titles, length = find_titles(text[separator:], delimiter)
    skipped = separator + length
    table = text[skipped:]
    has_escapes = has_escaped_quotes(table)
    lines = [line for line in table.split("\n", _GUESS_LINES)[:_GUESS_LINES] if line.strip()]
    framed = [line for line in lines if not is_rule(line)]
    has_frame = delimiter in {"", "|"} and len(framed) > 1 and all(map(_FRAMED.fullmatch, framed))
    is_drawn = has_frame or (delimiter in {"", "|"} and _has_crossed_rule(lines, framed))
    if is_drawn:
        delimiter = "|"
    elif not delimiter:
        delimiter = guess_delimiter([unescape_quotes(line) for line in lines] if has_escapes else lines)
    return Dialect(
        delimiter,
        skipped,
        titles,
        text[separator:skipped].count("\n"),
        has_escapes,
        has_spaced_quotes(table, delimiter),
        has_frame,
        is_drawn,
        has_formulas=_FORMULA in table,
    )


def _is_aligned(lines: Sequence[str]) -> bool:
    """Whether nearly all lines have wide gaps, and no delimiter but in numbers and texts."""
    filled = [line for line in lines if line.strip()]
    wide = sum(_WIDE_GAP.search(line) is not None for line in filled)
    has_delimiter = any(_DIVIDING_COMMA.search(line) or _OTHER_DELIMITER.search(line) for line in filled)
    return len(filled) > 1 and wide >= _ALIGNED * len(filled) and not has_delimiter


def _has_crossed_rule(lines: Sequence[str], rows: Sequence[str]) -> bool:
    """Whether a rule below the names crosses the pipes between the cells; the last of the `rows` may be a line below
    the table."""
    piped = sum("|" in row for row in rows)
    return (
        piped > 1
        and piped >= len(rows) - 1
        and any(is_rule(line) and not {"+", "|"}.isdisjoint(line) for line in lines)
    )


def guess_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that divides most of the lines into equally many cells; a comma if none does.

    Where several do, a comma is the likeliest to be part of a text or a number: another one that divides the lines
    evenly comes first if each comma there is between digits or before a space.
    """
    fits = {sign: _fit_delimiter(lines, sign) for sign in DELIMITERS}
    even = [sign for sign in DELIMITERS[1:] if fits[sign] > (_EVEN, 1)]
    if even and not any(map(_DIVIDING_COMMA.search, lines)):
        return max(even, key=lambda sign: (*fits[sign], DELIMITERS.index(sign)))
    return max(DELIMITERS, key=lambda sign: (*fits[sign], DELIMITERS.index(sign) * (1 if fits[sign][0] else -1)))


def _fit_delimiter(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """The share of lines that have the commonest number of cells, and that number; 0 where it is 1."""
    try:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:  # a cell longer than the module allows
        return 0.0, 1
    common = max(set(counts), key=counts.count, default=1)
    return (counts.count(common) / len(counts) if common > 1 else 0.0), common


def find_separator(text: str) -> tuple[str, int]:
    """The delimiter that a first line `sep=;` names, and that line's length; empty and 0 without one.

    Of one column of numbers with decimal commas it is not the comma.
    """
    match = _SEPARATOR.match(text)
    if match is None:
        return (";", 0) if _has_one_column(text) else ("", 0)
    return match[1], match.end()


def has_escaped_quotes(text: str) -> bool:
    """Whether quotes in cells are written with a backslash before them."""
    return _ESCAPED.search(text) is not None


def has_spaced_quotes(text: str, delimiter: str) -> bool:
    """Whether quoted cells stand behind a space: `1, "x, y"`."""
    sign = re.escape(delimiter)
    return re.search(rf'{sign} +"[^"\n]*" *(?:{sign}|\r?$)', text, re.MULTILINE) is not None


def read_formula(cell: str) -> str:
    """The text that a cell shows which is a formula of nothing else; any other cell as it is."""
    return cell[2:-1] if cell.startswith(_FORMULA) and cell.find('"', 2) == len(cell) - 1 else cell


def unescape_quotes(text: str) -> str:
    """The text with doubled quotes in place of escaped ones."""
    return _ESCAPE.sub(lambda match: '""' if match[1] == '"' else "\\", text)


def is_rule(line: str) -> bool:
    """Whether a line is only drawn: dashes, with the corners of a frame."""
    return _RULE.fullmatch(line) is not None and _DASHES.search(line) is not None


def strip_frame(line: str) -> str:
    """A line without the pipes around it."""
    stripped = line.strip()
    return (stripped[1:-1] if _FRAMED.fullmatch(stripped) and len(stripped) > 1 else stripped) + "\n"


def _has_one_column(text: str) -> bool:
    """Whether a text is one column of numbers with decimal commas, below its name."""
    head, *rows = [line.strip() for line in text[:_SAMPLE].split("\n")[:50] if line.strip()] or [""]
    has_commas = any("," in row for row in rows) and not any(sign in head for sign in DELIMITERS)
    return has_commas and all(map(_DECIMAL.fullmatch, rows[: -1 if len(text) > _SAMPLE else None]))


def find_titles(text: str, delimiter: str = "") -> tuple[tuple[str, ...], int]:
    """The lines above a table, and how many characters they take: lines of one cell before wider ones."""
    lines = text.split("\n", 50)[:50]
    wide = next((index for index, line in enumerate(lines[: _MAX_TITLES + 1]) if _count_cells(line, delimiter) > 1), 0)
    above = lines[:wide]
    # A narrow line among wide ones is a row: the next lines after a title are wide.
    following = [line for line in lines[wide : wide + 3] if line.strip() and not is_rule(line)]
    if not above or len(following) < 2 or any(_count_cells(line, delimiter) < 2 for line in following):
        return (), 0
    if any(line.count('"') % 2 for line in above):  # the first cell of the table has a line break
        return (), 0
    texts = (line.strip().strip('"').strip(DELIMITERS).strip() for line in above if not is_rule(line))
    titles = tuple(filter(None, texts))
    return titles, sum(len(line) + 1 for line in above)


def _count_cells(line: str, delimiter: str) -> int:
    """Counts the filled cells of a line, by its best delimiter."""
    try:
        rows = [next(csv.reader([line], delimiter=sign), []) for sign in (delimiter or DELIMITERS)]
    except csv.Error:  # a cell longer than the module allows
        return 1
    return max((sum(bool(cell.strip()) for cell in row) for row in rows), default=0)


def separate_csv_cells(text: str) -> str:
    """The text with `;` between the cells of lines that are CSV, where `151,2870` are two cells.

    Below such a line, one with as many commas is CSV too, though it has only digits beside them."""
    lines: list[str] = []
    commas = 0
    for line in text.split("\n"):
        count = line.count(",") if ", " not in line else 0
        is_csv = _CSV_LINE.search(line) is not None or (0 < count == commas)
        commas = count if is_csv else 0
        lines.append(_separate(line) if is_csv else line)
    return "\n".join(lines)


def _separate(line: str) -> str:
    parts: list[str] = []
    at = 0
    for quoted in _QUOTED_CELL.finditer(line):
        parts += [line[at : quoted.start()].replace(",", ";"), quoted[0]]
        at = quoted.end()
    return "".join([*parts, line[at:].replace(",", ";")])
