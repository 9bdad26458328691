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
_EXACT = 0.03
"""Share of a line's size within which gaps are the same."""
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
        self._places: Sequence[int] = range(len(self.written))
        """The place of each character in PDFium's own text."""
        self.is_parted = 3 * self.written.count(_LINE_END) > len(self.written) - 2 * self.written.count(_LINE_END)
        """Whether PDFium ends most lines behind one or two letters: it takes a short page for one that is written from
        the top to the bottom."""
        if self.is_parted:
            self._join_lines()

    def _join_lines(self) -> None:
        """Writes letters that stand beside each other in one line, as far apart as they are."""
        pieces, places = [], []
        start = 0
        for match in re.finditer(_LINE_END, self.written):
            end = self._find_line_end(match.start()) if start < match.start() else _LINE_END
            pieces += [self.written[start : match.start()], end]
            places += [*range(start, match.start()), *range(match.start(), match.start() + len(end))]
            start = match.end()
        self.written = "".join([*pieces, self.written[start:]])
        self._places = [*places, *range(start, places[-1] + len(self.written) + 1)][: len(self.written)]

    def _find_line_end(self, place: int) -> str:
        """What is between the characters on either side of the end of a line."""
        following = place + len(_LINE_END)
        if not self.written[following : following + 1].strip():
            return _LINE_END
        before, after = self._read_glyph(place - 1), self._read_glyph(following)
        size = max(before.size, after.size)
        gap = self._read_sides(following).left - self._read_sides(place - 1).right
        if abs(after.base - before.base) > _LOWEST * size or not -_NEAR * size <= gap <= size:
            return _LINE_END
        return "" if gap <= _SPACE * size else " "

    def read_facts(self) -> PageTextFacts:
        """What stands out of the text."""
        lines = ((line[0], self._close_line(line.start(), line[0])) for line in _SPACED.finditer(self.written))
        closed = [words for line, words in lines if words != line]
        if self.is_parted:
            closed += [line for line in join_halves(self.written).split(_LINE_END) if len(line.strip()) > 1]
        return PageTextFacts(list(self._iter_moved()), self._count_unknown(), self.written, closed)

    def _close_line(self, start: int, line: str) -> str:
        """The words of a line whose letters stand apart; the line itself if it is not from one text of the file, or has
        spaces of it, and its letters are not exactly as far apart.

        Gaps of two widths show the words, but those of figures only where they are narrower than spaces. Even gaps are
        those of a word if they are as narrow, all is letters, and the file writes spaces elsewhere.
        """
        places = [start + at for at, sign in enumerate(line) if not sign.isspace()]
        boxes = [self._read_sides(place) for place in places]
        gaps = [after.left - before.right for before, after in pairwise(boxes)]
        letters = [self.written[place] for place in places]
        size = self._library.FPDFText_GetFontSize(self._text, self._find_index(places[0]))
        even = median_low(gaps)
        is_narrow = even < _WORD_SPACE * size
        wide = max(_WIDER * even, even + _SPACE * size) if is_narrow else 2 * even + _SPACE * size
        if not 0 < even <= size:
            return line
        are_spaces = [any(map(self._is_written, range(one + 1, other))) for one, other in pairwise(places)]
        is_exact = _are_exact(
            [gap for gap, is_space in zip(gaps, are_spaces, strict=True) if not is_space], boxes, size
        )
        if any(are_spaces):
            return _write_words(letters, are_spaces) if is_exact else line
        is_exact = _are_exact([gap for gap in gaps if gap <= wide], boxes, size)
        objects = {self._library.FPDFText_GetTextObject(self._text, self._find_index(place)) for place in places}
        if len(objects) > 1 and not is_exact:
            return line
        if max(gaps) <= wide:
            pieces = line.split()
            if not (is_narrow and all(one.isalpha() and len(one) == 1 for one in pieces) and self._writes_spaces()):
                return line
        elif not is_narrow and any(letter.isdigit() for letter in letters):
            return line
        return _write_words(letters, [gap > wide for gap in gaps])

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
        at, before_it = self._find_index(start), self._find_index(start - 1)
        measure = self._library.FPDFText_GetFontSize
        if at < 1 or measure(self._text, at) > _SMALLER * measure(self._text, before_it):  # most figures: two calls
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

    def _read_sides(self, place: int) -> FloatBox:
        """The sides of a character with the space that its font gives it."""
        box = FloatBox()
        self._library.FPDFText_GetLooseCharBox(self._text, self._find_index(place), ctypes.byref(box))
        return box

    def _find_index(self, place: int) -> int:
        """PDFium's number of the character at a place of the text."""
        return int(self._library.FPDFText_GetCharIndexFromTextIndex(self._text, self._places[place]))


def _are_exact(gaps: Sequence[float], boxes: Sequence[FloatBox], size: float) -> bool:
    """Whether letters of several widths are all as far apart, as letter spacing sets them and no columns do."""
    widths = {round((box.right - box.left) / size, 1) for box in boxes}
    return len(gaps) > 1 and len(widths) > 2 and max(gaps) - min(gaps) <= _EXACT * size


def _write_words(letters: Sequence[str], are_apart: Sequence[bool]) -> str:
    spaces = ("", *(" " if is_apart else "" for is_apart in are_apart))
    return "".join(space + letter for space, letter in zip(spaces, letters, strict=True))


def join_halves(text: str) -> str:
    """A text of PDFium with whole characters beyond 16 bits."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_private(letter: str) -> bool:
    """Whether a character means something in its font alone. Signs of symbol fonts, such as bullets, do not count."""
    return "\ue000" <= letter <= "\uf8ff" and not "\uf000" <= letter <= "\uf0ff"
