"""Logistic regression over sparse rows by L-BFGS, in numpy."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent.policy.guardrails.text_features import SIZE, Floats, Ints, Weights

ITERATIONS = 80
MEMORY = 10


@dataclass(frozen=True)
class SparseRows:
    """Sparse rows in one array: `starts[i]` is where row i begins in `slots` and `values`."""

    slots: Ints
    values: Floats
    starts: Ints

    @classmethod
    def join(cls, rows: Sequence[tuple[Ints, Floats]]) -> "SparseRows":
        """Joins rows; none may be empty."""
        lengths = [len(slots) for slots, _ in rows]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        return cls(np.concatenate([s for s, _ in rows]), np.concatenate([v for _, v in rows]), starts)

    def multiply(self, weights: Floats) -> Floats:
        """Each row's product with `weights`."""
        result: Floats = np.add.reduceat(self.values * weights[self.slots], self.starts)
        return result

    def accumulate(self, factors: Floats) -> Floats:
        """The sum of all rows, each times its factor."""
        lengths = np.diff(np.append(self.starts, len(self.slots)))
        spread = np.repeat(factors, lengths) * self.values
        result: Floats = np.bincount(self.slots, spread, minlength=SIZE).astype(np.float64)
        return result


def fit(rows: SparseRows, labels: NDArray[np.int64], weights: Floats, strength: float) -> Weights:
    """The model with the least weighted log loss plus |w|²/(2 · strength)."""
    signs = 2.0 * labels - 1

    def loss(point: Floats) -> tuple[float, Floats]:
        margin = signs * (rows.multiply(point[:-1]) + point[-1])
        lost = weights * np.logaddexp(0, -margin)
        pull = -weights * signs / (1 + np.exp(np.clip(margin, -500, 500)))
        slope = np.append(rows.accumulate(pull) + point[:-1] / strength, pull.sum())
        return float(lost.sum() + _dot(point[:-1], point[:-1]) / (2 * strength)), slope

    point = _descend(loss, np.zeros(SIZE + 1))
    return Weights(point[:-1].astype(np.float32), float(point[-1]))


def _descend(loss: Callable[[Floats], tuple[float, Floats]], point: Floats) -> Floats:
    """Runs L-BFGS with a halving line search."""
    value, slope = loss(point)
    steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    for _ in range(ITERATIONS):
        way = _direction(slope, steps)
        size = 1.0 if steps else 1.0 / max(float(np.abs(slope).sum()), 1e-12)
        while size > 1e-12:
            there = point + size * way
            new, new_slope = loss(there)
            if new <= value + 1e-4 * size * _dot(slope, way):
                break
            size /= 2
        else:
            return point
        moved, bent = there - point, new_slope - slope
        if (curve := _dot(moved, bent)) > 1e-12:
            steps.append((moved, bent, 1 / curve))
        done = value - new < 1e-6 * max(abs(new), 1)
        point, value, slope = there, new, new_slope
        if done:
            break
    return point


def _direction(slope: Floats, steps: deque[tuple[Floats, Floats, float]]) -> Floats:
    way = -slope
    shares: list[float] = []
    for moved, bent, scale in reversed(steps):
        share = scale * _dot(moved, way)
        shares.append(share)
        way = way - share * bent
    if steps:
        moved, bent, scale = steps[-1]
        way = way / (scale * _dot(bent, bent))
    for (moved, bent, scale), share in zip(steps, reversed(shares), strict=True):
        way = way + (share - scale * _dot(bent, way)) * moved
    return way


def _dot(one: Floats, other: Floats) -> float:
    """The product of two vectors, added in an order that does not depend on the threads of BLAS.

    The weights in the repository must be reproducible bit by bit.
    """
    return float(np.add.reduce(one * other))
