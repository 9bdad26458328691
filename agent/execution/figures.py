"""The figures of a text, held against what it was made from: to the letter, or with what may be worked out from it.

A false alarm about an answer costs a second one. There, whatever a writer may honestly work out is let pass: sums,
shares, averages, other units, rounding; and dates, years, times, list numbers and code, which are no claims.
"""

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NOT_CLAIMED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"  # code
    r"|https?://\S+|\[\d{1,3}\]"  # links and citations
    r"|^[ \t>#|*-]*\d{1,3}[.):](?=\s|\*)"  # the numbers of a list
    r"|\b\d{4}-\d\d?-\d\d?(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"  # dates
    r"|\b\d{1,2}[:.]\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[ap]\.?m\b)|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"  # times
    r"|\b\d{1,2}\s*[ap]\.?m\b|\b(?:kl\.?|klockan|um)\s+\d{1,2}(?:[.:]\d\d)?"
    r"|(?:UTC|GMT)\s*[+-]\d{1,2}(?::?\d\d)?",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_MONTHS = (
    r"(?:jan|feb|mar|mär|apr|maj|may|mai|jun|jul|aug|sep|okt|oct|nov|de[cz]|ene|abr|ago|dic|fév|avr|jui|aoû|déc)\w*\.?"
)
_DAY = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?{_MONTHS}|\b{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?![.,]\d)",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"(?<![\w.,])(?P<figure>\d{1,3}(?:[ '\u00a0\u202f\u2009\u2019]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*)"
    r"(?:[ \u00a0\u202f]?(?P<scale>thousand|k|tusen|mn|m|million(?:er|en|s)?|miljon(?:er)?|billion|bn|miljard(?:er)?|"
    r"milliarden?)\b)?(?![\w-]*\d)",
    re.IGNORECASE,
)
_SCALES = {"t": 1e3, "k": 1e3, "b": 1e9, "miljar": 1e9, "millia": 1e9}
"""By the first letters of the word; any other is a million."""
_YEARS = range(1900, 2101)
_WORDS = {
    "ten": 10, "eleven": 11, "twelve": 12, "dozen": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60,
    "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000,
}  # fmt: skip
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_UNITS = (
    7, 10, 12, 24, 30, 52, 60, 100, 365, 1_000, 1_024, 1_440, 3_600, 10_000, 86_400, 1e6, 1_024**2, 1e9, 1_024**3,
    1.609344, 2.54, 0.3048, 0.45359237, 3.6, 3.785412, 4.184, 28.349523,
)  # fmt: skip
"""What one unit is in another, either way round: time, bytes, thousands, miles, inches, pounds, speed."""
MOST_TOLD = 5
"""More invented figures than these are not looked for."""
MOST_KNOWN = 300
"""Figures of the evidence that others may follow from; more of them would make anything follow."""
MOST_SUMMED = 80
"""Figures of the evidence that are tried in rows, as those of a table's column."""
_INVENTS = re.compile(
    r"\b(?:poem|stor(?:y|ies)|tale|song|lyrics|joke|limerick|haiku|fiction\w*|novel|imagin\w+|invent\w*|made[- ]up|"
    r"fantas\w+|brainstorm\w*|guess|estimate|dikt|saga|berättelse|hitta på|gissa|gedicht|geschichte|cuento|poema)\b",
    re.IGNORECASE,
)


def invented_numbers(text: str, evidence: str) -> list[str]:
    """Figures of `text` that stand nowhere in `evidence`; single digits are no claim (lists are numbered)."""
    known = {number.replace(",", "") for number in _NUMBER.findall(evidence)}
    claimed = dict.fromkeys(number.replace(",", "") for number in _NUMBER.findall(text))
    return [number for number in claimed if len(number) > 1 and number not in known]


def unexplained_figures(text: str, evidence: str) -> list[str]:
    """Figures of `text`, as they are written there, that stand nowhere in `evidence` and follow from nothing in it: the
    first few. Single digits are no claim."""
    bare = _DAY.sub(" ", _NOT_CLAIMED.sub(" ", text))
    claimed = {match[0] for match in _FIGURE.finditer(bare)}
    if not claimed or claimed <= {match[0] for match in _FIGURE.finditer(evidence)}:
        return []  # as most answers are: nothing to work out
    known = _Known([value for figure in _figures(evidence) for value in figure.values], evidence)
    invented: dict[str, None] = {}
    for figure in _figures(bare):
        if figure.is_small or figure.is_year or figure.text in invented:
            continue
        if known.explains(figure):
            known.add(figure)
        else:
            invented[figure.text] = None
            if len(invented) == MOST_TOLD:
                break
    return list(invented)


def asks_to_invent(request: str) -> bool:
    """Whether a request wants something made up or guessed, whose figures need no evidence."""
    return _INVENTS.search(request) is not None


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure as it is written, what it may mean (a comma is a decimal sign in one language, none in another), and
    within how much of it a number has to lie to be rounded to it."""

    text: str
    values: tuple[float, ...]
    slack: float

    @property
    def is_small(self) -> bool:
        return len(self.text) == 1 and self.text.isdecimal()

    @property
    def is_year(self) -> bool:
        return len(self.text) == 4 and self.text.isdecimal() and int(self.text) in _YEARS


def _figures(text: str) -> Iterator[_Figure]:
    for match in _FIGURE.finditer(text):
        written = match["figure"]
        scale = _scale(match["scale"])
        values = tuple(dict.fromkeys(value * scale for value in _values(written)))
        if values:
            yield _Figure(written, values, _slack(written) * scale)


def _scale(word: str | None) -> float:
    if word is None:
        return 1.0
    lowered = word.lower()
    return next((factor for begin, factor in _SCALES.items() if lowered.startswith(begin)), 1e6)


def _values(written: str) -> list[float]:
    """What a figure may mean: 1,250 is 1250 or 1.25; 1.250,50 only 1250.5."""
    plain = re.sub(r"[ '\u00a0\u202f\u2009\u2019]", "", written)[:40]
    signs = [char for char in plain if char in ".,"]
    readings = [re.sub(r"[.,]", "", plain)] if not signs or _in_thousands(plain) else []
    if " " in written and not signs:  # three numbers in a row, perhaps
        readings += written.split(" ")
    if signs:
        head, _, tail = plain.rpartition(signs[-1])
        if signs[-1] not in head:
            readings.append(re.sub(r"[.,]", "", head) + "." + tail)
    return [float(reading) for reading in readings]


def _in_thousands(plain: str) -> bool:
    head, *groups = re.split(r"[.,]", plain)
    return len(head) <= 3 and all(len(group) == 3 for group in groups)


def _slack(written: str) -> float:
    """Half of the last place that is written, as after rounding; noughts at the end of 12,000 are such places."""
    digits = re.sub(r"[^\d.,]", "", written)
    places = re.search(r"[.,](\d+)$", digits)
    if places is not None and len(places[1]) != 3:
        return float(0.5 * 10.0 ** -len(places[1]))
    whole = re.sub(r"\D", "", digits)
    noughts = len(whole) - len(whole.rstrip("0"))
    return float(0.5 * 10.0 ** min(noughts, max(0, len(whole) - 1)))


class _Known:
    """The numbers of the evidence, and what follows from them."""

    def __init__(self, numbers: Sequence[float], evidence: str) -> None:
        numbers = [*numbers, *(float(_WORDS[match[0].lower()]) for match in _WORD.finditer(evidence))]
        self._numbers = sorted(set(numbers))
        self._grounds = sorted(dict.fromkeys(numbers[:MOST_KNOWN]))
        self._summed = numbers[:MOST_SUMMED]
        self._lines = sum(bool(line.strip()) for line in evidence.splitlines())

    @cached_property
    def _worked_out(self) -> list[float]:
        return sorted({*_row_sums(self._summed), *_converted(self._grounds)})

    def add(self, figure: _Figure) -> None:
        """What was worked out may be worked on."""
        for value in figure.values:
            insort(self._numbers, value)
            insort(self._grounds, value)

    def explains(self, figure: _Figure) -> bool:
        """Whether the figure stands in the evidence, or follows from it."""
        return any(
            _near(self._numbers, value, figure.slack) or self._follows(value, figure.slack) for value in figure.values
        )

    def _follows(self, value: float, slack: float) -> bool:
        if value.is_integer() and value <= self._lines:  # so many lines, entries, hits
            return True
        slack = min(slack, 0.5)  # what is worked out may be rounded to its last place, no more
        return _near(self._worked_out, value, slack) or any(self._of_two(one, value, slack) for one in self._grounds)

    def _of_two(self, one: float, value: float, slack: float) -> bool:
        """Whether `value` is the sum, difference, product, quotient, share or change in percent of `one` and another
        known number: each is solved for the other."""
        if _near(self._grounds, value - one, slack) or _near(self._grounds, one - value, slack):
            return True
        if _near(self._grounds, one + value, slack):
            return True
        if one and (
            _near(self._grounds, value / one, slack / abs(one))  # one * other
            or _near(self._grounds, 100 * value / one, 100 * slack / abs(one))  # so many percent of another
            or _near(self._grounds, value * one, slack * abs(one))  # other / one
            or _near(self._grounds, value * one / 100, slack * abs(one) / 100)  # the same in percent
        ):
            return True
        changed = (one * (1 + value / 100), one * (1 - value / 100))  # more or less than one by so many percent
        return any(_near(self._grounds, other, slack * abs(one) / 100) for other in changed)


def _near(ordered: Sequence[float], value: float, slack: float) -> bool:
    """Whether any of the numbers, which stand in order, lies within `slack` of the value."""
    slack = slack * (1 + 1e-9) + 1e-9
    at = bisect_left(ordered, value - slack)
    return at < len(ordered) and ordered[at] <= value + slack


def _converted(numbers: Iterable[float]) -> Iterator[float]:
    """The numbers in other units, squared, and as square roots."""
    for number in numbers:
        yield from (number * unit for unit in _UNITS)
        yield from (number / unit for unit in _UNITS)
        yield from (number * 1.8 + 32, (number - 32) / 1.8, number * number, math.sqrt(number))


def _row_sums(numbers: Sequence[float]) -> Iterator[float]:
    """The sums and averages of figures that follow one another, also every second, third, ... as in a table."""
    for stride in range(1, 7):
        for start in range(len(numbers)):
            total = 0.0
            for count, value in enumerate(numbers[start::stride], start=1):
                total += value
                if count > 2:
                    yield from (total, total / count)
