"""Factors that words give without a number: half and double, both of two, a year of twelve months.

A figure times such a factor needs the word, in its sentence or in the request. Without one, half of any number would
explain a wrong difference.
"""

import re
from functools import lru_cache
from typing import Final

from agent.text.numbers import find_numbers

_TWO: Final = re.compile(
    r"\b(?:hal[fvb]|hälft|demi|moitié|doubl|d[eé]doubl|doppel|verdoppel|dubb[el]|fördubb|twice|both|beide|båda|bägge|pair|"
    r"paar|couple|tou(?:te)?s les deux|return|retur|retour|round.trip|"
    r"rückfahrt|(?:there and|back and|hin und|fram och|tur och) \w)",
    re.IGNORECASE,
)
_TWELVE: Final = re.compile(
    r"\b(?:month|year|annu|mensu|mois\b|année|(?:un|l['\u2019]|par |chaque )\s?an\b|ans\b|år(?:et|en|l\w+|s\w*)?\b)"
    r"|monat|jahr|jähr|månad|årsv",
    re.IGNORECASE,
)
_MAX_COUNT: Final = 100
_MAX_REQUEST: Final = 600
"""Characters of a request that are read: longer ones bring their own texts along."""
_REQUEST: Final = re.compile(rf"\s*(?P<request>.{{1,{_MAX_REQUEST}}}?)\n\d{{4}}-\d\d-\d\d\n", re.DOTALL)


def find_request(evidence: str) -> str:
    """The caller's texts, with which the evidence of an answer begins, before the day of the request; "" if none do."""
    match = _REQUEST.match(evidence)
    return match["request"] if match is not None else ""


@lru_cache(maxsize=16)
def list_factors(sentence: str, request: str) -> frozenset[float]:
    """The factors that the words of a sentence and of a request give, and the counts of the request: for 3 people."""
    text = f"{sentence}\n{request}"
    factors = {factor for pattern, factor in ((_TWO, 2.0), (_TWELVE, 12.0)) if pattern.search(text)}
    counts = (float(one.value) for one in find_numbers(request) if one.unit is None)
    return frozenset(factors | {one for one in counts if one.is_integer() and 1 < one < _MAX_COUNT})
