"""What a PDF's page draws, in its order: texts, and the areas behind and before them that may hide these."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import hypot
from typing import Any, NamedTuple

from gateway.features.documents.engine.ingest.parsers.pdfium_picture import Box

Color = tuple[int, int, int]

_TEXT, _PATH, _IMAGE, _SHADING, _FORM = range(1, 6)
"""Kinds of objects by PDFium's numbers."""
_INVISIBLE_MODES = frozenset({3, 7})
"""Text that is not drawn: invisible, or a clipping path alone."""
_MARKUP = frozenset({1, 2, 9, 10, 11, 12, 16, 20})
"""Kinds of annotations that cover nothing: icons of remarks, links, marks in text, popups, fields of forms."""
_HIDDEN = 2 | 32
"""Flags of annotations that nobody sees: hidden, no view."""
_NO_DRAWING = 2
"""Bytes of a drawing that an annotation does not have."""
_RECTANGLE = 5
"""Segments of a path that fills its bounds."""
_TINY = 1.0
_TINY_SHARE = 1 / 560
"""Points, and share of a page's longer side, below both of which letters are too small to read: long pages are strips
of many screens, and small ones are enlarged."""
_MAX_DEPTH = 8
_MAX_OBJECTS = 20_000

_P, _I = ctypes.c_void_p, ctypes.c_int
_F = ctypes.POINTER(ctypes.c_float)
_N = ctypes.POINTER(ctypes.c_uint)


class _Matrix(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_float) for name in "abcdef")

    def apply(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def then(self, other: "_Matrix") -> "_Matrix":
        """The matrix that applies this one and then another."""
        e, f = other.apply(self.e, self.f)
        columns = ((self.a, self.b), (self.c, self.d))
        (a, b), (c, d) = ((other.a * x + other.c * y, other.b * x + other.d * y) for x, y in columns)
        return _Matrix(a, b, c, d, e, f)


FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "FPDFPageObj_GetType": (_I, _P),
    "FPDFPageObj_GetBounds": (_I, _P, _F, _F, _F, _F),
    "FPDFPageObj_GetMatrix": (_I, _P, ctypes.POINTER(_Matrix)),
    "FPDFPageObj_GetFillColor": (_I, _P, _N, _N, _N, _N),
    "FPDFPageObj_HasTransparency": (_I, _P),
    "FPDFPageObj_SetIsActive": (_I, _P, _I),
    "FPDFPath_CountSegments": (_I, _P),
    "FPDFPath_GetDrawMode": (_I, _P, ctypes.POINTER(_I), ctypes.POINTER(_I)),
    "FPDFTextObj_GetTextRenderMode": (_I, _P),
    "FPDFTextObj_GetFontSize": (_I, _P, _F),
    "FPDFFormObj_CountObjects": (_I, _P),
    "FPDFFormObj_GetObject": (_P, _P, ctypes.c_ulong),
    "FPDFAnnot_GetRect": (_I, _P, _F),
}
"""The functions of PDFium that are called here: what they return, and what they take."""


class TextObject(NamedTuple):
    """A text by PDFium's handle, with its place in the order, the height of its letters in points, and its color:
    None for a pattern. `opacity` is of 255."""

    handle: int
    order: int
    bounds: Box
    size: float
    color: Color | None
    opacity: int
    is_drawn: bool
    is_in_group: bool
    """Whether it belongs to a drawing that may be transparent as a whole."""


class Area(NamedTuple):
    """Something else that is drawn; `color` is None if it has several, or is not a rectangle."""

    order: int
    bounds: Box
    color: Color | None = None
    is_picture: bool = False


@dataclass
class PageObjects:
    """The texts and areas of an open page, those of its drawings and annotations too. `tiny` is the height below which
    texts are too small to read."""

    library: ctypes.CDLL
    page: Any
    texts: list[TextObject] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        # One place for the answers to all calls: a page has thousands of objects.
        self._sides = [ctypes.c_float() for _ in range(4)]
        self._to_sides = [ctypes.byref(side) for side in self._sides]
        self._values = [ctypes.c_uint() for _ in range(4)]
        self._to_values = [ctypes.byref(value) for value in self._values]
        largest = max(self.library.FPDF_GetPageWidthF(self.page), self.library.FPDF_GetPageHeightF(self.page))
        self.tiny = min(_TINY, _TINY_SHARE * largest)
        for at in range(max(self.library.FPDFPage_CountObjects(self.page), 0)):
            self._add(self.library.FPDFPage_GetObject(self.page, at), None, 0, False)
        for at in range(max(self.library.FPDFPage_GetAnnotCount(self.page), 0)):
            if note := self.library.FPDFPage_GetAnnot(self.page, at):
                self._add_annotation(note)
                self.library.FPDFPage_CloseAnnot(note)

    def _add_annotation(self, note: Any) -> None:
        if self.library.FPDFAnnot_GetSubtype(note) in _MARKUP or self.library.FPDFAnnot_GetFlags(note) & _HIDDEN:
            return
        if self.library.FPDFAnnot_GetAP(note, 0, None, 0) <= _NO_DRAWING:  # each viewer draws it in its own way
            return
        sides = (ctypes.c_float * 4)()
        if self.library.FPDFAnnot_GetRect(note, sides):
            left, top, right, bottom = sides
            self._count += 1
            self.areas.append(Area(self._count, (left, min(top, bottom), right, max(top, bottom))))

    def _add(self, handle: Any, matrix: _Matrix | None, depth: int, is_in_group: bool) -> None:
        self._count += 1
        if not handle or self._count > _MAX_OBJECTS:
            return
        library = self.library
        kind = library.FPDFPageObj_GetType(handle)
        if kind == _FORM:
            inner = self._read_matrix(handle, matrix)
            is_in_group = is_in_group or bool(library.FPDFPageObj_HasTransparency(handle))
            for at in range(max(library.FPDFFormObj_CountObjects(handle), 0) if depth < _MAX_DEPTH else 0):
                self._add(library.FPDFFormObj_GetObject(handle, at), inner, depth + 1, is_in_group)
            return
        bounds = self._read_bounds(handle, matrix)
        if bounds is None:
            return
        if kind == _TEXT:
            self.texts.append(self._read_text(handle, bounds, matrix, is_in_group))
        elif kind == _PATH and self._is_filled(handle):
            is_rectangle = library.FPDFPath_CountSegments(handle) <= _RECTANGLE
            color, opacity = self._read_color(handle)
            self.areas.append(Area(self._count, bounds, color if is_rectangle and opacity == 255 else None))
        elif kind in (_IMAGE, _SHADING):
            self.areas.append(Area(self._count, bounds, is_picture=True))

    def _read_text(self, handle: Any, bounds: Box, matrix: _Matrix | None, is_in_group: bool) -> TextObject:
        size = bounds[3] - bounds[1]
        if size < self.tiny:  # of dashes and points, too
            size = self._read_size(handle, matrix)
        is_drawn = self.library.FPDFTextObj_GetTextRenderMode(handle) not in _INVISIBLE_MODES
        return TextObject(handle, self._count, bounds, size, *self._read_color(handle), is_drawn, is_in_group)

    def _read_size(self, handle: Any, matrix: _Matrix | None) -> float:
        size = ctypes.c_float()
        self.library.FPDFTextObj_GetFontSize(handle, ctypes.byref(size))
        own = self._read_matrix(handle, matrix)
        return abs(size.value) * hypot(own.c, own.d)

    def _is_filled(self, handle: Any) -> bool:
        mode, stroke = ctypes.c_int(), ctypes.c_int()
        is_read = self.library.FPDFPath_GetDrawMode(handle, ctypes.byref(mode), ctypes.byref(stroke))
        return bool(is_read and mode.value)

    def _read_color(self, handle: Any) -> tuple[Color | None, int]:
        """The color that fills an object, and its opacity."""
        if not self.library.FPDFPageObj_GetFillColor(handle, *self._to_values):
            return None, 255
        red, green, blue, opacity = (one.value for one in self._values)
        return (red, green, blue), opacity

    def _read_matrix(self, handle: Any, outer: _Matrix | None) -> _Matrix:
        matrix = _Matrix(1, 0, 0, 1, 0, 0)
        self.library.FPDFPageObj_GetMatrix(handle, ctypes.byref(matrix))
        return matrix if outer is None else matrix.then(outer)

    def _read_bounds(self, handle: Any, matrix: _Matrix | None) -> Box | None:
        if not self.library.FPDFPageObj_GetBounds(handle, *self._to_sides):
            return None
        left, bottom, right, top = (side.value for side in self._sides)
        if matrix is None:
            return left, bottom, right, top
        xs, ys = zip(*(matrix.apply(x, y) for x in (left, right) for y in (bottom, top)), strict=True)
        return min(xs), min(ys), max(xs), max(ys)
