"""A PDF's page as PDFium draws it, compared with another drawing of it."""

import ctypes
from collections import Counter
from collections.abc import Mapping
from math import ceil, floor
from typing import Any

Box = tuple[float, float, float, float]
"""Left, bottom, right and top in points of the page."""

_SEEN = 9
"""Difference of colors, of 255, from which a letter is seen: #f6f6f6 on white is the palest text that counts."""
_HEIGHT = 12
"""Pixels of the height of letters, so that thin ones are not paler than they are."""
_SMALLEST_SCALE, _LARGEST_SCALE = 1.0, 2.0
_LONGEST_SIDE = 4000.0
_PIXEL, _COLORS = 4, 3
"""Bytes: blue, green and red, and one without meaning."""
_FINE = 1000
"""How much finer than pixels places are computed."""
_STEP = 1000
"""Points over which the width of one is measured: an error of it grows with the length of a page."""
_WHITE = 0xFFFFFFFF
_WITH_ANNOTATIONS = 1

_P, _I = ctypes.c_void_p, ctypes.c_int
_TO_DEVICE = (_I, _P, _I, _I, _I, _I, _I, ctypes.c_double, ctypes.c_double, ctypes.POINTER(_I), ctypes.POINTER(_I))

FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "FPDF_GetPageWidthF": (ctypes.c_float, _P),
    "FPDF_GetPageHeightF": (ctypes.c_float, _P),
    "FPDF_PageToDevice": _TO_DEVICE,
    "FPDF_RenderPageBitmap": (None, _P, _P, _I, _I, _I, _I, _I, _I),
    "FPDFBitmap_Create": (_P, _I, _I, _I),
    "FPDFBitmap_FillRect": (_I, _P, _I, _I, _I, _I, ctypes.c_ulong),
    "FPDFBitmap_GetBuffer": (_P, _P),
    "FPDFBitmap_GetStride": (_I, _P),
    "FPDFBitmap_Destroy": (None, _P),
}
"""The functions of PDFium that are called here: what they return, and what they take."""


class Picture:
    """An open page as it is drawn, with its annotations. `scale` is in pixels a point, by the height of the letters
    that are looked for. Raises MemoryError."""

    def __init__(self, library: ctypes.CDLL, page: Any, height: float) -> None:
        self._library, self._page = library, page
        sides = library.FPDF_GetPageWidthF(page), library.FPDF_GetPageHeightF(page)
        wanted = min(max(_HEIGHT / max(height, 1), _SMALLEST_SCALE), _LARGEST_SCALE)
        self.scale = min(wanted, _LONGEST_SIDE / max(*sides, 1))
        self._size = max(1, round(sides[0] * self.scale)), max(1, round(sides[1] * self.scale))
        bitmap = library.FPDFBitmap_Create(*self._size, 0)
        if not bitmap:
            raise MemoryError
        try:
            library.FPDFBitmap_FillRect(bitmap, 0, 0, *self._size, _WHITE)
            library.FPDF_RenderPageBitmap(bitmap, page, 0, 0, *self._size, 0, _WITH_ANNOTATIONS)
            self._stride = library.FPDFBitmap_GetStride(bitmap)
            self._pixels = ctypes.string_at(library.FPDFBitmap_GetBuffer(bitmap), self._stride * self._size[1])
        finally:
            library.FPDFBitmap_Destroy(bitmap)

        self._origin, self._across, self._upward = (self._map(x, y) for x, y in ((0, 0), (_STEP, 0), (0, _STEP)))

    def _map(self, x: float, y: float) -> tuple[float, float]:
        """A point of the page in pixels, which PDFium gives as whole numbers: of a picture that is larger."""
        right, down = ctypes.c_int(), ctypes.c_int()
        size = (_FINE * self._size[0], _FINE * self._size[1])
        place = (ctypes.c_double(x), ctypes.c_double(y), ctypes.byref(right), ctypes.byref(down))
        self._library.FPDF_PageToDevice(self._page, 0, 0, *size, 0, *place)
        return right.value / _FINE, down.value / _FINE

    def differs(self, other: "Picture", box: Box) -> bool:
        """Whether another picture of the page looks different in a box."""
        left, right, rows = self._find_rows(box)
        one, two = self._pixels, other._pixels
        for start in rows:
            area = slice(start + left, start + right)
            if one[area] != two[area] and _is_different(one[area], two[area]):
                return True
        return False

    def is_plain(self, box: Box) -> bool:
        """Whether a box has nearly one color."""
        left, right, rows = self._find_rows(box)
        first = rows.start + left if rows else 0
        plain = self._pixels[first : first + _PIXEL] * ((right - left) // _PIXEL)
        for start in rows:
            row = self._pixels[start + left : start + right]
            if row != plain and _is_different(row, plain):
                return False
        return True

    def contrasts(self, color: tuple[int, int, int], box: Box) -> bool:
        """Whether a color would be seen in most of a box: a line through it shows no letter."""
        left, right, rows = self._find_rows(box)
        places = (at for start in rows for at in range(start + left, start + right, _PIXEL))
        counts = Counter(self._pixels[at : at + _COLORS] for at in places)
        own = bytes(reversed(color))
        return 2 * sum(count for one, count in counts.items() if _is_different(one, own)) > counts.total()

    def find_middle(self, box: Box) -> tuple[float, float]:
        """The middle of a box in points from the top left of the page as it is shown."""
        left, top, right, bottom = self._find_sides(box)
        return (left + right) / 2 / self.scale, (top + bottom) / 2 / self.scale

    def _find_rows(self, box: Box) -> tuple[int, int, range]:
        """The first and the last byte of a box in each of its rows, and where these begin."""
        left, top, right, bottom = self._find_sides(box)
        first, last = max(floor(left), 0), min(ceil(right) + 1, self._size[0])
        rows = range(
            max(floor(top), 0) * self._stride, min(ceil(bottom) + 1, self._size[1]) * self._stride, self._stride
        )
        return _PIXEL * first, _PIXEL * max(first, last), rows

    def _find_sides(self, box: Box) -> tuple[float, float, float, float]:
        """The left, top, right and bottom of a box, in pixels."""
        (x0, y0), (xx, yx), (xy, yy) = self._origin, self._across, self._upward
        corners = ((box[0], box[1]), (box[2], box[3]))
        (x1, y1), (x2, y2) = (
            (x0 + (x * (xx - x0) + y * (xy - x0)) / _STEP, y0 + (x * (yx - y0) + y * (yy - y0)) / _STEP)
            for x, y in corners
        )
        return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def _is_different(one: bytes, other: bytes) -> bool:
    return any(
        max(map(abs, map(int.__sub__, one[part::_PIXEL], other[part::_PIXEL])), default=0) >= _SEEN
        for part in range(_COLORS)
    )
