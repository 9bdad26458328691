"""Merges two rankings into one.

`fuse_rankings` uses ranks (reciprocal rank fusion: Cormack et al., 2009); that is what mode `hybrid` promises.
`blend_scores` adds scores on one scale (Bruch et al., 2023); the reranker of `hybrid_rerank` starts from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RANK_CONSTANT = 60
"""The constant k of the paper: the higher, the more slowly the weight of a rank falls."""

MIN_BEST_SIMILARITY = 0.5
"""Half of the similarity between the halves of one passage."""


@dataclass(frozen=True, slots=True)
class FusedHit:
    """An id with its rank (from 1) in each branch that found it, and its fused score."""

    id: str
    score: float
    ranks: Mapping[str, int]


def fuse_rankings(branches: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None) -> list[FusedHit]:
    """The ids of all branches, best first, by the sum of `weight / (60 + rank)`.

    A branch has weight 1 by default; a branch of weight 0 is left out. Ties are ordered by the best rank, then by id.
    """
    ranks: dict[str, dict[str, int]] = {}
    for branch, ids in branches.items():
        if _get_weight(weights, branch) > 0:
            for rank, identity in enumerate(dict.fromkeys(ids), 1):
                ranks.setdefault(identity, {})[branch] = rank
    fused = [
        FusedHit(identity, _sum_reciprocal_ranks(rank_list, weights), rank_list)
        for identity, rank_list in ranks.items()
    ]
    return sorted(fused, key=lambda one: (-one.score, min(one.ranks.values()), one.id))


def blend_scores(words: float, near: float, weight: float) -> float:
    """The sum of both scores, each relative to its best; `near` comes from `normalize_similarity`."""
    return words + weight * near


def normalize_similarity(nearness: float, best: float) -> float:
    """The similarity relative to the best one, from 0 (unrelated) to 1 (the nearest).

    If the best one is hardly nearer than unrelated passages are, no passage reaches 1, so that noise is not amplified.
    """
    return min(1.0, max(0.0, nearness / max(best, MIN_BEST_SIMILARITY)))


def _sum_reciprocal_ranks(ranks: Mapping[str, int], weights: Mapping[str, float] | None) -> float:
    return sum(_get_weight(weights, branch) / (RANK_CONSTANT + rank) for branch, rank in ranks.items())


def _get_weight(weights: Mapping[str, float] | None, branch: str) -> float:
    return 1.0 if weights is None else weights.get(branch, 1.0)
