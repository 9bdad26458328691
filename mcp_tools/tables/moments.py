"""Dates and times as people write them."""

import re

from mcp_tools.tables.numbers import ColumnType

_TIME = r"[ T]\d{1,2}:\d{2}(?::\d{2})?"
_HALF = r" \d{1,2}:\d{2}(?::\d{2})? ?(?i:am|pm)"
_NAME_OF_DATES = re.compile(
    r"(?:date|datum|dato|fecha|day|tag|dag|jour|giorno|p\u00e4iv\u00e4|(?<![^\W\d_])(?:data|d[i\u00ed]a))s?(?![^\W\d_])",
    re.IGNORECASE,
)
_TIME_FORMATS = ("%H:%M", "%H:%M:%S")
_HALF_FORMATS = ("%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p")


def _list_formats(date: str, *, has_time: bool) -> str:
    """An SQL list of the formats of a date alone, or with a time too."""
    times = [f" {one}" for one in (*_TIME_FORMATS, *_HALF_FORMATS)] if has_time else []
    return "[" + ", ".join(f"'{date}{time}'" for time in ("", *times)) + "]"


def _make_types(pattern: str, date: str, mark: str = "") -> tuple[ColumnType, ColumnType]:
    """A date of a form, and the same with a time."""
    alone, timed = _list_formats(date, has_time=False), _list_formats(date, has_time=True)
    parse, parse_timed = f"try_strptime({{text}}, {alone})", f"try_strptime(replace({{text}}, 'T', ' '), {timed})"
    return (
        ColumnType(pattern, f"CAST({parse} AS DATE)", mark, check=f"{parse} IS NOT NULL"),
        ColumnType(f"{pattern}(?:{_TIME}|{_HALF})?", parse_timed, mark, check=f"{parse_timed} IS NOT NULL"),
    )


_SHORT_DATE, SHORT_MOMENT = _make_types(r"\d{2}\.\d{2}\.\d{2}", "%d.%m.%y")
SHORT_DATE = _SHORT_DATE._replace(is_code_like=True)
"""31.12.24, but 10.05.12 is as likely the number of a part or a chapter."""
MOMENTS = (
    ColumnType(r"\d{4}-\d{2}-\d{2}", "CAST({text} AS DATE)", check="TRY_CAST({text} AS DATE) IS NOT NULL"),
    ColumnType(
        r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?",
        "CAST({text} AS TIMESTAMP)",
        check="TRY_CAST({text} AS TIMESTAMP) IS NOT NULL",
    ),
    # 31.12.2024: the day is first wherever points divide a date.
    *_make_types(r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
    SHORT_DATE,
    SHORT_MOMENT,
    *_make_types(r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y", "day"),
    *_make_types(r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y", "month"),
    *_make_types(r"\d{1,2}/\d{1,2}/\d{2}", "%d/%m/%y", "day"),
    *_make_types(r"\d{1,2}/\d{1,2}/\d{2}", "%m/%d/%y", "month"),
    *_make_types(r"\d{1,2}-\d{1,2}-\d{4}", "%d-%m-%Y", "day"),
    *_make_types(r"\d{1,2}-\d{1,2}-\d{4}", "%m-%d-%Y", "month"),
    ColumnType(
        r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?",
        "CAST({text} AS TIME)",
        check="TRY_CAST({text} AS TIME) IS NOT NULL",
    ),
)
"""In order of preference. A date whose parts may be a day or a month has a type for each; the file decides."""


def names_dates(column: str) -> bool:
    """Whether a column's name says that it has dates: `order_date`, `Buchungstag`."""
    return _NAME_OF_DATES.search(column) is not None
