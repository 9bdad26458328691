"""Reads the numbers of a text into comparable values: sign, separators of any locale, scale, unit, precision.

`1,234.50`, `1.234,50`, `1 234,50` and `1'234.50` are one number. A claim agrees with a known number that rounds to it
at the decimals the claim shows: `63.32` agrees with `63.3224`.
"""

# ruff: noqa: RUF001 - the multiplication sign is meant

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import accumulate

from agent.text.dates import DateValue
from agent.text.number_words import (
    AMBIGUOUS_WORDS,
    FACTORS,
    GROUPS,
    HALF_TAIL,
    SCALE_PATTERN,
    SPACES,
    is_number_word,
    read_lower_places,
    read_number_word,
    read_scale_word,
)
from agent.text.rounding import ABOUT, LOOK_BEHIND, Rounding, find_rounding
from agent.text.superscripts import RAISED_DIGITS, lower_figures
from agent.text.units import UNITS, Unit, find_unit

FRACTIONS = {sign: str(round(unicodedata.numeric(sign), 3)) for sign in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
"""Fractions of one character, and their values to three places."""
_FRACTION = "".join(FRACTIONS)

_SCALED_CURRENCIES = {
    f"{prefix}{code}": (factor, code)
    for prefix, factor in (
        *dict.fromkeys(("t", "k"), Decimal(1000)).items(),
        *dict.fromkeys(("m", "mn"), Decimal(10**6)).items(),
        *dict.fromkeys(("md", "mdr"), Decimal(10**9)).items(),
    )
    for code in ("sek", "eur", "usd", "gbp", "chf", "nok", "dkk", "kr", "€")
}
"""Abbreviations such as MSEK, TEUR and tkr."""

_SCALED = "|".join(sorted(map(re.escape, _SCALED_CURRENCIES), key=len, reverse=True))
# Begins with a character set, so that `re` skips to the next digit; what may stand before it is looked at afterwards.
_DIGITS = re.compile(
    rf"""
    (?P<digits>
      (?:\d{{1,3}}(?:[{SPACES}]\d{{3}}(?!\d))+(?:[.,\u066b]\d+)?|\d+(?:[.,'\u2019\u066b\u066c]\d+)*|\.\d+)
      (?:[eE][-+]?\d{{1,3}}(?!\w)|[{SPACES}]?[x×·*][{SPACES}]?10(?:\^[-+\u2212]?\d{{1,3}}|[⁺⁻]?[{RAISED_DIGITS}]{{1,3}})(?![\w⁺⁻]))?
      (?:[{SPACES}]?[{_FRACTION}])?
      |[{_FRACTION}]
    )
    (?:(?P<ordinal>st|nd|rd|th|:[ae]|er|ère|ème|e)\b|[{SPACES}]*-?(?:(?P<scale>{SCALE_PATTERN})\b\.?|(?P<scaled>{_SCALED})(?!\w))|(?P<mega>[MB])\b)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SIGN = re.compile(r"(?:(?:(?<![\w)\]%.])|(?<=\w\s))[-\u2212]|\bminus )[$€£¥₹]?$", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_GROUPED = re.compile(rf"\d{{1,3}}(?:([,.'\u2019\u066c{SPACES}])\d{{3}})(?:\1\d{{3}})*(?:[.,\u066b]\d+)?")
_INDIAN = re.compile(r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?")
_CURRENCY_SIGNS = ("$", "€", "£", "¥", "₹")
_POWER = re.compile(rf"[{SPACES}]?[x×·*][{SPACES}]?10\^?(?P<power>.+)")
_FACTOR = re.compile(r"(?<![^\W\d_])[xX×]$")
_TIMES = re.compile(r"(?<![^\W\d])\d[xX]$")
"""Before the second number of `120x80`."""
_YEAR = re.compile(r"(?:19|20)(?:0[1-9]|[1-9]\d)")
_MAX_DIGITS = 40
"""Longer runs of digits are data, not quantities."""


@dataclass(frozen=True, slots=True)
class NumberReading:
    """A value that a number can stand for. Every known value within half a `step` rounds to it, or, behind words such
    as "more than", one that lies not more than `below` and `above` from it."""

    value: Decimal
    step: Decimal
    below: Decimal | None = None
    above: Decimal | None = None

    @property
    def centre(self) -> Decimal:
        """The middle of the values that the number can stand for: 48,500 of "more than 48,000"."""
        if self.below is None or self.above is None:
            return self.value
        shift = (self.above - self.below) / 2
        return self.value + (shift if self.value >= 0 else -shift)

    @property
    def width(self) -> Decimal:
        """How far those values lie apart."""
        return self.step if self.below is None or self.above is None else self.below + self.above


@dataclass(frozen=True, slots=True)
class NumberMention:
    """A number where it stands, `text[start:end]` with its unit.

    `readings` has more than one value for an ambiguous form (`1.234`). `parts` are the numbers of a form that may be a
    list instead (`5 100`, `151,2870`), or of one in two units (`is_sum`). `unscaled` is the number before its scale
    word (`1.5` of `1.5 million`). `dates` are those that it is a part of if its form is one: `15.3.`, `12/2`."""

    text: str
    start: int
    end: int
    readings: tuple[NumberReading, ...]
    unit: Unit | None = None
    parts: tuple[Decimal, ...] = ()
    unscaled: Decimal | None = None
    is_word: bool = False
    is_sum: bool = False
    dates: tuple[DateValue, ...] = ()

    @property
    def value(self) -> Decimal:
        """The likeliest value."""
        return self.readings[0].value

    @property
    def may_be_year(self) -> bool:
        """Whether it is a bare number from 1900 to 2100."""
        return self.unit is None and self.text.isdigit() and 1900 <= self.value <= 2100

    @property
    def is_factor(self) -> bool:
        """Whether a multiplication sign ends the text: `3 x`. Its unit is then `x`, or that of the next number."""
        return _FACTOR.search(self.text) is not None


def find_numbers(text: str, *, is_claim: bool = False) -> list[NumberMention]:
    """The numbers of a text in order, digits and number words.

    Dates, times and codes (`INC-1042`) are read as the numbers in them: `agent.text.values` keeps those apart. With
    `is_claim`, words that are mostly other words (`one`, `sex`) are left out."""
    mentions = [mention for match in _DIGITS.finditer(text) if (mention := _read_digits(match)) is not None]
    mentions += _iter_words(text, is_claim=is_claim)
    mentions.sort(key=lambda mention: mention.start)
    ends = [0, *accumulate((mention.end for mention in mentions), max)]
    # The word of "5 dozen" says nothing by itself.
    return [one for one, end in zip(mentions, ends, strict=False) if not one.is_word or one.start >= end]


def format_decimal(value: Decimal) -> str:
    """One spelling for equal numbers: no exponent, no trailing zeros."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _iter_words(text: str, *, is_claim: bool) -> Iterator[NumberMention]:
    at = 0
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if match.start() < at or not is_number_word(word) or _is_part_of_word(text, match.start(), match.end()):
            continue
        value, at = read_number_word(text, word, match.end())
        half = HALF_TAIL.match(text, at)
        factor, scale_end = read_scale_word(text, word, at if half is None else half.end())
        if half is not None and (factor != 1 or word not in AMBIGUOUS_WORDS):
            value, at = value + Decimal("0.5"), half.end()
        if factor == 1 and is_claim and word in AMBIGUOUS_WORDS:
            continue
        unscaled = None
        rounding = find_rounding(text[max(0, match.start() - LOOK_BEHIND) : match.start()], text, at)
        if rounding is None and value == Decimal("0.5"):
            rounding = ABOUT
        if factor != 1:
            unscaled = value
            value, at = read_lower_places(text, value * factor, factor, scale_end)
            if (half := HALF_TAIL.match(text, at)) is not None:
                value, at = value + factor / 2, half.end()
        unit, start, end = find_unit(text, match.start(), at)
        if rounding is None and value and value % 1000 == 0:
            rounding = ABOUT  # "forty-eight thousand" says no more than the thousands
        is_whole = value == int(value)
        reading = _read(Decimal(int(value)), rounding, is_exact=True) if is_whole else NumberReading(value, Decimal(0))
        yield NumberMention(text[start:end], start, end, (reading,), unit, (), unscaled, is_word=True)


def _is_part_of_word(text: str, start: int, end: int) -> bool:
    """Whether digits or an underscore stand right beside a word: `one2one`, `tio_x`."""
    return text[start - 1 : start].isalnum() or text[start - 1 : start] == "_" or text[end : end + 1] == "_"


def _read_digits(match: re.Match[str]) -> NumberMention | None:
    text, before = match.string, match.string[max(0, match.start() - LOOK_BEHIND) : match.start()]
    if (before[-1:].isalnum() and not _TIMES.search(before)) or before[-1:] in ("_", "\\"):
        return None  # the digits of a name
    scale, currency = _read_scale(match, before)
    plain, parts = _read_separators(match["digits"])
    signed = _SIGN.search(before)
    sign = -1 if signed is not None else 1
    if not plain:
        return None
    unit, start, end = find_unit(text, match.start("digits"), match.end())
    if currency:
        unit, end = UNITS[currency], match.end()
    rounding = None if unit is None and _is_year(match) else find_rounding(before, text, end)
    is_exact = (match["scale"] or "").lower() in GROUPS
    readings = tuple(dict.fromkeys(_read(value, rounding, sign * scale, is_exact=is_exact) for value in plain))
    if signed is not None:
        start = min(start, match.start() - len(signed[0]))
    unscaled = sign * plain[0] if scale != 1 else None
    return NumberMention(text[start:end].strip(), start, end, readings, unit, tuple(parts), unscaled)


def _read_scale(match: re.Match[str], before: str) -> tuple[Decimal, str]:
    if match["scale"]:
        return FACTORS[match["scale"].lower().rstrip(".")], ""
    if match["scaled"]:
        return _SCALED_CURRENCIES[match["scaled"].lower()]
    # A capital M right behind the digits is a million; a small one is a metre, except behind a currency: $1.5m, £3b.
    is_amount = before.rstrip()[-1:] in _CURRENCY_SIGNS
    if match["mega"] == "M" or (match["mega"] == "m" and is_amount):
        return Decimal(10**6), ""
    return (Decimal(10**9), "") if match["mega"] and is_amount else (Decimal(1), "")


def _read_separators(written: str) -> tuple[list[Decimal], list[Decimal]]:
    """The values that the digits can stand for, the likeliest first, and the numbers of a possible list."""
    fraction = Decimal(FRACTIONS[written[-1]]) if written[-1] in FRACTIONS else Decimal(0)
    written = written.rstrip(_FRACTION + SPACES)
    if not written:
        return [fraction], []
    if len(written) > _MAX_DIGITS:
        return [], []
    digits, _, exponent = _POWER.sub(_write_power, written.replace("\u066b", ".").lower()).partition("e")
    factor = Decimal(10) ** int(exponent) if exponent else Decimal(1)
    values = [value * factor + fraction for value in _read_plain(digits)]
    parts = re.split(rf"[,{SPACES}]", digits)
    is_list = len(parts) > 1 and all(part.isdigit() for part in parts)
    if is_list and "," in digits and _GROUPED.fullmatch(digits):
        is_list = False  # 1,234 is a thousand and more; 5 100 may be two numbers
    if is_list and any(part[0] == "0" and len(part) > 1 for part in parts[1:]):
        is_list = False
    return values, [Decimal(part) for part in parts] if is_list else []


def _write_power(match: re.Match[str]) -> str:
    """`e-6` for `x 10⁻⁶` or `x10^-6`."""
    return "e" + lower_figures(match["power"]).replace("\u2212", "-")


def _read_plain(digits: str) -> list[Decimal]:
    """The values of digits with separators: `1,234` is 1234 or 1.234, `1.234,5` only 1234.5."""
    marks = re.findall(r"\D", digits)
    joined = re.sub(r"\D", "", digits)
    if not marks:
        return [Decimal(joined)]
    head, _, tail = digits.rpartition(marks[-1])
    whole = re.sub(r"\D", "", head)
    as_decimal = _to_decimal(f"{whole}.{tail}")
    if _INDIAN.fullmatch(digits):
        return [as_decimal if "." in digits else Decimal(joined)]
    if len(set(marks)) == 1 and _GROUPED.fullmatch(digits) and head != "0":
        # Only one separator of one kind can also be a decimal sign, and nobody shows three zero decimals.
        ambiguous = len(marks) == 1 and marks[0] in ".," and tail != "000"
        return [Decimal(joined), as_decimal] if ambiguous else [Decimal(joined)]
    if marks[-1] not in ".," or marks[-1] in marks[:-1]:
        return []  # 1.2.3 is a version
    return [as_decimal]


def _to_decimal(text: str) -> Decimal:
    try:
        return Decimal(text if text[0] != "." else f"0{text}")
    except InvalidOperation:
        return Decimal(0)


def _read(
    value: Decimal, rounding: Rounding | None, factor: Decimal = Decimal(1), *, is_exact: bool = False
) -> NumberReading:
    """The reading of a number that stands for `factor` times its value. One in words, or of groups, is exact if nothing
    rounds it."""
    if rounding is None:
        return NumberReading(factor * value, Decimal(0) if is_exact else abs(factor) * _find_step(value))
    step = _find_step(value, approximate=True)
    below, above = (abs(factor) * one for one in rounding.measure(value, step))
    return NumberReading(factor * value, abs(factor) * step, below, above)


def _is_year(match: re.Match[str]) -> bool:
    """Whether a bare number can be a year that no words round: "under 2024" is Swedish for "during 2024"."""
    return _YEAR.fullmatch(match["digits"]) is not None and match.end() == match.end("digits")


def _find_step(value: Decimal, *, approximate: bool = False) -> Decimal:
    """The place value of the last digit shown. Behind "about", zeros at the end are not shown digits."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if approximate and exponent >= 0 and value:
        exponent = len(format_decimal(value)) - len(format_decimal(value).rstrip("0"))
    return Decimal(1).scaleb(exponent) if exponent < 0 or approximate else Decimal(1)
