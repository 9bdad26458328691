"""Texts to vectors: an embeddings endpoint by URL, and the local fallback that needs nothing and always works."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Protocol

import httpx

from agent.core.errors import EmbedderError
from agent.core.llm.faults import provider_message
from agent.core.vectors import Space

MAX_TEXT_CHARS = 8_000
"""What of a text is embedded; the usual models read about 8,000 tokens, the small ones 512."""
MAX_BATCH = 128
"""Texts a call; endpoints refuse more than a few hundred."""
MAX_REPLY_BYTES = 50_000_000
REST_SECONDS = 30.0
"""How long an endpoint that failed is left alone, so that a hanging one does not slow every request."""


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


class HttpEmbedder:
    """OpenAI-style `POST {url}/embeddings`: OpenAI, a LiteLLM proxy, Ollama, vLLM, Text Embeddings Inference."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = url if url.endswith("/embeddings") else f"{url}/embeddings"
        self._model = model
        self._timeout_s = timeout_s
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(transport=transport, headers=headers, trust_env=False, timeout=timeout_s)
        self._failed: tuple[float, str] | None = None

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`. After a failure the endpoint is left alone for `REST_SECONDS`."""
        if self._failed is not None and monotonic() - self._failed[0] < REST_SECONDS:
            raise EmbedderError(self._failed[1], agent_id="embedder")
        try:
            parts = [await self._call(texts[at : at + MAX_BATCH]) for at in range(0, len(texts), MAX_BATCH)]
        except EmbedderError as error:
            self._failed = (monotonic(), error.message)
            raise
        self._failed = None
        spaces = {part.space for part in parts}
        if len(spaces) > 1:
            raise EmbedderError(f"{self._url} changed its model between two calls", agent_id="embedder")
        return Embedded(parts[0].space, tuple(vector for part in parts for vector in part.vectors))

    async def aclose(self) -> None:
        """See `Embedder.aclose`."""
        await self._client.aclose()

    async def _call(self, texts: Sequence[str]) -> Embedded:
        body = {"input": [text[:MAX_TEXT_CHARS] or " " for text in texts], "model": self._model or "default"}
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                reply = bytearray()
                async for chunk in response.aiter_bytes():
                    reply += chunk
                    if len(reply) > MAX_REPLY_BYTES:
                        raise EmbedderError(f"{self._url} sent more than {MAX_REPLY_BYTES:,} bytes")
        except httpx.TimeoutException as error:
            raise EmbedderError(
                f"{self._url} gave no vectors within {self._timeout_s:g} s (AGENT_EMBEDDER_TIMEOUT_S)",
                agent_id="embedder",
            ) from error
        except httpx.HTTPError as error:
            raise EmbedderError(
                f"{self._url} cannot be reached: {str(error) or type(error).__name__}", agent_id="embedder"
            ) from error
        if response.status_code >= 400:
            raise EmbedderError(
                f"{self._url} answered {response.status_code}: {provider_message(bytes(reply))}", agent_id="embedder"
            )
        return self._read(bytes(reply), len(texts))

    def _read(self, reply: bytes, count: int) -> Embedded:
        """The vectors of a reply, in the order of its indexes."""
        try:
            data = json.loads(reply)
            entries = sorted(data["data"], key=lambda entry: entry["index"])
            vectors = tuple(tuple(float(number) for number in entry["embedding"]) for entry in entries)
            named = str(data.get("model") or "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EmbedderError(f"{self._url} sent no embeddings", agent_id="embedder") from error
        if len(vectors) != count or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
            raise EmbedderError(
                f"{self._url} sent {len(vectors)} vectors for {count} texts, or of unequal length", agent_id="embedder"
            )
        if not all(math.isfinite(number) for vector in vectors for number in vector):
            raise EmbedderError(f"{self._url} sent numbers that are none", agent_id="embedder")
        return Embedded(Space(self._model or named or "default", len(vectors[0])), vectors)


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
        length = math.sqrt(math.fsum(number * number for number in numbers))
        return tuple(number / length for number in numbers) if length else tuple(numbers)


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
