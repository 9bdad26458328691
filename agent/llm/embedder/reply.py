"""Parses and validates an OpenAI-style embeddings response from an endpoint or from LiteLLM."""

import math
from typing import Any

from agent.core.vector_space import VectorSpace
from agent.llm.embedder.batches import CallError
from agent.llm.embedder.port import Embedded


def read_vectors(data: Any, count: int, who: str, model: str | None) -> Embedded:
    """The vectors of `count` texts, in the order of the reply's indexes. Raises `CallError` for anything else.

    The vector space is named after the requested model, or after the one the reply names.
    """
    try:
        entries = sorted(data["data"], key=lambda entry: entry["index"])
        vectors = tuple(tuple(float(number) for number in entry["embedding"]) for entry in entries)
        named = str(data.get("model") or "")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CallError(f"{who} sent no embeddings") from error
    if len(vectors) != count or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise CallError(f"{who} sent {len(vectors)} vectors for {count} texts, or of unequal length")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise CallError(f"{who} sent values that are not numbers")
    return Embedded(VectorSpace(model or named or "default", len(vectors[0])), vectors)
