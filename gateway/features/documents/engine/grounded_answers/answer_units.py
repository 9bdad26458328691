"""Parses an answer into units: sentences, list items, table rows, headings and code, each with its citations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pydantic_core import from_json

from agent.core.fenced_json import remove_json_fence
from agent.core.json_walk import iter_leaves
from agent.text.pieces import MARKS, Kind, Piece, split_pieces
from agent.text.terms import fold
from gateway.features.documents.engine.grounded_answers.passages import remove_links

_MARK = re.compile(rf"(?:(?<!\s)\s++)?{MARKS}")
_UNFINISHED_MARK = re.compile(r"[\[\u3010][\d\s,;\u2013-]*$")
_RANGE = re.compile(r"(\d{1,3})\s*[\u2013-]\s*(\d{1,3})")
_NUMBER = re.compile(r"\d{1,3}")
_END_OF_SENTENCE = re.compile(r"[.!?\u2026:\u3002\uff01\uff1f|`][\"'\u201d\u2019\u00bb)*_\]]*$")
_MAX_RANGE = 20


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a unit up to its citations: its text, the cited passages, and the punctuation behind the citations."""

    text: str
    cites: tuple[int, ...] = ()
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of an answer. The units of one paragraph, list or table have the same block.

    `ended` is False for a last sentence without a stop, which may have been cut off.
    """

    kind: Kind
    block: int
    segments: tuple[Segment, ...]
    marker: str = ""
    ended: bool = True

    @property
    def text(self) -> str:
        """The text without citations."""
        return " ".join(f"{segment.text}{segment.tail}" for segment in self.segments if segment.text or segment.tail)

    @property
    def folded(self) -> str:
        """The text for comparison with other units: small letters without accents, single spaces."""
        return " ".join(fold(self.text).split())

    @property
    def cites(self) -> tuple[int, ...]:
        """The cited passages in order, each once."""
        return tuple(dict.fromkeys(number for segment in self.segments for number in segment.cites))

    @property
    def introduces(self) -> bool:
        """Whether it is a heading, a question, or an opening that ends in a colon."""
        return self.kind == "heading" or (self.kind == "sentence" and self.text.rstrip().endswith(("?", ":")))

    def with_cites(self, cites: tuple[int, ...]) -> "Unit":
        """The unit with all segments citing these passages."""
        return replace(self, segments=tuple(replace(segment, cites=cites) for segment in self.segments))


def parse_answer(answer: str, *, finished: bool = True, may_be_cut: bool = True) -> list[Unit]:
    """The units of an answer; of an unfinished one without the last, which may continue.

    `may_be_cut` is False where the model said that it had finished: then a last sentence without a stop is whole.

    A citation on its own belongs to what precedes it. A sentence without a citation takes the next one of its paragraph
    or list, the rows of a table that of the line before or behind the table. Links become their text: they cite
    nothing.
    """
    plain = remove_links(_read_json_texts(answer))
    pieces = split_pieces(plain)
    if not finished:
        # An unfinished "[1" is the last piece, and will belong to the piece before it.
        unfinished_mark = bool(pieces) and _UNFINISHED_MARK.match(plain[pieces[-1].start :]) is not None
        pieces = pieces[: -2 if unfinished_mark else -1]
    end = len(plain.rstrip()) if may_be_cut else len(plain) + 1
    return _share_citations(_attach_citations([_parse_unit(piece, plain, end) for piece in pieces]))


def _read_json_texts(answer: str) -> str:
    """The sentences of an answer that came as JSON, complete or cut off; every other answer as it is."""
    bare = remove_json_fence(answer).rstrip("`").rstrip()  # of an unfinished answer, the fence may be too
    if not bare.startswith(("{", "[")):
        return answer
    try:
        value = from_json(bare, allow_partial="trailing-strings")
    except ValueError:
        return answer
    texts = [leaf for _, leaf in iter_leaves(value) if isinstance(leaf, str) and " " in leaf]
    return "\n\n".join(texts) or answer


def _parse_unit(piece: Piece, answer: str, end: int) -> Unit:
    text = answer[piece.start : piece.end]
    marks = [] if piece.kind == "code" else list(_MARK.finditer(text))
    if piece.kind in ("row", "head"):  # citations in cells belong to the row
        cites = tuple(dict.fromkeys(number for match in marks for number in _parse_numbers(match[0])))
        return Unit(piece.kind, piece.block, (Segment(_MARK.sub("", text).strip(), cites),))
    segments: list[Segment] = []
    start = 0
    for match in marks:
        before = text[start : match.start()].strip()
        start = match.end()
        if segments and not _has_words(before):  # "[1][2]", "[1], [2]"
            cites = (*segments[-1].cites, *_parse_numbers(match[0]))
            segments[-1] = replace(segments[-1], cites=tuple(dict.fromkeys(cites)))
        else:
            segments.append(Segment(before, _parse_numbers(match[0])))
    rest = text[start:].strip()
    if not segments:
        segments.append(Segment(rest))
    elif rest and not _has_words(rest):
        segments[-1] = replace(segments[-1], tail=rest)
    elif rest:
        segments.append(Segment(rest, segments[-1].cites))
    stopped = piece.end < end or bool(marks) or _END_OF_SENTENCE.search(rest) is not None
    return Unit(piece.kind, piece.block, tuple(segments), piece.marker, stopped or piece.kind != "sentence")


def _has_words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def _parse_numbers(mark: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last in _RANGE.findall(mark):
        numbers += range(int(first), min(int(last), int(first) + _MAX_RANGE) + 1)
    numbers += [int(number) for number in _NUMBER.findall(_RANGE.sub(" ", mark))]
    return tuple(dict.fromkeys(numbers))


def _attach_citations(units: Sequence[Unit]) -> list[Unit]:
    """Moves the citations of units without a text of their own ("[1]", "Sources: [1]") to what precedes them."""
    kept_units: list[Unit] = []
    for unit in units:
        is_citation_only = unit.kind == "sentence" and unit.cites and len(re.findall(r"\w+", unit.text)) <= 1
        if not is_citation_only or not kept_units:
            kept_units.append(unit)
            continue
        block = kept_units[-1].block
        for at, earlier in enumerate(kept_units):
            if earlier.block == block and earlier.kind in ("row", "code", "sentence") and not earlier.cites:
                kept_units[at] = earlier.with_cites(unit.cites)
    return kept_units


def _share_citations(units: Sequence[Unit]) -> list[Unit]:
    """Gives units without a citation the next one of their paragraph or list, and rows that of the line above."""
    shared: list[Unit] = []
    for _, group in groupby(units, key=lambda unit: unit.block):
        block = list(group)
        above = shared[-1].cites if shared and block[0].kind in ("head", "row") else ()
        for at in reversed(range(len(block))):
            unit = block[at]
            later = block[at + 1].cites if at + 1 < len(block) else ()
            cites = later if unit.kind == "sentence" else above
            if cites and not unit.cites and unit.kind in ("sentence", "row", "code") and not unit.introduces:
                block[at] = unit.with_cites(cites)
        shared += block
    return shared
