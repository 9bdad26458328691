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

from agent.grounded_answers.claims import Segment, Unit
from agent.grounded_answers.columns import titles_of, wrong_column
from agent.grounded_answers.layout import Kind
from agent.grounded_answers.models import numbers_in, place_words
from agent.grounded_answers.names import Spoken, names, other_forms, small_words
from agent.grounded_answers.passages import Passage, Quote, squeezed
from agent.grounded_answers.quoting import Wanted, best_quote
from agent.grounded_answers.values import Held, mentions
from agent.search.models import RetrievedContext
from agent.text.stop_words import detect_language
from agent.text.terms import extract_query_terms, extract_terms

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
    aside: bool = False
    """Whether it says how what follows is to be taken: it stays in every form and within every limit."""

    @property
    def states(self) -> bool:
        """Whether it states something: words of a passage, or what a tool said."""
        return bool(self.quotes) or not self.unit.says_nothing


@dataclass(frozen=True)
class Ground:
    """The passages of an answer, numbered from 1, and what else is known: the question, and results of tools that
    bring no source, which may be said without a citation."""

    chunks: Sequence[RetrievedContext]
    question: str = ""
    known: Sequence[str] = ()
    _judged: dict[Unit, Verdict] = field(default_factory=dict, compare=False, repr=False)
    _heads: dict[int, str] = field(default_factory=dict, compare=False, repr=False)
    """The heads of an answer's own tables, by their blocks."""

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """The passages, numbered as they are cited."""
        return tuple(Passage(number, chunk) for number, chunk in enumerate(self.chunks, start=1))

    @cached_property
    def common(self) -> frozenset[str]:
        """Words that passages or question write small, and so no names."""
        texts = (*self.known, *(chunk.content for chunk in self.chunks))
        places = (place_words(chunk) for chunk in self.chunks)
        return small_words((self.question, *texts)) | other_forms(self.question, (*texts, *places))

    def check(self, units: Sequence[Unit]) -> list[Verdict]:
        """A verdict on each unit; the same unit is judged once, for answers are read again as they grow."""
        self._heads.update({unit.block: unit.text for unit in units if unit.kind == "head"})
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
            head = self._heads.get(unit.block, "") if unit.kind == "row" else ""
            found = self._grounds(segment, unit.kind, head)
            if isinstance(found, str):
                found = self._elsewhere(segment, unit.kind, head) or found
            if isinstance(found, str):
                return Verdict(unit, problem=found)
            quotes.append(found)
        return Verdict(unit, tuple(quotes))

    def _grounds(self, segment: Segment, kind: Kind, head: str) -> tuple[Quote, ...] | str:
        """The quotes of a segment, one a passage it cites, or what is wrong. `head` is that of a row's table."""
        unknown = [number for number in segment.cites if not 1 <= number <= len(self.passages)]
        if unknown:
            return f"there is no passage [{unknown[0]}]"
        cited = [self.passages[number - 1] for number in segment.cites]
        shown = " ".join(f"[{number}]" for number in segment.cites)
        if (fault := _wrong_place(segment.text, cited, shown)) is not None:
            return fault
        if kind == "code":
            return _code_quotes(segment.text, cited) or f"this code does not stand in {shown}"
        wanted = self._wanted(segment.text, head)
        found = [best for passage in cited if (best := best_quote(passage, wanted)) is not None]
        held_values = frozenset[int]().union(*(one.values for one in found))
        held_names = frozenset[int]().union(*(one.names for one in found))
        if missing := _missing(wanted, held_values, held_names, cited, shown):
            return missing
        shared = frozenset[str]().union(*(one.terms for one in found))
        least = SHARED_WORDS_WITH_VALUES if wanted.has_marks else SHARED_WORDS
        if not wanted.has_marks and self._is_strange(segment.text, cited):
            return f"it is neither in the language of the question nor in that of {shown}"
        if wanted.terms and len(shared) < least * len(wanted.terms) and _comparable(segment.text, cited):
            return f"{shown} does not speak of this"
        useful = [one for one in found if one.values or one.names or one.terms] or found
        return tuple(one.quote for one in useful)

    def _is_strange(self, text: str, cited: Sequence[Passage]) -> bool:
        """Whether a text is in another language than question and passages, so that nothing can be said of it."""
        own = detect_language(text)
        return bool(own) and own != detect_language(self.question) and all(one.tongue not in ("", own) for one in cited)

    def _elsewhere(self, segment: Segment, kind: Kind, head: str) -> tuple[Quote, ...]:
        """The quote of one other passage that holds every number and name of a segment and a third of its words: then
        only the number of its citation is wrong. None where it has no number or name to know it by."""
        wanted = self._wanted(segment.text, head)
        there = all(1 <= number <= len(self.passages) for number in segment.cites)
        if not wanted.has_marks or kind == "code" or not there:
            return ()
        found: list[tuple[int, Quote]] = []
        for passage in self.passages:
            if passage.number in segment.cites or _wrong_place(segment.text, [passage], ""):
                continue
            best = best_quote(passage, wanted)
            if best is None or len(best.values) + len(best.names) < len(wanted.values) + len(wanted.names):
                continue
            shared = sum(not term.isdigit() for term in best.terms)
            if shared >= max(1.0, SHARED_WORDS * sum(not term.isdigit() for term in wanted.terms)):
                found.append((shared, best.quote))
        return (max(found, key=lambda one: one[0])[1],) if found else ()

    def _wanted(self, text: str, head: str = "") -> Wanted:
        plain = _PAGES.sub(lambda match: " " * len(match[0]), text)
        values, spoken = tuple(mentions(plain)), tuple(names(plain, self.common))
        return Wanted(plain, values, spoken, frozenset(extract_query_terms(plain)), titles_of(plain, head, values))

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
        shared = wanted.terms & set(extract_terms("\n".join(self.known)))
        return bool(wanted.values) or len(shared) >= SHARED_WORDS * max(1, len(wanted.terms))

    @cached_property
    def _everything(self) -> list[tuple[Held, Spoken]]:
        """The question, what is known, and every passage with its place."""
        texts = [self.question, "\n".join(self.known), *(f"{c.content}\n{place_words(c)}" for c in self.chunks)]
        return [(Held(text), Spoken(text)) for text in texts]


def _missing(
    wanted: Wanted, values: frozenset[int], spoken: frozenset[int], cited: Sequence[Passage], shown: str
) -> str:
    """Which value or name no quote holds, and how; empty where they hold all. `values` and `spoken` are those held."""
    for at, value in enumerate(wanted.values):
        if at not in values:
            rows = [part for passage in cited for part in passage.parts if part.head]
            if title := wrong_column(rows, value, at, wanted.said):
                return f"{value.text!r} does not stand under {title!r} in {shown}"
            return f"{value.text!r} does not stand in one quote of {shown} with the rest of it"
    for at, name in enumerate(wanted.names):
        if at not in spoken:
            return f"the name {name.text!r} does not stand in one quote of {shown} with the rest of it"
    return ""


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
    own = detect_language(text)
    strange = not own and len(text.split()) >= TELLING_WORDS
    return any(passage.tongue == own or not passage.tongue or not (own or strange) for passage in cited)
