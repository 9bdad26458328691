"""`Embedder`: the contract of everything that makes vectors of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.core.vectors import Space

MAX_TEXT_CHARS = 8_000
"""What of a text is embedded; the usual models read about 8,000 tokens, the small ones 512."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts, and the space they belong to."""

    space: Space
    vectors: tuple[tuple[float, ...], ...]


class Embedder(Protocol):
    """Makes vectors. The same text gives the same vector in every process."""

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """A vector a text; at least one text. Raises `EmbedderError`."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@runtime_checkable
class Literate(Protocol):
    """An embedder that knows which texts its model was made for."""

    def pieces_a_word(self, text: str) -> float:
        """Into how many pieces the model's vocabulary breaks a word of the text: below two for the languages it was
        made for, about as many as letters for a script it knows letters of; infinity for words it does not know."""
        ...
