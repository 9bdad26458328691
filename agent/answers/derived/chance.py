"""Quantities, and whether it is by chance that one of them is among those that can be derived.

A derivation proves little where many figures could be derived: with thirty numbers, every second figure below 1000 is a
sum or a product of two. So it counts only if few other figures of the same size and precision could be derived too.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.text.numbers import NumberMention
from agent.text.units import Unit

_PROBES = 48
"""Other figures that are tried, spread from half to twice the figure."""
_CROWNS = ("SEK", "NOK", "DKK")
Results = Mapping[str, Sequence[float]]
"""What can be derived: sorted values in base units by their dimension."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure in its own unit: `tolerance` is half a unit of the last place that it shows."""

    value: float
    tolerance: float = 0.0
    dimension: str = ""
    factor: float = 1.0

    def divide(self, scale: float) -> "Quantity":
        """The figure in a larger scale, with its precision."""
        return replace(self, value=self.value / scale, tolerance=self.tolerance / scale)


def read_quantities(mention: NumberMention) -> list[Quantity]:
    """The values that a number can stand for, without signs."""
    return [make_quantity(abs(float(one.centre)), float(one.width) / 2, mention.unit) for one in mention.readings]


def list_operands(mention: NumberMention) -> list[Quantity]:
    """The likeliest value of a number, without its sign; of the 2 in `2 x 3 m` also the plain count."""
    first = mention.readings[0]
    quantities = [make_quantity(abs(float(first.value)), float(first.step) / 2, mention.unit)]
    is_shared = mention.is_factor and mention.unit is not None and mention.unit.dimension == "length"
    return [*quantities, Quantity(quantities[0].value)] if is_shared else quantities


def make_quantity(value: float, tolerance: float, unit: Unit | None) -> Quantity:
    """A figure with its unit. Crowns of all countries are one dimension."""
    if unit is None:
        return Quantity(value, tolerance)
    return Quantity(value, tolerance, "kr" if unit.dimension in _CROWNS else unit.dimension, float(unit.factor))


def is_unlikely_hit(figure: Quantity, test: Callable[[Quantity], bool], limit: float) -> bool:
    """Whether the figure passes a test that at most `limit` (a share) of figures like it pass.

    What is hit without rounding needs to be unlikely among exact hits only."""
    return _passes_alone(figure, test, limit) or (
        figure.tolerance > 0 and _passes_alone(figure, lambda one: test(replace(one, tolerance=0.0)), limit)
    )


def _passes_alone(figure: Quantity, test: Callable[[Quantity], bool], limit: float) -> bool:
    if not math.isfinite(figure.value) or not test(figure):
        return False
    probes = [one for one in _iter_probes(figure) if figure.dimension != "%" or one != 100]  # all of anything
    allowed = max(1.0, limit * len(probes))  # of a few figures, one is no large share
    passed = 0
    for probe in probes:
        passed += test(Quantity(probe, figure.tolerance, figure.dimension, figure.factor))
        if passed > allowed:
            return False
    return True


def is_among(figure: Quantity, ordered: Sequence[float], limit: float) -> bool:
    """Whether the figure is one of the sorted numbers, and at most `limit` of figures like it are."""
    return is_unlikely_hit(figure, lambda one: contains_near(ordered, one.value, one.tolerance), limit)


def contains_near(ordered: Sequence[float], value: float, tolerance: float) -> bool:
    """Whether one of the sorted numbers is within `tolerance` of `value`."""
    tolerance = tolerance * (1 + 1e-9) + 1e-9
    at = bisect_left(ordered, value - tolerance)
    return at < len(ordered) and ordered[at] <= value + tolerance


def has_near(results: Results, figure: Quantity, has_unit: bool = False) -> bool:
    """Whether a result is the figure. Where one of both has no unit, the numbers are compared; not of percentages, and
    not where the figure needs a result with its unit."""
    return any(contains_near(*one) for one in _iter_comparable(results, figure, has_unit))


def get_chance(results: Results, figure: Quantity) -> float:
    """The share of figures that are written as precisely, from half to twice this one, that results round to; 1.0 if
    this one is not among them. Where results are the figure without rounding, only such ones count."""
    hits = [one for one in _iter_comparable(results, figure) if contains_near(*one)]
    return min((_get_share(*one, figure) for one in hits), default=1.0)


def _get_share(ordered: Sequence[float], value: float, tolerance: float, figure: Quantity) -> float:
    step = _get_step(figure) * value / figure.value
    near = ordered[bisect_left(ordered, value / 2) : bisect_left(ordered, 2 * value)]
    count = max(1.0, 1.5 * value / step)
    rounded = {round(one / step) for one in near}
    share = len(rounded) / count
    if not contains_near(ordered, value, 0.0):
        return share
    exact = {place for one in near if abs((place := round(one / step)) * step - one) <= 1e-6 * one}
    return min(share, len(exact) / count)


def _iter_comparable(
    results: Results, figure: Quantity, has_unit: bool = False
) -> Iterator[tuple[Sequence[float], float, float]]:
    """Yields the results that a figure is compared with, and its value and tolerance in their unit."""
    yield results.get(figure.dimension, ()), figure.value * figure.factor, figure.tolerance * figure.factor
    if not has_unit and figure.dimension not in ("%", "pp"):
        others = [""] if figure.dimension else [name for name in results if name not in ("", "%")]
        yield from ((results.get(name, ()), figure.value, figure.tolerance) for name in others)


def sort_results(results: Iterable[tuple[str, float]]) -> Results:
    """The values without their signs by dimension, each once and sorted, as `contains_near` searches them."""
    values: dict[str, set[float]] = defaultdict(set)
    for dimension, value in results:
        values[dimension].add(abs(value))
    return {dimension: sorted(ones) for dimension, ones in values.items()}


def _iter_probes(figure: Quantity) -> Iterator[float]:
    """Yields figures from half to twice the figure that are written with the same precision, without its neighbours."""
    step = _get_step(figure)
    seen = set()
    for number in range(_PROBES):
        place = round(figure.value * 4 ** ((number + 0.5) / _PROBES - 0.5) / step)
        if place not in seen and abs(place * step - figure.value) > 1.5 * step:
            seen.add(place)
            yield place * step


def _get_step(figure: Quantity) -> float:
    """From a figure to the next one that is written alike. What follows from round figures is round too."""
    power = 1
    while figure.value and figure.value % (10 * power) == 0:
        power *= 10
    return max(2 * figure.tolerance, figure.value * 1e-6, power if power > 1 else 0)
