"""Text of a PDF's page that is struck out, by a line or an annotation, marked in its blocks as `~~100~~`."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from agent.text.struck import strike_out
from gateway.features.documents.engine.ingest.parsers.draft import Block
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import ParsedPage, TextItem, WordBox

_STRIKING = frozenset({"strikeout", "redact"})
"""Annotations by which somebody has taken text out."""
_LEVEL = 0.5
"""Points by which a line may rise or fall."""
_FLAT = 6.0
"""Points: a higher filled box is more than a line through a text."""
_UPPER, _LOWER = 0.3, 0.72
"""Between which shares of a text's height from its top a line goes through it; an underline is lower."""
_THICKEST = 0.25
"""Share of a text's height: a thicker line colours the text or covers it."""
_BEYOND = 0.6
"""Text heights by which a line may go on beside its text: rules and the lines of charts go on for longer."""
_WHOLE = 0.65
"""Share of a word that is struck from which the whole is: lines end a little before or behind it."""
_INVISIBLE = re.compile("00.{6}|ffffffff", re.IGNORECASE)
_CONTEXTS = ((12, 6), (4, 2), (0, 0))
"""How many letters before and behind a struck text are compared to find it in a block."""
_LINE_STEP = 0.5
"""Share of a text's height within which texts are on one line."""
_CELL = re.compile(r"[^|\n]+")


class _Span(NamedTuple):
    """What strikes text out, or the part of a line that it covers, by its sides."""

    left: float
    right: float
    top: float
    bottom: float


class _Letter(NamedTuple):
    letter: str
    is_struck: bool


def mark_struck_text(blocks: Sequence[Block], page: "ParsedPage") -> tuple[list[Block], bool]:
    """The blocks of a page with marks around what is struck out, and whether all that is could be marked."""
    marked = list(blocks)
    lines, annotated = list(_iter_lines(page)), list(_iter_annotated(page))
    if not lines and not annotated:
        return marked, True
    items = [one for one in page.text_items if one.text.strip() and not get_turn(one)]
    spans, is_complete = _find_spans(items, lines, annotated)
    left = {id(item) for item in items if any(id(word) in spans for word in item.words)}
    for place, block in enumerate(marked if left else ()):
        own = [item for item in items if _is_inside(item, block)]
        if left.isdisjoint(map(id, own)):
            continue
        left.difference_update(map(id, own))
        letters = [one for item in _order(own) for word in item.words for one in _iter_letters(word, spans)]
        text, is_whole = _mark(block.text, letters)
        marked[place] = block._replace(text=text)
        is_complete = is_complete and is_whole
    return marked, is_complete and not left


def _iter_lines(page: "ParsedPage") -> Iterator[_Span]:
    """Yields the level lines that a page draws, also those that are flat boxes."""
    if (graphics := page.vector_graphics) is None:
        return
    for line in graphics.lines:
        if line.stroke and abs(line.y1 - line.y2) <= _LEVEL and not _INVISIBLE.match(line.stroke_color or ""):
            half = (line.stroke_width or 0) / 2
            left, right = sorted((line.x1, line.x2))
            yield _Span(left, right, line.y1 - half, line.y1 + half)
    for shape in graphics.shapes:
        x, y, width, height = shape.bbox
        if shape.fill and height <= min(_FLAT, width) and not _INVISIBLE.match(shape.fill_color or ""):
            yield _Span(x, x + width, y, y + height)


def _iter_annotated(page: "ParsedPage") -> Iterator[_Span]:
    for one in page.annotations or ():
        if one.subtype in _STRIKING:
            for rect in one.quadpoint_rects or filter(None, [one.rect]):
                yield _Span(rect.x, rect.x + rect.width, rect.y, rect.y + rect.height)


def _find_spans(
    items: Iterable["TextItem"], lines: Iterable[_Span], annotated: Iterable[_Span]
) -> tuple[dict[int, list[_Span]], bool]:
    """What strikes each word, by its `id`, and whether every annotation is on words of one line."""
    words = sorted((word for item in items for word in item.words), key=lambda word: word.y)
    tops = [word.y for word in words]
    tallest = max((word.height for word in words), default=0)

    def list_crossed(span: _Span) -> list["WordBox"]:
        near = words[bisect_left(tops, span.top - tallest) : bisect_left(tops, span.bottom)]
        return [word for word in near if word.x < span.right and span.left < word.x + word.width]

    spans: dict[int, list[_Span]] = {}
    for line in lines:
        struck = [word for word in list_crossed(line) if _goes_through(line, word)]
        if struck and _is_as_long(line, struck):
            for word in struck:
                spans.setdefault(id(word), []).append(line)
    is_complete = True
    for one in annotated:
        struck = [word for word in list_crossed(one) if one.top <= word.y + word.height / 2 <= one.bottom]
        is_line = (
            bool(struck) and max(word.y for word in struck) - min(word.y for word in struck) < struck[0].height / 2
        )
        is_complete = is_complete and is_line  # of several lines, only parts may be meant
        for word in struck if is_line else ():
            spans.setdefault(id(word), []).append(one)
    return spans, is_complete


def _goes_through(line: _Span, word: "WordBox") -> bool:
    share = ((line.top + line.bottom) / 2 - word.y) / max(word.height, 1)
    return bool(_UPPER <= share <= _LOWER and line.bottom - line.top <= _THICKEST * word.height)


def _is_as_long(line: _Span, words: Sequence["WordBox"]) -> bool:
    """Whether a line begins and ends where the words that it crosses do."""
    slack = _BEYOND * max(word.height for word in words)
    left, right = min(word.x for word in words), max(word.x + word.width for word in words)
    return bool(left - slack <= line.left and line.right <= right + slack)


def _is_inside(item: "TextItem", block: Block) -> bool:
    if block.bbox is None or block.layout == "image":
        return False
    left, top, right, bottom = block.bbox
    x, y = item.x + item.width / 2, item.y + item.height / 2
    return bool(left - 1 <= x <= right + 1 and top - 1 <= y <= bottom + 1)


def _order(items: Iterable["TextItem"]) -> list["TextItem"]:
    """Texts from line to line, and each line from the left."""
    ordered: list[list[TextItem]] = []
    for item in sorted(items, key=lambda one: (one.y, one.x)):
        if not ordered or item.y - ordered[-1][0].y > _LINE_STEP * max(ordered[-1][0].height, 1):
            ordered.append([])
        ordered[-1].append(item)
    return [item for line in ordered for item in sorted(line, key=lambda one: one.x)]


def _iter_letters(word: "WordBox", spans: dict[int, list[_Span]]) -> Iterator[_Letter]:
    """Yields the letters and digits of a word. Where each one is, is estimated from the word's width."""
    own = spans.get(id(word), ())
    step = word.width / max(len(word.text), 1)
    middles = [word.x + step * (place + 0.5) for place in range(len(word.text))]
    struck = [any(span.left <= middle <= span.right for span in own) for middle in middles]
    share = sum(struck) / max(len(struck), 1)
    for sign, is_struck in zip(word.text, struck, strict=True):
        is_struck_out = share >= _WHOLE or (is_struck and share > 1 - _WHOLE)
        yield from (_Letter(letter, is_struck_out) for letter in _fold(sign))


def _fold(sign: str) -> str:
    """The letters and digits that a character stands for: raised figures are plain ones."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", sign).casefold()))


def _mark(text: str, letters: Sequence[_Letter]) -> tuple[str, bool]:
    """A block's text with marks, and whether all of its struck letters were found in it."""
    places = [(letter, at) for at, sign in enumerate(text) for letter in _fold(sign)]
    written, wanted = "".join(one for one, _ in places), "".join(one.letter for one in letters)
    is_whole = True
    struck: set[int] = set()
    if written == wanted:
        struck.update(at for (_, at), one in zip(places, letters, strict=True) if one.is_struck)
    else:
        for start, end in _iter_runs(letters):
            first = _find(written, wanted, start, end)
            is_whole = is_whole and first >= 0
            struck.update(at for _, at in places[first : first + end - start] if first >= 0)
    return _CELL.sub(lambda match: _mark_cell(match[0], match.start(), struck), text), is_whole


def _iter_runs(letters: Sequence[_Letter]) -> Iterator[tuple[int, int]]:
    place = 0
    for is_struck, group in groupby(letters, key=lambda one: one.is_struck):
        start, place = place, place + len(list(group))
        if is_struck:
            yield start, place


def _find(written: str, wanted: str, start: int, end: int) -> int:
    """Where the letters from `start` to `end` are in what is written, with those around them; -1 if that is not
    certain."""
    for before, behind in _CONTEXTS:
        first = max(0, start - before)
        piece = wanted[first : end + behind]
        at = written.find(piece)
        if at >= 0 and written.find(piece, at + 1) < 0:
            return at + start - first
    return -1


def _mark_cell(cell: str, offset: int, struck: Container[int]) -> str:
    """Marks the struck letters of a line or of a table's cell, with the signs that belong to them."""
    letters = [at for at, sign in enumerate(cell) if sign.isalnum()]
    marked, place = "", 0
    for is_struck, group in groupby(letters, key=lambda at: at + offset in struck):
        if not is_struck:
            continue
        first, *rest = group
        start, end = _widen(cell, first, [first, *rest][-1] + 1)
        marked += cell[place:start] + strike_out(cell[start:end])
        place = end
    return marked + cell[place:]


def _widen(cell: str, start: int, end: int) -> tuple[int, int]:
    """Takes in the signs beside a text as far as they stand between it and white space."""
    head, tail = re.search(r"(?:^|(?<=\s))[^\w\s]+$", cell[:start]), re.match(r"[^\w\s]+(?=\s|$)", cell[end:])
    return start - len(head[0] if head else ""), end + len(tail[0] if tail else "")
