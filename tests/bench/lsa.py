"""Latent semantic analysis (Deerwester et al., 1990) as an embedder: a stand-in for a model where there is none."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded
from agent.text.terms import extract_terms


class LsaEmbedder:
    """Fitted on the texts it will be asked about; it knows no word beyond them."""

    def __init__(self, texts: Sequence[str], dimension: int = 150) -> None:
        counted = [Counter(extract_terms(text)) for text in dict.fromkeys(texts)]
        spread = Counter(term for counts in counted for term in counts)
        self._rarity = {term: math.log(len(counted) / count) for term, count in spread.items()}
        self._places = {term: at for at, term in enumerate(spread)}
        matrix = np.stack([self._row(counts) for counts in counted])
        _, axes = np.linalg.eigh(matrix @ matrix.T)
        basis = matrix.T @ axes[:, ::-1][:, :dimension]
        self._basis = basis / (np.linalg.norm(basis, axis=0) + 1e-9)
        self._space = VectorSpace("lsa", self._basis.shape[1])

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`."""
        rows = np.stack([self._row(Counter(extract_terms(text))) for text in texts]) @ self._basis
        return Embedded(self._space, tuple(tuple(row) for row in rows.tolist()))

    async def aclose(self) -> None:
        """Nothing to close."""

    def _row(self, counts: Counter[str]) -> NDArray[np.float64]:
        row = np.zeros(len(self._places))
        for term, count in counts.items():
            if term in self._places:
                row[self._places[term]] = (1 + math.log(count)) * self._rarity[term]
        return row / (np.linalg.norm(row) or 1.0)
