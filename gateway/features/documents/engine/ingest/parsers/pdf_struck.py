"""Text of a PDF's page that is struck out, by a line or an annotation, marked in its blocks as `~~100~~`."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.text.struck import strike_out
from gateway.features.documents.engine.ingest.parsers.draft import Block
from gateway.features.documents.engine.ingest.parsers.pdf_marks import mark_letters
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
_INVISIBLE = re.compile("00.{6}|ffffffff", re.IGNORECASE)


class _Span(NamedTuple):
    """What strikes text out, or the part of a line that it covers, by its sides."""

    left: float
    right: float
    top: float
    bottom: float


def mark_struck_text(blocks: Sequence[Block], page: "ParsedPage") -> tuple[list[Block], bool]:
    """The blocks of a page with marks around what is struck out, and whether all that is could be marked."""
    lines, annotated = list(_iter_lines(page)), list(_iter_annotated(page))
    if not lines and not annotated:
        return list(blocks), True
    items = [one for one in page.text_items if one.text.strip() and not get_turn(one)]
    spans, is_complete = _find_spans(items, lines, annotated)
    struck = {id(word): _find_struck(word, spans) for item in items for word in item.words if id(word) in spans}
    marked, is_whole = mark_letters(blocks, items, struck, strike_out)
    return marked, is_complete and is_whole


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


def _find_struck(word: "WordBox", spans: dict[int, list[_Span]]) -> list[bool]:
    """Which characters of a word are struck. Where each one is, is estimated from the word's width."""
    own = spans.get(id(word), ())
    step = word.width / max(len(word.text), 1)
    middles = [word.x + step * (place + 0.5) for place in range(len(word.text))]
    return [any(span.left <= middle <= span.right for span in own) for middle in middles]
