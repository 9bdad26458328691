"""`Draft`: what a reader produces, and how it becomes a `ParserOutput` with ids, heading paths and Markdown tables.

Readers report blocks in reading order with heading levels; only this file makes ids and paths.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import NamedTuple

from agent.core.models import JsonObject
from gateway.features.documents.engine.search.models import LayoutType, ParsedChunk

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in points from the page's top left corner."""

LOST_CHARACTERS = "lost_characters"
"""Metadata name of the number of characters that could not be decoded; absent if there are none."""

_TABLE_CHARACTERS = 8000
"""A longer sheet table is split into several, each with the header row, so that blocks stay bounded."""

_SQUARE_CELLS = 4_000_000
"""A table that would have more cells when squared stays ragged."""

_BREAKS = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Ends of lines, pages and paragraphs beside line feeds: what stands before and after one is not one word."""

_BLANK_START = re.compile(r"\A(?:[^\S\n]*\n)+")

_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\ud800-\udfff\ufeff]")
"""Control characters, which no store accepts, lone surrogates, which no encoder accepts, and marks within words that
nobody sees: soft hyphens and byte order marks. With them no search finds the word."""


class Block(NamedTuple):
    """A paragraph, list item, table, picture or heading (`level` from 1). `title` replaces a heading's text
    in paths."""

    text: str
    layout: LayoutType = "text"
    page: int | None = None
    bbox: Box | None = None
    level: int | None = None
    title: str = ""


@dataclass
class Draft:
    """A document that is being read. `pages` is 0 if the format has none."""

    blocks: list[Block] = field(default_factory=list)
    pages: int = 0
    metadata: JsonObject = field(default_factory=dict)
    uncertainties: list[str] = field(default_factory=list)

    def add_heading(
        self, text: str, level: int, page: int | None = None, bbox: Box | None = None, *, title: str = ""
    ) -> None:
        """Adds a heading. Line breaks become spaces, because headings appear in paths."""
        self.blocks.append(Block(" ".join(text.split()), "header", page, bbox, max(1, level), title))

    def add_text(self, text: str, page: int | None = None, bbox: Box | None = None) -> None:
        """Adds a paragraph, a list item or a piece of code."""
        self.blocks.append(Block(text, "text", page, bbox))

    def add_table(self, rows: Sequence[Sequence[str]], page: int | None = None, bbox: Box | None = None) -> None:
        """Adds a table whose first row is the header, as one Markdown table or several if it is very long."""
        self.blocks.extend(Block(text, "table", page, bbox) for text in find_markdown_tables(rows))

    def add_image(self, description: str, page: int | None = None, bbox: Box | None = None) -> None:
        """Adds a picture by its description; without one it only marks its place on the page."""
        text = " ".join(description.split())
        self.blocks.append(Block(f"[image: {text}]" if text else "[image]", "image", page, bbox))

    def add_description(self, description: str, page: int | None = None, bbox: Box | None = None) -> None:
        """Adds the description of a drawn shape, unless the block before says the same."""
        before = self.blocks[-1].text if self.blocks else ""
        if description.strip() and " ".join(description.split()) != " ".join(before.split()):
            self.add_image(description, page, bbox)

    def use_first_heading_as_title(self) -> None:
        """Gives a document without a title that of its first heading."""
        heading = next((block.title or block.text for block in self.blocks if block.level is not None), "")
        if heading:
            self.metadata.setdefault("title", heading)


def compute_document_id(data: bytes) -> str:
    """The SHA-256 of a file's bytes, hex: the same file is the same document wherever it came from."""
    return hashlib.sha256(data).hexdigest()


def make_parsed_chunks(document: str, blocks: Iterable[Block]) -> tuple[ParsedChunk, ...]:
    """The blocks that have text, numbered, with their heading paths.

    Ids depend on document, position and text only, so reading the same file again gives the same ids.
    """
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


def clean_text(text: str) -> str:
    """The text without control characters, foreign line ends and surrounding white space. The first of several lines
    keeps its place above the others: what is below a name of a column is seen by it."""
    cleaned = _UNWANTED.sub("", _BREAKS.sub("\n", text.replace("\r\n", "\n").replace("\r", "\n"))).rstrip()
    return dedent(_BLANK_START.sub("", cleaned)) if "\n" in cleaned else cleaned.lstrip()


def find_markdown_tables(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields rows as Markdown tables, first row the header; long ones are split with the header repeated."""
    grid = _drop_empty([[_format_cell(cell) for cell in row] for row in rows])
    if not grid:
        return
    head = [_format_line(grid[0]), "|" + " --- |" * len(grid[0])]
    lines, length = list(head), 0
    for row in grid[1:]:
        line = _format_line(row)
        if length + len(line) > _TABLE_CHARACTERS and length:
            yield "\n".join(lines)
            lines, length = list(head), 0
        lines.append(line)
        length += len(line)
    yield "\n".join(lines)


def _with_paths(blocks: Iterable[Block]) -> Iterator[tuple[Block, tuple[str, ...]]]:
    above: list[tuple[int, str]] = []
    for raw in blocks:
        block = raw._replace(text=clean_text(raw.text))
        if not block.text:
            continue
        if block.level is not None:
            above = [(level, text) for level, text in above if level < block.level]
        yield block, tuple(text for _, text in above)
        if block.level is not None:
            above.append((block.level, clean_text(block.title) or block.text))


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _format_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _drop_empty(grid: list[list[str]]) -> list[list[str]]:
    """The grid squared off, without empty rows and columns."""
    width = max((len(row) for row in grid), default=0)
    if width * len(grid) > _SQUARE_CELLS:
        return [row for row in grid if any(row)]
    square = [row + [""] * (width - len(row)) for row in grid if any(row)]
    used = [column for column in range(width) if any(row[column] for row in square)]
    return [[row[column] for column in used] for row in square]
