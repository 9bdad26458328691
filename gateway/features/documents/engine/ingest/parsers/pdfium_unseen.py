"""Letters of a PDF's page that nobody sees: invisible, in the color of what is behind them, covered, or tiny.

Texts that might be hidden are chosen by their color, mode and place. Then the page is drawn with and without them: a
letter is unseen if nothing changes in its place.
"""

import ctypes
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from gateway.features.documents.engine.ingest.parsers.pdfium_objects import Area, Color, PageObjects, TextObject
from gateway.features.documents.engine.ingest.parsers.pdfium_picture import Box, Picture
from gateway.features.documents.engine.ingest.parsers.pdfium_text import MAX_CHARACTERS, FloatBox

UnseenKind = Literal["invisible", "covered", "tiny"]

_TRANSPARENT = 64
"""Opacity, of 255, below which a text is looked at."""
_OPAQUE = 255
_NEAR = 48
"""Difference of colors, of 255, within which a text is looked at."""
_WHITE: Color = (255, 255, 255)
_BAND = 24
"""Points: areas are sorted into bands of a page of this height."""
_MAX_BANDS = 200
_COVER = 0.3
"""Share of a text's height from which a filled path may cover it; rules are thinner."""
_WHOLE = 0.9
"""Share of a text's letters from which it has the color of what is behind it: people guess the rest of a text."""
_NEARLY_ALL = 0.95
"""Share of a page's letters from which it is read as it is: people do not print pages that nobody can read."""
_MAX_COMPARISONS = 400_000
"""Of a text with an area, or of two letters, on a page: half a second. A page with more is read as it is."""
_MAX_PAINTED = 200
"""How often areas may cover a page that is drawn: once takes about ten milliseconds."""
_CELL = 24
"""Points: letters in the same place are in the same cell of this width and height."""
_MAX_CELLS = 600
_SCAN = 0.8
"""Share of a page from which a picture is a scan of it: drawn text below it was put there by OCR."""
_SAMPLED = 8
"""Letters of a text that show whether it repeats what is in its place."""
_OCR_SHARE = 0.3
"""Share of a text's letters that have something to see in their places, from which it repeats the picture there."""

FUNCTIONS: Mapping[str, tuple[Any, ...]] = {"FPDFText_GetUnicode": (ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)}
"""The function of PDFium that is called here alone: what it returns, and what it takes."""


class _TooDenseError(Exception):
    """A page has too much to compare."""


class UnseenLetter(NamedTuple):
    """A letter, its place in the page's text, its middle in points from the top left of the page as it is shown, and
    why nobody sees it."""

    letter: str
    place: int
    x: float
    y: float
    kind: UnseenKind


@dataclass(frozen=True, slots=True)
class UnseenText:
    """The unseen letters of a page, and whether it has invisible text that repeats its pictures: that of an OCR.
    `is_complete` is false where unseen letters may be left in the page."""

    letters: Sequence[UnseenLetter] = ()
    has_ocr_layer: bool = False
    is_complete: bool = True


class _Letter(NamedTuple):
    letter: str
    place: int
    box: Box


class _Hidden(NamedTuple):
    handle: int
    letter: _Letter
    kind: UnseenKind


def find_unseen(library: ctypes.CDLL, page: Any, page_text: Any) -> UnseenText:
    """The letters of an open page that nobody sees. In doubt they are left in it: none where a letter is visible, and
    none of a page that would lose nearly all."""
    objects = PageObjects(library, page)
    size = library.FPDF_GetPageWidthF(page), library.FPDF_GetPageHeightF(page)
    areas = _Areas(objects.areas)
    try:
        doubtful = _choose(objects, areas)
        letters = _find_letters(library, page_text, doubtful) if doubtful else {}
        if not letters:
            return UnseenText()
        if sum(_measure(one.bounds) for one in objects.areas) > _MAX_PAINTED * size[0] * size[1]:
            raise _TooDenseError
        pictures = _Pictures(library, page, objects.texts, doubtful)
        hidden, has_ocr_layer = _find_hidden(
            letters, doubtful, areas, pictures, (objects.tiny, _SCAN * size[0] * size[1])
        )
        if not hidden:
            return UnseenText((), has_ocr_layer)
        boxes = _list_other_boxes(library, page_text, hidden, objects.texts)
        if len(hidden) >= _NEARLY_ALL * (len(hidden) + len(boxes)):
            return UnseenText((), has_ocr_layer, is_complete=False)
        apart = _leave_out_overlaid(hidden, boxes)
    except _TooDenseError:
        return UnseenText(is_complete=False)
    unseen = [UnseenLetter(one.letter, one.place, *pictures.find_middle(one.box), kind) for _, one, kind in apart]
    return UnseenText(unseen, has_ocr_layer)


def _find_hidden(
    letters: Mapping[int, Sequence[_Letter]],
    texts: Mapping[int, TextObject],
    areas: "_Areas",
    pictures: "_Pictures",
    limits: tuple[float, float],
) -> tuple[list[_Hidden], bool]:
    """The letters of these texts that do not show, and whether others repeat a picture. The limits are the height of
    tiny texts, and the measure of a picture that is a scan."""
    tiny, scan = limits
    unseen: list[_Hidden] = []
    has_ocr_layer = False
    for handle, own in letters.items():
        text = texts[handle]
        near = areas.list_near(text)
        is_tiny = text.size < tiny
        if not text.is_drawn and any(_is_scan_behind(one, text, scan) for one in near):  # a scan takes long to draw
            has_ocr_layer = True
            continue
        is_covered = _is_covered(text, near)
        is_plain = text.is_drawn and not (is_covered or text.is_in_group or text.opacity < _OPAQUE)
        color = text.color if is_plain else None
        hidden = [one for one in own if is_tiny or not text.is_drawn or pictures.is_hidden(one.box, color)]
        if not hidden or (not is_covered and len(hidden) < _WHOLE * len(own)):
            continue
        if not is_tiny and _may_repeat(text, near, scan) and pictures.are_inked([one.box for one in hidden], text.size):
            has_ocr_layer = has_ocr_layer or any(one.is_picture and _is_behind(one, text) for one in near)
            continue
        kind: UnseenKind = "tiny" if is_tiny else "covered" if is_covered else "invisible"
        unseen.extend(_Hidden(handle, one, kind) for one in hidden)
    return unseen, has_ocr_layer


def _leave_out_overlaid(hidden: Sequence[_Hidden], boxes: Sequence[Box]) -> list[_Hidden]:
    """The letters without the texts and words that have others in the place of one: what is read there cannot be parted
    from these."""
    cells: defaultdict[tuple[int, int], list[_Hidden]] = defaultdict(list)
    for one in hidden:
        for cell in _iter_cells(one.letter.box):
            cells[cell].append(one)
    overlaid: set[int] = set()
    comparisons = 0
    for box in boxes:
        for cell in _iter_cells(box):
            near = cells.get(cell, ())
            comparisons += len(near)
            if comparisons > _MAX_COMPARISONS:
                raise _TooDenseError
            overlaid.update(one.handle for one in near if _are_in_one_place(one.letter.box, box))
    words: list[list[_Hidden]] = []
    for one in sorted(hidden, key=lambda one: one.letter.place):
        if not words or one.letter.place != words[-1][-1].letter.place + 1:
            words.append([])
        words[-1].append(one)
    return [one for word in words if overlaid.isdisjoint(one.handle for one in word) for one in word]


def _iter_cells(box: Box) -> Iterator[tuple[int, int]]:
    left, bottom, right, top = (int(max(0, min(side // _CELL, _MAX_CELLS))) for side in box)
    for across in range(left, right + 1):
        for upward in range(bottom, top + 1):
            yield across, upward


def _are_in_one_place(one: Box, other: Box) -> bool:
    """Whether two boxes are at the same height, and the middle of one is above or below the other."""
    if one[1] >= other[3] or other[1] >= one[3]:
        return False
    return other[0] <= (one[0] + one[2]) / 2 <= other[2] or one[0] <= (other[0] + other[2]) / 2 <= one[2]


def _has_middle(box: Box, other: Box) -> bool:
    """Whether the middle of the other box is in a box."""
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


class _Pictures:
    """A page as it is, without the texts that might be hidden, and without any; each is drawn when it is needed."""

    def __init__(
        self, library: ctypes.CDLL, page: Any, texts: Sequence[TextObject], doubtful: Mapping[int, TextObject]
    ) -> None:
        self._library, self._page = library, page
        self._texts = [one for one in texts if one.is_drawn]
        self._doubtful = [one for one in self._texts if one.handle in doubtful]
        self._height = min(one.bounds[3] - one.bounds[1] for one in doubtful.values())

    def is_hidden(self, box: Box, color: Color | None) -> bool:
        """Whether none of the texts that might be hidden shows in a box. One of a color that nothing changes does where
        it is not that of what is behind: thin letters are drawn paler, and those of missing fonts not at all."""
        if color is not None and self._without.contrasts(color, box):
            return False
        return not self._whole.differs(self._without, box)

    def are_inked(self, boxes: Sequence[Box], slack: float) -> bool:
        """Whether something other than text shows in some of these boxes, or as far beside them as the slack."""
        sample = [
            (left - slack, bottom - slack, right + slack, top + slack)
            for left, bottom, right, top in boxes[:: 1 + len(boxes) // _SAMPLED]
        ]
        return sum(not self._bare.is_plain(box) for box in sample) >= _OCR_SHARE * len(sample)

    def find_middle(self, box: Box) -> tuple[float, float]:
        """The middle of a box in points from the top left of the page as it is shown."""
        return self._bare.find_middle(box)

    @cached_property
    def _whole(self) -> Picture:
        return self._draw([])

    @cached_property
    def _without(self) -> Picture:
        return self._draw(self._doubtful)

    @cached_property
    def _bare(self) -> Picture:
        return self._draw(self._texts)

    def _draw(self, left_out: Sequence[TextObject]) -> Picture:
        for text in left_out:
            self._library.FPDFPageObj_SetIsActive(text.handle, 0)
        try:
            return Picture(self._library, self._page, self._height)
        finally:
            for text in left_out:
                self._library.FPDFPageObj_SetIsActive(text.handle, 1)


def _choose(objects: PageObjects, areas: "_Areas") -> dict[int, TextObject]:
    """The texts that might be hidden, by their handles. Raises _TooDenseError."""
    return {
        text.handle: text
        for text in objects.texts
        if text.is_in_group
        or not text.is_drawn
        or text.opacity < _TRANSPARENT
        or text.size < objects.tiny
        or _might_be_hidden(text, areas.list_near(text))
    }


class _Areas:
    """The areas of a page by their height on it, so that each text is compared with few."""

    def __init__(self, areas: Sequence[Area]) -> None:
        self._bands: defaultdict[int, list[Area]] = defaultdict(list)
        self._near: dict[range, Sequence[Area]] = {}
        self._comparisons = 0
        for area in areas:
            for band in _list_bands(area.bounds):
                self._bands[band].append(area)

    def list_near(self, text: TextObject) -> Sequence[Area]:
        """The areas at the height of a text, in their order. Raises _TooDenseError."""
        bands = _list_bands(text.bounds)
        if bands not in self._near:
            near = {area for band in bands for area in self._bands.get(band, ())}
            self._near[bands] = sorted(near, key=attrgetter("order"))
        self._comparisons += len(self._near[bands])
        if self._comparisons > _MAX_COMPARISONS:
            raise _TooDenseError
        return self._near[bands]


def _list_bands(box: Box) -> range:
    """The bands of a page that a box is in; those far outside of the page count as one."""
    first, last = (int(max(0, min(side // _BAND, _MAX_BANDS))) for side in (box[1], box[3]))
    return range(first, last + 1)


def _might_be_hidden(text: TextObject, areas: Sequence[Area]) -> bool:
    """Whether something may cover a text, or it has nearly the color of what is behind it."""
    behind: Color | None = _WHITE
    for area in areas:
        if area.order > text.order:
            if _may_cover(area, text):
                return True
        elif _is_behind(area, text) or (area.color is None and _overlap(area.bounds, text.bounds)):
            behind = area.color
    if behind is None or text.color is None:
        return True
    return max(abs(a - b) for a, b in zip(text.color, behind, strict=True)) < _NEAR


def _is_covered(text: TextObject, areas: Sequence[Area]) -> bool:
    return text.is_drawn and any(area.order > text.order and _may_cover(area, text) for area in areas)


def _may_cover(area: Area, text: TextObject) -> bool:
    left, bottom, right, top = area.bounds
    is_wide = min(right - left, top - bottom) >= _COVER * (text.bounds[3] - text.bounds[1])
    return is_wide and _overlap(area.bounds, text.bounds)


def _may_repeat(text: TextObject, areas: Sequence[Area], scan: float) -> bool:
    """Whether a text may say what something else shows in its place: an invisible one a picture, or letters that are
    drawn as outlines or cut out of a color; another one a scan of the page, a picture of that measure."""
    is_transparent = not text.is_drawn or text.opacity < _TRANSPARENT
    return is_transparent or any(_is_scan_behind(area, text, scan) for area in areas)


def _is_scan_behind(area: Area, text: TextObject, scan: float) -> bool:
    return area.is_picture and _is_behind(area, text) and _measure(area.bounds) >= scan


def _is_behind(area: Area, text: TextObject) -> bool:
    """Whether the middle of a text is in an area."""
    return _has_middle(area.bounds, text.bounds)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _measure(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _find_letters(library: ctypes.CDLL, page_text: Any, texts: Mapping[int, TextObject]) -> dict[int, list[_Letter]]:
    """The letters and digits of these texts, by their handles."""
    letters: defaultdict[int, list[_Letter]] = defaultdict(list)
    for at in range(min(library.FPDFText_CountChars(page_text), MAX_CHARACTERS)):
        handle = library.FPDFText_GetTextObject(page_text, at)
        if handle in texts:
            letters[handle].extend(_read_letter(library, page_text, at))
    return letters


def _read_letter(library: ctypes.CDLL, page_text: Any, at: int) -> Iterator[_Letter]:
    letter = chr(min(library.FPDFText_GetUnicode(page_text, at), 0x10FFFF))
    if letter.isalnum() and not library.FPDFText_IsGenerated(page_text, at):
        left, right, bottom, top = (ctypes.c_double() for _ in range(4))
        library.FPDFText_GetCharBox(page_text, at, *map(ctypes.byref, (left, right, bottom, top)))
        yield _Letter(letter, at, (left.value, bottom.value, right.value, top.value))


def _list_other_boxes(
    library: ctypes.CDLL, page_text: Any, hidden: Sequence[_Hidden], texts: Sequence[TextObject]
) -> list[Box]:
    """The sides of a page's other letters and digits, with the space that their font gives them, and those of texts
    without letters: PDFium leaves out one that repeats another in its place."""
    boxes: list[Box] = []
    places = {one.letter.place for one in hidden}
    handles = {one.handle for one in hidden}
    sides = FloatBox()
    for at in range(min(library.FPDFText_CountChars(page_text), MAX_CHARACTERS)):
        if at in places or library.FPDFText_IsGenerated(page_text, at):
            continue
        handles.add(library.FPDFText_GetTextObject(page_text, at))
        if chr(min(library.FPDFText_GetUnicode(page_text, at), 0x10FFFF)).isalnum():
            library.FPDFText_GetLooseCharBox(page_text, at, ctypes.byref(sides))
            boxes.append((sides.left, sides.bottom, sides.right, sides.top))
    return [*boxes, *(one.bounds for one in texts if one.is_drawn and one.handle not in handles)]
