"""The text of a PDF's page as PDFium has it: its raised and lowered figures, the words of its letter-spaced lines, and
characters that no font names."""

import ctypes
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median_low
from typing import Any, NamedTuple

from agent.text.superscripts import RAISED_SIGNS, write_moved

_SMALLER = 0.9
_HIGHER = 0.2
_LOWER, _LOWEST = 0.145, 0.5
"""A raised or lowered figure is smaller than the text before it, and stands higher or lower by these shares of its
size. TeX lowers by 0.15."""
_LONGEST_MARK = 2
"""Digits of the mark of a note directly before a figure."""
_MAX_MARKS = 200
"""Such marks of a page; each is looked for in its blocks, and a page with more holds data."""
_LINE_END = "\r\n"
"""PDFium ends a line also behind a raised text."""
_NEAR = 0.35
"""The widest gap between a figure and what is moved behind it, as a share of its size."""
_SPACE = 0.15
"""The narrowest gap that parts words, as a share of a line's size."""
_CONTEXT = 12
MAX_CHARACTERS = 200_000
"""Of a page; a denser one holds data, not text."""
_SAMPLED = 4
"""Of so many characters one is asked for its map; a page without any unknown one costs a tenth of a millisecond so."""
_UNKNOWN_SHARE = 0.05
_MAX_UNKNOWN = 100
"""Below both, unknown characters are bullets and ligatures."""
_SPACED = re.compile(r"(?<![^\r\n])(?=[^\r\n]*[^\W\d_])[^\r\n\s]{1,2}(?:[ ]+[^\r\n\s]{1,2}){3,}(?![^\r\n])")
"""A line of four or more pieces of one or two characters, with a letter."""
_WIDER = 1.6
"""How much wider gaps between words are than those between the letters of a letter-spaced line: both grow alike, and
a space is added to the former."""
_WORD_SPACE = 0.2
"""The narrowest space of a font, as a share of its size. Pieces as far apart as that may be columns, unless a gap on
either side of a space shows that they are letters."""


class FloatBox(ctypes.Structure):
    """The sides of a character with the space that its font gives it."""

    _fields_ = tuple((side, ctypes.c_float) for side in ("left", "top", "right", "bottom"))


class MovedFigure(NamedTuple):
    """A raised or lowered figure: what stands before it on the page, the figure, what follows, how far it is raised
    (below 0 it is lowered), and whether a gap parts it from what follows."""

    before: str
    text: str
    after: str
    rise: float
    is_parted: bool


class PageTextFacts(NamedTuple):
    """A page's text and what is odd in it: its moved figures in their order, how many of its characters no font names,
    and the words of lines that are written as letters in it."""

    moved: Sequence[MovedFigure] = ()
    unknown: int = 0
    written: str = ""
    closed: Sequence[str] = ()

    @property
    def is_doubtful(self) -> bool:
        """Whether so many characters are unknown that words are."""
        return self.unknown > min(_MAX_UNKNOWN, _UNKNOWN_SHARE * len(self.written))


class _Glyph(NamedTuple):
    """A character's size, its base line, and its sides."""

    size: float
    base: float
    left: float
    right: float


class PageText:
    """The text of an open page. `written` has a character for each of PDFium's: those beyond 16 bits are halves."""

    def __init__(self, library: ctypes.CDLL, page_text: Any) -> None:
        self._library = library
        self._text = page_text
        count = min(library.FPDFText_CountChars(page_text), MAX_CHARACTERS)
        buffer = (ctypes.c_uint16 * (count + 1))()
        length = library.FPDFText_GetText(page_text, 0, count, buffer) if count > 0 else 0
        self.written = "".join(map(chr, buffer[: max(0, length - 1)]))

    def read_facts(self) -> PageTextFacts:
        """What stands out of the text."""
        lines = ((line[0], self._close_line(line.start(), line[0])) for line in _SPACED.finditer(self.written))
        closed = [words for line, words in lines if words != line]
        return PageTextFacts(list(self._iter_moved()), self._count_unknown(), self.written, closed)

    def _close_line(self, start: int, line: str) -> str:
        """The words of a line whose letters stand apart; the line itself if it has spaces of the file, or is not from
        one text of it.

        Gaps of two widths show the words, but those of figures only where they are narrower than spaces. Even gaps are
        those of a word if they are as narrow, all is letters, and the file writes spaces elsewhere.
        """
        places = [start + at for at, sign in enumerate(line) if not sign.isspace()]
        if any(self._is_written(start + at) for at, sign in enumerate(line) if sign.isspace()):
            return line
        indexes = [self._find_index(place) for place in places]
        if len({self._library.FPDFText_GetTextObject(self._text, index) for index in indexes}) > 1:
            return line
        boxes = [FloatBox() for _ in indexes]
        for index, box in zip(indexes, boxes, strict=True):
            self._library.FPDFText_GetLooseCharBox(self._text, index, ctypes.byref(box))
        gaps = [after.left - before.right for before, after in pairwise(boxes)]
        even = median_low(gaps)
        size = self._library.FPDFText_GetFontSize(self._text, indexes[0])
        is_narrow = even < _WORD_SPACE * size
        wide = max(_WIDER * even, even + _SPACE * size) if is_narrow else 2 * even + _SPACE * size
        if not 0 < even <= size:
            return line
        letters = [self.written[place] for place in places]
        if max(gaps) <= wide:
            pieces = line.split()
            if not (is_narrow and all(one.isalpha() and len(one) == 1 for one in pieces) and self._writes_spaces()):
                return line
        elif not is_narrow and any(letter.isdigit() for letter in letters):
            return line
        spaces = ("", *(" " if gap > wide else "" for gap in gaps))
        return "".join(space + letter for space, letter in zip(spaces, letters, strict=True))

    def _writes_spaces(self) -> bool:
        """Whether any space is in the file itself."""
        return any(sign == " " and self._is_written(place) for place, sign in enumerate(self.written))

    def _is_written(self, place: int) -> bool:
        return not self._library.FPDFText_IsGenerated(self._text, self._find_index(place))

    def _count_unknown(self) -> int:
        """Counts the characters that no map of their font gives: PDFium guesses them by their codes, mostly wrong."""
        is_guessed = self._library.FPDFText_HasUnicodeMapError
        length = len(self.written)
        private = sum(map(_is_private, self.written))
        if not any(is_guessed(self._text, place) == 1 for place in range(0, length, _SAMPLED)):
            return private
        return private + sum(bool(is_guessed(self._text, place) == 1) for place in range(length))

    def _iter_moved(self) -> Iterator[MovedFigure]:
        written = self.written
        place, marks = 1, 0
        while place < len(written):
            end, rise = place, 0.0
            if written[place] in RAISED_SIGNS and not written[place - 1].isspace():
                end, rise = self._find_end(place)
            elif written[place] in RAISED_SIGNS and marks < _MAX_MARKS:
                end, rise = self._find_end_of_mark(place)
                marks += end > place
            if end > place:
                before, text, after = written[max(0, place - _CONTEXT) : place], written[place:end], written[end:]
                if written[place - 1].isspace():
                    after = after.removeprefix(_LINE_END)
                figure = MovedFigure(before, text, after[:_CONTEXT], rise, self._has_gap(end))
                if write_moved(rise, before, text, figure.after) != text:
                    yield figure
            place = max(end, place + 1)

    def _find_end(self, start: int) -> tuple[int, float]:
        """Where the raised or lowered figure ends that begins at `start`, and how far it is raised; `start` itself if
        it stands on the line."""
        at = self._find_index(start)
        measure = self._library.FPDFText_GetFontSize
        if at < 1 or measure(self._text, at) > _SMALLER * measure(self._text, at - 1):  # most figures: two calls
            return start, 0
        before, first = (self._read_glyph(place) for place in (start - 1, start))
        rise, gap = first.base - before.base, first.left - before.right
        is_moved = _HIGHER * before.size <= rise < before.size or _LOWER <= -rise / before.size < _LOWEST
        if not is_moved or abs(gap) > _NEAR * before.size:
            return start, 0
        end = start + 1
        while end < len(self.written) and self.written[end] in RAISED_SIGNS:
            glyph = self._read_glyph(end)
            if abs(glyph.base - first.base) > 0.1 * first.size or abs(glyph.size - first.size) > 0.01:
                break
            end += 1
        return end, rise

    def _find_end_of_mark(self, start: int) -> tuple[int, float]:
        """Where the mark of a note ends that begins at `start`, directly before a figure, and how far it is raised;
        `start` itself if there is none."""
        size = self._library.FPDFText_GetFontSize(self._text, self._find_index(start))
        for end in range(start + 1, start + _LONGEST_MARK + 1):
            place = end + len(_LINE_END) * self.written.startswith(_LINE_END, end)
            if not self.written[place : place + 1].isdigit():
                break
            if size <= _SMALLER * self._library.FPDFText_GetFontSize(self._text, self._find_index(place)):
                first, last, figure = (self._read_glyph(one) for one in (start, end - 1, place))
                rise, gap = first.base - figure.base, figure.left - last.right
                is_moved = _HIGHER * figure.size <= rise < figure.size and abs(gap) <= _NEAR * figure.size
                return (end, rise) if is_moved else (start, 0)
        return start, 0

    def _has_gap(self, place: int) -> bool:
        if not self.written[place : place + 1].strip():
            return False
        last, following = (self._read_glyph(at) for at in (place - 1, place))
        return following.left - last.right > _SPACE * last.size

    def _read_glyph(self, place: int) -> _Glyph:
        at = self._find_index(place)
        x, y, left, right, bottom, top = (ctypes.c_double() for _ in range(6))
        self._library.FPDFText_GetCharOrigin(self._text, at, ctypes.byref(x), ctypes.byref(y))
        self._library.FPDFText_GetCharBox(self._text, at, *map(ctypes.byref, (left, right, bottom, top)))
        return _Glyph(self._library.FPDFText_GetFontSize(self._text, at), y.value, left.value, right.value)

    def _find_index(self, place: int) -> int:
        """PDFium's number of the character at a place of the text."""
        return int(self._library.FPDFText_GetCharIndexFromTextIndex(self._text, place))


def _is_private(letter: str) -> bool:
    """Whether a character means something in its font alone. Signs of symbol fonts, such as bullets, do not count."""
    return "\ue000" <= letter <= "\uf8ff" and not "\uf000" <= letter <= "\uf0ff"
