"""Figures with the one of the period before in brackets: "SEK 7.42 (5.96)", "48,7 Mio. EUR (Vj. 44,1)"; what follows.

The bracket has the unit and scale of what it stands behind. Changes of such a pair, ratios of two pairs and the change
of a ratio are what reports are asked for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, permutations
from typing import Final

from agent.answers.derived.chance import Quantity, Results, contains_near, is_unlikely_hit, make_quantity, sort_results
from agent.text.numbers import NumberMention

_BETWEEN: Final = re.compile(
    r"[ \u00a0\u202f]?(?:[%\w]{0,24}[ \u00a0]){0,3}[%\w]{0,24}"
    r"\((?:[^\W\d_]{1,12}[.:]?(?: [^\W\d_]{1,12}[.:]?){0,2} )?(?:[A-Z]{3} |[$€£])?"
)
_AFTER: Final = re.compile(r"[^\d()\n]{0,16}(?:(?:19|20)\d\d)?\)")
_PRIOR: Final = re.compile(
    r"\b(?:last|previous|prior) (?:fiscal )?year|\bvorjahr|\bvj\.|\bföregående år|\bförra året|\bi fjol"
    r"|\bl'année précédente|\bl'exercice précédent|\ban dernier",
    re.IGNORECASE,
)
_MAX_PAIRS: Final = 24
_OFTEN, _SELDOM = 0.15, 0.08


@dataclass(frozen=True, slots=True)
class _Pair:
    """A figure and the one before it, in base units."""

    now: float
    before: float
    dimension: str


class Comparatives:
    """The figures of some evidence that stand beside those of the period before."""

    def __init__(self, text: str, numbers: Sequence[NumberMention]) -> None:
        self._pairs = list(_iter_pairs(text, numbers))
        self.has_period_before = bool(self._pairs) or _PRIOR.search(text) is not None
        """Whether the evidence speaks of the period before, so that its year may be named."""
        self._changes = sort_results(
            one for pair in self._pairs for one in _compare(pair.now, pair.before, pair.dimension)
        )
        self._ratios = sort_results(_iter_ratios(self._pairs))

    def explain(self, figure: Quantity) -> bool:
        """Whether a figure is the change of a pair, or a ratio of two pairs, and few figures like it would be."""
        return is_unlikely_hit(figure, partial(_has, self._changes), _OFTEN) or is_unlikely_hit(
            figure, partial(_has, self._ratios), _SELDOM
        )


def _iter_pairs(text: str, numbers: Sequence[NumberMention]) -> Iterator[_Pair]:
    count = 0
    for one, other in pairwise(numbers):
        if count == _MAX_PAIRS:
            return
        if other.start - one.end > 40 or not _BETWEEN.fullmatch(text, one.end, other.start):
            continue
        if not _AFTER.match(text, other.end):
            continue
        scale = one.value / one.unscaled if one.unscaled and not other.unscaled else 1
        now = make_quantity(abs(float(one.value)), 0.0, one.unit)
        before = make_quantity(abs(float(other.value * scale)), 0.0, other.unit or one.unit)
        if now.dimension == before.dimension and now.value and before.value:
            count += 1
            yield _Pair(now.value * now.factor, before.value * before.factor, now.dimension)


def _compare(now: float, before: float, dimension: str) -> Iterator[tuple[str, float]]:
    yield "pp" if dimension == "%" else "", now - before
    if dimension != "%":
        yield "%", 100 * (now / before - 1)
        yield "%", 100 * now / before
        yield "x", now / before


def _iter_ratios(pairs: Sequence[_Pair]) -> Iterator[tuple[str, float]]:
    """Yields the ratios of two pairs now and before, as shares too, and by how much a share has changed."""
    for one, other in permutations(pairs, 2):
        if "%" in (one.dimension, other.dimension):
            continue
        now, before = one.now / other.now, one.before / other.before
        if now <= 1:
            yield from (("%", 100 * now), ("%", 100 * before), ("pp", 100 * (now - before)))
        yield from (("x", now), ("x", before)) if now < 1_000 else (("", now), ("", before))


def _has(results: Results, figure: Quantity) -> bool:
    """Whether a figure is a result: a ratio only where it shows decimals."""
    names = [figure.dimension] if figure.dimension in ("%", "pp") else [""]
    if figure.dimension in ("x", "") and figure.tolerance < 0.5:
        names.append("x")
    value = figure.value * (figure.factor if figure.dimension not in ("%", "pp", "x") else 1)
    return any(contains_near(results.get(name, ()), value, figure.tolerance) for name in names)
