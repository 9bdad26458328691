"""Combinations of two figures of a record: sums, differences, shares, changes, products and rates.

Values are in base units of their dimension. `related_figures` says which figures belong together.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from agent.answers.derived.chance import Quantity

MAX_MEMBERS = 40
"""Figures of a record or column that are combined in pairs."""
_REACH = 6
"""Figures of a record from one to the last one that it is combined with."""
_NEAR = 4
"""Figures of one dimension of which each is compared with the next ones, less one."""
_MAX_RATE = 1_000


def iter_pairs(row: Sequence[Quantity]) -> Iterator[tuple[Quantity, Quantity]]:
    """Yields each figure of a record with the next few."""
    for place, one in enumerate(row[:MAX_MEMBERS]):
        yield from ((one, other) for other in row[place + 1 : place + _REACH])


def iter_near(group: Sequence[Quantity]) -> Iterator[tuple[Quantity, Quantity]]:
    """Yields each figure of one dimension with the next three."""
    for at in range(1, _NEAR):
        yield from zip(group, group[at:], strict=False)


def group_by_dimension(row: Sequence[Quantity]) -> list[list[Quantity]]:
    """The figures of a record in groups that can be compared, each in order."""
    groups: dict[str, list[Quantity]] = defaultdict(list)
    for one in row[:MAX_MEMBERS]:
        groups[one.dimension].append(one)
    return list(groups.values())


def combine(one: Quantity, other: Quantity) -> Iterator[tuple[str, float]]:
    """Yields what two figures of one record give, also of different kinds: a price times a number or a share."""
    yield from compare(one, other)
    if one.value == other.value and {one.dimension, other.dimension} == {"", "length"}:
        return  # both are the 4 of "4 x 3 m"
    for first, second in ((one, other), (other, one)):
        value, by = get_base(first), second.value
        if second.dimension == "%" or (not second.dimension and 0 < by < 1):
            share = by / 100 if second.dimension == "%" else by
            parts = (share, 1 + share, 1 - share, 1 / (1 + share) if share > -1 else 1.0)
            yield from ((first.dimension, value * part) for part in parts)
        elif by and (first.dimension != second.dimension or _is_rate(first, second)):
            yield first.dimension, value / by
            yield first.dimension, value * by
        elif first is one and first.dimension in ("", "length"):
            yield "area" if first.dimension else "", value * get_base(second)


def compare(one: Quantity, other: Quantity) -> Iterator[tuple[str, float]]:
    """Yields the sum, the difference, the ratio, the shares and the changes of two figures of one kind."""
    if one.dimension != other.dimension:
        return
    first, second = sorted((get_base(one), get_base(other)), key=abs)
    yield one.dimension, first + second
    yield one.dimension, second - first
    if one.dimension == "%":
        yield "pp", second - first
    if first:
        yield "", second / first
        for share in (first / second, second / first):
            yield "%", 100 * share
            yield "%", 100 * (share - 1)


def list_changes(one: Quantity, other: Quantity) -> Iterator[tuple[str, float]]:
    """Yields the difference of two figures of one dimension, the change from each to the other, and the share."""
    first, second = sorted((abs(get_base(one)), abs(get_base(other))))
    yield one.dimension, second - first
    if first:
        yield from (("%", 100 * (second / first - 1)), ("%", 100 * (1 - first / second)), ("%", 100 * first / second))


def add_counts(one: Quantity, other: Quantity) -> Iterator[tuple[str, float]]:
    """Yields the sum and the difference of two whole numbers of one unit."""
    if one.factor == other.factor and one.value.is_integer() and other.value.is_integer():
        yield one.dimension, get_base(one) + get_base(other)
        yield one.dimension, get_base(one) - get_base(other)


def iter_triples(row: Sequence[Quantity]) -> Iterator[tuple[str, float]]:
    """Yields the product of two figures with a third of their kind added or taken away: 3 * 249 + 15."""
    for one, other in combinations(row, 2):
        for third in row:
            if third is not one and third is not other and third.dimension in (one.dimension, other.dimension):
                yield third.dimension, get_base(one) * other.value + get_base(third)
                yield third.dimension, get_base(one) * other.value - get_base(third)


def list_rests(one: Quantity) -> list[float]:
    """What a share leaves of all, or the change that a factor is."""
    share = one.value if one.dimension == "%" else 100 * one.value if not one.dimension else 0.0
    return [100 - share] if 0 < share < 200 else []


def get_base(one: Quantity) -> float:
    """The value in the base unit of the figure's dimension."""
    return one.value * one.factor


def _is_rate(one: Quantity, other: Quantity) -> bool:
    """Whether a time can be said of each of some larger units: 38.5 hours in 5 days."""
    return (
        one.dimension == "time" and one.factor < other.factor and other.value.is_integer() and other.value < _MAX_RATE
    )
