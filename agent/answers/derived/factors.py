"""Factors that words give without a number: half and double, both of two, a year of twelve months.

A figure times such a factor needs the word, in its sentence or in the request. Without one, half of any number would
explain a wrong difference. Twelve needs a month on one side and a year on the other: "this year" multiplies nothing.
"""

import re
from functools import lru_cache
from typing import Final

from agent.text.numbers import find_numbers

_TWO: Final = re.compile(
    r"\b(?:hal[fv](?!t)|halb|hälft|demi(?:e|es)?\b|moitié|doubl|d[eé]doubl|doppel|verdoppel|dubb[el]|fördubb|"
    r"twice|both|beide|båda|bägge|tou(?:te)?s les deux|(?:for two|für zwei|för två|pour deux)\b|"
    r"round[ -]trip|return (?:trip|journey|flight|ticket|fare)|there and back|retur(?:resa|biljett)|tur och retur|"
    r"fram och (?:tillbaka|åter)|rückfahrt|hin[- ]und[- ](?:her|rück|zurück)|aller[- ](?:et[- ])?retour)",
    re.IGNORECASE,
)
_MONTH: Final = re.compile(r"(?<![^\W_])(?:month|mensu|mois\b|mån\b)|monat|månad|(?<=[/_])mo\b", re.IGNORECASE)
_YEAR: Final = re.compile(
    r"(?<![^\W_])(?<!\bthis )(?<!\blast )(?<!\bnext )"
    r"(?:year(?!\s(?:19|20)\d\d\b)|annu(?:al|el|m\b)|p\.\s?a\.|(?<!cette )année|"
    r"(?:un|l['\u2019]|par |chaque )\s?an\b|ans\b|(?<!\bi )år(?:et|en|l\w+|s\w*)?\b)"
    r"|(?<!dieses )(?<!diesem )jahr(?!\s(?:19|20)\d\d\b)|jähr|årsv",
    re.IGNORECASE,
)
_RATIOS: Final = {
    ("month", "year"): 12, ("quarter", "year"): 4, ("month", "quarter"): 3, ("week", "year"): 52, ("day", "week"): 7,
    ("night", "week"): 7, ("day", "year"): 365, ("h", "day"): 24,
}  # fmt: skip
"""How many of the shorter time the longer one has."""
_OF_YEAR: Final = re.compile(r"(?<![\d.,-])(?:19|20)\d\d(?![\d.,-]*\d)")
"""What results give for a year without the word."""
_FOR: Final = re.compile(r"\b(?:for|to|för|till|für|auf|pour|à)\s$", re.IGNORECASE)
_MAX_COUNT: Final = 100
_MAX_REQUEST: Final = 600
"""Characters of a request that are read: longer ones bring their own texts along."""
_REQUEST: Final = re.compile(rf"\s*+(?P<request>.{{1,{_MAX_REQUEST}}}?)\n\d{{4}}-\d\d-\d\d\n", re.DOTALL)


def find_request(evidence: str) -> str:
    """The caller's texts, with which the evidence of an answer begins, before the day of the request; "" if none do."""
    match = _REQUEST.match(evidence)
    return match["request"] if match is not None else ""


@lru_cache(maxsize=16)
def list_factors(sentence: str, evidence: str) -> frozenset[float]:
    """The factors that the words of a sentence and of its request give, and the counts of the request: for 3 people.
    Twelve is one of a text by months of which the other gives years."""
    request = find_request(evidence)
    factors = {2.0} if _TWO.search(f"{sentence}\n{request}") else set()
    if _joins(sentence, request, evidence):
        factors.add(12.0)
    counts = (float(one.value) for one in find_numbers(request) if one.unit is None)
    return frozenset(factors | {one for one in counts if one.is_integer() and 1 < one < _MAX_COUNT})


@lru_cache(maxsize=16)
def list_wanted_counts(*texts: str) -> frozenset[float]:
    """The counts that a request or a sentence gives figures for: of "for 6 people"."""
    read = [text[:_MAX_REQUEST] for text in texts]
    counts = [one for text in read for one in find_numbers(text) if one.unit is None and _FOR.search(text[: one.start])]
    values = [float(one.value) for one in counts]
    return frozenset(one for one in values if one.is_integer() and 1 < one < _MAX_COUNT)


def _joins(sentence: str, request: str, evidence: str) -> bool:
    """Whether a sentence, or the request that it answers, gives years and the evidence months, or the reverse."""
    claim = f"{sentence}\n{request}"
    return any(
        one.search(claim) is not None and other.search(evidence) is not None
        for one, other in ((_YEAR, _MONTH), (_MONTH, _YEAR), (_MONTH, _OF_YEAR))
    )


def get_period_ratio(one: str, other: str) -> float | None:
    """What a rate of one time, a unit by name, is multiplied by for another; None for the same and for unlike ones."""
    if (one, other) in _RATIOS:
        return float(_RATIOS[one, other])
    return 1 / _RATIOS[other, one] if (other, one) in _RATIOS else None
