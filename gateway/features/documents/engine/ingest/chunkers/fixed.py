"""Windows of equal size that overlap. The text's structure is ignored."""

from typing import Self

from pydantic import Field, model_validator

from agent.core.models import FrozenModel
from gateway.features.documents.engine.ingest.chunkers.document_layout import Document, Span
from gateway.features.documents.engine.search.models import Chunk, ParserOutput


class FixedOptions(FrozenModel):
    """Window size and overlap. The defaults are those of the retrieval design."""

    size: int = Field(default=900, ge=1, le=100_000, description="characters of a window")
    overlap: int = Field(default=120, ge=0, description="characters that a window shares with the one before")

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError("overlap must be smaller than size")
        return self


class FixedChunker:
    """Splits anywhere, also inside words."""

    def __init__(self, options: FixedOptions | None = None) -> None:
        self._options = options or FixedOptions()

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """Windows from start to end, without the white space at their ends."""
        document = Document(output)
        length, step = len(document.text), self._options.size - self._options.overlap
        starts = range(0, max(length - self._options.overlap, 1), step)
        return document.build_chunks(Span(start, min(start + self._options.size, length)) for start in starts)
