"""A passage as it is looked into: its parts with their values, names and words, and what of it can be quoted."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from agent.knowledge.models import RetrievedContext
from agent.knowledge.tailor.layout import Piece, pieces
from agent.knowledge.tailor.models import place_words
from agent.knowledge.tailor.names import Spoken
from agent.knowledge.tailor.tongue import tongue
from agent.knowledge.tailor.values import Held
from agent.knowledge.terms import terms

QUOTE_CHARS = 900
"""A longer quote is no quote: it is the length of a whole chunk of prose."""
QUOTE_PIECES = 12


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
        return frozenset(terms(self.text))


@dataclass(frozen=True)
class Passage:
    """A numbered passage. `parts` are its sentences, rows and headings with their places in `chunk.content`."""

    number: int
    chunk: RetrievedContext

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
        return frozenset(terms(place_words(self.chunk)))

    @cached_property
    def tongue(self) -> str:
        """The language it is written in, where that can be told."""
        return tongue(self.chunk.content)

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
