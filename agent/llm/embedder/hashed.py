"""`LocalEmbedder`: vectors of hashed words and character n-grams. Needs no model; matches words, not meaning."""

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agent.core.vector_space import VectorSpace
from agent.llm.embedder.port import MAX_TEXT_CHARS, Embedded

_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have", "how", "i",
    "in", "is", "it", "its", "me", "my", "of", "on", "or", "so", "that", "the", "this", "to", "was", "we", "what",
    "when", "where", "which", "who", "why", "will", "with", "you", "your", "att", "av", "de", "den", "det", "du",
    "en", "ett", "för", "har", "hur", "inte", "jag", "med", "men", "min", "mitt", "mina", "när", "och", "om", "på",
    "som", "till", "var", "vad", "vem", "är",
))  # fmt: skip
"""Words that say little, of English and Swedish: they count a tenth."""


class LocalEmbedder:
    """Hashes words and their pieces to 384 signed dimensions (the hashing trick: Weinberger et al., 2009).

    Matches equal words, inflections and misspellings. Deterministic across processes.
    """

    space = VectorSpace("stepgate-local-1", 384)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`."""
        return Embedded(self.space, tuple(self.compute_vector(text) for text in texts))

    async def aclose(self) -> None:
        """Does nothing: there is nothing to close."""

    def compute_vector(self, text: str) -> tuple[float, ...]:
        """The unit vector of a text; a zero vector for a text without words."""
        counts: dict[tuple[int, int], float] = {}
        for feature, weight in _extract_features(text[:MAX_TEXT_CHARS]):
            place = _hash_feature(feature, self.space.dimension)
            counts[place] = counts.get(place, 0.0) + weight
        numbers = [0.0] * self.space.dimension
        for (index, sign), weight in counts.items():
            numbers[index] += sign * (1.0 + math.log(weight) if weight > 1 else weight)
        # Most places are empty, and stay so: only those that are not are looked at again.
        places = {index for index, _ in counts}
        length = math.sqrt(math.fsum(numbers[index] * numbers[index] for index in places))
        for index in places if length else ():
            numbers[index] /= length
        return tuple(numbers)


def _extract_features(text: str) -> Iterator[tuple[str, float]]:
    """Yields words and their four-letter pieces with weights. The pieces of a word share the word's weight."""
    for word in _WORD.findall(text.casefold()):
        weight = 0.1 if word in _COMMON else 1.0
        yield word, weight
        padded = f"<{word}>"
        pieces = [padded[at : at + 4] for at in range(len(padded) - 3)]
        for piece in pieces:
            yield f"#{piece}", weight / math.sqrt(len(pieces))


@lru_cache(maxsize=50_000)
def _hash_feature(feature: str, dimension: int) -> tuple[int, int]:
    """A feature's dimension and sign. Does not use `hash`, which differs between processes."""
    number = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return number % dimension, 1 if number >> 63 else -1
