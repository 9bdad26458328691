"""Finds telephone numbers: those that a country's numbering plan allows, or that the words before them name."""

# ruff: noqa: RUF001 - words of many scripts are the point here

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agent.policy.guardrails.spans import Span, has_words, iter_matches

_CANDIDATE: Final = re.compile(
    r"(?<![\w.,/#&?+-])(?<!\d[:=])(?:\+ ?|\()?\d(?:[ ./()-]{0,2}\d){5,15}(?![\w])(?![.,:]\d)"
)
_PHONE_LABEL: Final = re.compile(
    r"(?:\b(?:tel|phone|telefon|telephone|mobile|mobil|fax|cell|call|callto|sms|whatsapp|ring|dial|handy|nummer|ruf\w{0,12}"
    r"|puh|puhelin|tlf|gsm|telemóvel|telefone|telefoon|celular|móvil|portable|komórka|cep|тел|телефон|моб|τηλ|κιν|هاتف|جوال|電話|电话|手机|携帯)"
    r"[\"']?\.?|\b(?:phone|tel|fax|mobile)[_-]?(?:number|no|nr)[\"']?)[\s:=\"']{0,4}"
    r"(?:(?:me|us|him|her|at|on|is|number|no|nr|nummer|auf|på|under|unter)\.?[\s:]{1,2}){0,3}\Z",
    re.IGNORECASE,
)  # fmt: skip
"""A word for a telephone directly before its number: `tel:070...`, `"phone":"070..."`."""
_PHONE_CONTEXT: Final = re.compile(
    r"\b(?:tele)?(?:phone|fon)|\btel\b|\bmobile|(?<![./])\bcell\b(?![./])|\bcell ?phone|\bcall|\bdial|\bfax"
    r"|\breach (?:me|us|him|her|them)\b"
    r"|\bcontact|\bring\b|\bwhatsapp|\bsms\b|\btext (?:me|him|her|us|to)\b|\banswering\b|\bhotline|\bregistered\b"
    r"|\bhandy"
    r"|\bruf|\brufnummer|\bmobil|\bm[óo]vil\b|\btéléphone|\bteléfono|\btelefono|\bappel|\bllam|\bchiam|\bring|\bnummer\b"
    r"|\bpuh(?:elin)?\b|\btlf\b|\bgsm\b|\btelem[óo]vel|\bcelular|\bportable\b|\bport\.|\bkom(?:órk|\.)|\bтел|\bмоб|τηλ|κιν"
    r"|هاتف|جوال|電話|电话|手机|携帯",
    re.IGNORECASE,
)  # fmt: skip
_OTHER_NUMBER_LABEL: Final = re.compile(
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
_ARGUMENT: Final = re.compile(r"\w\(\Z")
"""The number in `call(1234567)` is an argument."""
_SIX_DIGITS: Final = re.compile(r"\d(?:[ ./()-]{0,2}\d){5}")
"""Every candidate contains this, and most texts do not."""
_DECIMAL: Final = re.compile(r"0[.,]\d")
_AMERICAN: Final = re.compile(r"\(?[2-9]\d\d\)?[ .-]{1,2}[2-9]\d\d[ .-]\d{4}")
_BRAZILIAN: Final = re.compile(r"\(\d{2}\) ?9\d{4}-\d{4}")
_UNITS: Final = re.compile(
    r"\s?(?:[%€$£°]|(?:eur|usd|gbp|km|kg|mm|cm|m|ml|gb|mb|kb|ms|times|people|units|items|pieces|points)\b)",
    re.IGNORECASE,
)
REGIONS: Final = ("US", "GB", "DE", "FR", "ES", "IT", "SE", "CH", "NL", "PL")
"""Countries whose numbering plans are tried for numbers without a country code."""
CONTEXT_BEFORE: Final = 48
"""Characters before a number in which a word can identify it as a telephone number."""


def find_phones(text: str) -> Iterator[Span]:
    """Yields the telephone numbers of a text."""
    others: set[str] = set()
    for match in iter_matches(_CANDIDATE, text) if _SIX_DIGITS.search(text) else ():
        number, start = match[0], match.start()
        if number.startswith("(") and ")" not in number:
            number, start = number[1:], start + 1
        digits = re.sub(r"\D", "", number)
        if not 6 <= len(digits) <= 15 or len(set(digits)) < 3 or _DATE.fullmatch(number) or _DECIMAL.match(number):
            continue
        before = text[max(0, start - CONTEXT_BEFORE) : start]
        line = before.rpartition("\n")[2]
        is_labelled = has_words(_PHONE_CONTEXT, line, 0, len(line))
        if before[-1:] in ("=", ":") and not (number.startswith("+") or (is_labelled and _PHONE_LABEL.search(before))):
            continue
        if _ARGUMENT.search(before) or (is_labelled and len(digits) == 6 and not _PHONE_LABEL.search(before)):
            continue
        form = re.sub(r"\d", "0", number)
        if _OTHER_NUMBER_LABEL.search(before) and not _PHONE_LABEL.search(before) and not number.startswith("+"):
            others.add(form)
            continue
        if _UNITS.match(text, match.end()) or (not is_labelled and form in others):
            continue  # same format as a number that was labelled an order or part number
        if _is_phone(number, is_labelled=is_labelled):
            yield Span(start, match.end(), "a telephone number")


@lru_cache(maxsize=4096)
def _is_phone(number: str, *, is_labelled: bool) -> bool:
    digits = re.sub(r"\D", "", number)
    if number.startswith("+") or (digits.startswith("00") and len(digits) >= 10):
        return _is_valid("+" + digits.removeprefix("00") if not number.startswith("+") else number, None)
    grouped = re.search(r"\d\D+\d", number) is not None
    if is_labelled:
        return 7 <= len(digits) <= 13 or (grouped and len(digits) == 6)
    if _AMERICAN.fullmatch(number) or _BRAZILIAN.fullmatch(number):
        return True
    if not grouped or not digits.startswith("0") or len(digits) < 9:
        return False
    return any(_is_valid(number, region) for region in REGIONS)


def _is_valid(number: str, region: str | None) -> bool:
    import phonenumbers  # noqa: PLC0415 - 58 modules, 1 MB; few texts contain a number of six digits

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False
