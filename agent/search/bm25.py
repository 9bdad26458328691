"""BM25F (Robertson et al., 2004): scores a passage by its weighted term counts in title and text.

`postings.py` scores whole collections, `retriever.py` a single passage that only the vector search found, both by the
same formula.
"""

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from agent.search.lexical import IndexedPassage, LexicalHit, LexicalResult

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

Floats = NDArray[np.float64]


def compute_idf(passages: float, matching: float) -> float:
    """Returns BM25's inverse document frequency of a term that `matching` of `passages` contain."""
    return math.log(1 + (passages - matching + 0.5) / (matching + 0.5))


def compute_coverage_weight(passages: int, matching: int) -> float:
    """Returns the weight of a term for coverage: its idf with the background passages added."""
    return compute_idf(passages + BACKGROUND_PASSAGES, matching + BACKGROUND_HOLDING)


def score_bm25f(
    rare: float | Floats, title: Floats, text: Floats, lengths: tuple[Floats, Floats], means: tuple[float, float]
) -> Floats:
    """Returns the BM25F scores of many passages for one term, or of one passage for many terms.

    `title` and `text` are the term counts, `lengths` the passage lengths in terms, `means` their means in the
    collection.
    """
    counts = TITLE_WEIGHT * title / _normalize_lengths(lengths[0], means[0], TITLE_B)
    counts = counts + text / _normalize_lengths(lengths[1], means[1], TEXT_B)
    scores: Floats = rare * counts * (BM25_K1 + 1) / (counts + BM25_K1)
    return scores


def score_passage(result: LexicalResult, indexed: IndexedPassage) -> LexicalHit | None:
    """Returns the hit of a passage that the lexical search did not rank, or None if it contains none of its terms."""
    titles, texts = Counter(indexed.title_terms), Counter(indexed.text_terms)
    held = [term for term in result.idf if term in titles or term in texts]
    if not held:
        return None
    counts = np.array([(result.idf[term], titles[term], texts[term]) for term in held], np.float64).T
    lengths = np.array(float(len(indexed.title_terms))), np.array(float(len(indexed.text_terms)))
    score = float(score_bm25f(counts[0], counts[1], counts[2], lengths, result.mean_lengths).sum())
    total = sum(result.weights.values()) or 1.0
    coverage = min(1.0, sum(result.weights[term] for term in held) / total)
    return LexicalHit(indexed, score, coverage, len(held) == len(result.idf))


def _normalize_lengths(counts: Floats, mean: float, share: float) -> Floats:
    factors: Floats = 1 - share + share * counts / (mean or 1.0)
    return factors
