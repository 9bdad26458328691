"""Decides whether a figure follows from other figures: sums, differences, products, shares and changes of two of them.

A derivation proves little where many figures could be derived: with thirty numbers, every second figure below 1000 is a
sum or a product of two. So it counts only if few other figures of the same size and precision could be derived too.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from agent.text.numbers import NumberMention
from agent.text.units import Unit

MAX_OPERANDS = 120
"""Figures that are combined in pairs. With more of them nearly every figure could be derived."""
_PROBES = 48
"""Other figures that are tried, spread from half to twice the figure."""
_FEW = 6
"""Figures of which three are combined too."""
_CROWNS = ("SEK", "NOK", "DKK")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure in its own unit: `tolerance` is half a unit of the last place that it shows."""

    value: float
    tolerance: float = 0.0
    dimension: str = ""
    factor: float = 1.0

    def convert(self, other: "Quantity") -> float:
        """The value in the unit of `other`, if both are of one dimension, else as it is."""
        if self.dimension and self.dimension == other.dimension:
            return self.value * self.factor / other.factor
        return self.value

    def divide(self, scale: float) -> "Quantity":
        """The figure in a larger scale, with its precision."""
        return replace(self, value=self.value / scale, tolerance=self.tolerance / scale)


def read_quantities(mention: NumberMention) -> list[Quantity]:
    """The values that a number can stand for, without signs."""
    return [make_quantity(abs(float(one.value)), float(one.step) / 2, mention.unit) for one in mention.readings]


def make_quantity(value: float, tolerance: float, unit: Unit | None) -> Quantity:
    """A figure with its unit. Crowns of all countries are one dimension."""
    if unit is None:
        return Quantity(value, tolerance)
    return Quantity(value, tolerance, "kr" if unit.dimension in _CROWNS else unit.dimension, float(unit.factor))


class Derivations:
    """The figures that follow from some figures, combined in pairs."""

    def __init__(self, operands: Iterable[Quantity]) -> None:
        # One more or less than a known number is another number.
        self.operands = list(dict.fromkeys(one for one in operands if one.value not in (0, 1)))[:MAX_OPERANDS]
        self._prepared: dict[tuple[str, float], _Operands] = {}

    def explain(self, figure: Quantity, limit: float) -> bool:
        """Whether the figure follows from two operands, and at most `limit` of figures like it do too."""
        return bool(self.operands) and is_unlikely_hit(figure, self._is_derivable, limit)

    def _is_derivable(self, figure: Quantity) -> bool:
        key = (figure.dimension, figure.factor)
        if key not in self._prepared:
            self._prepared[key] = _Operands(self.operands, figure)
        return self._prepared[key].derive(figure)


def is_unlikely_hit(figure: Quantity, test: Callable[[Quantity], bool], limit: float) -> bool:
    """Whether the figure passes a test that at most `limit` (a share) of figures like it pass.

    What is hit without rounding needs to be unlikely among exact hits only."""
    return _passes_alone(figure, test, limit) or (
        figure.tolerance > 0 and _passes_alone(figure, lambda one: test(replace(one, tolerance=0.0)), limit)
    )


def _passes_alone(figure: Quantity, test: Callable[[Quantity], bool], limit: float) -> bool:
    if not test(figure):
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


def _iter_probes(figure: Quantity) -> Iterator[float]:
    """Yields figures from half to twice the figure that are written with the same precision, without its neighbours."""
    step = max(2 * figure.tolerance, figure.value * 1e-6)
    seen = set()
    for number in range(_PROBES):
        place = round(figure.value * 4 ** ((number + 0.5) / _PROBES - 0.5) / step)
        if place not in seen and abs(place * step - figure.value) > 1.5 * step:
            seen.add(place)
            yield place * step


class _Operands:
    """The operands in the unit of one kind of figures: those of its dimension, and those that multiply or divide it."""

    def __init__(self, operands: Sequence[Quantity], figure: Quantity) -> None:
        self._figure = figure
        own = [
            one.convert(figure)
            for one in operands
            if one.dimension in ("", figure.dimension) or (not figure.dimension and one.dimension not in ("%", "pp"))
        ]
        other = [one.value for one in operands if one.dimension != figure.dimension or not figure.dimension]
        self._own = sorted(set(own))
        self._factors = sorted({2.0, *(one for one in other if one != 1)})  # half and double need no second operand
        self._bare_rates = {one.value for one in operands if not one.dimension and 0 < one.value < 1}
        self._shares = sorted(
            {one.value * one.factor / 100 for one in operands if one.dimension == "%"} | self._bare_rates
        )
        self._pairs = _group_values(operands) if figure.dimension == "%" else []
        self._rates = sorted(100 * abs(one.value - 1) for one in operands if not one.dimension and 1 < one.value < 2)
        percentages = [one.value for one in operands if one.dimension == "%"] if not figure.dimension else []
        self._points = sorted({abs(one - other) for one, other in combinations(percentages, 2)})
        few = sorted({one.value for one in operands if one.dimension != "%"})
        self._triples = _list_triples(few) if len(few) <= _FEW and figure.dimension not in ("%", "pp") else []

    def derive(self, figure: Quantity) -> bool:
        """Whether the figure is the result of two operands. Each equation is solved for one of them."""
        value, tolerance = figure.value, figure.tolerance
        if figure.dimension in ("%", "pp"):
            return self._is_percentage(value * figure.factor, tolerance * figure.factor)
        if contains_near(self._points, value, tolerance) or contains_near(self._triples, value, tolerance):
            return True
        own = self._own
        for one in own:
            if (
                contains_near(own, value - one, tolerance)
                or contains_near(own, value + one, tolerance)
                or contains_near(own, one - value, tolerance)
                or contains_near(self._factors, value / one, tolerance / one)  # one * factor
                or (value and contains_near(self._factors, one / value, tolerance * one / value**2))  # one / factor
            ):
                return True
        return any(self._is_share(one, value, tolerance) for one in own if self._shares and one not in self._bare_rates)

    def _is_share(self, one: float, value: float, tolerance: float) -> bool:
        """Whether the value is a percentage of `one`, or `one` grown, shrunk or taken back by it."""
        ratio, near = value / one, tolerance / one
        return any(contains_near(self._shares, share, near) for share in (ratio, ratio - 1, 1 - ratio)) or any(
            contains_near([one / (1 + share)], value, tolerance) for share in self._shares
        )

    def _is_percentage(self, value: float, tolerance: float) -> bool:
        """Whether the value is a share, a change, the rest to 100, or a sum or difference of percentages."""
        shares = [100 * share for share in self._shares]
        if contains_near(shares, 100 - value, tolerance) or contains_near(self._rates, value, tolerance):
            return True
        if any(contains_near(shares, value + sign * one, tolerance) for one in shares for sign in (1, -1)):
            return True
        for values in self._pairs:
            for one in values:
                near = tolerance * one / 100
                if any(
                    contains_near(values, other, near)
                    for other in (one * value / 100, one * (1 + value / 100), one * (1 - value / 100))
                ):
                    return True
        return False


def _list_triples(values: Sequence[float]) -> list[float]:
    """The results of three of a few values: a product, or a product and a third that is added or taken away."""
    results = set()
    for one, other in combinations(values, 2):
        product = one * other
        for third in values:
            if third not in (one, other):
                results |= {product * third, product + third, abs(product - third)}
    return sorted(results)


def _group_values(operands: Sequence[Quantity]) -> list[list[float]]:
    """The base values of the operands of each dimension, with those of none."""
    bare = [one.value for one in operands if not one.dimension]
    groups = {one.dimension for one in operands if one.dimension not in ("", "%", "pp")}
    by_dimension = [
        sorted({*bare, *(one.value * one.factor for one in operands if one.dimension == name)}) for name in groups
    ]
    return by_dimension or [sorted(set(bare))]
