"""BM25F (Robertson et al., 2004): scores a passage by its weighted term counts in title and text.

`tantivy_index.py` scores the passages that its index proposes, `retriever.py` those that only the vector search found.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress

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


def compute_idf(passages: float, matching: float) -> float:
    """Returns BM25's inverse document frequency of a term that `matching` of `passages` contain."""
    return math.log(1 + (passages - matching + 0.5) / (matching + 0.5))


def compute_coverage_weight(passages: int, matching: int) -> float:
    """Returns the weight of a term for coverage: its idf with the background passages added."""
    return compute_idf(passages + BACKGROUND_PASSAGES, matching + BACKGROUND_HOLDING)


def score_passage(result: LexicalResult, indexed: IndexedPassage) -> LexicalHit | None:
    """Returns the hit of a passage, or None if it contains none of the query terms. Its terms may be variants."""
    titles, texts = _count_terms(result, indexed.title_terms), _count_terms(result, indexed.text_terms)
    held = titles.keys() | texts.keys()
    if not held:
        return None
    title_factor = TITLE_WEIGHT / _normalize_length(len(indexed.title_terms), result.mean_lengths[0], TITLE_B)
    text_factor = 1 / _normalize_length(len(indexed.text_terms), result.mean_lengths[1], TEXT_B)
    score = 0.0
    for term in result.idf:  # in the order of the query, so that equal passages have equal scores to the last bit
        if term in held:
            count = titles[term] * title_factor + texts[term] * text_factor
            score += result.idf[term] * count * (BM25_K1 + 1) / (count + BM25_K1)
    total = sum(result.weights.values()) or 1.0
    coverage = min(1.0, sum(result.weights[term] for term in result.idf if term in held) / total)
    return LexicalHit(indexed, score, coverage, len(held) == len(result.idf))


def _count_terms(result: LexicalResult, terms: Sequence[str]) -> Counter[str]:
    """Returns how often each query term stands in the terms of a passage."""
    known = result.idf.keys() | result.variants.keys()
    # Few terms of a passage are query terms; `compress` skips the others without executing Python code for each.
    return Counter(result.variants.get(term, term) for term in compress(terms, map(known.__contains__, terms)))


def _normalize_length(count: int, mean: float, share: float) -> float:
    return 1 - share + share * count / (mean or 1.0)
