"""Compares the cells of a workbook with a document: a text by its words, a number by its digits in whatever format."""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from gateway.features.documents.engine.ingest.coverage.source_text import Cell, SourceText, split_words

_NUMBER = re.compile(r"\d(?:[\d.,'\u2019\u00a0\u202f]*\d)?")
_MAX_DIGITS = 17
"""Of a stored number. Programs show 15 at most, but a whole number has its own."""
_NEGATIVE = re.compile("[-\u2212\u2013(]")
"""What a sheet writes beside a number below zero, unless its format does without."""
_SECTION_END = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')
_BRACKETS = re.compile(r"\[[^\]]*\]")
_UNSEEN = re.compile(r'\[[^\]]*\]|_.|\*.|[?"\\\s]')
"""What a format writes around the signs that it shows."""
_LABEL = re.compile(r'"([^"]*)"')
_DATES = (1.0, 2_958_466.0)
"""The serial numbers of dates: up to the end of 9999."""
_EPOCHS = (dt.datetime(1899, 12, 30), dt.datetime(1904, 1, 1))  # noqa: DTZ001 - dates of a sheet have no zone


def count_lost_cells(source: SourceText, texts: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Counts the cells, and those of each kind that are nowhere in the document."""
    if not source.cells:
        return 0, {}
    document = _Document(texts)
    lost = {}
    for kind, cells in source.cells.items():
        lost[kind] = sum(document.count_lost(cell, times) for cell, times in cells.items())
    return sum(cells.total() for cells in source.cells.values()), lost


class _Document:
    """The words and numbers of a document that are left: each cell takes away its own."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._signs: Counter[str] = Counter()
        for text in texts:
            for cell in re.split(r"(?<!\\)\||\n", text):
                self._words.update(split_words(cell))
                self._signs["".join(cell.split())] += 1
                numbers = [_get_digits(number) for number in _NUMBER.findall(cell)]
                self._numbers.update(numbers)
                if _NEGATIVE.search(cell):
                    self._numbers.update(f"-{number}" for number in numbers)
                if len(numbers) > 1:
                    self._numbers[_get_digits(cell)] += 1
        self._all_words = frozenset(self._words)

    def count_lost(self, cell: Cell, times: int) -> int:
        """Counts the missing ones of equal cells."""
        if cell.number is not None:
            if self._is_date(cell.number):
                return 0
            lost = self._count_lost_numbers(cell.number, times, "-" if _shows_sign(cell) else "")
            return 0 if lost and self._is_in_words(cell) else lost - self._count_signs(cell, lost)
        words = Counter(split_words(cell.text))
        complete = min((self._words[word] // count for word, count in words.items()), default=times)
        complete = min(complete, times)
        for word, count in words.items():
            self._words[word] -= count * complete
        return times - complete

    def _count_lost_numbers(self, number: float, times: int, sign: str) -> int:
        for digits in _iter_digits(number):
            count = min(times, self._numbers[sign + digits])
            for key in {digits, sign + digits}:
                self._numbers[key] -= count
            times -= count
            if times == 0:
                return 0
        part = Fraction(abs(number) % 1).limit_denominator(99)
        is_fraction = part.denominator > 1 and self._has(str(part.numerator), str(part.denominator))
        return 0 if is_fraction else times

    def _is_date(self, number: float) -> bool:
        """Whether the parts of the date, the time or the span that the number may be are in the document."""
        minutes = round(number * 1440)
        hours = (str(minutes // 60), str(minutes // 60 % 24), str(minutes // 60 % 12 or 12))
        if number % 1 and any(self._has(hour, f"{minutes % 60:02}") for hour in hours):
            return True
        seconds = round(number * 86_400)
        if number % 1 and (self._has(str(seconds)) or self._has(str(seconds // 60), f"{seconds % 60:02}")):
            return True
        if not _DATES[0] <= number < _DATES[1]:
            return False
        for epoch in _EPOCHS:
            try:
                day = epoch + dt.timedelta(days=int(number))
            except OverflowError:
                continue
            names = (str(day.month), day.strftime("%B").casefold(), day.strftime("%b").casefold())
            if any(self._has(str(day.day), year) for year in (str(day.year), f"{day.year % 100:02}")):
                return True
            if self._has(str(day.year)) and any(map(self._has, names)):
                return True
        return False

    def _is_in_words(self, cell: Cell) -> bool:
        """Whether a text that the cell's format may show is in the document, or the name of the month or the day."""
        labels = [split_words(label) for label in _LABEL.findall(cell.format)]
        if any(words and self._has(*words) for words in labels):
            return True
        code = _LABEL.sub("", cell.format)
        if cell.number is None or not re.search("mmm|ddd", code, re.IGNORECASE) or cell.number >= _DATES[1]:
            return False
        day = _EPOCHS[0] + dt.timedelta(days=cell.number)
        month, weekday = day.strftime("%B").casefold(), day.strftime("%A").casefold()
        return any(map(self._has, (month, month[:3], month[:1], weekday, weekday[:3])))

    def _count_signs(self, cell: Cell, times: int) -> int:
        """Counts the cells, up to so many, with the sign that the cell's format shows for nothing, such as a dash."""
        sections = _SECTION_END.split(cell.format)
        sign = _UNSEEN.sub("", sections[2]) if cell.number == 0 and len(sections) > 2 else ""
        count = min(times, self._signs[sign]) if sign else 0
        self._signs[sign] -= count
        return count

    def _has(self, *words: str) -> bool:
        return all(word in self._all_words or word.zfill(2) in self._all_words for word in words)


def _shows_sign(cell: Cell) -> bool:
    """Whether a sheet shows that a number is below zero: by a sign, brackets or a colour of its own."""
    if cell.number is None or cell.number >= 0:
        return False
    positive, *others = _SECTION_END.split(cell.format)
    if not others:
        return True
    if re.search(r"\[[<>=]", cell.format):
        return False
    above, below = (_BRACKETS.sub("", section) for section in (positive, others[0]))
    is_coloured = above == below and positive != others[0]
    return is_coloured or _NEGATIVE.search(_LABEL.sub("", below)) is not None


def _iter_digits(number: float) -> Iterator[str]:
    """Yields the digits of a number, from the most to the fewest that a format may leave."""
    if number == 0 or not math.isfinite(number):
        yield ""
        return
    seen = set()
    for count in range(_MAX_DIGITS, 0, -1):
        digits = _get_digits(f"{abs(number):.{count - 1}e}".partition("e")[0])
        if digits not in seen:
            seen.add(digits)
            yield digits
    if abs(number) < 0.5:  # rounded to nothing
        yield ""


def _get_digits(text: str) -> str:
    """The digits of a number without zeros at its ends: 1,234.50 and 0.12345 are both 12345."""
    return re.sub(r"\D", "", text).strip("0")
