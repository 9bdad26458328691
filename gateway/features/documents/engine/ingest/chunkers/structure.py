"""Chunks along the document's structure: sections, paragraphs, lists, whole tables."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Self

from pydantic import Field, model_validator

from agent.core.models import FrozenModel
from gateway.features.documents.engine.ingest.chunkers.document_layout import Document, PlacedBlock, Span
from gateway.features.documents.engine.ingest.chunkers.splitting import cut_oversized, pack, split_sentences
from gateway.features.documents.engine.search.models import Chunk, ParserOutput


class StructureOptions(FrozenModel):
    """Chunk sizes of prose and of tables. Tables get more, because half a table is worth less than half a section."""

    size: int = Field(default=900, ge=1, le=100_000, description="characters of a chunk of prose at most")
    table_size: int = Field(default=1800, ge=1, le=100_000, description="characters of a table that stays whole")

    @model_validator(mode="after")
    def _check_table_size(self) -> Self:
        if self.table_size < self.size:
            raise ValueError("table_size must not be smaller than size")
        return self


class StructureChunker:
    """Splits between blocks.

    A chunk never crosses a heading and starts with its heading if it is the section's first. Paragraphs and list items
    stay together while they fit. A table that fits stays whole; a larger one is split between rows.
    """

    def __init__(self, options: StructureOptions | None = None) -> None:
        self._options = options or StructureOptions()

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """Chunks without overlap, in order."""
        document = Document(output)
        return document.build_chunks(
            span for section in _split_sections(document.blocks) for span in self._split_section(document.text, section)
        )

    def _split_section(self, text: str, section: list[PlacedBlock]) -> Iterator[Span]:
        """Yields the whole section if it fits, else packs its parts; the headings go with the first."""
        whole = Span(section[0].start, section[-1].end)
        holds_table = any(placed.block.layout_type == "table" for placed in section)
        if whole.end - whole.start <= (self._options.table_size if holds_table else self._options.size):
            yield whole
            return
        yield from pack(self._split_parts(text, section), self._options.size)

    def _split_parts(self, text: str, section: list[PlacedBlock]) -> Iterator[Span]:
        """Yields the section's parts. A table that stays whole takes the headings above it along if there is room."""
        headings = [placed for placed in section if placed.block.layout_type == "header"]
        body = section[len(headings) :]
        if headings and body and body[0].block.layout_type == "table":
            joined = Span(headings[0].start, body[0].end)
            if joined.end - joined.start <= self._options.table_size:
                yield joined
                headings, body = [], body[1:]
        for placed in (*headings, *body):
            yield from self._split_block(text, placed)

    def _split_block(self, text: str, placed: PlacedBlock) -> Iterator[Span]:
        """Yields the block if it fits, else its rows or sentences."""
        span = Span(placed.start, placed.end)
        is_table = placed.block.layout_type == "table"
        if span.end - span.start <= (self._options.table_size if is_table else self._options.size):
            yield span
        else:
            cuts = _iter_table_rows(text, span) if is_table else split_sentences(text, span)
            yield from cut_oversized(text, cuts, self._options.size)


def _split_sections(blocks: tuple[PlacedBlock, ...]) -> Iterator[list[PlacedBlock]]:
    """Yields headings with all blocks up to the next heading; consecutive headings open one section."""
    section: list[PlacedBlock] = []
    for before, placed in pairwise((None, *blocks)):
        assert placed is not None
        is_header = placed.block.layout_type == "header"
        if section and is_header and before is not None and before.block.layout_type != "header":
            yield section
            section = []
        section.append(placed)
    if section:
        yield section


def _iter_table_rows(text: str, span: Span) -> Iterator[Span]:
    """Yields a table's rows; the header stays with the line below it."""
    start = span.start
    header = text.find("\n", text.find("\n", span.start, span.end) + 1, span.end)
    for end in [place + 1 for place in range(max(header, span.start), span.end) if text[place] == "\n"]:
        yield Span(start, end)
        start = end
    if start < span.end:
        yield Span(start, span.end)
