"""`LocalEmbedder`: hashed words and pieces of words. Needs nothing, always works, knows no meaning."""

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agent.core.embedder.port import MAX_TEXT_CHARS, Embedded
from agent.core.vectors import Space

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
    """Words and pieces of words hashed to signs in 384 places (the hashing trick: Weinberger et al., 2009).

    It finds the same words, their inflections and misspellings, not their meaning. Deterministic in every process."""

    space = Space("stepgate-local-1", 384)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`."""
        return Embedded(self.space, tuple(self.vector(text) for text in texts))

    async def aclose(self) -> None:
        """Nothing to close."""

    def vector(self, text: str) -> tuple[float, ...]:
        """The vector of a text, of length one; of length zero for a text without words."""
        counts: dict[tuple[int, int], float] = {}
        for feature, weight in _features(text[:MAX_TEXT_CHARS]):
            place = _place(feature, self.space.dimension)
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


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Words, and their pieces of four letters, each with its weight; the pieces of a word share the word's weight."""
    for word in _WORD.findall(text.casefold()):
        weight = 0.1 if word in _COMMON else 1.0
        yield word, weight
        padded = f"<{word}>"
        pieces = [padded[at : at + 4] for at in range(len(padded) - 3)]
        for piece in pieces:
            yield f"#{piece}", weight / math.sqrt(len(pieces))


@lru_cache(maxsize=50_000)
def _place(feature: str, dimension: int) -> tuple[int, int]:
    """Where a feature stands and with which sign. Not `hash`: that differs from process to process."""
    number = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return number % dimension, 1 if number >> 63 else -1
