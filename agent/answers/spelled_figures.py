"""Checks the periods and fractions that an answer names in words against the years and numbers of its evidence."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations

from agent.answers.derivations import read_quantities
from agent.text.spelled_values import FractionMention, PeriodMention, SpelledMention, find_spelled_values
from agent.text.values import KnownValues

_TOLERANCE = 0.04
"""By how much a share may differ from the fraction that is said of it: 0.427 and "two fifths"."""
_MAX_NUMBERS = 24
"""With more numbers, two of them have any ratio."""


def list_unknown(mentions: list[SpelledMention], known: KnownValues, evidence: str) -> list[SpelledMention]:
    """Those that the evidence does not hold, and that follow from no year, share or two numbers of it."""
    lowered = evidence.lower()
    fractions = [one for one in find_spelled_values(evidence) if isinstance(one, FractionMention)] if mentions else []
    return [
        one
        for one in mentions
        if one.text.lower() not in lowered
        and not (
            _has_period(one, known)
            if isinstance(one, PeriodMention)
            else any(abs(other.value - one.value) < _TOLERANCE for other in fractions) or _has_share(one.value, known)
        )
    ]


def _has_period(mention: PeriodMention, known: KnownValues) -> bool:
    return any(
        known.has_between(Decimal(first), Decimal(end))
        or any(date.year is not None and first <= date.year < end for date in known.dates)
        for first, end in mention.spans
    )


def _has_share(share: float, known: KnownValues) -> bool:
    quantities = list(dict.fromkeys(one for mention in known.numbers for one in read_quantities(mention)[:1]))
    if len(quantities) > _MAX_NUMBERS:
        return True
    percentages = [one.value * one.factor / 100 for one in quantities if one.dimension == "%"]
    percentages += [one.value for one in quantities if one.value < 1]
    values = [one.value * one.factor for one in quantities if one.value and one.dimension != "%"]
    shares = {*percentages, *(1 - one for one in percentages), *_iter_ratios(values)}
    return any(abs(one - share) < _TOLERANCE for one in shares)


def _iter_ratios(values: list[float]) -> Iterator[float]:
    """The shares of two numbers: of the larger one, of both together, and of the change."""
    for one, other in combinations(values, 2):
        small, large = sorted((one, other))
        yield from (small / large, 1 - small / large, small / (small + large), large / (small + large))
