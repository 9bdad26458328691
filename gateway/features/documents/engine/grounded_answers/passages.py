"""A passage prepared for comparison: its pieces, their values and words, and spans that can be quoted."""

import re
from dataclasses import dataclass
from functools import cached_property

from agent.text.pieces import MARKS, Piece, split_pieces
from agent.text.stop_words import detect_language
from agent.text.terms import extract_query_terms, extract_terms
from agent.text.values import KnownValues, ValueMention
from gateway.features.documents.engine.grounded_answers.models import Quote, describe_surroundings, list_headings
from gateway.features.documents.engine.search.models import RetrievedContext

QUOTE_CHARS = 900
"""The longest quote: about a whole chunk of prose."""
_FOOTNOTE = re.compile(MARKS)
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,300}+)\]\([^()\n]{0,2000}+\)")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300}+)\]\([^()\n]{0,2000}+\)")
_LINE_START = re.compile(r"^(?:\s*(?:>|[-*+\u2022]\s|#{1,6}\s))+\s*")
_MARKUP = re.compile(r"[*_`|\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb]+")
_WORDS = re.compile(r"\w+")
_GAP = re.compile(r"(?:(?<!\s)\s++)?(?:\.\.\.|\u2026|\[\u2026\])\s*")


@dataclass(frozen=True)
class Part:
    """A piece of a passage. A table row has the head of its table."""

    piece: Piece
    text: str
    head: str = ""

    @cached_property
    def values(self) -> KnownValues:
        """The values that it holds."""
        return KnownValues(self.text)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its search terms, in English stems."""
        return frozenset(extract_terms(self.text))

    @cached_property
    def comparable(self) -> str:
        """Its text for verbatim comparison."""
        return normalize_text(self.text)


@dataclass(frozen=True)
class Passage:
    """A numbered passage with its parts."""

    number: int
    chunk: RetrievedContext

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Its sentences, rows and headings in order."""
        content, parts, head, block = self.chunk.content, [], "", -1
        for piece in split_pieces(content):
            text = content[piece.start : piece.end]
            if piece.block != block:
                head, block = "", piece.block
            head = text if piece.kind == "head" else head
            if piece.kind == "sentence" and self._headings and normalize_text(text) in self._headings:
                piece = piece._replace(kind="heading")  # noqa: PLW2901
            parts.append(Part(piece, text, head if piece.kind == "row" else ""))
        return tuple(parts)

    @cached_property
    def _headings(self) -> frozenset[str]:
        """Its headings for comparison. Only Markdown marks them in the text; other formats have them as plain lines."""
        return frozenset(normalize_text(heading) for heading in list_headings(self.chunk))

    @cached_property
    def values(self) -> KnownValues:
        """The values of its text, title, headings, document name and pages."""
        return KnownValues(self.chunk.content, describe_surroundings(self.chunk))

    @cached_property
    def comparable(self) -> str:
        """Its whole text for comparison."""
        return normalize_text(self.chunk.content)

    @cached_property
    def place_terms(self) -> frozenset[str]:
        """The search terms of its title, headings and document name."""
        return frozenset(extract_terms(describe_surroundings(self.chunk)))

    @cached_property
    def language(self) -> str:
        """Its language code, or empty if unknown."""
        return detect_language(self.chunk.content)

    def make_quote(self, first: int, last: int) -> Quote:
        """The quote of `parts[first:last]`."""
        return Quote(self.number, self.parts[first].piece.start, self.parts[last - 1].piece.end)


def find_verbatim(passage: Passage, text: str, head: str = "") -> Quote | None:
    """The quote of a text that is one whole sentence or row of the passage, or several in order.

    A part of a sentence does not count, because the rest may negate it. For a row, `head` is the head of its table in
    the answer, which must be the passage's own.
    """
    wanted = normalize_text(text)
    if not wanted:
        return None
    for first, part in enumerate(passage.parts):
        if part.head and head and normalize_text(head) != normalize_text(part.head):
            continue
        joined = ""
        for last in range(first, len(passage.parts)):
            joined = f"{joined} {passage.parts[last].comparable}".strip()
            if joined == wanted:
                return passage.make_quote(first, last + 1)
            if not wanted.startswith(joined):
                break
    return None


def find_words(passage: Passage, words: str) -> Quote | None:
    """The quote of the whole sentences or rows that contain `words`, or None.

    Case, white space, punctuation and markup are ignored, and "..." stands for omitted words.
    """
    spans = [_find_span(passage, piece) for piece in _GAP.split(words) if _WORDS.search(piece)]
    places = [span for span in spans if span is not None]
    if not places or len(places) < len(spans):
        return None
    first, last = min(start for start, _ in places), max(end for _, end in places)
    inside = [
        at for at, part in enumerate(passage.parts) if part.piece.start < last and part.piece.end > first
    ]  # whole pieces, so that a quote does not start in the middle of a sentence
    quote = passage.make_quote(inside[0], inside[-1] + 1) if inside else Quote(passage.number, first, last)
    return quote if quote.end - quote.start <= QUOTE_CHARS else Quote(passage.number, first, last)


def find_best_quote(passage: Passage, text: str, values: list[ValueMention]) -> Quote | None:
    """The span of the part that holds most of the values and words of a claim, and of the other values."""
    quotable = [at for at, part in enumerate(passage.parts) if part.piece.kind not in ("rule", "heading")]
    if not quotable:
        return passage.make_quote(0, len(passage.parts)) if passage.parts else None
    terms = frozenset(extract_query_terms(text))
    values_by_part = {at: {one.text for one in values if passage.parts[at].values.contains(one)} for at in quotable}
    chosen = [max(quotable, key=lambda at: (len(values_by_part[at]), len(terms & passage.parts[at].terms), -at))]
    for value in values:
        if not any(value.text in values_by_part[at] for at in chosen):
            chosen += [at for at in quotable if value.text in values_by_part[at]][:1]
    quote = passage.make_quote(min(chosen), max(chosen) + 1)
    return quote if quote.end - quote.start <= QUOTE_CHARS else passage.make_quote(chosen[0], chosen[0] + 1)


def normalize_text(text: str) -> str:
    """A text for verbatim comparison: without markup, footnotes, quotation marks, case and final stops."""
    plain = _LINE_START.sub("", _MARKUP.sub(" ", clean_text(text)))
    return " ".join(plain.casefold().split()).rstrip(" .,;:!")


def clean_text(text: str) -> str:
    """A passage's text in one line, without its own footnotes, images, addresses of links and line marks."""
    return " ".join(_LINE_START.sub("", remove_links(_FOOTNOTE.sub("", text))).split())


def remove_links(text: str) -> str:
    """A text with the words of its links and images only: their addresses could carry data to other sites."""
    return _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))


def _find_span(passage: Passage, words: str) -> tuple[int, int] | None:
    """The span of words in the passage's text, compared word by word."""
    wanted = [match[0].casefold() for match in _WORDS.finditer(words)]
    there = list(_WORDS.finditer(passage.chunk.content))
    spoken = [match[0].casefold() for match in there]
    for at in range(len(spoken) - len(wanted) + 1):
        if spoken[at : at + len(wanted)] == wanted:
            return there[at].start(), there[at + len(wanted) - 1].end()
    return None
