"""Finds the figures of a text that are neither in its evidence nor derivable from it.

Figures are compared as numbers: `864.00` is `864`, `63.32` is `63.3224` rounded, `-12.58` is `12.58`, and `12 %` is
`0.12`. Sums, shares, averages, other units and rounding count as explained. Dates, years, times, list numbers, code and
citations are no claims. A false alarm costs a second answer, so a doubtful case counts as explained.
"""

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.text.numbers import NUMBER_WORDS, SCALES, NumberMention
from agent.text.values import find_values

_SPACES = " '\u00a0\u202f\u2009\u2019"
_DIGITS = re.compile(rf"\d(?:[\d.,]|[{_SPACES}](?=\d{{3}}))*(?<=\d)")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*")
_FIGURE = re.compile(
    rf"(?<![\w.,])(?P<figure>\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*)"
    rf"(?:[ \u00a0\u202f]?(?P<scale>{'|'.join(sorted(SCALES, key=len, reverse=True))})\b)?",
    re.IGNORECASE,
)
_YEARS = range(1900, 2101)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_UNITS = (
    7, 10, 12, 24, 30, 52, 60, 100, 365, 1_000, 1_024, 1_440, 3_600, 10_000, 86_400, 1e6, 1_024**2, 1e9, 1_024**3,
    1.609344, 2.54, 0.3048, 0.45359237, 3.6, 3.785412, 4.184, 28.349523,
)  # fmt: skip
"""Conversion factors between units, used in both directions: time, bytes, thousands, miles, inches, pounds, speed."""
_CELL = re.compile(r"(?P<sign>[-\u2212])?\+?(?P<figure>\d+(?:[.,]\d+)*)")
_LINK = re.compile(r"https?://\S+")
_NO_SPACES = str.maketrans("", "", _SPACES)
_COLUMN_BREAK = re.compile(r"[,;\t|]")
MAX_REPORTED = 5
"""The search stops after this number of unexplained figures."""
MAX_OPERANDS = 300
"""Numbers of the evidence that are combined in pairs. With more of them, every figure would be derivable."""
MAX_SUMMED = 80
"""Numbers of the evidence that are summed in rows, like those of a table's column."""
_INVENTS = re.compile(
    r"\b(?:poem|stor(?:y|ies)|tale|song|lyrics|joke|limerick|haiku|fiction\w*|novel|imagin\w+|invent\w*|made[- ]up|"
    r"fantas\w+|brainstorm\w*|guess|estimate|dikt|saga|berättelse|hitta på|gissa|gedicht|geschichte|cuento|poema)\b"
)
"""Of a text in lower case: searched without regard to case, it takes four times as long."""


def find_unexplained_figures(text: str, evidence: str) -> list[str]:
    """Returns the figures of `text`, as written, that are neither in `evidence` nor derivable from it.

    Returns at most `MAX_REPORTED`. Single digits, years, dates, times and codes are no claims."""
    written = set(_TOKEN.findall(text))
    if not written or written.issubset(_TOKEN.findall(evidence)):
        return []  # the fast path of most answers: every figure is in the evidence
    known = _KnownNumbers(evidence)
    open_claims: list[_Figure] = []
    for figure in _find_claims(text):
        if known.contains(figure):
            known.add_operand(figure)  # a text usually names the operands of its derived figures
        else:
            open_claims.append(figure)
    unexplained: dict[str, None] = {}
    for figure in open_claims:
        if figure.text in unexplained:
            continue
        if known.explains(figure):
            known.add_operand(figure)
        else:
            unexplained[figure.text] = None
            if len(unexplained) == MAX_REPORTED:
                break
    return list(unexplained)


def asks_to_invent(request: str) -> bool:
    """Returns whether a request asks for invention or a guess. Such figures need no evidence."""
    return _INVENTS.search(request.lower()) is not None


@dataclass(frozen=True, slots=True)
class _Figure:
    """A claimed figure: its text and its possible values.

    A comma is a decimal sign in some languages only, so there may be several `values`. `parts` are the numbers between
    the commas, if they may be fields of a CSV line. A number within `tolerance` of a value rounds to it."""

    text: str
    values: tuple[float, ...]
    tolerance: float
    parts: tuple[float, ...] = ()


def _find_claims(text: str) -> Iterator[_Figure]:
    for mention in find_values(_LINK.sub(" ", text), is_claim=True):
        if not isinstance(mention, NumberMention) or mention.is_word:
            continue
        digits = _DIGITS.search(mention.text)
        if digits is None or (digits[0].isdecimal() and (len(digits[0]) == 1 or _is_year(digits[0]))):
            continue
        readings = tuple(dict.fromkeys(abs(float(reading.value)) for reading in mention.readings))
        scale = float(mention.value / mention.unscaled) if mention.unscaled else 1.0
        tolerance = max(float(mention.readings[0].step) / 2, _get_rounding_tolerance(digits[0]) * scale)
        yield _Figure(digits[0], readings, tolerance, tuple(map(float, mention.parts)))


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and int(digits) in _YEARS


def _parse_values(written: str) -> list[float]:
    """Returns the readings of a number of the evidence: 1,250 is 1250 or 1.25; 1.250,50 is only 1250.5.

    Simpler than the parser for claims, because megabytes of evidence would take that parser seconds."""
    plain = written.translate(_NO_SPACES)[:40]
    signs = [char for char in plain if char in ".,"]
    if not signs:
        # Spaces group digits, or separate several numbers.
        return [float(plain), *(map(float, written.split(" ")) if " " in written else ())]
    readings = [float(plain.replace(".", "").replace(",", ""))] if _is_grouped_in_thousands(plain) else []
    head, _, tail = plain.rpartition(signs[-1])
    if signs[-1] not in head:
        readings.append(float(head.replace(".", "").replace(",", "") + "." + tail))
    return readings


def _iter_csv_fields(written: str) -> Iterator[float]:
    """Yields the numbers between the commas: `151,2870` may be two fields of a CSV line."""
    if "," not in written:
        return
    for part in written.split(","):
        yield from _parse_values(part)[:1]


def _is_grouped_in_thousands(plain: str) -> bool:
    head, *groups = re.split(r"[.,]", plain)
    return len(head) <= 3 and all(len(group) == 3 for group in groups)


def _get_rounding_tolerance(written: str) -> float:
    """Returns half a unit of the last written place. The final zeros of 12,000 count as rounded places."""
    digits = re.sub(r"[^\d.,]", "", written)
    places = re.search(r"[.,](\d+)$", digits)
    if places is not None and len(places[1]) != 3:
        return float(0.5 * 10.0 ** -len(places[1]))
    whole = re.sub(r"\D", "", digits)
    zeros = len(whole) - len(whole.rstrip("0"))
    return float(0.5 * 10.0 ** min(zeros, max(0, len(whole) - 1)))


class _KnownNumbers:
    """The numbers of the evidence, and the numbers derivable from them."""

    def __init__(self, evidence: str) -> None:
        in_order: list[float] = []
        fields: list[float] = []
        for match in _FIGURE.finditer(evidence):
            written, scale = match["figure"], match["scale"]
            factor = float(SCALES[scale.lower()]) if scale else 1.0
            values = [value * factor for value in _parse_values(written)]
            in_order += values
            fields += list(_iter_csv_fields(written)) or values
        # Every run of digits counts too: the days of 2026-10-09, the parts of a version or of a CSV line.
        runs = (float(match[0]) for match in re.finditer(r"\d{1,30}", evidence))
        tokens = (field for match in _TOKEN.finditer(evidence) for field in _iter_csv_fields(match[0][:200]))
        words = (NUMBER_WORDS.get(word.lower(), 0) for word in _WORD.findall(evidence))
        in_order += (float(number) for number in words if number >= 10)
        self._numbers = sorted({*in_order, *fields, *runs, *tokens})
        self._operands = sorted(dict.fromkeys((in_order + fields)[:MAX_OPERANDS]))
        self._rows = [in_order[:MAX_SUMMED]] + ([fields[:MAX_SUMMED]] if fields != in_order else [])
        self._evidence = evidence
        self._lines = sum(bool(line.strip()) for line in evidence.splitlines())

    @cached_property
    def _derived_numbers(self) -> list[float]:
        sums = (number for row in self._rows for number in _iter_row_sums(row))
        return sorted({*sums, *_iter_column_totals(self._evidence), *_convert_units(self._operands)})

    def contains(self, figure: _Figure) -> bool:
        """Returns whether the figure, or every field of it, is in the evidence."""
        if any(_contains_near(self._numbers, value, figure.tolerance) for value in figure.values):
            return True
        return bool(figure.parts) and all(_contains_near(self._numbers, part, 0.0) for part in figure.parts)

    def add_operand(self, figure: _Figure) -> None:
        """Adds an explained figure to the operands of other figures."""
        for value in figure.values:
            insort(self._numbers, value)
            insort(self._operands, value)

    def explains(self, figure: _Figure) -> bool:
        """Returns whether the figure is in the evidence or derivable from it."""
        return self.contains(figure) or any(self._is_derivable(value, figure.tolerance) for value in figure.values)

    def _is_derivable(self, value: float, tolerance: float) -> bool:
        if value.is_integer() and value <= self._lines:  # a count of lines, entries or hits, or a line number
            return True
        tolerance = min(tolerance, 0.5)  # a result may be rounded to its last place, but no further
        return _contains_near(self._derived_numbers, value, tolerance) or any(
            self._is_result_of_two(one, value, tolerance) for one in self._operands
        )

    def _is_result_of_two(self, one: float, value: float, tolerance: float) -> bool:
        """Returns whether `value` is the sum, difference, product, quotient, share or change in percent of `one` and
        another known number. Each equation is solved for the other number."""
        if _contains_near(self._operands, value - one, tolerance):
            return True
        if _contains_near(self._operands, one - value, tolerance):
            return True
        if _contains_near(self._operands, one + value, tolerance):
            return True
        if one and (
            _contains_near(self._operands, value / one, tolerance / abs(one))  # one * other
            or _contains_near(self._operands, 100 * value / one, 100 * tolerance / abs(one))  # value is % of other
            or _contains_near(self._operands, value * one, tolerance * abs(one))  # other / one
            or _contains_near(self._operands, value * one / 100, tolerance * abs(one) / 100)  # the same in percent
        ):
            return True
        changed = (one * (1 + value / 100), one * (1 - value / 100))  # `one` changed by `value` percent
        return any(_contains_near(self._operands, other, tolerance * abs(one) / 100) for other in changed)


def _contains_near(ordered: Sequence[float], value: float, tolerance: float) -> bool:
    """Returns whether one of the sorted numbers lies within `tolerance` of `value`."""
    tolerance = tolerance * (1 + 1e-9) + 1e-9
    at = bisect_left(ordered, value - tolerance)
    return at < len(ordered) and ordered[at] <= value + tolerance


def _convert_units(numbers: Iterable[float]) -> Iterator[float]:
    """Yields the numbers in other units, squared, and as square roots."""
    for number in numbers:
        yield from (number * unit for unit in _UNITS)
        yield from (number / unit for unit in _UNITS)
        yield from (number * 1.8 + 32, (number - 32) / 1.8, number * number, math.sqrt(number))


def _iter_row_sums(numbers: Sequence[float]) -> Iterator[float]:
    """Yields sums and averages of neighbours, and of every second, third, ... number for the columns of a table."""
    for stride in range(1, 7):
        for start in range(len(numbers)):
            total = 0.0
            for count, value in enumerate(numbers[start::stride], start=1):
                total += value
                if count > 2:
                    yield from (total, total / count)


def _iter_column_totals(evidence: str) -> Iterator[float]:
    """Yields the sum and the average of each column. Lines with the same number of fields form a table."""
    tables: dict[int, list[list[str]]] = {}
    for line in evidence.splitlines():
        cells = _COLUMN_BREAK.split(line)
        if len(cells) > 1:
            tables.setdefault(len(cells), []).append(cells)
    for rows in tables.values():
        for column in zip(*rows, strict=True):
            numbers = [number for cell in column for number in _iter_cell_numbers(cell)]
            if len(numbers) > 2:
                total = sum(numbers)
                yield from (total, total / len(numbers))


def _iter_cell_numbers(cell: str) -> Iterator[float]:
    """Yields the signed number of a table cell; nothing for other text."""
    found = _CELL.fullmatch(cell.strip())
    for value in _parse_values(found["figure"])[:1] if found is not None else ():
        yield -value if found is not None and found["sign"] else value
