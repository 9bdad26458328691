"""Exact checks of an answer against its passages. What they cannot decide, the meaning, is left to `entailment.py`.

A claim fails if it cites a passage that does not exist, if one of its figures, dates, addresses or codes stands neither
in the cited passage nor in the question nor in a tool result, or if words in quotation marks or code are not in the
passage. A claim that consists of whole sentences of the passage is supported. Every other claim stays open.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from agent.answers.evidence import is_no_answer_text
from agent.text.numbers import NumberMention
from agent.text.values import KnownValues, ValueMention, find_values
from gateway.features.documents.engine.grounded_answers.answer_units import Segment, Unit
from gateway.features.documents.engine.grounded_answers.models import Quote, describe_surroundings
from gateway.features.documents.engine.grounded_answers.passages import (
    Passage,
    find_best_quote,
    find_verbatim,
    find_words,
    normalize_text,
)
from gateway.features.documents.engine.search.models import RetrievedContext

LABEL_WORDS = 2
"""Headings, questions and openings of so few words make no claim."""
_QUOTED = re.compile(r"[\u201c\u201e\u00ab\"]([^\u201c\u201d\u201e\u00ab\u00bb\"\n]{12,600})[\u201d\u201c\u00bb\"]")


@dataclass(frozen=True, slots=True)
class CheckedUnit:
    """A unit with the result of its checks.

    `quotes` holds the supporting words of each segment. `problem` says why it failed. `is_open` means that only its
    meaning is still to be checked. `is_notice` marks a sentence about the answer itself, which is in every format.
    """

    unit: Unit
    quotes: tuple[tuple[Quote, ...], ...] = ()
    problem: str = ""
    is_open: bool = False
    is_notice: bool = False
    from_tool: bool = False
    """Whether a tool result without a source supports it."""

    @property
    def states_fact(self) -> bool:
        """Whether it states something that a passage or a tool result supports."""
        return bool(self.quotes) or self.from_tool

    def list_quotes(self) -> list[Quote]:
        """The quotes of all segments."""
        return [quote for group in self.quotes for quote in group]


@dataclass(frozen=True)
class EvidenceChecker:
    """The passages of an answer, numbered from 1, and the other texts whose values it may repeat.

    `known` are results of tools that have no source; a claim from them needs no citation. Results are kept by unit,
    because an answer is parsed again and again while it grows.
    """

    chunks: Sequence[RetrievedContext]
    question: str = ""
    known: Sequence[str] = ()
    _results: dict[Unit, CheckedUnit] = field(default_factory=dict, compare=False, repr=False)
    _heads: dict[int, str] = field(default_factory=dict, compare=False, repr=False)
    """The head of each table in the answer, by its block."""

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """The passages as they are cited."""
        return tuple(Passage(number, chunk) for number, chunk in enumerate(self.chunks, start=1))

    def check(self, units: Sequence[Unit]) -> list[CheckedUnit]:
        """Each unit with its result: that of the exact checks, or of the entailment check if there was one."""
        self._heads.update({unit.block: unit.text for unit in units if unit.kind == "head"})
        for unit in units:
            if unit not in self._results:
                self._results[unit] = self._check_unit(unit)
        return [self._results[unit] for unit in units]

    def record(self, unit: Unit, result: CheckedUnit) -> None:
        """Stores the result of the entailment check of a unit, which may have got a corrected citation."""
        for original, checked in list(self._results.items()):  # a thread may add units meanwhile
            if checked.unit == unit:
                self._results[original] = result

    def accept(self, checked: CheckedUnit, words: Sequence[str] = ()) -> CheckedUnit:
        """An open unit as supported. `words` are the supporting words that the entailment check named.

        The unit fails if one of them stands nowhere. If they are in another passage than the cited one, the citation is
        corrected. Without words, a unit is kept only if it cites nothing and holds no value: it makes no claim.
        """
        unit = checked.unit
        quotes: list[Quote] = []
        from_tool = False
        for one in words:
            if not any(letter.isalnum() for letter in one):  # "..." stands in every text, and supports nothing
                continue
            quote = self._find_words(one, unit.cites)
            in_known = quote is None and normalize_text(one) in normalize_text("\n".join(self.known))
            if quote is None and not in_known:
                return CheckedUnit(unit, problem=f"the words it is said to rest on ({one[:60]!r}) are in no passage")
            from_tool = from_tool or in_known
            quotes += [quote] if quote is not None else []
        if not quotes and not from_tool and (unit.cites or self._find_missing(unit.text, ())):
            return CheckedUnit(unit, problem="the check named no words that it rests on")
        if not quotes:
            return CheckedUnit(unit, from_tool=from_tool)
        return self._quote(unit, quotes)

    def accept_without_entailment(self, checked: CheckedUnit) -> CheckedUnit:
        """The result of an open unit whose meaning cannot be checked: what the exact checks say of it."""
        unit = checked.unit
        if unit.cites:
            return self._quote(unit, ())
        values = find_values(unit.text, is_claim=True)
        known_values = KnownValues(*self.known)
        if self.known and values and all(known_values.contains(value) for value in values):
            return CheckedUnit(unit, from_tool=True)
        if unit.introduces:
            return CheckedUnit(unit)
        return CheckedUnit(unit, problem="it has no citation")

    def _check_unit(self, unit: Unit) -> CheckedUnit:
        if unit.kind == "rule" or is_no_answer_text(unit.text):
            return CheckedUnit(unit)
        if not unit.ended:
            return CheckedUnit(unit, problem="it is cut off in the middle")
        if unit.cites:
            return self._check_cited(unit)
        missing = self._find_missing(unit.text, self.passages)
        if missing:
            return CheckedUnit(unit, problem=f"{missing[0].text!r} is in no passage")
        if unit.kind == "head" or self._is_label(unit):
            return CheckedUnit(unit)
        if unit.kind == "code":
            return CheckedUnit(unit, problem="it has no citation")
        return CheckedUnit(unit, is_open=True)

    def _check_cited(self, unit: Unit) -> CheckedUnit:
        unknown = [number for number in unit.cites if not 1 <= number <= len(self.passages)]
        if unknown:
            return CheckedUnit(unit, problem=f"there is no passage [{unknown[0]}]")
        segments = tuple(self._correct_citation(segment) for segment in unit.segments)
        original, unit = unit, replace(unit, segments=segments)
        if unit.kind == "head":
            return CheckedUnit(unit)
        quotes: list[tuple[Quote, ...]] = []
        for segment in segments:
            cited = [self.passages[number - 1] for number in segment.cites]
            if problem := self._find_problem(segment, cited, is_code=unit.kind == "code"):
                return CheckedUnit(original, problem=problem)
            if unit.kind == "code":
                quotes.append(tuple(_quote_code(segment.text, cited)))
                continue
            head = self._heads.get(unit.block, "") if unit.kind == "row" else ""
            matching = [quote for passage in cited if (quote := find_verbatim(passage, segment.text, head)) is not None]
            quotes.append(tuple(matching))
        if len(segments) > 1 and len({segment.cites for segment in segments}) == 1:  # "It is [1] 28 days."
            cited = [self.passages[number - 1] for number in unit.cites]
            matching = [quote for passage in cited if (quote := find_verbatim(passage, unit.text)) is not None]
            quotes = [tuple(matching)] * len(segments)
            return CheckedUnit(unit, tuple(quotes) if matching else (), is_open=not matching)
        is_verbatim = all(quotes) and (len(segments) == 1 or unit.kind == "code")
        return CheckedUnit(unit, tuple(quotes) if is_verbatim else (), is_open=not is_verbatim)

    def _correct_citation(self, segment: Segment) -> Segment:
        """The segment citing the one passage that holds all its values, if the cited ones do not."""
        cited = [self.passages[number - 1] for number in segment.cites]
        if not self._find_missing(segment.text, cited):
            return segment
        holding = [passage for passage in self.passages if not self._find_missing(segment.text, [passage])]
        return replace(segment, cites=(holding[0].number,)) if len(holding) == 1 else segment

    def _find_problem(self, segment: Segment, cited: Sequence[Passage], *, is_code: bool) -> str:
        """The certain fault of a segment, or an empty string."""
        cited_numbers = " ".join(f"[{passage.number}]" for passage in cited)
        if is_code:
            return "" if _quote_code(segment.text, cited) else f"this code is not in {cited_numbers}"
        if missing := self._find_missing(segment.text, cited):
            return f"{missing[0].text!r} is not in {cited_numbers}"
        for match in _QUOTED.finditer(segment.text):
            quoted = normalize_text(match[1])
            if not any(quoted in passage.comparable for passage in cited):
                return f"the words in quotation marks ({match[1][:60]!r}) are not in {cited_numbers}"
        return ""

    def _find_missing(self, text: str, passages: Sequence[Passage]) -> list[ValueMention]:
        """The values of a text that are in none of the passages, the question and the tool results.

        Number words are left to the check of the meaning: "four and a half", "two of them" and "a dozen" are written
        in too many ways for certainty.
        """
        sources = (self._given_values, *(passage.values for passage in passages))
        return [
            value
            for value in find_values(text, is_claim=True)
            if not (isinstance(value, NumberMention) and value.is_word)
            and not any(source.contains(value) for source in sources)
        ]

    @cached_property
    def _given_values(self) -> KnownValues:
        return KnownValues(self.question, *self.known)

    @cached_property
    def _source_texts(self) -> tuple[str, ...]:
        """The question, the passages and their places, for comparison."""
        texts = (self.question, *(describe_surroundings(chunk) for chunk in self.chunks))
        return (*map(normalize_text, texts), *(passage.comparable for passage in self.passages))

    def _is_label(self, unit: Unit) -> bool:
        """Whether a heading, question or opening makes no claim: few words, or words that stand so in the sources."""
        if not unit.introduces:
            return False
        text = normalize_text(unit.text).rstrip("? ")
        return len(text.split()) <= LABEL_WORDS or any(f" {text} " in f" {source} " for source in self._source_texts)

    def _find_words(self, words: str, cites: Sequence[int]) -> Quote | None:
        """The quote of some words, in a cited passage if possible."""
        ordered = sorted(self.passages, key=lambda passage: passage.number not in cites)
        return next((quote for passage in ordered if (quote := find_words(passage, words)) is not None), None)

    def _quote(self, unit: Unit, quotes: Sequence[Quote]) -> CheckedUnit:
        return CheckedUnit(unit, tuple(self._quote_segment(segment, quotes) for segment in unit.segments))

    def _quote_segment(self, segment: Segment, quotes: Sequence[Quote]) -> tuple[Quote, ...]:
        """The quotes from the segment's passages; other quotes if it has none; else its best quote."""
        own = [quote for quote in quotes if quote.number in segment.cites]
        if own or quotes:
            return tuple(dict.fromkeys(own or quotes))
        values = find_values(segment.text, is_claim=True)
        best_quotes = (find_best_quote(self.passages[number - 1], segment.text, values) for number in segment.cites)
        return tuple(quote for quote in best_quotes if quote is not None)


def _quote_code(code: str, cited: Sequence[Passage]) -> list[Quote]:
    """The quote of the first passage that holds every line of a code block."""
    lines = [line for line in code.splitlines() if line.strip() and not line.lstrip().startswith(("```", "~~~"))]
    wanted = [" ".join(line.split()) for line in lines]
    for passage in cited:
        if all(line in " ".join(passage.chunk.content.split()) for line in wanted):
            holding = [
                at for at, part in enumerate(passage.parts)
                if any(line in " ".join(part.text.split()) for line in wanted)
            ]  # fmt: skip
            first, last = (holding[0], holding[-1] + 1) if holding else (0, len(passage.parts))
            return [passage.make_quote(first, last)]
    return []
