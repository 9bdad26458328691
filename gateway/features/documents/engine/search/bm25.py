"""BM25F (Robertson et al., 2004): scores a passage by its weighted term counts in title and text.

`tantivy_index.py` scores the passages that its index proposes, `retriever.py` those that only the vector search found.
"""

import math
from collections.abc import Sequence
from itertools import compress

from gateway.features.documents.engine.search.lexical import IndexedPassage, LexicalHit, LexicalResult

BM25_K1 = 1.6
"""BM25's k1. On Cranfield, values from 1.2 to 2 differ by less than a hundredth."""
TITLE_WEIGHT = 2.0
TEXT_B = 0.75
TITLE_B = 0.5
"""BM25's b for texts and titles: how much a long one lowers the score. The usual values."""
BACKGROUND_PASSAGES, BACKGROUND_HOLDING = 100.0, 2.0
"""Passages added to every collection when coverage weights are computed, and how many of them contain each term.

Without them, a term that both of two documents contain would weigh almost nothing. Among thousands of passages they
change little."""
FILLER_WEIGHT = 0.25
"""The weight of a filler word ("explain", "find") for coverage."""


def compute_idf(passages: float, matching: float) -> float:
    """BM25's inverse document frequency of a term that `matching` of `passages` contain."""
    return math.log(1 + (passages - matching + 0.5) / (matching + 0.5))


def compute_coverage_weight(passages: int, matching: int) -> float:
    """The weight of a term for coverage: its idf with the background passages added."""
    return compute_idf(passages + BACKGROUND_PASSAGES, matching + BACKGROUND_HOLDING)


class PassageScorer:
    """Scores passages for one search. What only depends on the search is computed once."""

    def __init__(self, result: LexicalResult) -> None:
        self._result = result
        self._known = result.idf.keys() | result.variants.keys()
        self._total_weight = sum(result.weights.values()) or 1.0

    def score(self, indexed: IndexedPassage) -> LexicalHit | None:
        """The hit of a passage, or None if it contains none of the query terms. Its terms may be variants."""
        result = self._result
        titles, texts = self._count_terms(indexed.title_terms), self._count_terms(indexed.text_terms)
        if not titles and not texts:
            return None
        title_factor = TITLE_WEIGHT / _normalize_length(len(indexed.title_terms), result.mean_lengths[0], TITLE_B)
        text_factor = 1 / _normalize_length(len(indexed.text_terms), result.mean_lengths[1], TEXT_B)
        score, coverage, matched_terms = 0.0, 0.0, 0
        for term, idf in result.idf.items():  # in the order of the query, so that equal passages have equal scores
            count = titles.get(term, 0) * title_factor + texts.get(term, 0) * text_factor
            if count:
                matched_terms += 1
                score += idf * count * (BM25_K1 + 1) / (count + BM25_K1)
                coverage += result.weights[term]
        return LexicalHit(indexed, score, min(1.0, coverage / self._total_weight), matched_terms == len(result.idf))

    def _count_terms(self, terms: Sequence[str]) -> dict[str, int]:
        """How often each query term occurs in the terms of a passage."""
        counts: dict[str, int] = {}
        variants = self._result.variants
        # Few terms of a passage are query terms; `compress` skips the others without executing Python code for each.
        for term in compress(terms, map(self._known.__contains__, terms)):
            meant = variants.get(term, term)
            counts[meant] = counts.get(meant, 0) + 1
        return counts


def _normalize_length(count: int, mean: float, share: float) -> float:
    return 1 - share + share * count / (mean or 1.0)
