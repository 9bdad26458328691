"""What speaks for a passage: measures that mean the same for every query, the relevance they amount to, the reason.

`relevance` is the documented scale of `RetrievedContext.relevance_score`, the same in every mode and for collections of
one document or of a million. By the words, the best hit has

    0.9   when it holds nearly all that the query asks for, close together
    0.7   when it holds about half of it, weighted by rarity, most of that close together
    0.4   when it holds a third; 0.2 when it holds one word that says little

and other hits less by how far they stay behind the best. Words of the asking ("explain", "which documents") count a
quarter, and rarity is counted as if a hundred more passages were there (`bm25.py`), so that among two documents a word
which neither holds is no proof of absence. By its vector alone a passage has 0.7 when it is as near to the query as the
halves of one passage are to each other (`selfcheck.py`), and below 0.3 at half of that; words and vector that agree
count more. It says whether a passage is about what was asked, not that it answers it: that is for who reads it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise

from agent.knowledge.bm25 import SATURATION
from agent.knowledge.fusion import blend, near_share
from agent.knowledge.lexical import Indexed, LexicalHit, LexicalResult

WINDOW = 24
"""Terms that stand close together: about two sentences with their small words."""
PHRASE_GAP = 2
"""Neighbours of the query may have one word between them in the text."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Shares from 0 to 1. `relative` is the score to the best hit's; `saturation` to the highest that a passage could
    have by the words it holds, times `coverage`; `coverage`, `title` and `near` are shares of the query's terms by
    weight: held at all, in the title, within `WINDOW` terms of each other; `phrase` of its neighbouring pairs.
    `nearness` is the vector's, None without one."""

    relative: float = 0.0
    saturation: float = 0.0
    coverage: float = 0.0
    title: float = 0.0
    near: float = 0.0
    phrase: float = 0.0
    nearness: float | None = None


def weigh(
    indexed: Indexed, hit: LexicalHit | None, best: float, words: LexicalResult, nearness: float | None
) -> Evidence:
    """The evidence for a passage that was found by these words. `best` is the best lexical score of the search."""
    weights = words.weights
    total = sum(weights.values())
    if not total or hit is None or not hit.score:
        return Evidence(nearness=nearness)
    # Most terms of a passage are not the query's: they are passed over without a step of Python each.
    terms = indexed.text_terms
    places = [(at, terms[at]) for at in compress(range(len(terms)), map(weights.__contains__, terms))]
    title = {term for term in indexed.title_terms if term in weights}
    most = sum(words.rarities[term] for term in title.union(term for _, term in places)) * (SATURATION + 1)
    return Evidence(
        relative=hit.score / best if best else 0.0,
        saturation=hit.coverage * min(1.0, hit.score / most) if most else 0.0,
        coverage=hit.coverage,
        title=sum(weights[term] for term in title) / total,
        near=_near(places, weights) / total,
        phrase=_phrase([*places, *_title_places(indexed, weights)], list(weights), weights),
        nearness=nearness,
    )


def relevance(evidence: Evidence) -> float:
    """The relevance of a passage, from 0 to 1: words and vector each by a logistic curve, agreement counting more.

    The weights of the words follow regressions on judged and on absent answers in four collections, rounded."""
    words = _logistic(
        evidence.relative + 1.5 * evidence.saturation + 3.5 * evidence.coverage + 0.5 * evidence.title
        + 0.8 * evidence.near + 0.5 * evidence.phrase - 3.1
    ) if evidence.coverage else 0.0  # fmt: skip
    vector = 0.0 if evidence.nearness is None else _logistic(4.0 * (evidence.nearness - 0.8))
    high, low = max(words, vector), min(words, vector)
    return 1 - (1 - high) * (1 - low / 2)


def rank_score(evidence: Evidence, best_near: float, weight: float) -> float:
    """What the reranker sorts by: BM25F, then title, nearness of the words, phrases, and the vector by its weight.

    On Cranfield any weights from half to twice these do within a hundredth of each other."""
    words = evidence.relative + 0.3 * evidence.title + 0.2 * evidence.near + 0.1 * evidence.phrase
    return blend(words, near_share(evidence.nearness or 0.0, best_near), weight)


def descending(scores: Sequence[float]) -> list[float]:
    """The scores in the order of the ranking, made to fall: neighbours in the wrong order share their mean (isotonic
    regression by pooling), which keeps the scale."""
    pools: list[tuple[float, int]] = []
    for score in scores:
        value, size = score, 1
        while pools and pools[-1][0] < value:
            before, count = pools.pop()
            value, size = (before * count + value * size) / (count + size), count + size
        pools.append((value, size))
    return [value for value, size in pools for _ in range(size)]


def reason(evidence: Evidence, held: Sequence[str], missing: Sequence[str], *, strict: bool) -> str:
    """Why a passage was chosen, for people."""
    parts = []
    if held:
        shown = ", ".join(held[:6]) + (" ..." if len(held) > 6 else "")
        parts.append(f"holds every word of the query ({shown})" if strict else f"holds {shown}")
    if not strict and held and missing:
        parts.append(f"lacks {', '.join(missing[:3])}" + (" ..." if len(missing) > 3 else ""))
    if evidence.title >= 0.3:
        parts.append("the title speaks of it")
    if evidence.phrase >= 0.5:
        parts.append("words stand as in the query")
    elif evidence.near >= 0.5 and len(held) > 1:
        parts.append("words stand close together")
    if evidence.nearness is not None:
        parts.append(f"near in meaning ({evidence.nearness:.0%} as near as halves of one passage are)")
    return "; ".join(parts) or "near the query"


def _near(places: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> float:
    """The greatest weight of different terms within a window."""
    best = held = 0.0
    counts: dict[str, int] = {}
    start = 0
    for at, term in places:
        counts[term] = counts.get(term, 0) + 1
        held += weights[term] if counts[term] == 1 else 0.0
        while at - places[start][0] >= WINDOW:
            left = places[start][1]
            counts[left] -= 1
            held -= weights[left] if not counts[left] else 0.0
            start += 1
        best = max(best, held)
    return best


def _phrase(places: Sequence[tuple[int, str]], query: Sequence[str], weights: Mapping[str, float]) -> float:
    wanted = set(pairwise(query))
    seen = {(a, b) for (at, a), (then, b) in pairwise(places) if 0 < then - at <= PHRASE_GAP and (a, b) in wanted}
    total = sum(min(weights[a], weights[b]) for a, b in wanted)
    return sum(min(weights[a], weights[b]) for a, b in seen) / total if total else 0.0


def _title_places(indexed: Indexed, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    """Places in the title, far behind those of the text."""
    return [(at + 1_000_000, term) for at, term in enumerate(indexed.title_terms) if term in weights]


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
