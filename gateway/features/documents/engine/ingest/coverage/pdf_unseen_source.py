"""The characters of a PDF that nobody sees, as pdf_oxide draws its pages: where one has a single color, or is tiny.

What lies on a picture may be covered by it or repeat it: there a character is seen if its own color shows beside
another. Pages are drawn only if a document lacks some of their characters.
"""

import time
from collections.abc import Iterator
from math import ceil, floor
from typing import Any

import pdf_oxide

_SCALE = 2
"""Pixels a point."""
_DPI = 72 * _SCALE
_LONGEST_SIDE = 4000
"""Pixels: larger pages are not drawn."""
_TINY = 1.0
_TINY_SHARE = 1 / 560
"""Points, and share of a page's longer side, from either of which letters can be read."""
_SEEN = 9
"""Difference of colors, of 255, from which a character is seen."""
_NEAR = 48
"""Difference of colors, of 255, within which a pixel may be of a character; edges are paler."""
_HEIGHT = 0.7
"""Of a character above its base line, as a share of its size."""
_MARGIN = 0.1
"""Share of a character's width at either side that its neighbors may reach into."""
_PIXEL = 4
"""Bytes."""


def iter_unseen(document: pdf_oxide.PdfDocument, deadline: float) -> Iterator[str]:
    """Yields the characters that nobody sees. Raises TimeoutError at the deadline."""
    for number in range(document.page_count()):
        if time.monotonic() > deadline:
            raise TimeoutError
        try:
            yield from _iter_unseen_of_page(document, number)
        except RuntimeError:  # a page that the file only claims
            continue


def _iter_unseen_of_page(document: pdf_oxide.PdfDocument, number: int) -> Iterator[str]:
    corners = document.page_crop_box(number) or document.page_media_box(number)
    box = (*map(min, corners[:2], corners[2:]), *map(max, corners[:2], corners[2:]))
    longest = max(box[2] - box[0], box[3] - box[1])
    pictures = [(one["x"], one["y"], one["width"], one["height"]) for one in document.page_images(number)]
    drawing = _Drawing(document, number, box) if 0 < longest * _SCALE <= _LONGEST_SIDE else None
    for one in document.extract_chars(number):
        x, y = one.origin_x, one.origin_y
        if (
            one.font_size < min(_TINY, _TINY_SHARE * longest)
            or (drawing is not None and drawing.is_plain(one))
            or (
                any(left <= x <= left + width and low <= y <= low + height for left, low, width, height in pictures)
                and not (drawing is not None and drawing.has_color(one))
            )
        ):
            yield one.char


class _Drawing:
    """A page as it is drawn; `box` are its left, bottom, right and top in points."""

    def __init__(self, document: pdf_oxide.PdfDocument, number: int, box: tuple[float, ...]) -> None:
        self._image: Any = document.render_pixmap(number, dpi=_DPI)
        self._pixels = memoryview(self._image.data)
        self._box = box
        self._turn = document.page_rotation(number) % 360

    def is_plain(self, one: Any) -> bool:
        """Whether a level character has nearly a single color in its place."""
        layers = self._read_layers(one)
        return bool(layers[0]) and all(max(layer) - min(layer) < _SEEN for layer in layers)

    def has_color(self, one: Any) -> bool:
        """Whether a level character has its own color in its place, among others."""
        color = [round(255 * part) for part in one.color]
        pixels = set(zip(*self._read_layers(one), strict=True))
        own = {all(abs(a - b) < _NEAR for a, b in zip(pixel, color, strict=True)) for pixel in pixels}
        return len(own) > 1

    def _read_layers(self, one: Any) -> tuple[bytes, bytes, bytes]:
        """The red, green and blue of the pixels in a level character's place; empty for others."""
        if one.rotation_degrees or one.char.isspace():
            return b"", b"", b""
        margin = _MARGIN * one.advance_width
        corners = (
            self._map(one.origin_x + margin, one.origin_y),
            self._map(one.origin_x + one.advance_width - margin, one.origin_y + _HEIGHT * one.font_size),
        )
        (x1, y1), (x2, y2) = corners
        left, right = max(floor(min(x1, x2)), 0), min(ceil(max(x1, x2)), self._image.width)
        top, bottom = max(floor(min(y1, y2)), 0), min(ceil(max(y1, y2)), self._image.height)
        right = max(left, right)
        rows = [_PIXEL * (y * self._image.width + left) for y in range(top, bottom)]
        pixels = b"".join(self._pixels[row : row + _PIXEL * (right - left)] for row in rows)
        return pixels[::_PIXEL], pixels[1::_PIXEL], pixels[2::_PIXEL]

    def _map(self, x: float, y: float) -> tuple[float, float]:
        """A point of the page in pixels from the top left of the page as it is shown."""
        left, bottom, right, top = self._box
        match self._turn:
            case 90:
                across, down = y - bottom, x - left
            case 180:
                across, down = right - x, y - bottom
            case 270:
                across, down = top - y, right - x
            case _:
                across, down = x - left, top - y
        return across * _SCALE, down * _SCALE
