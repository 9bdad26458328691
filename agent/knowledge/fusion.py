"""Two ways to make one ranking of two: by ranks (Cormack et al., 2009), which needs no scores and is what `hybrid`
promises, and by scores on one scale (Bruch et al., 2023), which the reranker of `hybrid_rerank` begins with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RANK_CONSTANT = 60
"""The paper's k: how slowly a rank loses its worth."""

LEAST_NEAR = 0.5
"""Half as near as the halves of one passage are to each other."""


@dataclass(frozen=True, slots=True)
class Fused:
    """An id with its ranks (from 1) in the branches that found it, and its fused score."""

    id: str
    score: float
    ranks: Mapping[str, int]


def fuse(branches: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None) -> list[Fused]:
    """The ids of all branches, best first: the sum of `weight / (60 + rank)`. Branches weigh 1 unless said otherwise;
    one that weighs nothing is left out, its ids too. Equal scores go by the best rank, then by the id."""
    ranks: dict[str, dict[str, int]] = {}
    for branch, ids in branches.items():
        if _weight(weights, branch) > 0:
            for rank, identity in enumerate(dict.fromkeys(ids), 1):
                ranks.setdefault(identity, {})[branch] = rank
    fused = [Fused(identity, _score(held, weights), held) for identity, held in ranks.items()]
    return sorted(fused, key=lambda one: (-one.score, min(one.ranks.values()), one.id))


def blend(words: float, near: float, weight: float) -> float:
    """The sum of two shares of the best, half and half where the vectors weigh 1; `near` is `near_share`'s."""
    return words + weight * near


def near_share(nearness: float, best: float) -> float:
    """How near a passage is, from 0 for a stranger to 1 for the nearest. Where even that is hardly
    nearer than strangers are, no passage comes to 1: chance is not blown up to the size of the words."""
    return min(1.0, max(0.0, nearness / max(best, LEAST_NEAR)))


def _score(ranks: Mapping[str, int], weights: Mapping[str, float] | None) -> float:
    return sum(_weight(weights, branch) / (RANK_CONSTANT + rank) for branch, rank in ranks.items())


def _weight(weights: Mapping[str, float] | None, branch: str) -> float:
    return 1.0 if weights is None else weights.get(branch, 1.0)
