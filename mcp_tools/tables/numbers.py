"""The types that a column of text may have: the first that all of its values fit."""

import re
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
    separator: str = ""
    """The decimal separator of an exact type; empty for the others."""
    clean: str = "{text}"
    """Makes a plain number of a value before its decimals are counted."""


_INTEGER_PART = rf"(?:0|[1-9]\d{{0,{MAX_INTEGER_DIGITS - 1}}})"
_CURRENCY = r"(?:[€$£¥]|EUR|USD|GBP|CHF|SEK|NOK|DKK|kr)"
_SPACE = r"[ \x{a0}\x{202f}]"
_GROUPS = rf"(?:\d{{1,3}}(?:[ '\x{{a0}}\x{{202f}}]\d{{3}})+|{_INTEGER_PART})"
_COMMA_GROUPS = r"\d{1,3}(?:,\d{3})+"


def _make_accounting(whole: str, decimals: str) -> str:
    """The pattern of amounts: with a currency before or behind, negative with a sign or in parentheses."""
    amount = rf"(?:{_CURRENCY}{_SPACE}?)?{whole}{decimals}(?:{_SPACE}?{_CURRENCY})?"
    return rf"(?:[+-]?{_SPACE}?{amount}|{_CURRENCY}{_SPACE}?-{whole}{decimals}|\({amount}\))"


_SIGN = "CASE WHEN starts_with({text}, '(') THEN '-' ELSE '' END"
TYPES = (
    ColumnType(rf"[+-]?{_INTEGER_PART}", "CAST({text} AS BIGINT)"),
    ColumnType(rf"[+-]?{_INTEGER_PART}?(?:\.\d{{1,{MAX_SCALE}}})?", "CAST({text} AS DECIMAL(38, {scale}))", "."),
    # 1.234,50, as most of Europe writes it
    ColumnType(
        rf"[+-]?(?:{_INTEGER_PART}|[1-9]\d{{0,2}}(?:\.\d{{3}}){{1,5}})?(?:,\d{{1,{MAX_SCALE}}})?",
        "CAST(replace(replace({text}, '.', ''), ',', '.') AS DECIMAL(38, {scale}))",
        ",",
    ),
    # 1 234.50, (200.00) and €99, where every value of the column is one
    ColumnType(
        _make_accounting(f"(?:{_GROUPS}|{_COMMA_GROUPS})", rf"(?:\.\d{{1,{MAX_SCALE}}})")
        + "|"
        + _make_accounting(_GROUPS, ""),
        "CAST({text} AS DECIMAL(38, {scale}))",
        ".",
        f"({_SIGN} || regexp_replace({{text}}, '[^0-9.+-]', '', 'g'))",
    ),
    # 1.234,50 € and (200,00)
    ColumnType(
        _make_accounting(rf"(?:{_GROUPS}|[1-9]\d{{0,2}}(?:\.\d{{3}})+)", rf"(?:,\d{{1,{MAX_SCALE}}})?"),
        "CAST(replace({text}, ',', '.') AS DECIMAL(38, {scale}))",
        ",",
        f"({_SIGN} || regexp_replace({{text}}, '[^0-9,+-]', '', 'g'))",
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

_NUMBER_TEXT = [
    re.compile(one.pattern.replace(r"\x{a0}", "\u00a0").replace(r"\x{202f}", "\u202f"))
    for one in TYPES
    if one.separator == "." or "BIGINT" in one.expression
]


def is_number_text(text: str) -> bool:
    """Whether a text is written like a number, with a point as its decimal separator."""
    return any(pattern.fullmatch(text.strip()) for pattern in _NUMBER_TEXT)
