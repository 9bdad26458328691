"""The checks of an answer against its passages: deterministic, the same for what a model wrote and what rules wrote.

A claim stands when one stretch of each passage it cites holds, between them, every number and every name of it, and
shares enough of its words. That stretch, cut from the passage character by character, is its quote. What these checks
cannot see: a contradiction ("paid" for "not paid"), a wrong relation between things that are all there, and in an
answer whose language is not the passage's, anything but numbers and names.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agent.knowledge.models import RetrievedContext
from agent.knowledge.tailor.claims import Segment, Unit
from agent.knowledge.tailor.layout import Kind
from agent.knowledge.tailor.models import numbers_in, place_words
from agent.knowledge.tailor.names import Name, Spoken, names, small_words
from agent.knowledge.tailor.passages import Part, Passage, Quote, squeezed
from agent.knowledge.tailor.tongue import tongue
from agent.knowledge.tailor.values import Held, Mention, mentions
from agent.knowledge.terms import query_terms, terms

PART_COSTS = 0.75
"""Shared words that one more sentence must bring to be quoted along."""
SHARED_WORDS = 1 / 3
"""The share of a claim's words its quotes must hold where there is no number or name to hold it by."""
SHARED_WORDS_WITH_VALUES = 1 / 6
TELLING_WORDS = 8
"""A sentence of so many words without one of a language's small words is not in that language."""
_PAGES = re.compile(
    r"\b(?:pages?|pp?\.|sid(?:a|an|orna)|seiten?)\s*(\d{1,5})(?:\s*[\u2013-]\s*(\d{1,5}))?", re.IGNORECASE
)
_QUOTED = re.compile(r"[\u201c\u201e\u00ab\"]([^\u201c\u201d\u201e\u00ab\u00bb\"\n]{12,600})[\u201d\u201c\u00bb\"]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say of a unit: its quotes, segment by segment, or what is wrong with it."""

    unit: Unit
    quotes: tuple[tuple[Quote, ...], ...] = ()
    problem: str = ""

    @property
    def states(self) -> bool:
        """Whether it states something: words of a passage, or what a tool said."""
        return bool(self.quotes) or not self.unit.says_nothing


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a quote must hold."""

    values: tuple[Mention, ...]
    names: tuple[Name, ...]
    terms: frozenset[str]

    @property
    def has_marks(self) -> bool:
        return bool(self.values or self.names)


@dataclass(frozen=True, slots=True)
class _Found:
    """The best quote of one passage: which values and names it holds, by their index, and which words."""

    quote: Quote
    values: frozenset[int]
    names: frozenset[int]
    terms: frozenset[str]


@dataclass(frozen=True)
class Ground:
    """The passages of an answer, numbered from 1, and what else is known: the question, and results of tools that
    bring no source, which may be said without a citation."""

    chunks: Sequence[RetrievedContext]
    question: str = ""
    known: Sequence[str] = ()
    _judged: dict[Unit, Verdict] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """The passages, numbered as they are cited."""
        return tuple(Passage(number, chunk) for number, chunk in enumerate(self.chunks, start=1))

    @cached_property
    def common(self) -> frozenset[str]:
        """Words that passages or question write small, and so no names."""
        return small_words((self.question, *self.known, *(chunk.content for chunk in self.chunks)))

    def check(self, units: Sequence[Unit]) -> list[Verdict]:
        """A verdict on each unit; the same unit is judged once, for answers are read again as they grow."""
        for unit in units:
            if unit not in self._judged:
                self._judged[unit] = self._verdict(unit)
        return [self._judged[unit] for unit in units]

    def _verdict(self, unit: Unit) -> Verdict:
        """The unit with its quotes, or with what is wrong with it."""
        if unit.kind == "rule":
            return Verdict(unit)
        if unit.says_nothing:
            return self._uncited(unit)
        if not unit.ended:
            return Verdict(unit, problem="it is cut off in the middle")
        if not unit.cites:
            return Verdict(unit) if self._is_known(unit) else Verdict(unit, problem="it has no citation")
        quotes: list[tuple[Quote, ...]] = []
        for segment in unit.segments:
            found = self._grounds(segment, unit.kind)
            if isinstance(found, str):
                return Verdict(unit, problem=found)
            quotes.append(found)
        return Verdict(unit, tuple(quotes))

    def _grounds(self, segment: Segment, kind: Kind) -> tuple[Quote, ...] | str:
        """The quotes of a segment, one a passage it cites, or what is wrong."""
        unknown = [number for number in segment.cites if not 1 <= number <= len(self.passages)]
        if unknown:
            return f"there is no passage [{unknown[0]}]"
        cited = [self.passages[number - 1] for number in segment.cites]
        shown = " ".join(f"[{number}]" for number in segment.cites)
        if (fault := _wrong_place(segment.text, cited, shown)) is not None:
            return fault
        if kind == "code":
            return _code_quotes(segment.text, cited) or f"this code does not stand in {shown}"
        wanted = self._wanted(segment.text)
        found = [best for passage in cited if (best := _best(passage, wanted)) is not None]
        held_values = frozenset[int]().union(*(one.values for one in found))
        held_names = frozenset[int]().union(*(one.names for one in found))
        for at, value in enumerate(wanted.values):
            if at not in held_values:
                return f"{value.text!r} does not stand in one quote of {shown} with the rest of it"
        for at, name in enumerate(wanted.names):
            if at not in held_names:
                return f"the name {name.text!r} does not stand in one quote of {shown} with the rest of it"
        shared = frozenset[str]().union(*(one.terms for one in found))
        least = SHARED_WORDS_WITH_VALUES if wanted.has_marks else SHARED_WORDS
        if wanted.terms and len(shared) < least * len(wanted.terms) and _comparable(segment.text, cited):
            return f"{shown} does not speak of this"
        useful = [one for one in found if one.values or one.names or one.terms] or found
        return tuple(one.quote for one in useful)

    def _wanted(self, text: str) -> _Wanted:
        plain = _PAGES.sub(lambda match: " " * len(match[0]), text)
        return _Wanted(tuple(mentions(plain)), tuple(names(plain, self.common)), frozenset(query_terms(plain)))

    def _uncited(self, unit: Unit) -> Verdict:
        """A unit that states no fact may still name only what the question or a passage names."""
        wanted = self._wanted(unit.text)
        for value in wanted.values:
            if not any(held.holds(value) for held, _ in self._everything):
                return Verdict(unit, problem=f"{value.text!r} stands in no passage")
        for name in wanted.names:
            if not any(spoken.holds(name) for _, spoken in self._everything):
                return Verdict(unit, problem=f"the name {name.text!r} stands in no passage")
        return Verdict(unit)

    def _is_known(self, unit: Unit) -> bool:
        """Whether a tool's result that has no source says so."""
        if not self.known:
            return False
        wanted = self._wanted(unit.text)
        held, spoken = self._everything[1]
        if not all(map(held.holds, wanted.values)) or not all(map(spoken.holds, wanted.names)):
            return False
        shared = wanted.terms & set(terms("\n".join(self.known)))
        return bool(wanted.values) or len(shared) >= SHARED_WORDS * max(1, len(wanted.terms))

    @cached_property
    def _everything(self) -> list[tuple[Held, Spoken]]:
        """The question, what is known, and every passage with its place."""
        texts = [self.question, "\n".join(self.known), *(f"{c.content}\n{place_words(c)}" for c in self.chunks)]
        return [(Held(text), Spoken(text)) for text in texts]


def _best(passage: Passage, wanted: _Wanted) -> _Found | None:
    """The stretch of a passage that holds most of what is wanted, and of those the one that shares most words with it
    and is shortest."""
    per_part = [_part_holds(part, wanted) for part in passage.parts]
    at_place = frozenset(at for at, name in enumerate(wanted.names) if passage.place.holds(name))
    best: _Found | None = None
    best_score: tuple[float, ...] = ()
    for first, last in passage.windows():
        held = per_part[first:last]
        values = frozenset[int]().union(*(one[0] for one in held))
        spoken = frozenset[int]().union(*(one[1] for one in held))
        shared = frozenset[str]().union(*(one[2] for one in held))
        start, end = passage.parts[first].piece.start, passage.parts[last - 1].piece.end
        told = len(shared) - PART_COSTS * (last - first - 1)
        score = (len(values) + len(spoken | at_place), len(spoken), told, start - end)
        if best is None or score > best_score:
            quote = Quote(passage.number, start, end)
            best, best_score = _Found(quote, values, spoken | at_place, shared), score
    if best is None:
        return None
    return _Found(best.quote, best.values, best.names, best.terms | (wanted.terms & passage.place_terms))


def _part_holds(part: Part, wanted: _Wanted) -> tuple[frozenset[int], frozenset[int], frozenset[str]]:
    values = frozenset(at for at, value in enumerate(wanted.values) if part.held.holds(value))
    spoken = frozenset(at for at, name in enumerate(wanted.names) if part.spoken.holds(name))
    return values, spoken, wanted.terms & part.terms


def _wrong_place(text: str, cited: Sequence[Passage], shown: str) -> str | None:
    """What is wrong with a page that is named, or with words in quotation marks."""
    pages = {page for passage in cited for page in numbers_in(passage.chunk.metadata, "pages")}
    for match in _PAGES.finditer(text):
        for page in (int(number) for number in match.groups() if number):
            if page not in pages and not any(_says_page(passage, match[0]) for passage in cited):
                return f"{shown} does not stand on page {page}"
    for match in _QUOTED.finditer(text):
        quoted = squeezed(match[1]).rstrip(".,;:!?\u2026 ")
        if not any(quoted in passage.plain for passage in cited):
            return f"the words in quotation marks ({quoted[:60]!r}) do not stand in {shown}"
    return None


def _says_page(passage: Passage, mention: str) -> bool:
    """Whether the passage itself speaks of that page ("see page 7")."""
    return squeezed(mention).lower() in passage.plain.lower()


def _code_quotes(code: str, cited: Sequence[Passage]) -> tuple[Quote, ...]:
    """Quotes that hold every line of a piece of code; none where a line stands nowhere."""
    lines = [
        squeezed(line) for line in code.splitlines() if line.strip() and not line.lstrip().startswith(("```", "~~~"))
    ]
    for passage in cited:
        if all(line in passage.plain for line in lines):
            held = [
                part for part in passage.parts if any(line in squeezed(part.text) for line in lines)
            ] or passage.parts
            return (Quote(passage.number, held[0].piece.start, held[-1].piece.end),)
    return ()


def _comparable(text: str, cited: Iterable[Passage]) -> bool:
    """Whether words can be compared at all: not between languages. A text that shows no language is taken for one of
    the passage's, unless it is so long that it would show it."""
    own = tongue(text)
    strange = not own and len(text.split()) >= TELLING_WORDS
    return any(passage.tongue == own or not passage.tongue or not (own or strange) for passage in cited)
