"""A passage as it is looked into: its parts with their values, names and words, and what of it can be quoted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from agent.grounded_answers.layout import Piece, pieces
from agent.grounded_answers.models import place_words
from agent.grounded_answers.names import Spoken
from agent.grounded_answers.values import Held, mentions
from agent.search.models import RetrievedContext
from agent.text.stop_words import detect_language
from agent.text.terms import extract_terms

QUOTE_CHARS = 900
"""A longer quote is no quote: it is the length of a whole chunk of prose."""
QUOTE_PIECES = 12
LABEL_WORDS = 3
"""A paragraph that begins with so few words begins with a label."""
TITLE_WORDS = 12
LEAST_LETTERS = 3
LEANS = re.compile(
    r"^\W*(?:he|she|it|they|this|these|those|that|its|their|such|both|han|hon|den|det|de|dessa|detta|er|sie|es|diese[rs]?|"
    r"il|elle|ils|elles)\b",
    re.IGNORECASE,
)
"""Openings that lean on the sentence before."""
_MARKUP = ' \t\n*_`#>~"\u201c\u201d'


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of passage `number`: `content[start:end]`."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Part:
    """A piece of a passage with what can be looked up in it; a row knows the head of its table."""

    piece: Piece
    text: str
    head: str = ""

    @cached_property
    def held(self) -> Held:
        """The values it holds."""
        return Held(self.text, self.head)

    @cached_property
    def spoken(self) -> Spoken:
        """Its words, to find names in."""
        return Spoken(self.text)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its search terms."""
        return frozenset(extract_terms(self.text))

    @cached_property
    def told_terms(self) -> frozenset[str]:
        """Its search terms, and those of its table's head."""
        return self.terms | frozenset(extract_terms(self.head))


@dataclass(frozen=True)
class Passage:
    """A numbered passage. `parts` are its sentences, rows and headings with their places in `chunk.content`."""

    number: int
    chunk: RetrievedContext
    _scopes: dict[int, tuple[tuple[Spoken, ...], str, frozenset[str]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Its sentences, rows and headings."""
        content, found, head, block = self.chunk.content, [], "", -1
        for piece in pieces(content):
            text = content[piece.start : piece.end]
            if piece.block != block:
                head, block = "", piece.block
            head = text if piece.kind == "head" else head
            found.append(Part(piece, text, head if piece.kind == "row" else ""))
        return tuple(found)

    @cached_property
    def place(self) -> Spoken:
        """Its title, headings and the document's name."""
        return Spoken(place_words(self.chunk))

    @cached_property
    def place_terms(self) -> frozenset[str]:
        """The search terms of its title, headings and document's name."""
        return frozenset(extract_terms(place_words(self.chunk)))

    def is_label(self, at: int) -> bool:
        """Whether a part says nothing by itself: a heading, a question, or the few words a paragraph begins with."""
        part = self.parts[at]
        if part.piece.kind in ("heading", "head", "rule"):
            return True
        bare = part.text.strip(_MARKUP)
        if sum(letter.isalnum() for letter in bare) < LEAST_LETTERS or bare.endswith("?"):
            return True
        if part.piece.kind != "sentence" or part.piece.marker:
            return False
        if not at and len(self.parts) > 1 and self.parts[1].piece.block != part.piece.block:  # a title, or a sentence?
            return len(bare.split()) <= TITLE_WORDS and ":" not in bare and bare[-1] not in ".!)"
        if len(bare.split()) > LABEL_WORDS:
            return False
        follows = at > 0 and self.parts[at - 1].piece.block == part.piece.block
        return not (follows or ":" in bare.rstrip(":") or mentions(bare))

    def label(self, at: int) -> str:
        """The nearest heading or label above a part."""
        return self._labels[at]

    def _begins(self, at: int) -> int:
        """The first sentence of those that a part leans on; itself where it leans on none."""
        block = self.parts[at].piece.block
        while at and LEANS.match(self.parts[at].text) and self.parts[at - 1].piece.block == block:
            at -= 1
        before = self.parts[at - 1] if at else None
        return at - 1 if before is not None and before.text.rstrip().endswith(":") else at

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        found, label = [], ""
        for at, part in enumerate(self.parts):
            found.append(label)
            if part.piece.kind in ("sentence", "heading") and self.is_label(at):
                label = part.text
        return tuple(found)

    def above(self, at: int) -> tuple[Spoken, ...]:
        """What stands above a part: the document, its headings, and its table's head."""
        return self._scope(at)[0]

    def around(self, at: int) -> str:
        """A part with what it leans on or stands below: sentences, its table's head, headings, the document's name."""
        return self._scope(at)[1]

    def around_terms(self, at: int) -> frozenset[str]:
        """The search terms of `around`."""
        return self._scope(at)[2]

    def _scope(self, at: int) -> tuple[tuple[Spoken, ...], str, frozenset[str]]:
        if at not in self._scopes:
            part = self.parts[at]
            above = (*place_words(self.chunk).split(" / "), self.label(at), part.head)
            around = "\n".join((*above, *(one.text for one in self.parts[self._begins(at) : at]), part.text))
            self._scopes[at] = tuple(map(Spoken, above)), around, frozenset(extract_terms(around))
        return self._scopes[at]

    @cached_property
    def tongue(self) -> str:
        """The language it is written in, where that can be told."""
        return detect_language(self.chunk.content)

    @cached_property
    def plain(self) -> str:
        """Its text with every run of white space made one space."""
        return squeezed(self.chunk.content)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Neighbouring parts that are short enough to be quoted together, as `parts[first:last]`; no rule first."""
        for first, opening in enumerate(self.parts):
            if opening.piece.kind == "rule":
                continue
            for last in range(first + 1, min(first + QUOTE_PIECES, len(self.parts)) + 1):
                if last > first + 1 and self.parts[last - 1].piece.end - opening.piece.start > QUOTE_CHARS:
                    break
                yield first, last


def squeezed(text: str) -> str:
    """The text with every run of white space made one space."""
    return " ".join(text.split())
