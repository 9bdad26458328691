"""Decides whether a figure follows from figures that readers combine: those of a record, of a column or of a sentence.

A record is a JSON object or a line of the evidence. Its figures and those of a column are combined far more often than
any two figures of the evidence. A sentence that names records, by a word or a number, is about these.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product

from agent.answers.derived.chance import (
    Quantity,
    Results,
    has_near,
    is_unlikely_hit,
    list_operands,
    make_quantity,
    sort_results,
)
from agent.answers.derived.combinations import (
    MAX_MEMBERS,
    add_counts,
    combine,
    compare,
    get_base,
    group_by_dimension,
    iter_near,
    iter_pairs,
    iter_triples,
    list_changes,
    list_rests,
)
from agent.answers.derived.factors import list_factors
from agent.text.numbers import NumberMention
from agent.text.unit_labels import find_unit_of_label
from agent.text.units import CURRENCIES

MAX_RECORDS = 400
"""Records that are read. Of longer evidence nearly every figure could be derived."""
_MAX_ROWS, _MAX_ADDENDS = 24, 12
"""Records of a sentence; figures of a record or column that are added up."""
_UNCHANGED = CURRENCIES | {"", "%", "pp", "x", "°C", "°F"}
"""Dimensions in which two figures beside each other are mostly no state before and now, and money, which is first."""
_FEW = 6
"""Figures of a record of which three are combined too."""
_MAX_OTHERS, _MAX_COUNTS = 12, 6
"""Figures of a sentence that are combined in pairs, and counts that are factors."""
_MAX_JOINED = 24
"""Figures of all records that are compared as if they were one record's, as of the lines of a short log."""
_MAX_RESULTS = 4_000_000
"""Results that are built for one answer, some seconds of work. Later figures follow from their sentence only."""
_MAX_SELECTIONS = 8
"""Selections of records whose results are kept, some megabytes each."""
_MIN_NAMED = 10
"""Whole numbers below this are too common to name a record."""
_MIN_PRECISION = 2_000
"""Halves of the last place that a sum of some figures has to show: of many sums, a short one may be any."""
_MIN_ROUND = 20
"""The same of a multiple: 5 is not half of 9, rounded."""
_RARE, _FEW_HITS, _OFTEN = 0.02, 0.1, 0.15
"""How many other figures may be derivable in the same way, from the least to the most usual way to derive one."""
_END = re.compile(r"[\n{}]")
_KEY = re.compile(r"\"([^\"\n]{1,40})\"\s*:\s*-?$")
_WORD = re.compile(r"[^\W\d_]{3,}")
_COUNTED = ("time", "months", "nights")
_ADDED = re.compile(
    r"[^.;:!?\d\n]{0,60}(?:\b(?:and|plus|und|sowie|et|och|samt|ainsi que)|\+)\s(?:[^\W\d_]+\s){0,2}", re.IGNORECASE
)
"""What joins two counts."""


@dataclass(slots=True)
class _Record:
    """The figures of a record with their columns, their amounts, and the words that only few records have."""

    words: set[str]
    figures: list[tuple[Hashable, Quantity]]
    amounts: frozenset[float]


class RelatedFigures:
    """The records and columns of some evidence."""

    def __init__(self, text: str, numbers: Sequence[NumberMention]) -> None:
        self._text = text
        self._records = list(_iter_records(text, numbers))
        frequency = Counter(word for record in self._records for word in record.words)
        for record in self._records:
            record.words = {word for word in record.words if 2 * frequency[word] <= max(2, len(self._records))}
        self._columns = _list_columns(self._records)
        figures = [one for record in self._records for _, one in record.figures]
        self._joined = figures if len(figures) <= _MAX_JOINED else []
        self._selections: dict[tuple[int, ...], _Selection] = {}
        self._last: tuple[Hashable, _Relations] | None = None
        self._results_left = _MAX_RESULTS

    def explain(self, figure: Quantity, sentence: str, others: Sequence[Quantity]) -> bool:
        """Whether the figure follows from the records that its sentence names, or from `others`, the explained
        figures of its sentence, and few figures like it would."""
        others = tuple(others[:MAX_MEMBERS])
        numbers = {one.value for one in others if one.value >= _MIN_NAMED or not one.value.is_integer()}
        words = {word.lower() for word in _WORD.findall(sentence)}
        named = tuple(place for place, record in enumerate(self._records) if _is_named(record, words, numbers))
        factors = list_factors(sentence, self._text)
        if self._last is None or self._last[0] != (named, others, factors):
            self._last = (named, others, factors), _Relations(self._select(named[:_MAX_ROWS]), others, factors)
        relations = self._last[1]
        is_explained = relations.explain(figure, with_records=self._results_left > 0)
        self._results_left -= relations.take_count()
        return is_explained

    def _select(self, places: tuple[int, ...]) -> "_Selection":
        if places not in self._selections:
            if len(self._selections) == _MAX_SELECTIONS:
                del self._selections[next(iter(self._selections))]
            records = [self._records[place] for place in places] or self._records[:_MAX_ROWS]
            self._selections[places] = _Selection(records, self._columns, self._joined)
        return self._selections[places]


def _is_named(record: _Record, words: set[str], numbers: set[float]) -> bool:
    return not (words.isdisjoint(record.words) and numbers.isdisjoint(record.amounts))


class _Selection:
    """What follows from some records and their columns alone."""

    def __init__(
        self,
        records: Sequence[_Record],
        all_columns: Mapping[Hashable, Sequence[Quantity]],
        joined: Sequence[Quantity],
    ) -> None:
        self.rows = [[one for _, one in record.figures] for record in records]
        self._joined = joined
        self._columns = _list_columns(records)
        self._all_columns = all_columns
        self.built = 0
        """Results that were built and not yet counted by a caller."""

    @cached_property
    def units(self) -> frozenset[str]:
        """The dimensions of the figures of the records: what follows from bare numbers is of none of them."""
        return frozenset(one.dimension for row in self.rows for one in row if one.dimension)

    @cached_property
    def amounts(self) -> Results:
        """The differences and changes of neighbouring amounts of money in a record: a price before and now."""
        return self._sort([result for pair in self._near_amounts for result in list_changes(*pair)])

    @cached_property
    def totals(self) -> Results:
        """The sums of two such amounts, and the sums and differences of short evidence, exact ones only."""
        pairs = iter_pairs(self._joined)
        sums = [(one.dimension, get_base(one) + get_base(other)) for one, other in self._near_amounts]
        return self._sort([*sums, *(result for pair in pairs for result in compare(*pair) if result[0] != "%")])

    @cached_property
    def _near_amounts(self) -> list[tuple[Quantity, Quantity]]:
        groups = (one for row in self.rows for one in group_by_dimension(row) if one[0].dimension in CURRENCIES)
        return [pair for group in groups for pair in iter_near(group)]

    @cached_property
    def changes(self) -> Results:
        """The differences and changes of other quantities with a unit, and the sums of counts: days of two kinds."""
        results: list[tuple[str, float]] = []
        for group in (one for row in self.rows for one in group_by_dimension(row)):
            if group[0].dimension in _COUNTED:
                pairs = (pair for at in (1, 2) for pair in zip(group, group[at:], strict=False))
                results += [result for pair in pairs for result in add_counts(*pair)]
            elif group[0].dimension not in _UNCHANGED:
                results += [result for pair in iter_near(group) for result in list_changes(*pair)]
        return self._sort(results)

    @cached_property
    def pairs(self) -> Results:
        """The results of two figures of a record or a column."""
        results: list[tuple[str, float]] = []
        for row in self.rows:
            results += [result for pair in iter_pairs(row) for result in combine(*pair)]
            results += [("%", rest) for one in row for rest in list_rests(one)]
        for key, column in self._columns.items():
            pairs = product(column[:MAX_MEMBERS], self._all_columns[key][:MAX_MEMBERS])
            results += [result for one, other in pairs if one is not other for result in compare(one, other)]
        return self._sort(results)

    @cached_property
    def wholes(self) -> Results:
        """The sums and means of records and columns, and the shares of the latter."""
        results: list[tuple[str, float]] = []
        for group in (*self.rows, *self._columns.values(), *self._all_columns.values()):
            results += _sum_up(group)
        for key, column in self._columns.items():
            total = sum(map(get_base, self._all_columns[key]))
            if len(self._all_columns[key]) > 2 and total:
                results += [("%", 100 * get_base(one) / total) for one in column]
        return self._sort(results)

    @cached_property
    def sums(self) -> Results:
        """The sums of neighbours in a record or column, and those without the next one."""
        results: list[tuple[str, float]] = []
        for group in filter(_is_of_one_kind, (*self.rows, *self._columns.values())):
            values = [get_base(one) for one in group[:_MAX_ADDENDS]]
            for start, end in combinations(range(len(values) + 1), 2):
                if end - start > 2:
                    total = sum(values[start:end])
                    results += [(group[0].dimension, total - one) for one in (0.0, *values[end : end + 1])]
        return self._sort(results)

    def _sort(self, results: Sequence[tuple[str, float]]) -> Results:
        self.built += len(results)
        return sort_results(results)


class _Relations:
    """What follows from selected records, and from `others` and `factors`, the figures and words of a sentence."""

    def __init__(self, selection: _Selection, others: Sequence[Quantity], factors: AbstractSet[float]) -> None:
        self._selection = selection
        self._others = others
        self._factors = factors
        self._built = 0

    def explain(self, figure: Quantity, *, with_records: bool) -> bool:
        """Whether one of the ways to derive a figure gives this one, and few figures like it."""
        selection = self._selection
        if is_unlikely_hit(figure, lambda one: has_near(self._of_sentence, one), _OFTEN):
            return True
        if not with_records:
            return False
        has_unit = figure.dimension in selection.units
        # Where amounts of money give percentages, whole ones that other numbers give are mostly by chance.
        is_change = figure.dimension == "%" and "%" in selection.amounts

        def is_among(limit: float, *results: Results) -> bool:
            if is_unlikely_hit(figure, lambda one: any(has_near(each, one, has_unit) for each in results), limit):
                return True
            return has_unit and is_unlikely_hit(figure, lambda one: any(has_near(each, one) for each in results), _RARE)

        return (
            is_among(_OFTEN, selection.amounts)
            or is_unlikely_hit(
                figure, lambda one: has_near(selection.totals, replace(one, tolerance=0.0), True), _FEW_HITS
            )
            or is_among(_FEW_HITS if figure.dimension == "%" else _OFTEN, selection.changes)
            or is_among(_FEW_HITS, selection.wholes)
            or ((not is_change or figure.tolerance < 0.5) and is_among(_FEW_HITS, selection.pairs, self._pairs))
            or (_may_be_multiple(figure) and is_among(_RARE, self._multiples))
            or (figure.value > _MIN_PRECISION * figure.tolerance and is_among(_RARE, selection.sums))
        )

    def take_count(self) -> int:
        """The number of results that were built since the last call."""
        count, self._built, self._selection.built = self._built + self._selection.built, 0, 0
        return count

    @cached_property
    def _of_sentence(self) -> Results:
        """The results of two figures of the sentence, and the sums and means of all of one kind."""
        pairs = iter_pairs(self._others[:_MAX_OTHERS])
        return sort_results([*(result for pair in pairs for result in combine(*pair)), *_sum_up(self._others)])

    @cached_property
    def _pairs(self) -> Results:
        """The results of a figure of a record and another of the sentence."""
        rows = self._selection.rows
        values = {abs(one.value) for row in rows for one in row}
        others = [one for one in self._others if one.value not in values][:_MAX_OTHERS]
        pairs = (pair for row in rows for pair in product(row[:MAX_MEMBERS], others))
        return self._sort([result for pair in pairs for result in combine(*pair)])

    @cached_property
    def _multiples(self) -> Results:
        """The figures of records times and divided by counts of the sentence, also instead of a count of the record;
        of short records the product of two figures with a third added or taken away."""
        counts = [*dict.fromkeys(one.value for one in self._others if _counts(one) and one.value > 1)][:_MAX_COUNTS]
        factors = {*self._factors, *counts, *(one * other for one, other in combinations(counts, 2))}
        results: list[tuple[str, float]] = []
        listed = {one.value for row in self._selection.rows if len(row) > 2 for one in row}  # no counts of a new case
        for row in self._selection.rows:
            ratios = {count / one.value for one in row[:3] if _is_count(one) for count in counts if count not in listed}
            scales = {*factors, *(1 / factor for factor in factors), *ratios}
            results += [(one.dimension, get_base(one) * scale) for one in row[:MAX_MEMBERS] for scale in scales]
            results += iter_triples(row) if len(row) <= _FEW else ()
        return self._sort(results)

    def _sort(self, results: Sequence[tuple[str, float]]) -> Results:
        self._built += len(results)
        return sort_results(results)


def _sum_up(group: Sequence[Quantity]) -> Iterator[tuple[str, float]]:
    """Yields the sum and the mean of the figures of each dimension of which there are at least three."""
    by_dimension: dict[str, list[float]] = defaultdict(list)
    for one in group:
        by_dimension[one.dimension].append(get_base(one))
    for dimension, values in by_dimension.items():
        if len(values) > 2:
            total = sum(values)
            yield from ((dimension, total), (dimension, total / len(values)))


def _may_be_multiple(figure: Quantity) -> bool:
    return figure.value > _MIN_ROUND * figure.tolerance and figure.dimension not in ("°C", "°F", "%")


def _is_count(one: Quantity) -> bool:
    return not one.dimension and one.value.is_integer() and one.value > 0


def _counts(one: Quantity) -> bool:
    """Whether a figure is a count, or one of nights, months and the like: 3 rooms for 4 nights are 12."""
    return _is_count(replace(one, dimension="")) and one.dimension in ("", "time", "months", "nights")


def _is_of_one_kind(group: Sequence[Quantity]) -> bool:
    return len({one.dimension for one in group}) == 1


def _list_columns(records: Iterable[_Record]) -> dict[Hashable, list[Quantity]]:
    columns: dict[Hashable, list[Quantity]] = defaultdict(list)
    for record in records:
        for key, one in record.figures:
            columns[key].append(one)
    return columns


def _iter_records(text: str, numbers: Sequence[NumberMention]) -> Iterator[_Record]:
    # One more or less than a known number is another number.
    numbers = [
        one for one in numbers if one.value not in (0, 1) and not one.may_be_year and not text.startswith('":', one.end)
    ]
    at = place = count = 0
    words: set[str] = set()
    for end in (*(match.start() for match in _END.finditer(text)), len(text)):
        first = place
        while place < len(numbers) and numbers[place].start < end:
            place += 1
        words |= {word.lower() for word in _WORD.findall(text[at:end])}
        at = end
        if place == first:
            continue  # its words are the head of what follows
        members = enumerate(numbers[first : min(place, first + MAX_MEMBERS)])
        figures = [one for index, number in members for one in _read(text, number, (place - first, index))]
        figures += _read_joined_counts(text, numbers[first:place])
        yield _Record(words, figures, frozenset(abs(one.value) for _, one in figures))
        words, count = set(), count + 1
        if count == MAX_RECORDS:
            return


def _read(text: str, number: NumberMention, place: Hashable) -> Iterator[tuple[Hashable, Quantity]]:
    """Yields a number with its column; also with the unit of its label, and without its scale, which the next one
    may share: "48.7 million (44.1)"."""
    key = _KEY.search(text, max(0, number.start - 50), number.start)
    column = key[1] if key is not None else place
    for kind, one in enumerate(list_operands(number)):
        signed = replace(one, value=math.copysign(one.value, number.value), tolerance=0.0)
        yield (column, kind) if kind else column, signed
    unit = find_unit_of_label(text, number.start) if number.unit is None else None
    if unit is not None:
        yield (column, unit.name), make_quantity(float(number.value), 0.0, unit)
    if number.unscaled:
        yield (column, "unscaled"), Quantity(float(number.unscaled))


def _read_joined_counts(text: str, numbers: Sequence[NumberMention]) -> Iterator[tuple[Hashable, Quantity]]:
    """Yields the bare counts that are added to one with a unit, in it: "25 days of leave and 8 public holidays"."""
    for one, other in pairwise(numbers):
        is_bare = one.unit is not None and one.unit.dimension in _COUNTED and other.unit is None and not other.unscaled
        if is_bare and _ADDED.fullmatch(text, one.end, other.start):
            yield "joined", make_quantity(float(one.value), 0.0, one.unit)
            yield "joined", make_quantity(float(other.value), 0.0, one.unit)
