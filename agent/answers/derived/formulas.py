"""Decides whether a figure follows in several steps from figures whose labels say how they are combined.

A rate is multiplied by what counts its unit, amounts are added or taken away, a percentage is added, and the whole is
divided among people or months. Each step starts from what the one before gives, and a figure counts only if few figures
like it would follow in the same way (`chance`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Final

from agent.answers.derived.chance import Quantity, Results, get_chance, sort_results
from agent.answers.derived.factors import get_period_ratio
from agent.answers.derived.operands import COUNTED, MONEY, Operand

MAX_OPERANDS: Final = 16
"""Figures that are combined. Of more, nearly every figure would follow."""
_MAX_PLAIN: Final = 3
"""Figures without a dimension that are amounts beside products."""
_MIN_ROWS: Final = 3
"""Figures of one label of which the sum is as simple as a product."""
_MAX_TERMS, _MAX_SUMMANDS, _MAX_SHARES = 80, 6, 3
_LIMITS: Final = (0.06, 0.04, 0.05, 0.05, 0.02)
"""The share of figures that may follow: as sums of two or of all, as other sums, with percentages, for each of what a
sentence names, and by other factors."""
_SIMPLE: Final = 0.08
"""The same of products and of the sums of all figures of one label."""
_SCALED: Final = 0.2
"""The same of figures for another count: all of a recipe are scaled alike, so that there are few results."""
_MAX_RESULTS: Final = 20_000
"""Results of one step. More take long, and nearly every figure would be among them."""
_OF_SHARES: Final = 0.08
"""The same of single figures with a percentage."""
_MIN_PRECISION: Final = 80
"""Halves of the last place that a figure of several steps has to show: one of two digits may be any of many results."""
_UNTYPED_LIMITS: Final = (0.04, 0.0, 0.03, 0.03, 0.01)
"""The same where no label says what is multiplied."""
_NOT_ADDED: Final = ("%", "pp", "°C", "°F", "x")
_Result = tuple[str, float]


@dataclass(frozen=True, slots=True)
class _Term:
    """An operand or a product, with the places of the operands in it."""

    operand: Operand
    places: frozenset[int]


@dataclass(frozen=True, slots=True)
class Words:
    """What a sentence and its request say of the figures that it needs."""

    factors: AbstractSet[float]
    """Counts and words for them: for two, for 4 people, a year of twelve months."""
    periods: AbstractSet[str]
    """Names of units of time, for which rates are taken too."""
    divisors: AbstractSet[float]
    """The figures of what an amount is said of: of "per desk"."""
    wanted: AbstractSet[float]
    """The counts of the request, for which the figures of another count are scaled: a recipe for 6 people."""


class Formulas:
    """What follows from some figures, and from the words of a sentence."""

    def __init__(self, operands: Sequence[Operand], words: Words, own: AbstractSet[float] = frozenset()) -> None:
        """With `own`, base values of the sentence, each product holds one of these."""
        amounts = [one for one in operands if one.quantity.dimension not in _NOT_ADDED][:MAX_OPERANDS]
        self._single = [_Term(one, frozenset((place,))) for place, one in enumerate(amounts)]
        self._converted = [*_convert(self._single, words.periods), *_repeat(self._single, words.factors)]
        self._words = words
        self._own = frozenset(place for one in self._single for place in one.places if one.operand.base in own)
        shares = dict.fromkeys(one.quantity.value / 100 for one in operands if one.is_share)
        self._shares = list(shares)[:_MAX_SHARES]

    def explain(self, figure: Quantity) -> bool:
        """Whether the figure follows in one of the steps, and few figures like it do."""
        if figure.dimension in _NOT_ADDED:
            return False

        def is_among(results: Results, limit: float) -> bool:
            return get_chance(results, figure) <= limit

        if is_among(self._simple, _SIMPLE) or is_among(sort_results(self._scaled), _SCALED):
            return True
        if figure.value < _MIN_PRECISION * figure.tolerance:
            return False
        if is_among(self._of_shares, _OF_SHARES):
            return True
        has_unit = figure.dimension not in ("", *MONEY)  # a term of years is no difference of bare numbers
        limits = _LIMITS if self._products else _UNTYPED_LIMITS
        steps = zip(self._iter_steps(), limits, strict=True)
        return any(
            is_among(sort_results(one for one in step if one[0] or not has_unit), limit) for step, limit in steps
        )

    def _iter_steps(self) -> Iterator[list[_Result]]:
        """Yields what each step gives, built when it is reached."""
        yield self._sums
        yield self._other_sums
        yield self._taxed
        yield self._divided
        yield self._parts

    @cached_property
    def _simple(self) -> Results:
        """The products, and the sums of all figures of one label."""
        return sort_results([*map(_to_result, self._products), *self._label_sums])

    @cached_property
    def _of_shares(self) -> Results:
        """The single figures with one percentage, also for each of what the sentence names."""
        results = [_to_result(one) for one in self._single]
        taxed = [
            (name, value * part)
            for (name, value), share in product(results, self._shares)
            for part in (share, 1 + share, 1 - share)
        ]
        divided = [(name, value / by) for (name, value), by in product([*results, *taxed], self._words.divisors)]
        return sort_results([*taxed, *divided])

    @cached_property
    def _label_sums(self) -> list[_Result]:
        by_label: dict[tuple[frozenset[str], frozenset[str]], list[Operand]] = defaultdict(list)
        for one in self._single:
            if one.operand.is_labelled and one.operand.names:
                by_label[one.operand.names, one.operand.per].append(one.operand)
        groups = (group for group in by_label.values() if len(group) >= _MIN_ROWS)
        return [(group[0].quantity.dimension, sum(one.base for one in group)) for group in groups]

    @cached_property
    def _all_products(self) -> list[_Term]:
        """The rates times what counts their units, of two and of three figures, and for other times."""
        pairs = [*_multiply(self._single, self._single), *_divide(self._single, self._single)]
        triples = (*_multiply(self._single, pairs), *_multiply(pairs, self._single))
        products = (*self._converted, *pairs, *triples)
        return list({(one.places, one.operand.base): one for one in products}.values())

    @cached_property
    def _products(self) -> list[_Term]:
        """The products that hold a figure of the sentence, where this is asked for."""
        own = self._own
        return [one for one in self._all_products if not (own and own.isdisjoint(one.places))][:_MAX_TERMS]

    @cached_property
    def _groups(self) -> list[list[_Result]]:
        """The amounts that can be added, by dimension and by what they are said of: the products, and the figures that
        are in none. Many figures without a dimension are not added to products."""
        used = frozenset(place for one in self._all_products for place in one.places)
        largest = [one for one in self._products if not any(one.places < other.places for other in self._products)]
        single = [one for one in self._single if one.places.isdisjoint(used) and _is_amount(one.operand)]
        plain = [one for one in single if not one.operand.quantity.dimension]
        if largest and len(plain) > _MAX_PLAIN:
            single = [one for one in single if one.operand.quantity.dimension]
        terms = [*single, *largest]
        groups: list[list[_Result]] = []
        for per in dict.fromkeys(one.operand.per for one in terms):
            results = [_to_result(one) for one in terms if one.operand.per in (per, frozenset())]
            dimensions = {dimension for dimension, _ in results if dimension in MONEY} or {""}
            dimensions |= {dimension for dimension, _ in results}
            for name in sorted(dimensions - ({""} if dimensions & MONEY else set())):
                kinds = ("", name) if name in MONEY else (name,)  # money is mostly not named
                groups.append([(name, value) for own, value in results if own in kinds])
        return groups

    @cached_property
    def _sums(self) -> list[_Result]:
        """The sums and differences of two amounts, and of two rates of one unit, and the sums of all amounts."""
        rates = [
            tuple(map(_to_result, pair))
            for pair in combinations(self._single, 2)
            if pair[0].operand.per == pair[1].operand.per
        ]
        results = [one for group in self._groups for pair in combinations(group, 2) for one in _add(*pair)]
        results += [one for pair in rates for one in _add(*pair)]
        return results + [(group[0][0], sum(value for _, value in group)) for group in self._groups if group]

    @cached_property
    def _other_sums(self) -> list[_Result]:
        """The sums of more amounts, also with the last one taken away, and what the largest one leaves."""
        results: list[_Result] = []
        for group in self._groups:
            for count in range(3, _MAX_SUMMANDS + 1):
                for some in combinations(group[:_MAX_SUMMANDS], count):
                    total = sum(value for _, value in some)
                    rests = {max(some, key=lambda one: abs(one[1])), some[-1]}
                    results += [(some[0][0], total), *((name, total - 2 * value) for name, value in rests)]
        return results

    @cached_property
    def _bases(self) -> list[_Result]:
        terms = (*self._single, *self._products)
        return [*map(_to_result, terms), *self._sums, *self._other_sums]

    @cached_property
    def _taxed(self) -> list[_Result]:
        """The amounts with one percentage added or taken away, or of it, and with one after another."""
        single = [part for share in self._shares for part in (share, 1 + share, 1 - share)]
        sums = [part for pair in combinations(self._shares, 2) for part in (sum(pair), 1 + sum(pair))]
        parts = [*single, *sums, *(one * other for one, other in combinations(single, 2))]
        if len(self._bases) * len(parts) > _MAX_RESULTS:
            return []
        return [(name, value * part) for (name, value), part in product(self._bases, parts)]

    @cached_property
    def _scaled(self) -> list[_Result]:
        """The figures for the count that is wanted, where they are those of another count."""
        counts = {one.operand.quantity.value for one in self._single if _is_count(one.operand)} - {0}
        ratios = {wanted / count for wanted, count in product(self._words.wanted, counts) if wanted != count}
        figures = [_to_result(one) for one in self._single if _is_amount(one.operand)]
        return [(name, value * ratio) for (name, value), ratio in product(figures, ratios)]

    @cached_property
    def _divided(self) -> list[_Result]:
        """The amounts, with percentages too, for each of what the sentence names."""
        if (len(self._bases) + len(self._taxed)) * len(self._words.divisors) > _MAX_RESULTS:
            return []
        return [(name, value / by) for (name, value), by in product(self._bases + self._taxed, self._words.divisors)]

    @cached_property
    def _parts(self) -> list[_Result]:
        """All of these times and divided by the factors."""
        scales = {scale for factor in self._words.factors for scale in (factor, 1 / factor)}
        if (len(self._bases) + len(self._taxed)) * len(scales) + len(self._products) * len(scales) ** 2 > _MAX_RESULTS:
            return []
        results = [(name, value * scale) for (name, value), scale in product((*self._bases, *self._taxed), scales)]
        for one, other in combinations(sorted(scales), 2):
            results += [(name, value * one * other) for name, value in map(_to_result, self._products)]
        return results


def _convert(terms: Iterable[_Term], periods: AbstractSet[str]) -> Iterator[_Term]:
    """Yields the rates of a time for the other times: what is paid a month for a year."""
    for term in terms:
        for own, other in product(sorted(term.operand.per), sorted(periods)):
            factor = get_period_ratio(own.rstrip(COUNTED), other)
            if factor is not None:
                quantity = replace(term.operand.quantity, value=term.operand.quantity.value * factor)
                per = term.operand.per - {own} | {other}
                yield replace(term, operand=replace(term.operand, quantity=quantity, per=per))


def _repeat(terms: Iterable[_Term], factors: AbstractSet[float]) -> Iterator[_Term]:
    """Yields the rates as often as the sentence counts: a reservation on both trains."""
    for term, factor in product(terms, sorted(factors)):
        if term.operand.per and term.operand.quantity.dimension in MONEY:
            quantity = replace(term.operand.quantity, value=term.operand.quantity.value * factor)
            yield replace(term, operand=replace(term.operand, quantity=quantity, per=frozenset()))


def _divide(amounts: Iterable[_Term], rates: Sequence[_Term]) -> Iterator[_Term]:
    """Yields how many of what a rate is said of an amount of its kind is: boxes of 1.44 m² for 30 m²."""
    for amount, rate in product(amounts, rates):
        one, by = amount.operand.quantity, rate.operand.quantity
        is_of_kind = one.dimension == by.dimension and by.dimension not in ("", *MONEY)
        if is_of_kind and rate.operand.per and not amount.operand.per and by.value:
            yield _Term(
                Operand(Quantity(amount.operand.base / rate.operand.base), rate.operand.per),
                amount.places | rate.places,
            )


def _multiply(rates: Iterable[_Term], counts: Sequence[_Term]) -> Iterator[_Term]:
    """Yields the products of rates and what counts their units, as amounts of what the rate counts."""
    for rate in rates:
        for count in counts:
            shared = rate.operand.per & count.operand.names
            if shared and rate.operand.names != count.operand.names and rate.places.isdisjoint(count.places):
                yield _Term(
                    Operand(
                        replace(
                            rate.operand.quantity, value=rate.operand.quantity.value * count.operand.quantity.value
                        ),
                        (rate.operand.names | count.operand.names) - shared,
                        (rate.operand.per | (count.operand.per - count.operand.names)) - shared,
                    ),
                    rate.places | count.places,
                )


def _add(one: _Result, other: _Result) -> Iterator[_Result]:
    if one[0] == other[0] or "" in (one[0], other[0]):
        yield one[0] or other[0], one[1] + other[1]
        yield one[0] or other[0], one[1] - other[1]


def _to_result(term: _Term) -> _Result:
    return term.operand.quantity.dimension, term.operand.base


def _is_count(operand: Operand) -> bool:
    return not operand.quantity.dimension and not operand.per and operand.quantity.value.is_integer()


def _is_amount(operand: Operand) -> bool:
    return operand.is_labelled or bool(operand.quantity.dimension)
