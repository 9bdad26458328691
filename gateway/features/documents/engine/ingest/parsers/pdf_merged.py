"""Tables of a PDF's page with merged cells, as texts of blocks and as rows.

What is repeated is written last: marks of a page's text (`pdf_marks.py` and others) are looked up in its blocks, where
each text has to be once.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.text.html.tables import MAX_HEAD
from agent.text.table_head import classify_text
from gateway.features.documents.engine.ingest.parsers.draft import Block, Box, find_markdown_tables

_BAR = re.compile(r"(?<!\\)\|")


class Cell(NamedTuple):
    """A cell by its first row and column, and those after its last ones."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def is_merged(self) -> bool:
        """Whether it is over several rows or columns."""
        return self.bottom - self.top > 1 or self.right - self.left > 1


class MergedTable(NamedTuple):
    """A table whose cells are merged: how many rows and columns it has, and the cells from its first row."""

    size: tuple[int, int]
    cells: Sequence[Cell]

    def write(self, texts: Sequence[str]) -> str:
        """The text of a block with each cell's text once, in its first row and column."""
        rows, columns = self.size
        grid = [[""] * columns for _ in range(rows)]
        for cell, text in zip(self.cells, texts, strict=True):
            grid[cell.top][cell.left] = text.replace("|", "\\|")
        return "\n".join(" | ".join(row) for row in grid)

    def read(self, text: str) -> list[list[str]]:
        """The rows of such a text. A cell over several rows is in each, a head over several columns too; any other one
        is in its first column: a figure counts once."""
        rows, columns = self.size
        depth = _count_head_rows(self.cells, rows)
        written = [[part.replace("\\|", "|").strip() for part in _BAR.split(line)] for line in text.split("\n")]
        grid = [[""] * columns for _ in range(rows)]
        for cell in self.cells:
            own = written[cell.top][cell.left]
            is_head = cell.top < depth and len(own) <= MAX_HEAD
            for row in range(cell.top, cell.bottom):
                for column in range(cell.left, cell.right if is_head else cell.left + 1):
                    grid[row][column] = own
        head, body = grid[:depth], grid[depth:]
        if depth > 1 and any(map(any, body)) and all(_is_name(own) for row in head for own in row):
            head = [[" ".join(dict.fromkeys(filter(None, column))) for column in zip(*head, strict=True)]]
        return [*head, *body]


def fill_tables(blocks: Iterable[Block], tables: Mapping[Box, MergedTable]) -> list[Block]:
    """The blocks of a page with the texts of merged cells in each of their rows."""
    filled: list[Block] = []
    for block in blocks:
        table = tables.get(block.bbox) if block.layout == "table" and block.bbox is not None else None
        if table is None:
            filled.append(block)
        else:
            filled.extend(block._replace(text=text) for text in find_markdown_tables(table.read(block.text)))
    return filled


def _count_head_rows(cells: Sequence[Cell], rows: int) -> int:
    """The rows of the head, whose cells are over several columns in all but the last row."""
    bottom = 1
    while bottom < rows:
        head = [cell for cell in cells if cell.top < bottom]
        lowest = max(cell.bottom for cell in head)
        if lowest == bottom:
            if not any(cell.bottom == bottom and cell.right - cell.left > 1 for cell in head):
                break
            lowest += 1
        bottom = lowest
    return bottom


def _is_name(text: str) -> bool:
    """Whether a text may name a column: not a figure, nor a name with its value, such as `Name: Lee`."""
    return ":" not in text and classify_text(text) in ("", "text", "label")
