"""Chunks along the document's own structure: sections, paragraphs, lists, whole tables."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Self

from pydantic import Field, model_validator

from agent.core.models import Frozen
from agent.knowledge.chunkers.cutting import fitted, packed, sentences
from agent.knowledge.chunkers.document import Document, Placed, Span
from agent.knowledge.models import Chunk, ParserOutput


class StructureOptions(Frozen):
    """Sizes of prose and, because half a table is worth less than half a section, of tables."""

    size: int = Field(default=900, ge=1, le=100_000, description="characters of a chunk of prose at most")
    table_size: int = Field(default=1800, ge=1, le=100_000, description="characters of a table that stays whole")

    @model_validator(mode="after")
    def _tables_are_larger(self) -> Self:
        if self.table_size < self.size:
            raise ValueError("table_size must not be smaller than size")
        return self


class StructureChunker:
    """A chunk never crosses a heading; it begins with its heading where it is the section's first. Paragraphs and list
    items stay together as long as they fit; a table that fits is never cut, a larger one between its rows only."""

    def __init__(self, options: StructureOptions | None = None) -> None:
        self._options = options or StructureOptions()

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """Chunks without overlap, in order."""
        document = Document(output)
        return document.chunks(
            span for section in _sections(document.blocks) for span in self._pieces(document.text, section)
        )

    def _pieces(self, text: str, section: list[Placed]) -> Iterator[Span]:
        """The section in one piece if it fits, else packed from its parts, the headings with the first."""
        whole = Span(section[0].start, section[-1].end)
        holds_table = any(placed.block.layout_type == "table" for placed in section)
        if whole.end - whole.start <= (self._options.table_size if holds_table else self._options.size):
            yield whole
            return
        yield from packed(self._with_headings(text, section), self._options.size)

    def _with_headings(self, text: str, section: list[Placed]) -> Iterator[Span]:
        """The section's parts. A table that stays whole takes the headings above it along where there is room."""
        headings = [placed for placed in section if placed.block.layout_type == "header"]
        body = section[len(headings) :]
        if headings and body and body[0].block.layout_type == "table":
            joined = Span(headings[0].start, body[0].end)
            if joined.end - joined.start <= self._options.table_size:
                yield joined
                headings, body = [], body[1:]
        for placed in (*headings, *body):
            yield from self._parts(text, placed)

    def _parts(self, text: str, placed: Placed) -> Iterator[Span]:
        """A block that fits, or its rows or sentences."""
        span = Span(placed.start, placed.end)
        is_table = placed.block.layout_type == "table"
        if span.end - span.start <= (self._options.table_size if is_table else self._options.size):
            yield span
        else:
            cuts = _lines(text, span) if is_table else sentences(text, span)
            yield from fitted(text, cuts, self._options.size)


def _sections(blocks: tuple[Placed, ...]) -> Iterator[list[Placed]]:
    """Headings with all that follows, up to the next heading; headings that follow each other open one section."""
    section: list[Placed] = []
    for before, placed in pairwise((None, *blocks)):
        assert placed is not None
        is_header = placed.block.layout_type == "header"
        if section and is_header and before is not None and before.block.layout_type != "header":
            yield section
            section = []
        section.append(placed)
    if section:
        yield section


def _lines(text: str, span: Span) -> Iterator[Span]:
    """A table's rows; the header stays with the rule below it."""
    start = span.start
    header = text.find("\n", text.find("\n", span.start, span.end) + 1, span.end)
    for end in [place + 1 for place in range(max(header, span.start), span.end) if text[place] == "\n"]:
        yield Span(start, end)
        start = end
    if start < span.end:
        yield Span(start, span.end)
