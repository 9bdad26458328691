"""Splits passages and answers into pieces: sentences, list items, table rows, headings, code.

Every piece has its span, so that quotes are copied from the text character by character.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["sentence", "head", "rule", "row", "heading", "code"]

LONG_SENTENCE = 320
"""Longer sentences are mostly lines without full stops and are split at their line ends."""
LOOK_BACK = 12
"""Characters before a full stop that are searched for an abbreviation."""

MARKS = r"(?:\[\s*\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*\s*\](?!\()|\u3010\d{1,3}\u3011)"
"""Citations: [1], [1, 2], [1-3], but not the link "[1](...)"."""
_END = re.compile(
    r"(?P<stop>(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019\u00bb)*_`]*+)"
    rf"(?P<marks>(?:\s*{MARKS})*+)"
    r"(?=\s+[\"'\u201c\u2018\u00ab(\[*_`]*[^\sa-z\u00df-\u00f6\u00f8-\u00ff])"
    rf"|(?<=\s)[.!?](?=\s)|[\u3002\uff01\uff1f\uff61]+[\u300d\u300f\uff09]*(?:\s*{MARKS})*"
)
"""A stop with its citations before anything but a small letter; a stop on its own; Chinese and Japanese stops."""
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|e\.g|i\.e|cf|al|No|Nr|Fig|Figs|Tab|Eq|Sec|Ch|Vol|pp|ca"
    r"|approx|Inc|Ltd|Co|Corp|z\.B|d\.h|u\.a|bzw|usw|Abb|t\.ex|bl\.a|dvs|kl|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct"
    r"|Nov|Dec)\.$"
)
_DAY = re.compile(r"(?:^|[^\d.,])\d{1,2}\.$")
_MONTH = re.compile(r"\s+(?:Jan|Feb|M\u00e4r|Mar|Apr|Ma[iyj]|Jun|Jul|Aug|Sep|O[kc]t|Nov|De[cz])")
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S|^\s*(?:\*\*|__)[^*_]+(?:\*\*|__)\s*+:?\s*+$")
_RULE = re.compile(r"^\s*+\|?\s*+:?-{2,}+:?\s*+(?:\|\s*+:?-{2,}+:?\s*+)*+\|?\s*+$")
_ROW = re.compile(r"^\s*\|.*\|")
_ITEM = re.compile(r"^\s*(?:[-*+\u2022\u2013]|\d{1,3}[.)])\s+(?=\S)")
_LABEL = re.compile(r"^\s*\S[^\n:]{0,40}:\s+\S")


class Piece(NamedTuple):
    """`text[start:end]` without surrounding white space. Pieces of one paragraph, list or table have the same block;
    `marker` is the bullet or number of a list item."""

    kind: Kind
    start: int
    end: int
    block: int
    marker: str = ""


class _Line(NamedTuple):
    start: int
    end: int
    text: str


_RawPiece = tuple[Kind, int, int, str]


def split_pieces(text: str) -> list[Piece]:
    """The pieces in order. They hold every character except white space and list markers."""
    pieces: list[Piece] = []
    lines = list(_iterate_lines(text))
    block, at = 0, 0
    while at < len(lines):
        count, parts = _split_block(text, lines[at:]) if lines[at].text.strip() else (1, [])
        for kind, first, last, marker in parts:
            start, end = _trim_span(text, first, last)
            if end > start:
                pieces.append(Piece(kind, start, end, block, marker))
        at, block = at + count, block + 1
    return pieces


def _split_block(text: str, lines: Sequence[_Line]) -> tuple[int, list[_RawPiece]]:
    """The number of lines of the first block, and its pieces."""
    first = lines[0].text
    if _FENCE.match(first):
        count = next((n for n in range(1, len(lines)) if _FENCE.match(lines[n].text)), len(lines) - 1) + 1
        return count, [("code", lines[0].start, lines[count - 1].end, "")]
    if _HEADING.match(first):
        return 1, [("heading", lines[0].start, lines[0].end, "")]
    if _ROW.match(first):
        count = _count_lines(lines, lambda line: bool(_ROW.match(line) or _RULE.match(line)))
        return count, list(_split_table(lines[:count]))
    if _ITEM.match(first):
        count = _count_lines(lines, lambda line: bool(line.strip()) and not _starts_block(line))
        return count, list(_split_list(text, lines[:count]))
    count = _count_lines(lines, lambda line: bool(line.strip()) and not _starts_block(line) and not _ITEM.match(line))
    return count, list(_split_sentences(text, lines[:count], ""))


def _count_lines(lines: Sequence[_Line], belongs: Callable[[str], bool]) -> int:
    """Counts the lines, from the first on, that belong together."""
    return next((n for n in range(1, len(lines)) if not belongs(lines[n].text)), len(lines))


def _starts_block(line: str) -> bool:
    return bool(_FENCE.match(line) or _HEADING.match(line) or _ROW.match(line))


def _split_table(lines: Sequence[_Line]) -> Iterator[_RawPiece]:
    """Yields the head, the rule and the rows of a table."""
    ruled = len(lines) > 1 and bool(_RULE.match(lines[1].text))
    for number, line in enumerate(lines):
        kind: Kind = "row"
        if _RULE.match(line.text):
            kind = "rule"
        elif ruled and number == 0:
            kind = "head"
        yield kind, line.start, line.end, ""


def _split_list(text: str, lines: Sequence[_Line]) -> Iterator[_RawPiece]:
    starts = [number for number, line in enumerate(lines) if _ITEM.match(line.text)]
    for start, end in pairwise((*starts, len(lines))):
        item = _ITEM.match(lines[start].text)
        assert item is not None
        first = lines[start]._replace(start=lines[start].start + item.end(), text=lines[start].text[item.end() :])
        yield from _split_sentences(text, [first, *lines[start + 1 : end]], item[0])


def _split_sentences(text: str, lines: Sequence[_Line], marker: str) -> Iterator[_RawPiece]:
    """Yields the sentences of a paragraph or list item. Lines of the form "name: value" are one sentence each."""
    labelled = sum(1 for line in lines if _LABEL.match(line.text))
    if not marker and labelled > 1 and labelled == len(lines):
        for line in lines:
            yield "sentence", line.start, line.end, ""
        return
    for start, end in _split_at_stops(text, lines[0].start, lines[-1].end):
        for part in _split_at_lines(text, start, end):
            yield "sentence", *part, marker
            marker = ""


def _split_at_stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in _END.finditer(text, start, end):
        stop = match.end("stop") if match["stop"] else match.end()
        if match["stop"] == "." and not match["marks"]:
            before = text[max(start, stop - LOOK_BACK) : stop]
            if _ABBREVIATION.search(before) or (_DAY.search(before) and _MONTH.match(text, stop)):
                continue
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end


def _split_at_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields a sentence; an overlong one is split at line ends before capitals and digits."""
    if end - start <= LONG_SENTENCE:
        yield start, end
        return
    for at in range(start, end - 1):
        if text[at] == "\n" and (text[at + 1].isupper() or text[at + 1].isdigit()):
            yield start, at
            start = at + 1
    yield start, end


def _iterate_lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, start + len(line), line)
        start += len(line) + 1


def _trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
