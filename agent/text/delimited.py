"""Parts of CSV files besides rows: the `sep=` of Excel, lines above the table, quotes that a backslash escapes."""

import csv
import re

DELIMITERS = ",;|\t"
"""From the one that texts contain most often."""
_SEPARATOR = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
_ESCAPED = re.compile(r'(?:^|[,;\t|])"[^"\n]*\\"[^,;\t|\r\n]', re.MULTILINE)
_DECIMAL = re.compile(r"[-+]?\d+(?:[.\u00a0' ]\d{3})*(?:,\d+)?(?: ?[^\W\d_]{1,3}| ?[%€$£])?")
_CSV_LINE = re.compile(r"[^\d\s,],\S|\S,[^\d\s,]")
_QUOTED_CELL = re.compile(r'"[^"\n]*"')
_SAMPLE = 10_000
_MAX_TITLES = 10


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


def double_escaped_quotes(text: str) -> str:
    """The text with doubled quotes in place of escaped ones, where the file escapes any."""
    if not has_escaped_quotes(text):
        return text
    return re.sub(r'\\(["\\])', lambda found: '""' if found[1] == '"' else "\\", text)


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
    following = [line for line in lines[wide : wide + 3] if line.strip()]
    if not above or len(following) < 2 or any(_count_cells(line, delimiter) < 2 for line in following):
        return (), 0
    titles = tuple(title for line in above if (title := line.strip().strip('"').strip(DELIMITERS).strip()))
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
