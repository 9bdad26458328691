"""Windows of equal size that overlap: no guess about the text, nothing to go wrong."""

from typing import Self

from pydantic import Field, model_validator

from agent.core.models import Frozen
from agent.knowledge.chunkers.document import Document, Span
from agent.knowledge.models import Chunk, ParserOutput


class FixedOptions(Frozen):
    """900 characters with 120 of the window before: the defaults of the retrieval seed."""

    size: int = Field(default=900, ge=1, le=100_000, description="characters of a window")
    overlap: int = Field(default=120, ge=0, description="characters that a window shares with the one before")

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError("overlap must be smaller than size")
        return self


class FixedChunker:
    """Cuts anywhere, in the middle of words too."""

    def __init__(self, options: FixedOptions | None = None) -> None:
        self._options = options or FixedOptions()

    def chunk(self, output: ParserOutput) -> list[Chunk]:
        """Windows from the beginning to the end; white space at a window's ends does not count to its chunk."""
        document = Document(output)
        length, step = len(document.text), self._options.size - self._options.overlap
        starts = range(0, max(length - self._options.overlap, 1), step)
        return document.chunks(Span(start, min(start + self._options.size, length)) for start in starts)
