"""Decides whether a figure is an aggregate of the evidence's tables: of a column, of the rows with one text, of a row.

Sums, means, medians, ranges, counts, what they leave of the total and of a number beside the table, shares, changes.
Rows that a sentence names come first; a figure counts only if few figures like it could be made in the same way.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Final, Literal

from agent.answers.derived.chance import Quantity, Results, contains_near, is_among, is_unlikely_hit, sort_results
from agent.answers.derived.tables import Table, read_tables
from agent.text.unit_labels import find_unit_of_label
from agent.text.units import Unit

_MAX_ROWS: Final = 5_000
_MIN_RECORDS: Final = 3
_MAX_SERIES, _MAX_GROUPS, _MAX_PARTS = 24, 60, 24
"""Columns and products of a table; groups of its rows; parts of one total that are compared with each other."""
_MAX_KEPT: Final = 8
_MAX_BEST: Final = 3
"""Parts that one sentence compares."""
_MAX_RUN: Final = 12
_MAX_COMBINED: Final = 16
_STEM: Final = 4
_LIMITS = (0.08, 0.06, 0.04)
"""How many other figures may be aggregates, comparisons, or results with a number beside a table."""
_BEST_LIMITS = (0.12, 0.08, 0.06)
"""The same of the rows and columns that a sentence names best: in columns, in sums, beside other parts."""
_LIMITS_OF_ALL = (0.1, 0.04, 0.02)
"""The same where the sentence names no row or column."""
_WHOLE: Final = 0.1
"""The same of what all rows of a table give."""
_MAX_WEIGHED: Final = 4
"""Columns of which one weighs another: pieces and prices, marks and how often they were given."""
_KIN = 12
"""Columns whose middle figures differ by more are of two kinds: pieces and prices are not added up."""
_MONTHS: Final = 12
_NOT_ADDED: Final = ("°C", "°F", "%")
_WORD: Final = re.compile(r"[^\W_]{2,}|\d")

_Column = tuple[str, list[float | None]]


@dataclass(slots=True)
class _Part:
    """The figure of a row, a group of rows or a column, with the words that name it."""

    words: frozenset[str]
    value: float


@dataclass(slots=True)
class _Series:
    """The figures of a column, the sums of rows or columns, or products of two columns: one total and its parts."""

    values: list[float]
    parts: list[_Part]
    groups: list[tuple[frozenset[str], list[float]]]
    kind: Literal["column", "product", "sum", "columns"]
    unit: Unit | None = None

    def get_rank(self, stems: frozenset[str], numbers: AbstractSet[float]) -> int:
        """The largest number of words and figures that a part or group shares with a sentence."""
        ranks = [_rank(part, stems, numbers) for part in self.parts]
        return max((*ranks, *(len(words & stems) for words, _ in self.groups)), default=0)


class Aggregates:
    """The aggregates of the tables of some evidence."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._best: dict[tuple[frozenset[str], frozenset[float]], tuple[Results, ...]] = {}
        self._results: dict[frozenset[int], tuple[Results, Results, Results]] = {}

    def explain(self, figure: Quantity, sentence: str, others: Sequence[Quantity]) -> bool:
        """Whether a figure is an aggregate, of the rows and columns that its sentence names or of all. `others` are the
        explained figures of the sentence, which name rows too."""
        words = _WORD.findall(sentence.lower())
        stems = frozenset((*map(_stem, words), *(word[: _STEM - 1] for word in words)))
        if figure.dimension == "%" and self._is_share_of_records(figure, stems):
            return True
        if not self._series:
            return False
        if is_unlikely_hit(figure, partial(_has, self._wholes), _WHOLE):
            return True
        numbers = frozenset(one.value for one in others)
        for results, limit in zip(self._collect_best(stems, numbers), _BEST_LIMITS, strict=True):
            if is_unlikely_hit(figure, partial(_has, results), limit):
                return True
        named = frozenset(place for place, words in enumerate(self._names) if not words.isdisjoint(stems))
        for selection in (named, frozenset()) if named else (named,):
            limits = _LIMITS if selection else _LIMITS_OF_ALL
            for results, limit in zip(self._collect(selection), limits, strict=True):
                if is_unlikely_hit(figure, partial(_has, results), limit):
                    return True
        return False

    @cached_property
    def _tables(self) -> tuple[list[Table], list[float]]:
        return read_tables(self._text)

    @cached_property
    def _series(self) -> list[_Series]:
        return [one for table in self._tables[0] if table.size <= _MAX_ROWS for one in _iter_series(table)]

    @cached_property
    def _wholes(self) -> Results:
        """The sums and means of all amounts of each table, of its products, and the means that one column weighs."""
        results: list[tuple[str, float]] = []
        for table in self._tables[0]:
            columns = [*table.numbers.values()][:_MAX_WEIGHED] + ([table.marks] if table.marks else [])
            for one, other in combinations(columns, 2):
                pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
                total = sum(a * b for a, b in pairs)
                weights = (sum(a for a, _ in pairs), sum(b for _, b in pairs))
                results += [("", total), *(("", total / weight) for weight in weights if weight)]
            kin = _list_kin([*table.numbers.items()][:_MAX_SERIES])
            cells = [cell for _, column in kin for cell in column if cell is not None]
            results += [("", sum(cells)), ("", sum(cells) / len(cells))] if len(kin) > 1 and cells else []
        return sort_results(results)

    def _is_share_of_records(self, figure: Quantity, stems: frozenset[str]) -> bool:
        """Whether a percentage is the share of the records that have one text in a column, which the sentence names, or
        of those that do not."""
        shares = [share for words, share in self._shares if not words.isdisjoint(stems)]
        return is_among(figure, sorted({rest for one in shares for rest in (one, 100 - one)}), _LIMITS[0])

    @cached_property
    def _shares(self) -> list[tuple[frozenset[str], float]]:
        """The words of each text that records of a table have in a column, the short ones only if it has no other, with
        the share of these records."""
        return [
            (frozenset(word for word in words if len(word) >= _STEM) or words, 100 * len(rows) / table.size)
            for table in self._tables[0]
            if _MIN_RECORDS <= table.size <= _MAX_ROWS
            for words, rows in _group_rows(table, least=1)
        ]

    @cached_property
    def _names(self) -> list[frozenset[str]]:
        """The words of each part and group, each set once."""
        words = dict.fromkeys(
            words for one in self._series for words in (*(p.words for p in one.parts), *(w for w, _ in one.groups))
        )
        return [one for one in words if one]

    def _collect_best(self, stems: frozenset[str], numbers: frozenset[float]) -> tuple[Results, ...]:
        """What the parts give that share most with a sentence: compared with each other, their total and the numbers
        beside; of columns, of sums, and with other parts."""
        key = (stems, numbers)
        if key not in self._best:
            ranks = [one.get_rank(stems, numbers) for one in self._series]
            columns: list[tuple[str, float]] = []
            sums: list[tuple[str, float]] = []
            beside: list[tuple[str, float]] = []
            for one, rank in zip(self._series, ranks, strict=True):
                if rank == max(ranks) > 0 and one.kind != "product":
                    results = columns if one.kind == "column" else sums
                    best, others = _list_best(one, stems, numbers, self._tables[1])
                    results += _convert(one, best)
                    beside += _convert(one, others)
            if len(self._best) > _MAX_KEPT:
                self._best.clear()
            self._best[key] = (sort_results(columns), sort_results(sums), sort_results(beside))
        return self._best[key]

    def _collect(self, selection: frozenset[int]) -> tuple[Results, Results, Results]:
        if selection not in self._results:
            if len(self._results) > _MAX_KEPT:
                self._results.clear()
            names = {self._names[place] for place in selection}
            plain: list[tuple[str, float]] = []
            compared: list[tuple[str, float]] = []
            combined: list[tuple[str, float]] = []
            for one in self._series:
                own: tuple[list[tuple[str, float]], list[tuple[str, float]]] = ([], [])
                _aggregate(one, names, *own)
                plain += _convert(one, own[0])
                compared += _convert(one, own[1])
                combined += _convert(one, _combine_beside(one, names, self._tables[1]))
            self._results[selection] = (sort_results(plain), sort_results(compared), sort_results(combined))
        return self._results[selection]


def _iter_series(table: Table) -> Iterator[_Series]:
    """Yields the columns of a table, the products of two, the sums of its rows and of its columns."""
    row_words = [
        frozenset(_stem(word) for cells in table.texts.values() for word in _WORD.findall(cells[row]))
        for row in range(table.size)
    ]
    groups = _group_rows(table)
    columns = list(table.numbers.items())[:_MAX_SERIES]
    vectors = [cells for _, cells in columns]
    pairs = list(combinations(vectors, 2))[:_MAX_SERIES]
    products = len(pairs)
    for one, other in pairs:
        vectors.append([a * b if a is not None and b is not None else None for a, b in zip(one, other, strict=True)])
    kin = _list_kin(columns)
    if len(kin) > 1:
        vectors.append([sum(cells[row] or 0.0 for _, cells in kin) for row in range(table.size)])
        yield from _iter_sums(kin, row_words)
    for place, vector in enumerate(vectors):
        values = [cell for cell in vector if cell is not None]
        if len(values) > 1:
            parts = [_Part(words, cell) for words, cell in zip(row_words, vector, strict=True) if cell is not None]
            yield _Series(
                values,
                parts[:_MAX_GROUPS],
                [(words, [cell for row in rows if (cell := vector[row]) is not None]) for words, rows in groups],
                "column" if place < len(columns) else "product" if place < len(columns) + products else "sum",
                _find_unit(columns[place][0]) if place < len(columns) else None,
            )


def _find_unit(name: str) -> Unit | None:
    """The unit that the name of a column ends with; a single letter is none."""
    return find_unit_of_label(f"{name}:", len(name) + 1) if len(name) > 1 else None


def _iter_sums(columns: Sequence[_Column], row_words: Sequence[frozenset[str]]) -> Iterator[_Series]:
    """Yields the sums of columns as the parts of one total, and the cells of each row of a short table."""
    names = [frozenset(map(_stem, _WORD.findall(name.lower()))) for name, _ in columns]
    sums = [sum(cell for cell in cells if cell is not None) for _, cells in columns]
    yield _Series(sums, [_Part(words, total) for words, total in zip(names, sums, strict=True)], [], "columns")
    for row, words in enumerate(row_words if len(row_words) <= _MAX_PARTS else ()):
        own = [cell for _, cells in columns if (cell := cells[row]) is not None]
        if len(own) == len(columns):
            parts = [_Part(words | name, cell) for name, cell in zip(names, own, strict=True)]
            yield _Series(own, parts, [], "sum")


def _list_kin(columns: Sequence[_Column]) -> list[_Column]:
    """The most columns that hold figures of about one size, in order."""
    middles = [statistics.median(abs(cell) for cell in cells if cell is not None) for _, cells in columns]
    runs = [[at for at, one in enumerate(middles) if least <= one <= _KIN * least] for least in middles]
    return [columns[at] for at in max(runs, key=len, default=[])]


def _group_rows(table: Table, *, least: int = 2) -> list[tuple[frozenset[str], list[int]]]:
    """The rows of each text that at least so many rows have, of columns in which texts are repeated."""
    groups: list[tuple[frozenset[str], list[int]]] = []
    for cells in table.texts.values():
        by_text: dict[str, list[int]] = defaultdict(list)
        for row, cell in enumerate(cells):
            by_text[cell].append(row)
        if len(by_text) <= _MAX_GROUPS and len(by_text) < table.size:
            groups += [
                (frozenset(map(_stem, _WORD.findall(text))), rows)
                for text, rows in by_text.items()
                if text and least <= len(rows) < table.size
            ]
    return groups[:_MAX_GROUPS]


def _stem(word: str) -> str:
    """The beginning of a word, which its forms in a language, and often those of its kin, share."""
    return word[:_STEM] if not word[0].isdigit() else word


def _aggregate(
    series: _Series,
    names: set[frozenset[str]],
    plain: list[tuple[str, float]],
    compared: list[tuple[str, float]],
) -> None:
    """Adds what follows from one series: its aggregates and those of named groups, and these compared."""
    if series.unit is not None and series.unit.dimension in _NOT_ADDED:
        plain += [("", value) for value in [*_describe(series.values)][1:-1]]
        return
    total = sum(series.values)
    described = _describe(series.values) if series.kind != "columns" else (total,)
    plain += [("", value) for value in described]
    least, most = min(series.values), max(series.values)
    plain += (
        [("%", 100 * (most / least - 1)), ("%", 100 * (1 - least / most))]
        if least > 0 and series.kind == "column"
        else ()
    )
    groups = [values for words, values in series.groups if not names or words in names]
    parts = [one.value for one in series.parts if not names or one.words in names][:_MAX_PARTS]
    sums = [sum(values) for values in groups if values]
    for values in groups:
        if values:
            plain += [("", value) for value in _describe(values)]
    plain += [("", total - value) for value in (*sums, *parts)]
    if series.kind == "columns" and len(series.values) <= _MAX_BEST:  # what was planned, and what it became
        plain += _compare(series.values)
    if len(parts) <= _MAX_RUN:  # of neighbours, such as the first half of the columns
        runs = [sum(parts[start:end]) for start, end in combinations(range(len(parts) + 1), 2) if end - start > 1]
        plain += [("", value) for value in runs]
        if len(parts) > 3:
            compared += _compare(runs[:_MAX_PARTS])
    if total:
        counts = len(series.values)
        compared += [("%", 100 * value / total) for value in (*sums, *parts, total - sum(sums), total - sum(parts))]
        compared += [("%", 100 * len(values) / counts) for values in groups]
    compared += _compare(sums[:_MAX_PARTS])
    compared += _compare(parts)
    compared += [("", value * factor) for value in (total, *sums) for factor in (_MONTHS, 1 / _MONTHS)]


def _rank(part: _Part, stems: frozenset[str], numbers: AbstractSet[float]) -> int:
    return len(part.words & stems) + (abs(part.value) in numbers)


def _list_best(
    series: _Series, stems: frozenset[str], numbers: AbstractSet[float], scalars: Sequence[float]
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """What the best parts of a series give: compared with each other, the total and the numbers beside; and, apart,
    compared with the other parts of a short series."""
    rank = series.get_rank(stems, numbers)
    best = [sum(values) for words, values in series.groups if len(words & stems) == rank]
    best = best or [one.value for one in series.parts if _rank(one, stems, numbers) == rank]
    if not 0 < len(best) <= _MAX_BEST:
        return [], []
    whole = sum(series.values)
    results = [*_compare(best), ("", sum(best)), ("", whole - sum(best))]
    joint = sum(best)
    results += [("%", 100 * value / joint) for value in best if len(best) > 1 and joint]
    for value in best:
        results += [("%", 100 * value / one) for one in (whole, *scalars) if one]
        results += [("", factor * value + one) for one in scalars for factor in (1, _MONTHS)]
    others = [one.value for one in series.parts if one.value not in best] if len(series.parts) <= 2 * _MAX_BEST else []
    beside = [result for value in best for one in others for result in _compare((value, one))]
    beside += [("%", 100 * value / (value + one)) for value in best for one in others if value + one]
    return results, beside


def _convert(series: _Series, results: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Yields results with the dimension of a column that names its unit, in its base unit."""
    if series.unit is None or series.unit.dimension == "%":
        yield from results
        return
    factor = float(series.unit.factor)
    for dimension, value in results:
        yield (dimension, value) if dimension else (series.unit.dimension, value * factor)


def _describe(values: Sequence[float]) -> Iterator[float]:
    """Yields the sum, mean, median, least, largest, range and count of some figures."""
    yield from (sum(values), sum(values) / len(values), statistics.median(values), min(values), max(values))
    yield from (max(values) - min(values), float(len(values)))


def _compare(values: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yields the differences, ratios, shares and changes of each two figures."""
    for one, other in combinations(values[:_MAX_PARTS], 2):
        yield "", one - other
        for first, second in ((one, other), (other, one)):
            if second:
                yield "x", first / second
                yield "%", 100 * first / second
                yield "%", 100 * (first / second - 1)


def _combine_beside(
    series: _Series, names: set[frozenset[str]], scalars: Sequence[float]
) -> Iterator[tuple[str, float]]:
    """Yields what a total or a named part makes with a number beside the table: what is left, a share, per month."""
    total = sum(series.values)
    parts = [one.value for one in series.parts if names and one.words in names][:_MAX_COMBINED]
    for value in (total, *parts):
        for scalar in scalars[:_MAX_COMBINED]:
            for result in (scalar - value, scalar + value):
                yield from (("", result), ("", result * _MONTHS))
                if scalar:
                    yield "%", 100 * result / scalar
            if 0 < scalar < 100:
                yield from (("", value * (1 + scalar / 100)), ("", value * (1 - scalar / 100)), ("", value * scalar))
                yield "", value * scalar / 100
            if 0 < scalar < 1:
                yield "", value * (1 + scalar)
            if scalar:
                yield from (("%", 100 * value / scalar), ("x", value / scalar))


def _has(results: Results, figure: Quantity) -> bool:
    """Whether a result is the figure; units are compared where both sides have one."""
    if figure.dimension in ("%", "pp"):
        return contains_near(results.get("%", ()), figure.value, figure.tolerance)
    if figure.dimension in (*_NOT_ADDED, "x"):
        names = []
    else:
        names = [""] if figure.dimension else [name for name in results if name not in ("%", "x")]
    if figure.tolerance < 0.5:  # a ratio is no count
        names.append("x")
    if any(contains_near(results.get(name, ()), figure.value, figure.tolerance) for name in names):
        return True
    own = results.get(figure.dimension, ()) if figure.dimension not in ("", "x") else ()
    return contains_near(own, figure.value * figure.factor, figure.tolerance * figure.factor)
