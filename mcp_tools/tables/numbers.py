"""Numbers as people write them: plain ones, and amounts with a currency, grouped digits and other signs."""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import NamedTuple

MAX_SCALE = 9
"""Decimal places of a column that is kept as DECIMAL; one with more becomes DOUBLE."""
MAX_INTEGER_DIGITS = 18


class ColumnType(NamedTuple):
    """A type to try for a column of text."""

    pattern: str
    """Every value must match it."""
    expression: str
    """Converts a value: `{text}` stands for the text, `{scale}` for the most decimals of any value."""
    mark: str = ""
    """What values of this type say of the whole file: the decimal mark, or whether the `day` or the `month` comes first
    in a date; empty where the type fits any file."""
    clean: str = "{text}"
    """Makes a number of digits and a decimal mark of a value."""
    check: str = ""
    """A condition that a value must meet besides the pattern."""
    is_amount: bool = False
    """Whether values may have units."""
    is_code_like: bool = False
    """Whether codes have this form too, so that something else must say what it is."""

    def matches(self, text: str) -> bool:
        """Whether a text has the pattern; the check is left to SQL."""
        return _compile(self.pattern).fullmatch(text) is not None

    @property
    def is_decimal(self) -> bool:
        """Whether the type is exact and has decimals."""
        return self.mark in {".", ","}


_CODE_POINT = re.compile(r"\\x\{([0-9a-f]+)\}")


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """A pattern of SQL, whose digits are those of ASCII, for Python."""
    return re.compile(_CODE_POINT.sub(lambda match: chr(int(match[1], 16)), pattern), re.ASCII)


_INTEGER_PART = rf"(?:0|[1-9]\d{{0,{MAX_INTEGER_DIGITS - 1}}})"
_SIGN = r"[-+\x{2212}]"
_CURRENCY = r"(?:[€$£¥]|EUR|USD|GBP|CHF|SEK|NOK|DKK|kr)"
_SPACE = r"[ \x{a0}\x{202f}]"
_SPACED_GROUPS = r"[1-9]\d{0,2}(?:[ '\x{2019}\x{a0}\x{202f}]\d{3}){1,5}"
_GROUPS = f"(?:{_SPACED_GROUPS}|{_INTEGER_PART})"
_POINT_GROUPS = r"[1-9]\d{0,2}(?:\.\d{3}){1,5}"
_COMMA_GROUPS = r"[1-9]\d{0,2}(?:,\d{3}){1,5}"


def _make_amount(number: str, clear: str) -> str:
    """The pattern of amounts: with a currency before or a unit behind, negative with a sign before or behind or in
    parentheses. A sign behind without a unit needs a `clear` number, with decimals or groups: 1- and 2+ are grades."""
    currency, unit = rf"{_CURRENCY}{_SPACE}?", rf"{_SPACE}?(?:{_CURRENCY}|%)"
    before, behind, sign = f"(?:{currency})?", f"(?:{unit})?", f"{_SPACE}?{_SIGN}"
    return (
        rf"(?:{_SIGN}?{_SPACE}?{before}{number}{behind}|{_CURRENCY}{_SPACE}?{_SIGN}{_SPACE}?{number}"
        rf"|\({before}{number}{behind}\)|{clear}{sign}|{currency}{number}{sign}{behind}"
        rf"|{number}{sign}{unit}|{number}{unit}{_SIGN})"
    )


def _make_decimal_amount(whole: str, groups: str, mark: str) -> str:
    """The pattern of amounts with a decimal mark; `groups` are whole numbers whose digits another mark groups."""
    decimals = rf"{mark}\d{{1,{MAX_SCALE}}}"
    return _make_amount(
        f"(?:{whole}|{groups})(?:{decimals})?", f"(?:(?:{whole}|{groups}){decimals}|{groups}|{_SPACED_GROUPS})"
    )


def _clean_amount(mark: str) -> str:
    sign = "CASE WHEN regexp_matches({text}, '[-(\u2212]') THEN '-' ELSE '' END"
    return f"({sign} || regexp_replace({{text}}, '[^0-9{mark}]', '', 'g'))"


_INTEGER = ColumnType(rf"[+-]?{_INTEGER_PART}", "CAST({text} AS BIGINT)")
_POINT = ColumnType(
    rf"[+-]?(?:{_INTEGER_PART}(?:\.\d{{1,{MAX_SCALE}}})?|\.\d{{1,{MAX_SCALE}}})",
    "CAST({text} AS DECIMAL(38, {scale}))",
    ".",
)
# An integer of more than 15 digits would lose some: it is an identifier and stays text.
_DOUBLE = ColumnType(
    r"[+-]?(?:(?:0|[1-9]\d{0,14})(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?|(?i:nan|[+-]?inf)", "CAST({text} AS DOUBLE)"
)
PLAIN_NUMBERS = (_INTEGER, _POINT, _DOUBLE)
"""Numbers as programs write them."""
NUMBERS = (
    _INTEGER,
    # 1 234 kr and €99: no mark is there to be misread.
    ColumnType(_make_amount(_GROUPS, _SPACED_GROUPS), "CAST({text} AS BIGINT)", "", _clean_amount(""), is_amount=True),
    _POINT,
    # 1.234,50, as most of Europe writes it
    ColumnType(
        rf"[+-]?(?:(?:{_INTEGER_PART}|{_POINT_GROUPS})(?:,\d{{1,{MAX_SCALE}}})?|,\d{{1,{MAX_SCALE}}})",
        "CAST(replace({text}, ',', '.') AS DECIMAL(38, {scale}))",
        ",",
        "replace({text}, '.', '')",
    ),
    # 1,234.50, (200.00) and €9.99
    ColumnType(
        _make_decimal_amount(_GROUPS, _COMMA_GROUPS, r"\."),
        "CAST({text} AS DECIMAL(38, {scale}))",
        ".",
        _clean_amount("."),
        is_amount=True,
    ),
    # 1.234,50 €, 17,5 % and 200,00-
    ColumnType(
        _make_decimal_amount(_GROUPS, _POINT_GROUPS, ","),
        "CAST(replace({text}, ',', '.') AS DECIMAL(38, {scale}))",
        ",",
        _clean_amount(","),
        is_amount=True,
    ),
    _DOUBLE,
)
"""In order of preference. A number with leading zeros is an identifier (a postal code) and stays text."""
EXACT_POINT = _POINT
"""The plain number with a decimal point."""

_ANY_MARK = frozenset({"", ".", ","})
"""Of a number without a mark."""
_MINUS = re.compile("[-(\u2212]")
_NO_UNIT = re.compile("[^€$£¥%A-Za-z]")


def find_common_mark(texts: Iterable[str]) -> str | None:
    """The decimal mark with which all texts are numbers, empty if they have none; None if a text is not a number or if
    two marks fit."""
    fitting: frozenset[str] | None = None
    for text in texts:
        marks = frozenset(one.mark for one in NUMBERS if one is not _DOUBLE and one.matches(text.strip()))
        marks = _ANY_MARK if "" in marks else marks
        fitting = marks if fitting is None else fitting & marks
    if not fitting:
        return None
    return "" if fitting == _ANY_MARK else next(iter(fitting)) if len(fitting) == 1 else None


def find_text_unit(text: str) -> str:
    """The unit beside the number in a text: a currency or %; empty without one."""
    return _NO_UNIT.sub("", text)


def make_plain_number(text: str, mark: str) -> str:
    """A number in the digits and decimal point of programs, of one that has this decimal mark; 5 % is 0.05."""
    digits = re.sub(rf"[^0-9{re.escape(mark)}]", "", text).replace(",", ".")
    if "%" in text:
        digits = f"{Decimal(digits).scaleb(-2):f}"
    return f"-{digits}" if _MINUS.search(text) else digits
