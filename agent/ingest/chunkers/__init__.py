"""Chunkers split a parsed document into the pieces that are indexed. Each is a pure function of document and
options."""

from typing import Protocol

from agent.ingest.chunkers.document_layout import join_document_text
from agent.ingest.chunkers.fixed import FixedChunker, FixedOptions
from agent.ingest.chunkers.sentence import SentenceChunker, SentenceOptions
from agent.ingest.chunkers.structure import StructureChunker, StructureOptions
from agent.search.models import Chunk, ParserOutput


class Chunker(Protocol):
    """Splits a document. Every chunk `c` equals `join_document_text(output)[c.start:c.end]`, and every word is in
    a chunk."""

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """Returns the chunks in text order. The same document and options give the same chunks and ids."""
        ...


__all__ = [
    "Chunker",
    "FixedChunker",
    "FixedOptions",
    "SentenceChunker",
    "SentenceOptions",
    "StructureChunker",
    "StructureOptions",
    "join_document_text",
]
