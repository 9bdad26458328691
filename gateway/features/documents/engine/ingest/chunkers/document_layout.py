"""A parsed document as one text, and pieces of it with their pages, boxes and headings."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from gateway.features.documents.engine.search.models import Chunk, ChunkBlock, LayoutType, ParsedChunk, ParserOutput

SEPARATOR = "\n\n"
"""The separator of two blocks in a document's text."""


class Span(NamedTuple):
    """A piece of the text: `text[start:end]`, in characters."""

    start: int
    end: int


class PlacedBlock(NamedTuple):
    """A block and its position in the document's text."""

    block: ParsedChunk
    start: int
    end: int


def join_document_text(output: ParserOutput) -> str:
    """The text that chunk offsets refer to: the blocks in order, joined by blank lines."""
    return SEPARATOR.join(block.content for block in output.chunks)


class Document:
    """A parser's output laid out as one text."""

    def __init__(self, output: ParserOutput) -> None:
        self.document_id = output.document_id
        self.text = join_document_text(output)
        self.blocks = tuple(_place_blocks(output.chunks))
        self._starts = [placed.start for placed in self.blocks]

    def build_chunks(self, spans: Iterable[Span]) -> list[Chunk]:
        """Numbered chunks for these spans, without surrounding white space.

        Spans that are empty, or lie within the chunk before, are dropped.
        """
        chunks: list[Chunk] = []
        for span in map(self._trim, spans):
            if span.end > (chunks[-1].end if chunks else 0):
                chunks.append(self._make_chunk(len(chunks), span))
        return chunks

    def find_blocks(self, span: Span) -> list[PlacedBlock]:
        """The blocks that lie, wholly or in part, in a span."""
        first = max(bisect_right(self._starts, span.start) - 1, 0)
        blocks = []
        for placed in self.blocks[first:]:
            if placed.start >= span.end:
                break
            if placed.end > span.start:
                blocks.append(placed)
        return blocks

    def _trim(self, span: Span) -> Span:
        piece = self.text[span.start : span.end]
        lead = len(piece) - len(piece.lstrip())
        return Span(span.start + lead, span.end - (len(piece) - len(piece.rstrip()))) if piece.strip() else Span(0, 0)

    def _make_chunk(self, index: int, span: Span) -> Chunk:
        text = self.text[span.start : span.end]
        overlapping = self.find_blocks(span)
        blocks = [placed.block for placed in overlapping]
        checksum = hashlib.sha256(text.encode()).hexdigest()
        identity = hashlib.sha256(f"{self.document_id}:{span.start}:{span.end}:{checksum}".encode()).hexdigest()
        return Chunk(
            chunk_id=f"{self.document_id[:12]}-{identity[:20]}",
            document_id=self.document_id,
            index=index,
            text=text,
            start=span.start,
            end=span.end,
            pages=tuple(sorted({block.page_number for block in blocks if block.page_number is not None})),
            boxes=tuple((block.page_number or 1, *block.bbox) for block in blocks if block.bbox is not None),
            blocks=tuple(_make_chunk_block(placed) for placed in overlapping) if any(map(_is_placed, blocks)) else (),
            heading_path=_find_heading_path(blocks),
            layout_type=_find_common_layout(blocks),
            checksum=checksum,
        )


def _place_blocks(blocks: Iterable[ParsedChunk]) -> Iterable[PlacedBlock]:
    start = 0
    for block in blocks:
        yield PlacedBlock(block, start, start + len(block.content))
        start += len(block.content) + len(SEPARATOR)


def _is_placed(block: ParsedChunk) -> bool:
    return block.page_number is not None or block.bbox is not None


def _make_chunk_block(placed: PlacedBlock) -> ChunkBlock:
    block = placed.block
    return ChunkBlock(start=placed.start, end=placed.end, page=block.page_number, box=block.bbox)


def _find_heading_path(blocks: list[ParsedChunk]) -> tuple[str, ...]:
    """The headings above the first block that is not a heading: a chunk's own heading counts as above it."""
    return next((block.heading_path for block in blocks if block.layout_type != "header"), blocks[-1].heading_path)


def _find_common_layout(blocks: list[ParsedChunk]) -> LayoutType:
    """The layout that all blocks below the headings share, or `text`."""
    kinds = {block.layout_type for block in blocks if block.layout_type != "header"}
    if not kinds:
        return "header"
    return kinds.pop() if len(kinds) == 1 else "text"
