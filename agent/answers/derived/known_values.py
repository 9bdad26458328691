"""The values that the evidence of an answer holds, and what can be derived from them."""

import json
import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from functools import cached_property

from agent.answers.derived.aggregates import Aggregates
from agent.answers.derived.comparatives import Comparatives
from agent.answers.derived.operands import Operand, read_operands
from agent.answers.derived.regrouped import DigitGroups
from agent.answers.derived.related_figures import RelatedFigures
from agent.answers.derived.shifts import read_shifts
from agent.answers.derived.totals import list_totals
from agent.text.dates import TimeValue
from agent.text.spoken_times import find_spoken_times, list_halves
from agent.text.values import KnownValues, ValueMention

MAX_EVIDENCE = 60_000
"""Characters of evidence that are read as a whole. Of more, half is the beginning, half what may hold a claim."""
_MIN_COPIED = 20
"""Characters from which on a line of JSON that stands there twice is a copy."""
_MAX_QUOTED = 40
"""Lines in quotation marks that are looked for in the rest: each takes a search of the whole text."""
_CONTEXT = 40
"""Characters beside a number that hold its unit, sign and scale."""


class FigureEvidence:
    """The values of the evidence, and what is derived from them when it is needed."""

    def __init__(self, text: str, claims: Sequence[ValueMention]) -> None:
        self.text = _drop_copies(text)
        self._read = _cut_evidence(self.text, claims)
        self.known = KnownValues(self._read, by_language=True)

    @cached_property
    def related(self) -> RelatedFigures:
        """Its figures by records and columns."""
        return RelatedFigures(self._read, self.known.numbers)

    @cached_property
    def operands(self) -> list[Operand]:
        """Its figures with what their labels say of them."""
        numbers = self.known.numbers
        return [*read_operands(self._read, numbers), *read_shifts(self._read, numbers)]

    @cached_property
    def days_of_months(self) -> set[float]:
        """The numbers of days of the months that it names without a day."""
        months = {(one.year or 1, one.month) for one in self.known.dates if one.day is None and one.month}
        return {float(monthrange(year, month)[1]) for year, month in months}

    @cached_property
    def aggregates(self) -> Aggregates:
        """What follows from the rows and columns of its tables."""
        return Aggregates(self.text)

    @cached_property
    def comparatives(self) -> Comparatives:
        """Its figures with those of the period before in brackets."""
        return Comparatives(self._read, self.known.numbers)

    @cached_property
    def totals(self) -> list[float]:
        """The sums of its columns."""
        return list_totals(self.text)

    @cached_property
    def digit_groups(self) -> DigitGroups:
        """Its text for a search in whatever groups of digits."""
        return DigitGroups(self.text)

    @cached_property
    def spoken_times(self) -> set[TimeValue]:
        """The times that the evidence says in words, in both halves of the day."""
        return {half for one in find_spoken_times(self.text) for half in list_halves(one.value)}


def _drop_copies(evidence: str) -> str:
    """The evidence without the lines that are the JSON of other text in it: an output's value is often its text, and a
    figure and its copy would be taken for two."""
    lines: list[str] = []
    seen: set[str] = set()
    tries = _MAX_QUOTED
    for line in evidence.split("\n"):
        if len(line) > _MIN_COPIED and line[0] in '{["':
            is_quoted = tries > 0 and line[0] == line[-1] == '"'
            tries -= is_quoted
            if line in seen or (is_quoted and _is_quotation_of(line, evidence)):
                continue
            seen.update((line,) if line[0] != '"' else ())
        lines.append(line)
    return "\n".join(lines)


def _is_quotation_of(line: str, evidence: str) -> bool:
    try:
        text = json.loads(line)
    except ValueError:
        return False
    return isinstance(text, str) and evidence.count(text) > (text == line[1:-1])


def _cut_evidence(evidence: str, claims: Iterable[ValueMention]) -> str:
    """The evidence; of a very long one its beginning, and what surrounds numbers that begin like a claim's."""
    if len(evidence) <= MAX_EVIDENCE:
        return evidence
    starts = {run[:2] for one in claims for run in re.findall(r"\d{2,}", one.text)}
    wanted = re.compile("|".join(rf"(?<!\d){start}" for start in sorted(starts)) or r"(?!)")
    parts = [evidence[: MAX_EVIDENCE // 2]]
    end = MAX_EVIDENCE // 2
    left = MAX_EVIDENCE // 2
    for match in wanted.finditer(evidence, end):
        if match.start() < end:
            continue
        start, end = max(end, match.start() - _CONTEXT), match.end() + _CONTEXT
        parts.append(evidence[start:end])
        left -= end - start
        if left <= 0:
            break
    return "\n".join(parts)
