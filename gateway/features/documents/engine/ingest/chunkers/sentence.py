"""Whole sentences, as many as fit; the last ones are repeated in the next chunk."""

from collections.abc import Iterator, Sequence
from typing import Self

from pydantic import Field, model_validator

from agent.core.models import FrozenModel
from gateway.features.documents.engine.ingest.chunkers.document_layout import Document, Span
from gateway.features.documents.engine.ingest.chunkers.splitting import cut_oversized, split_sentences
from gateway.features.documents.engine.search.models import Chunk, ParserOutput


class SentenceOptions(FrozenModel):
    """Chunk size and overlap."""

    size: int = Field(default=900, ge=1, le=100_000, description="characters of a chunk at most")
    overlap: int = Field(default=120, ge=0, description="characters of whole sentences repeated at most")

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError("overlap must be smaller than size")
        return self


class SentenceChunker:
    """Splits at sentence ends, and inside a sentence only if it is longer than a chunk."""

    def __init__(self, options: SentenceOptions | None = None) -> None:
        self._options = options or SentenceOptions()

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """Chunks of whole sentences in text order."""
        document = Document(output)
        whole = Span(0, len(document.text))
        parts = list(cut_oversized(document.text, split_sentences(document.text, whole), self._options.size))
        return document.build_chunks(self._iter_windows(parts))

    def _iter_windows(self, parts: Sequence[Span]) -> Iterator[Span]:
        first = 0
        while first < len(parts):
            after = first + 1
            while after < len(parts) and parts[after].end - parts[first].start <= self._options.size:
                after += 1
            yield Span(parts[first].start, parts[after - 1].end)
            if after == len(parts):
                return
            first = self._overlap_start(parts, first, after)

    def _overlap_start(self, parts: Sequence[Span], first: int, after: int) -> int:
        """The first sentence of the next window: as far back as the overlap allows, but always with
        progress."""
        place = after
        while place - 1 > first and self._may_repeat(parts, place - 1, after):
            place -= 1
        return place

    def _may_repeat(self, parts: Sequence[Span], place: int, after: int) -> bool:
        repeated = parts[after].start - parts[place].start
        return repeated <= self._options.overlap and parts[after].end - parts[place].start <= self._options.size
