"""Telephone numbers: what a country's numbering plan allows, or what the words before it call one."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import phonenumbers

from agent.guardrails.spans import Span

_CANDIDATE: Final = re.compile(
    r"(?<![\w.,/=#&?:+-])(?:\+ ?|\()?\d(?:[ ./()\u2010\u2011\u2013-]{0,2}\d){5,15}(?![\w])(?![.,:]\d)"
)
_CALLED: Final = re.compile(
    r"\b(?:tele)?(?:phone|fon)|\btel\b|\bmobile|\bcell\b|\bcell ?phone|\bcall|\bdial|\bfax|\breach (?:me|us|him"
    r"|her|them)\b"
    r"|\bcontact|\bring\b|\bwhatsapp|\bsms\b|\btext (?:me|him|her|us|to)\b|\banswering\b|\bhotline|\bregistered\b"
    r"|\bhandy"
    r"|\bruf|\brufnummer|\bmobil|\btéléphone|\bteléfono|\btelefono|\bappel|\bllam|\bchiam|\bring|\bnummer\b|電話|电话",
    re.IGNORECASE,
)  # fmt: skip
_NOT: Final = re.compile(
    r"\b(?:order|invoice|ticket|reference|ref|case|account|acc|booking|tracking|parcel|serial|version|isbn"
    r"|article|item|"
    r"model|part|id|no|nr|card|policy|contract|zip|postcode|page|year|born|date|amount|total|price|usd"
    r"|eur)\.?[\s:#]{0,3}$"
    r"|[$€£%]\s?$",
    re.IGNORECASE,
)  # fmt: skip
_DATE: Final = re.compile(
    r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./](?:\d{4}|\d{2}))(?:[ T]\d{1,2}(?:[:.]\d{2}){0,2})?"
    r"|(?:19|20)\d\d ?[-\u2013/] ?(?:19|20)\d\d"
)
_DECIMAL: Final = re.compile(r"0[.,]\d")
_AMERICAN: Final = re.compile(r"\(?[2-9]\d\d\)?[ .-]{1,2}[2-9]\d\d[ .-]\d{4}")
_UNITS: Final = re.compile(
    r"\s?(?:[%€$£°]|(?:eur|usd|gbp|km|kg|mm|cm|m|ml|gb|mb|kb|ms|people|units|items|pieces|points)\b)", re.IGNORECASE
)
REGIONS: Final = ("US", "GB", "DE", "FR", "ES", "IT", "SE", "CH", "NL", "PL")
"""Whose numbering plans a number without a country code is held against."""
BEFORE: Final = 48
"""Characters before a number in which a word may say that it is a telephone's."""


def phones(text: str) -> Iterator[Span]:
    """Telephone numbers of a text."""
    for match in _CANDIDATE.finditer(text):
        number, start = match[0], match.start()
        if number.startswith("(") and ")" not in number:
            number, start = number[1:], start + 1
        digits = re.sub(r"\D", "", number)
        if not 6 <= len(digits) <= 15 or len(set(digits)) < 3 or _DATE.fullmatch(number) or _DECIMAL.match(number):
            continue
        before = text[max(0, start - BEFORE) : start]
        called = _CALLED.search(before.rpartition("\n")[2]) is not None
        if not called and (_NOT.search(before) or _UNITS.match(text, match.end())):
            continue
        if _is_phone(number, called=called):
            yield Span(start, match.end(), "a telephone number")


@lru_cache(maxsize=4096)
def _is_phone(number: str, *, called: bool) -> bool:
    digits = re.sub(r"\D", "", number)
    if number.startswith("+") or (digits.startswith("00") and len(digits) >= 10):
        return _valid("+" + digits.removeprefix("00") if not number.startswith("+") else number, None)
    grouped = re.search(r"\d\D+\d", number) is not None
    if called:
        return 7 <= len(digits) <= 13 or (grouped and len(digits) == 6)
    if _AMERICAN.fullmatch(number):
        return True
    if not grouped or not digits.startswith("0") or len(digits) < 9:
        return False
    return any(_valid(number, region) for region in REGIONS)


def _valid(number: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False
