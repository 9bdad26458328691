"""A text as its smallest parts that can be quoted or dropped: sentences, list items, table rows, headings, code.

The same for passages and for answers. Every piece knows its place, so that what is quoted is cut from the text itself.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["sentence", "head", "rule", "row", "heading", "code"]

LONG_SENTENCE = 320
"""Longer ones are mostly lines without full stops: they are cut at their line ends."""
LOOK_BACK = 12
"""Characters before a full stop in which an abbreviation is looked for."""

MARKS = r"(?:\[\s*\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*\s*\](?!\()|\u3010\d{1,3}\u3011)"
"""Citations: [1], [1, 2], [1-3]; a link "[1](...)" is none."""
_END = re.compile(
    r"(?P<stop>(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019\u00bb)*_`]*+)"
    rf"(?P<marks>(?:\s*{MARKS})*+)"
    r"(?=\s+[\"'\u201c\u2018\u00ab(\[*_`]*[^\sa-z\u00df-\u00f6\u00f8-\u00ff])"
    rf"|(?<=\s)[.!?](?=\s)|[\u3002\uff01\uff1f\uff61]+[\u300d\u300f\uff09]*(?:\s*{MARKS})*"
)
"""A stop with the citations behind it, before something that is no small letter; one that stands alone; the stops of
Chinese and Japanese."""
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|e\.g|i\.e|cf|al|No|Nr|Fig|Figs|Tab|Eq|Sec|Ch|Vol|pp|ca"
    r"|approx|Inc|Ltd|Co|Corp|z\.B|d\.h|u\.a|bzw|usw|Abb|t\.ex|bl\.a|dvs|kl|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct"
    r"|Nov|Dec)\.$"
)
_DAY = re.compile(r"(?:^|[^\d.,])\d{1,2}\.$")
_MONTH = re.compile(r"\s+(?:Jan|Feb|M\u00e4r|Mar|Apr|Ma[iyj]|Jun|Jul|Aug|Sep|O[kc]t|Nov|De[cz])")
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S|^\s*(?:\*\*|__)[^*_]+(?:\*\*|__)\s*:?\s*$")
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_ROW = re.compile(r"^\s*\|.*\|")
_ITEM = re.compile(r"^\s*(?:[-*+\u2022\u2013]|\d{1,3}[.)])\s+(?=\S)")
_LABEL = re.compile(r"^\s*\S[^\n:]{0,40}:\s+\S")


class Piece(NamedTuple):
    """`text[start:end]`, without white space at its ends. Pieces of one paragraph, list or table share a block;
    `marker` is what stands before it in its list."""

    kind: Kind
    start: int
    end: int
    block: int
    marker: str = ""


class _Line(NamedTuple):
    start: int
    end: int
    text: str


_Found = tuple[Kind, int, int, str]


def pieces(text: str) -> list[Piece]:
    """The pieces in order. Every character that is no white space and no list marker belongs to one of them."""
    found: list[Piece] = []
    lines = list(_lines(text))
    block, at = 0, 0
    while at < len(lines):
        count, parts = _block(text, lines[at:]) if lines[at].text.strip() else (1, [])
        for kind, first, last, marker in parts:
            start, end = _trimmed(text, first, last)
            if end > start:
                found.append(Piece(kind, start, end, block, marker))
        at, block = at + count, block + 1
    return found


def _block(text: str, lines: Sequence[_Line]) -> tuple[int, list[_Found]]:
    """How many lines the block takes that the first one begins, and its pieces."""
    first = lines[0].text
    if _FENCE.match(first):
        count = next((n for n in range(1, len(lines)) if _FENCE.match(lines[n].text)), len(lines) - 1) + 1
        return count, [("code", lines[0].start, lines[count - 1].end, "")]
    if _HEADING.match(first):
        return 1, [("heading", lines[0].start, lines[0].end, "")]
    if _ROW.match(first):
        count = _run(lines, lambda line: bool(_ROW.match(line) or _RULE.match(line)))
        return count, list(_table(lines[:count]))
    if _ITEM.match(first):
        count = _run(lines, lambda line: bool(line.strip()) and not _opens(line))
        return count, list(_list(text, lines[:count]))
    count = _run(lines, lambda line: bool(line.strip()) and not _opens(line) and not _ITEM.match(line))
    return count, list(_sentences(text, lines[:count], ""))


def _run(lines: Sequence[_Line], belongs: Callable[[str], bool]) -> int:
    """How many lines from the first on belong together."""
    return next((n for n in range(1, len(lines)) if not belongs(lines[n].text)), len(lines))


def _opens(line: str) -> bool:
    return bool(_FENCE.match(line) or _HEADING.match(line) or _ROW.match(line))


def _table(lines: Sequence[_Line]) -> Iterator[_Found]:
    """Rows, with the rule and the head above it where there is one."""
    ruled = len(lines) > 1 and bool(_RULE.match(lines[1].text))
    for number, line in enumerate(lines):
        kind: Kind = "row"
        if _RULE.match(line.text):
            kind = "rule"
        elif ruled and number == 0:
            kind = "head"
        yield kind, line.start, line.end, ""


def _list(text: str, lines: Sequence[_Line]) -> Iterator[_Found]:
    starts = [number for number, line in enumerate(lines) if _ITEM.match(line.text)]
    for start, end in pairwise((*starts, len(lines))):
        item = _ITEM.match(lines[start].text)
        assert item is not None
        first = lines[start]._replace(start=lines[start].start + item.end(), text=lines[start].text[item.end() :])
        yield from _sentences(text, [first, *lines[start + 1 : end]], item[0])


def _sentences(text: str, lines: Sequence[_Line], marker: str) -> Iterator[_Found]:
    """The sentences of lines that belong together. Lines that each say "name: value" are one each."""
    labelled = sum(1 for line in lines if _LABEL.match(line.text))
    if not marker and labelled > 1 and labelled == len(lines):
        for line in lines:
            yield "sentence", line.start, line.end, ""
        return
    for start, end in _stops(text, lines[0].start, lines[-1].end):
        for part in _at_lines(text, start, end):
            yield "sentence", *part, marker
            marker = ""


def _stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
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


def _at_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence, cut at line ends before capitals and figures where it is too long to be one."""
    if end - start <= LONG_SENTENCE:
        yield start, end
        return
    for at in range(start, end - 1):
        if text[at] == "\n" and (text[at + 1].isupper() or text[at + 1].isdigit()):
            yield start, at
            start = at + 1
    yield start, end


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, start + len(line), line)
        start += len(line) + 1


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
