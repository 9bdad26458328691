"""Number formats of Excel: percent, currency, leading zeros, fractions, dates, spans.

There is no kept library for this in Python (docs/adr/0014-workbooks.md).
"""

import re
import unicodedata
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from agent.workbooks.date_formats import format_moment
from agent.workbooks.format_sections import Section, Token, split_format

FormatKind = Literal["general", "number", "code", "date", "time", "datetime", "duration", "text"]
"""The kind of number in a format. A code has leading zeros: it is not an amount."""

GENERAL = "General"
BUILTIN_FORMATS = {
    0: GENERAL, 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: '"$"#,##0_);("$"#,##0)', 6: '"$"#,##0_);("$"#,##0)',
    7: '"$"#,##0.00_);("$"#,##0.00)', 8: '"$"#,##0.00_);("$"#,##0.00)', 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0_);(#,##0)",
    38: "#,##0_);(#,##0)", 39: "#,##0.00_);(#,##0.00)", 40: "#,##0.00_);(#,##0.00)",
    41: '_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)', 42: '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"_);_(@_)',
    43: '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)',
    44: '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)',
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
    **dict.fromkeys((*range(27, 37), *range(50, 59)), "yyyy-mm-dd"),
}  # fmt: skip
"""Formats that files name by number. 14 and 22 depend on the viewer's country: here a date that nobody can misread."""


_MAX_DECIMALS = 30
_SIGN = re.compile(r"(?<!\w)(?:[-\u2212](?!\d)|\((?!.*\)))")
"""What shows a negative number before its digits: neither a hyphen of a word nor a remark in parentheses."""


@lru_cache(maxsize=1024)
def classify_format(code: str) -> FormatKind:
    """The kind of number that a format shows."""
    section = split_format(code)[0]
    if section.has("elapsed"):
        return "duration"
    if section.has("date"):
        letters = {token.text[0].lower() for token in section.tokens if token.kind == "date"}
        has_time = bool(letters & {"h", "s", "a"})
        has_date = bool(letters & {"y", "d", "e", "b"}) or ("m" in letters and not has_time)
        return "datetime" if has_date and has_time else "date" if has_date else "time"
    if section.has("general") or not section.tokens:
        return "general"
    if section.has("cell") and not section.has("digit"):
        return "text"
    zeros = [token.text for token in section.tokens if token.kind == "digit"]
    is_plain = not section.has("point", "comma", "percent", "exponent", "slash")
    return "code" if is_plain and zeros[:2] == ["0", "0"] else "number"


@lru_cache(maxsize=1024)
def find_unit(code: str) -> str:
    """The unit that a format shows beside a number: a currency, a word or %; empty without one."""
    words = split_format(code)[0].words
    return "".join(sign for sign in words if sign.isalpha() or unicodedata.category(sign) == "Sc" or sign == "%")


def format_number(value: float, code: str, *, date1904: bool = False) -> str:
    """A number as a sheet shows it. What a format cannot show, or would hide, is shown without it."""
    sections = split_format_cached(code)
    section, is_own_sign = _choose_section(sections, value)
    amount = value if is_own_sign else abs(value)
    if section.has("date", "elapsed"):  # a day before the first one is none
        formatted = format_moment(section, amount if section.has("elapsed") else value, date1904=date1904) or ""
    else:
        formatted = _format_value(section, amount)
    return formatted or format_general(value)


@lru_cache(maxsize=1024)
def split_format_cached(code: str) -> tuple[Section, ...]:
    """The sections of a format code."""
    return split_format(code)


def format_text(text: str, code: str) -> str:
    """A text in a format: formats may add something to it."""
    sections = split_format_cached(code)
    section = sections[3] if len(sections) > 3 else sections[-1]
    if not section.has("cell") or section.has("digit", "date"):
        return text
    return "".join(text if token.kind == "cell" else token.text for token in section.tokens).strip() or text


def format_general(value: float) -> str:
    """A number with the 15 digits that Excel keeps: 0.30000000000000004 is 0.3."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(f"{value:.0f}"))
    text = f"{value:.15g}"
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}E{exponent}" if mark else text


def _choose_section(sections: tuple[Section, ...], value: float) -> tuple[Section, bool]:
    """The section for a value, and whether the section shows the sign of the value by itself."""
    conditional = [one for one in sections[:2] if one.condition is not None]
    if conditional:
        for one in sections[:3]:
            if one.condition is None or _holds(value, *one.condition):
                return one, not _writes_sign(one)
        return sections[0], True
    numbers = [one for one in sections if not (one.has("cell") and len(sections) > 1)] or [sections[0]]
    if value < 0 and len(numbers) > 1:
        return numbers[1], _shows_sign_by_colour(*numbers[:2])
    if value == 0 and len(numbers) > 2:
        return numbers[2], True
    return numbers[0], True


def _writes_sign(section: Section) -> bool:
    """Whether a section for negative numbers writes their sign itself."""
    before = takewhile(lambda token: token.kind not in {"digit", "general"}, section.tokens)
    return _SIGN.search("".join(token.text for token in before)) is not None


def _shows_sign_by_colour(positive: Section, negative: Section) -> bool:
    """Whether only its colour shows that a number is negative, which a text does not have. Without one, the format
    shows amounts on purpose."""
    return negative.colour != positive.colour and set(negative.words) <= set(positive.words)


def _holds(value: float, operator: str, limit: float) -> bool:
    match operator:
        case "<":
            return value < limit
        case "<=":
            return value <= limit
        case ">":
            return value > limit
        case ">=":
            return value >= limit
        case "=":
            return value == limit
        case _:
            return value != limit


def _format_value(section: Section, value: float) -> str:
    tokens = section.tokens
    if section.has("general"):
        return "".join(format_general(value) if t.kind == "general" else t.text for t in tokens).strip()
    if not section.has("digit"):
        return "".join(format_general(value) if t.kind == "cell" else t.text for t in tokens).strip()
    try:
        number = Decimal(repr(value)) * Decimal(100) ** sum(t.kind == "percent" for t in tokens)
    except InvalidOperation:
        return ""
    try:
        if section.has("exponent"):
            return _format_scientific(tokens, number).strip()
        return (_format_fraction if section.has("slash") else _format_decimal)(tokens, number).strip()
    except (InvalidOperation, OverflowError):  # more digits than any cell shows
        return ""


def _format_decimal(tokens: tuple[Token, ...], number: Decimal) -> str:
    point = next((index for index, token in enumerate(tokens) if token.kind == "point"), len(tokens))
    whole, rest = tokens[:point], tokens[point + 1 :]
    last = max((index for index, token in enumerate(whole) if token.kind == "digit"), default=-1)
    scale = 0
    while last + scale + 1 < len(whole) and whole[last + scale + 1].kind == "comma":
        scale += 1
    while rest and rest[-1].kind == "comma":
        rest, scale = rest[:-1], scale + 1
    for index in range(len(rest) - 1, 0, -1):  # commas between the last place and a text
        if rest[index].kind == "comma" and all(token.kind != "digit" for token in rest[index:]):
            rest, scale = (*rest[:index], *rest[index + 1 :]), scale + 1
    grouped = any(token.kind == "comma" for token in whole[: last + 1])
    places = [token.text for token in rest if token.kind == "digit"][:_MAX_DECIMALS]
    number = (number / Decimal(1000) ** scale).quantize(Decimal(1).scaleb(-len(places)), ROUND_HALF_UP)
    sign = "-" if number.is_signed() else ""
    digits, _, decimals = f"{abs(number):f}".partition(".")
    decimal_text = sign + _fill_whole(whole, digits.lstrip("0"), grouped=grouped)
    if point < len(tokens):
        decimal_text += "." + _fill_decimals(rest, decimals)
    return decimal_text


def _fill_whole(tokens: tuple[Token, ...], digits: str, *, grouped: bool) -> str:
    """Puts digits into their places from the right; those without a place stand before the first one."""
    parts: list[str] = []
    left = digits
    count = 0
    places = [index for index, token in enumerate(tokens) if token.kind == "digit"]

    def put(digit: str) -> None:
        nonlocal count
        if grouped and count and count % 3 == 0 and digit.isdigit():
            parts.append(",")
        parts.append(digit)
        count += 1

    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.kind != "digit":
            parts.append("" if token.kind == "comma" else token.text[::-1])
            continue
        if left:
            put(left[-1])
            left = left[:-1]
        elif token.text in "0?":
            put("0" if token.text == "0" else " ")
        while index == places[0] and left:
            put(left[-1])
            left = left[:-1]
    if not places:
        parts.extend(reversed(left))
    return "".join(parts)[::-1]


def _fill_decimals(tokens: tuple[Token, ...], decimals: str) -> str:
    digits_out = []
    needed = len(decimals.rstrip("0"))
    at = 0
    for token in tokens:
        if token.kind != "digit":
            digits_out.append(token.text)
            continue
        digit = decimals[at] if at < len(decimals) else "0"
        at += 1
        if at <= needed or token.text == "0":
            digits_out.append(digit)
        elif token.text == "?":
            digits_out.append(" ")
    return "".join(digits_out)


def _format_scientific(tokens: tuple[Token, ...], number: Decimal) -> str:
    mark = next(index for index, token in enumerate(tokens) if token.kind == "exponent")
    before, after = tokens[:mark], tokens[mark + 1 :]
    point = next((index for index, token in enumerate(before) if token.kind == "point"), len(before))
    width = max(1, sum(token.kind == "digit" for token in before[:point]))
    places = sum(token.kind == "digit" for token in before[point:])
    exponent = number.adjusted() if number else 0
    exponent -= exponent % width if width > 1 else 0
    mantissa = number.scaleb(-exponent).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    if mantissa and mantissa.adjusted() >= width:  # 9.99 became 10.0
        exponent += width
        mantissa = number.scaleb(-exponent).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    sign = "-" if exponent < 0 else "+" if tokens[mark].text[1] == "+" else ""
    digits = f"{abs(exponent):0{max(1, sum(token.kind == 'digit' for token in after))}}"
    tail = "".join(token.text for token in after if token.kind != "digit")
    return f"{_format_decimal(before, mantissa)}E{sign}{digits}{tail}"


def _format_fraction(tokens: tuple[Token, ...], number: Decimal) -> str:
    slash = next(index for index, token in enumerate(tokens) if token.kind == "slash")
    end = slash + 1
    while end < len(tokens) and (tokens[end].kind == "digit" or tokens[end].text.isdigit()):
        end += 1
    fixed = "".join(token.text for token in tokens[slash + 1 : end])
    start = slash
    while start and tokens[start - 1].kind == "digit":
        start -= 1
    places = [index for index, token in enumerate(tokens[:start]) if token.kind == "digit"]
    has_whole = bool(places)
    before, between, after = (
        "".join(token.text for token in part)
        for part in (
            tokens[: places[0] if places else start],
            tokens[places[-1] + 1 : start] if places else (),
            tokens[end:],
        )
    )
    exact = abs(Fraction(number))
    whole = int(exact) if has_whole else 0
    part = exact - whole
    if fixed.isdigit() and int(fixed):
        fraction = Fraction(round(part * int(fixed)), int(fixed))
        top, bottom = round(part * int(fixed)), int(fixed)
    else:
        fraction = part.limit_denominator(10 ** max(1, len(fixed)) - 1)
        top, bottom = fraction.numerator, fraction.denominator
    if has_whole and fraction == 1:
        whole, top = whole + 1, 0
    sign = "-" if number.is_signed() and number else ""
    if not top:
        return f"{sign}{before}{whole}{after}"
    mixed = f"{whole}{between or ' '}{top}/{bottom}" if whole else f"{top}/{bottom}"
    return f"{sign}{before}{mixed}{after}"
