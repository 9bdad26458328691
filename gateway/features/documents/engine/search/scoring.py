"""Scores a passage by evidence that is comparable between queries, and explains the choice.

`compute_relevance` gives the documented scale of `RetrievedContext.relevance_score`, the same in every mode and for
collections of any size. By its words, the best hit has

    0.9   if it contains nearly all query terms, close together
    0.7   if it contains about half of them, weighted by idf, most of those close together
    0.4   if it contains a third; 0.2 if it contains one uninformative term

and other hits less, by their score relative to the best. Filler words ("explain", "which documents") count a quarter.
The idf is computed as if there were a hundred more passages (`bm25.py`), so that among two documents a missing word
proves little. By its vector alone a passage has 0.7 if it is as near to the query as the halves of one passage are to
each other (`embedder_calibration.py`), and less than 0.3 at half of that; agreement of both raises the score. The
score says whether a passage is about the query, not whether it answers it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise

from gateway.features.documents.engine.search.bm25 import BM25_K1
from gateway.features.documents.engine.search.fusion import blend_scores, normalize_similarity
from gateway.features.documents.engine.search.lexical import IndexedPassage, LexicalHit, LexicalResult

WINDOW_TERMS = 24
"""Terms that stand close together: about two sentences with their small words."""
MAX_PHRASE_GAP = 2
"""Neighbours of the query may have one word between them in the text."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Shares from 0 to 1.

    `relative_score` is the score relative to the best hit; `saturation` relative to the highest possible score for the
    terms it contains, times `coverage`. `coverage`, `title_coverage` and `proximity` are weighted shares of the query
    terms: contained at all, contained in the title, contained within `WINDOW_TERMS` terms of each other. `phrase_share`
    is the share of neighbouring query terms that are neighbours in the passage too. `similarity` is that of the
    vectors, or None.
    """

    relative_score: float = 0.0
    saturation: float = 0.0
    coverage: float = 0.0
    title_coverage: float = 0.0
    proximity: float = 0.0
    phrase_share: float = 0.0
    similarity: float | None = None


def collect_evidence(
    indexed: IndexedPassage, hit: LexicalHit | None, best: float, words: LexicalResult, similarity: float | None
) -> Evidence:
    """The evidence for a passage. `best` is the best lexical score of the search."""
    weights = words.weights
    total = sum(weights.values())
    if not total or hit is None or not hit.score:
        return Evidence(similarity=similarity)
    # Few terms of a passage are query terms; `compress` skips the others without executing Python code for each.
    terms = indexed.text_terms
    positions = [(at, terms[at]) for at in compress(range(len(terms)), map(weights.__contains__, terms))]
    title = {term for term in indexed.title_terms if term in weights}
    most = sum(words.idf[term] for term in title.union(term for _, term in positions)) * (BM25_K1 + 1)
    return Evidence(
        relative_score=hit.score / best if best else 0.0,
        saturation=hit.coverage * min(1.0, hit.score / most) if most else 0.0,
        coverage=hit.coverage,
        title_coverage=sum(weights[term] for term in title) / total,
        proximity=_find_max_window_weight(positions, weights) / total,
        phrase_share=_compute_phrase_share(
            [*positions, *_list_title_positions(indexed, weights)], list(weights), weights
        ),
        similarity=similarity,
    )


def compute_relevance(evidence: Evidence) -> float:
    """The relevance of a passage, from 0 to 1.

    Words and vector each go through a logistic curve, and agreement raises the result. The weights are rounded from
    regressions on judged and on absent answers in four collections.
    """
    words = _apply_logistic(
        evidence.relative_score + 1.5 * evidence.saturation + 3.5 * evidence.coverage + 0.5 * evidence.title_coverage
        + 0.8 * evidence.proximity + 0.5 * evidence.phrase_share - 3.1
    ) if evidence.coverage else 0.0  # fmt: skip
    vector = 0.0 if evidence.similarity is None else _apply_logistic(4.0 * (evidence.similarity - 0.8))
    high, low = max(words, vector), min(words, vector)
    return 1 - (1 - high) * (1 - low / 2)


def compute_rank_score(evidence: Evidence, best_near: float, weight: float) -> float:
    """The sort key of the reranker: BM25F, then title, proximity and phrases, plus the weighted vector.

    On Cranfield, weights between half and twice these differ by less than a hundredth.
    """
    words = (
        evidence.relative_score + 0.3 * evidence.title_coverage + 0.2 * evidence.proximity + 0.1 * evidence.phrase_share
    )
    return blend_scores(words, normalize_similarity(evidence.similarity or 0.0, best_near), weight)


def make_monotone(scores: Sequence[float]) -> list[float]:
    """The scores in ranking order, made non-increasing by pooling neighbours (isotonic regression).

    The scale of the scores is kept.
    """
    pools: list[tuple[float, int]] = []
    for score in scores:
        value, size = score, 1
        while pools and pools[-1][0] < value:
            before, count = pools.pop()
            value, size = (before * count + value * size) / (count + size), count + size
        pools.append((value, size))
    return [value for value, size in pools for _ in range(size)]


def format_reason(evidence: Evidence, held: Sequence[str], missing: Sequence[str], *, strict: bool) -> str:
    """The reason for choosing a passage, for people."""
    parts = []
    if held:
        term_list = ", ".join(held[:6]) + (" ..." if len(held) > 6 else "")
        parts.append(f"holds every word of the query ({term_list})" if strict else f"holds {term_list}")
    if not strict and held and missing:
        parts.append(f"lacks {', '.join(missing[:3])}" + (" ..." if len(missing) > 3 else ""))
    if evidence.title_coverage >= 0.3:
        parts.append("the title speaks of it")
    if evidence.phrase_share >= 0.5:
        parts.append("words stand as in the query")
    elif evidence.proximity >= 0.5 and len(held) > 1:
        parts.append("words stand close together")
    if evidence.similarity is not None and evidence.similarity > 0:
        parts.append(f"near in meaning ({evidence.similarity:.0%} as near as halves of one passage are)")
    return "; ".join(parts) or "near the query"


def _find_max_window_weight(positions: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> float:
    """The greatest total weight of different terms within a window."""
    best = window_weight = 0.0
    counts: dict[str, int] = {}
    start = 0
    for at, term in positions:
        counts[term] = counts.get(term, 0) + 1
        window_weight += weights[term] if counts[term] == 1 else 0.0
        while at - positions[start][0] >= WINDOW_TERMS:
            left = positions[start][1]
            counts[left] -= 1
            window_weight -= weights[left] if not counts[left] else 0.0
            start += 1
        best = max(best, window_weight)
    return best


def _compute_phrase_share(
    positions: Sequence[tuple[int, str]], query: Sequence[str], weights: Mapping[str, float]
) -> float:
    wanted = set(pairwise(query))
    seen = {
        (a, b) for (at, a), (then, b) in pairwise(positions) if 0 < then - at <= MAX_PHRASE_GAP and (a, b) in wanted
    }
    total = sum(min(weights[a], weights[b]) for a, b in wanted)
    return sum(min(weights[a], weights[b]) for a, b in seen) / total if total else 0.0


def _list_title_positions(indexed: IndexedPassage, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    """The positions of terms in the title, far behind those of the text."""
    return [(at + 1_000_000, term) for at, term in enumerate(indexed.title_terms) if term in weights]


def _apply_logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
