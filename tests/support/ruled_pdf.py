"""PDF files with tables whose cells have lines around them, as programs for texts and sheets draw them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from tests.support.documents import drawn_pdf

Pen = Literal["lines", "boxes", "frames"]
"""How the sides of a cell are drawn: as lines, as flat filled boxes, or as the frame of one rectangle."""
_WIDTH = 90
_LEFT, _TOP = 60, 100


class Cell(NamedTuple):
    """A cell by its text, its first row and column, and over how many rows and columns it is."""

    text: str
    row: int
    column: int
    rows: int = 1
    columns: int = 1


def plain_cells(rows: Sequence[Sequence[str]], *, first: int = 0) -> list[Cell]:
    """Cells over one row and column each."""
    return [Cell(text, first + row, column) for row, texts in enumerate(rows) for column, text in enumerate(texts)]


def ruled_pdf(cells: Sequence[Cell], *, pen: Pen = "lines", height: int = 20, other: Sequence[bytes] = ()) -> bytes:
    """A PDF of one page with a table, whose texts are in the middle of their cells from above, and `other` drawings.
    `height` is that of a row in points."""
    return drawn_pdf(b"\n".join([*(_draw(cell, pen, height) for cell in cells), *other]))


def _draw(cell: Cell, pen: Pen, height: int) -> bytes:
    left, right = _LEFT + cell.column * _WIDTH, _LEFT + (cell.column + cell.columns) * _WIDTH
    top, bottom = 792 - _TOP - cell.row * height, 792 - _TOP - (cell.row + cell.rows) * height
    width, height = right - left, top - bottom
    sides = {
        "lines": f"{left} {top} m {right} {top} l S {left} {bottom} m {right} {bottom} l S"
        f" {left} {top} m {left} {bottom} l S {right} {top} m {right} {bottom} l S",
        "boxes": f"{left} {top} {width} 0.5 re f {left} {bottom} {width} 0.5 re f"
        f" {left} {bottom} 0.5 {height} re f {right} {bottom} 0.5 {height} re f",
        "frames": f"{left} {bottom} {width} {height} re S",
    }[pen]
    base = (top + bottom) / 2 - 3
    return f"{sides} BT /F1 9 Tf {left + 6} {base} Td ({cell.text}) Tj ET".encode("cp1252")
