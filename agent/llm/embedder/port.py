"""`Embedder`: the contract of everything that computes embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.core.vector_space import VectorSpace

MAX_TEXT_CHARS = 8_000
"""The characters of a text that are embedded; the usual models read about 8,000 tokens, the small ones 512."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts, and their vector space."""

    space: VectorSpace
    vectors: tuple[tuple[float, ...], ...]


class Embedder(Protocol):
    """Computes embeddings. The same text gives the same vector in every process."""

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector for each text; at least one text is required. Raises `EmbedderError`."""
        ...

    async def aclose(self) -> None:
        """Closes connections."""
        ...


@runtime_checkable
class LanguageAwareEmbedder(Protocol):
    """An embedder that knows which languages its model was trained for."""

    def count_tokens_per_word(self, text: str) -> float:
        """The average number of vocabulary tokens per word of the text.

        Below two for the model's languages, about the number of letters for a script it only knows letters of, infinity
        for
        words it does not know.
        """
        ...


EMBEDDER_SETTINGS = "AGENT_EMBEDDER_URL, AGENT_EMBEDDER_MODEL or AGENT_EMBEDDER_MODEL_DIR"
"""The source of an embedder: an endpoint, a provider's model, a folder with a model that runs here."""
