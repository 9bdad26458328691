"""What speaks for a passage: measures that mean the same for every query, the relevance they amount to, the reason.

`relevance` is the documented scale of `RetrievedContext.relevance_score`, the same in every mode. 0.7 is a passage that
holds about two thirds of what the query asks for (weighted by rarity), half of that close together, and as much as the
best hit; everything, close together, is 0.95; the best hit for a query about something else stays below 0.4. A vector
alone gives 0.7 when the passage is 65 % as near to the query as passages of the collection are to their own words.
Where a first hit is right two times in three, that is about seven relevant hits of ten. Cranfield is harder (a third
of the first hits are judged relevant): there it is 41 of 100 from 0.7 on, 51 from 0.9 on, 17 below 0.4.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent.knowledge.lexical import Indexed, LexicalHit
from agent.knowledge.postings import SATURATION

WINDOW = 24
"""Terms that stand close together: about two sentences with their small words."""
PHRASE_GAP = 2
"""Neighbours of the query may have one word between them in the text."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Shares from 0 to 1. `relative` is the score to the best hit's, `saturation` to the highest a passage could have;
    `coverage`, `title` and `near` are shares of the query's terms by rarity: held at all, in the title, within
    `WINDOW` terms of each other; `phrase` of its neighbouring pairs. `nearness` is the vector's, None without one."""

    relative: float = 0.0
    saturation: float = 0.0
    coverage: float = 0.0
    title: float = 0.0
    near: float = 0.0
    phrase: float = 0.0
    nearness: float | None = None


def weigh(
    indexed: Indexed, hit: LexicalHit | None, best: float, weights: Mapping[str, float], nearness: float | None
) -> Evidence:
    """The evidence for a passage. `best` is the best lexical score of the search, `weights` its terms by rarity."""
    total = sum(weights.values())
    score = hit.score if hit is not None else 0.0
    if not total or not score:
        return Evidence(nearness=nearness)
    places = [(at, term) for at, term in enumerate(indexed.text_terms) if term in weights]
    title = {term for term in indexed.title_terms if term in weights}
    return Evidence(
        relative=score / best if best else 0.0,
        saturation=score / (total * (SATURATION + 1)),
        coverage=hit.coverage if hit is not None else 0.0,
        title=sum(weights[term] for term in title) / total,
        near=_near(places, weights) / total,
        phrase=_phrase([*places, *_title_places(indexed, weights)], list(weights), weights),
        nearness=nearness,
    )


def relevance(evidence: Evidence) -> float:
    """The relevance of a passage, from 0 to 1: words and vector each by a logistic curve, agreement counting more.

    The weights of the words follow a regression on Cranfield's judgements, rounded; the constant is set for collections
    whose first hit is right more often than Cranfield's, of which a third are."""
    words = _logistic(
        1.5 * evidence.relative + 1.5 * evidence.saturation + 2.5 * evidence.coverage + evidence.title
        + evidence.near + 0.5 * evidence.phrase - 3.6
    ) if evidence.coverage else 0.0  # fmt: skip
    vector = 0.0 if evidence.nearness is None else _logistic(6.0 * (evidence.nearness - 0.5))
    high, low = max(words, vector), min(words, vector)
    return 1 - (1 - high) * (1 - low / 2)


def rank_score(evidence: Evidence, dense_weight: float) -> float:
    """What the reranker sorts by: BM25F, then title, nearness of the words, phrases, and the vector by its weight.

    On Cranfield any weights from half to twice these do within a hundredth of each other."""
    words = evidence.relative + 0.3 * evidence.title + 0.2 * evidence.near + 0.1 * evidence.phrase
    return words + dense_weight * DENSE_SHARE * max(0.0, evidence.nearness or 0.0)


DENSE_SHARE = 1.5
"""What a vector that is as near as a passage to its own words adds, where the best words add 1 to 1.6."""


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
        parts.append(f"near in meaning ({evidence.nearness:.0%} as near as its own words)")
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
