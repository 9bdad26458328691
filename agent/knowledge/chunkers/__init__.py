"""Chunkers: a parsed document becomes the pieces that are indexed. Each is a pure function of document and options."""

from typing import Protocol

from agent.knowledge.chunkers.document import document_text
from agent.knowledge.chunkers.fixed import FixedChunker, FixedOptions
from agent.knowledge.chunkers.sentence import SentenceChunker, SentenceOptions
from agent.knowledge.chunkers.structure import StructureChunker, StructureOptions
from agent.knowledge.models import Chunk, ParserOutput


class Chunker(Protocol):
    """Cuts a document. Every chunk `c` is `document_text(output)[c.start:c.end]`, and no word is in none."""

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """The chunks in the order of the text; the same document and options give the same chunks and ids."""
        ...


__all__ = [
    "Chunker",
    "FixedChunker",
    "FixedOptions",
    "SentenceChunker",
    "SentenceOptions",
    "StructureChunker",
    "StructureOptions",
    "document_text",
]
