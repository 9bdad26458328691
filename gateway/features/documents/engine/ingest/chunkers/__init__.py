"""Chunkers split a parsed document into the pieces that are indexed. Each is a pure function of document and
options."""

from typing import Protocol

from gateway.features.documents.engine.ingest.chunkers.document_layout import join_document_text
from gateway.features.documents.engine.ingest.chunkers.fixed import FixedChunker, FixedOptions
from gateway.features.documents.engine.ingest.chunkers.sentence import SentenceChunker, SentenceOptions
from gateway.features.documents.engine.ingest.chunkers.structure import StructureChunker, StructureOptions
from gateway.features.documents.engine.search.models import Chunk, ParserOutput


class Chunker(Protocol):
    """Splits a document. Every chunk `c` equals `join_document_text(output)[c.start:c.end]`, and every word is in
    a chunk."""

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """The chunks in text order. The same document and options give the same chunks and ids."""
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
