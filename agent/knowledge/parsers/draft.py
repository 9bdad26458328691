"""What a reader hands back, and how it becomes a `ParserOutput`: ids, heading paths, Markdown tables.

A reader reports blocks in reading order with a heading's level; nobody but this file knows ids and paths.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.core.models import JsonObject
from agent.knowledge.models import LayoutType, ParsedChunk

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in points from the page's top left corner."""

LOST = "lost_characters"
"""The name in a text's metadata of how many characters could not be decoded; not there when all could."""

_TABLE_CHARACTERS = 8000
"""A longer table of a sheet is cut into several, each with the header row, so that no block grows without bound."""

_SQUARE_CELLS = 4_000_000
"""A table that would have more, one row of a million cells among short ones, stays as ragged as it is."""

_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
"""Control characters and lone surrogates: no store takes the former, no encoder the latter."""


class Block(NamedTuple):
    """A paragraph, list item, table, picture or heading (`level` from 1) as a reader found it. `title` is a heading's
    name in paths, where that is not its text."""

    text: str
    layout: LayoutType = "text"
    page: int | None = None
    bbox: Box | None = None
    level: int | None = None
    title: str = ""


@dataclass
class Draft:
    """A document while it is being read. `pages` is 0 where the format has none."""

    blocks: list[Block] = field(default_factory=list)
    pages: int = 0
    metadata: JsonObject = field(default_factory=dict)
    uncertainties: list[str] = field(default_factory=list)

    def heading(
        self, text: str, level: int, page: int | None = None, bbox: Box | None = None, *, title: str = ""
    ) -> None:
        """Add a heading; line breaks in it become spaces, so that it can stand in a path."""
        self.blocks.append(Block(" ".join(text.split()), "header", page, bbox, max(1, level), title))

    def text(self, text: str, page: int | None = None, bbox: Box | None = None) -> None:
        """Add a paragraph, a list item or a piece of code."""
        self.blocks.append(Block(text, "text", page, bbox))

    def table(self, rows: Sequence[Sequence[str]], page: int | None = None, bbox: Box | None = None) -> None:
        """Add a table, first row the header, as one or (very long ones) several Markdown tables."""
        self.blocks.extend(Block(text, "table", page, bbox) for text in markdown_tables(rows))

    def image(self, description: str, page: int | None = None, bbox: Box | None = None) -> None:
        """Add a picture by its description; one without any is worth its place on the page only."""
        text = " ".join(description.split())
        self.blocks.append(Block(f"[image: {text}]" if text else "[image]", "image", page, bbox))


def document_id(data: bytes) -> str:
    """The SHA-256 of a file's bytes, hex: the same file is the same document wherever it came from."""
    return hashlib.sha256(data).hexdigest()


def parsed_chunks(document: str, blocks: Iterable[Block]) -> tuple[ParsedChunk, ...]:
    """The blocks that have text, numbered, each with the headings above it. The ids depend on the document, the place
    and the text alone, so that reading the same file again gives the same ids."""
    chunks: list[ParsedChunk] = []
    for block, path in _with_paths(blocks):
        index = len(chunks)
        digest = hashlib.sha256(f"{document}:{index}:{block.text}".encode()).hexdigest()
        chunks.append(
            ParsedChunk(
                chunk_id=f"{document[:12]}-{digest[:20]}",
                content=block.text,
                chunk_index=index,
                page_number=block.page,
                layout_type=block.layout,
                bbox=block.bbox,
                heading_path=path,
            )
        )
    return tuple(chunks)


def clean(text: str) -> str:
    """A text without control characters, foreign line ends, and white space at its ends."""
    return _UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def markdown_tables(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows as Markdown, first row the header; cut where it grows too long, with the header repeated."""
    grid = _trimmed([[_cell(cell) for cell in row] for row in rows])
    if not grid:
        return
    head = [_line(grid[0]), "|" + " --- |" * len(grid[0])]
    lines, length = list(head), 0
    for row in grid[1:]:
        line = _line(row)
        if length + len(line) > _TABLE_CHARACTERS and length:
            yield "\n".join(lines)
            lines, length = list(head), 0
        lines.append(line)
        length += len(line)
    yield "\n".join(lines)


def _with_paths(blocks: Iterable[Block]) -> Iterator[tuple[Block, tuple[str, ...]]]:
    above: list[tuple[int, str]] = []
    for raw in blocks:
        block = raw._replace(text=clean(raw.text))
        if not block.text:
            continue
        if block.level is not None:
            above = [(level, text) for level, text in above if level < block.level]
        yield block, tuple(text for _, text in above)
        if block.level is not None:
            above.append((block.level, clean(block.title) or block.text))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _trimmed(grid: list[list[str]]) -> list[list[str]]:
    """The grid squared off, without rows and columns in which nothing stands."""
    width = max((len(row) for row in grid), default=0)
    if width * len(grid) > _SQUARE_CELLS:
        return [row for row in grid if any(row)]
    square = [row + [""] * (width - len(row)) for row in grid if any(row)]
    used = [column for column in range(width) if any(row[column] for row in square)]
    return [[row[column] for column in used] for row in square]
