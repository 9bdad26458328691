"""How far an embedder can be trusted in a collection: it is asked to bring the two halves of passages together again.

The halves of a passage share a matter and few words (the inverse cloze task: Lee et al., 2019). A model that reads a
language finds them nearer to each other than to the halves of strangers, whatever scale its cosines have; one that does
not read it finds all of them alike. The words are asked the same, so that a branch weighs by what it can do here.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance
from time import monotonic

import numpy as np

from agent.core.embedder import Embedder, Literate
from agent.core.vectors import Space
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.terms import query_terms, script

log = logging.getLogger(__name__)

SAMPLES = 32
"""Passages the check asks for: their means differ by a tenth from sample to sample, the languages by far more."""
FEWEST = 8
"""With fewer nothing is concluded; the cosines of strangers are still learnt from four."""
PRIOR = 4.0
"""How many samples the usual gap between own halves and strangers stands for, where few are there to show another."""
HALF_WORDS = 30
"""Longer halves cost more and tell no more."""
LEAST_WORDS = 12
APART, SOUND = 0.4, 0.9
"""How many deviations own halves must be nearer than strangers' (d'): MiniLM has 1.5 to 2.5 on English texts of four
kinds and 0.0 on Arabic ones."""
WEAK, EQUAL = 0.5, 0.8
"""How well the own half is found (mean reciprocal rank), as a share of how well the words find it."""
PIECES = 3.0
"""A vocabulary that breaks words into more pieces was made for other languages: MiniLM's makes 1.1 of English words,
2 of Swedish and 4 of Arabic ones."""
CHECK_SECONDS = 3600.0
"""How long a check holds."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What a check found: the branch's weight, 1 for as much as the words; the mean cosines of strangers and of the
    halves of one passage. The values here are MiniLM's, for collections too small to be asked."""

    weight: float = 1.0
    strangers: float = 0.15
    own: float = 0.5


class SelfCheck:
    """The checks of one embedder, a model, collection and script at a time."""

    def __init__(self, embedder: Embedder, *, clock: Callable[[], float] = monotonic) -> None:
        self._embedder = embedder
        self._clock = clock
        self._known: dict[tuple[str, str, Space, str], tuple[float, Trust]] = {}
        self._checking = asyncio.Lock()

    async def trust(self, index: LexicalIndex, owner: str, collection: str, space: Space, query: str) -> Trust:
        """What is known of the model in this collection, for queries in the script of this one. `EmbedderError`,
        `StoreError`."""
        key = (owner, collection, space, script(query))
        async with self._checking:  # a hundred first searches ask once
            known = self._known.get(key)
            if known is not None and self._clock() - known[0] < CHECK_SECONDS:
                return known[1]
            trust = await self._checked(index, owner, collection, query)
            self._known[key] = (self._clock(), trust)
        log.info("self-check of %s in %s, %s: %s", space, collection, script(query), trust)
        return trust

    async def _checked(self, index: LexicalIndex, owner: str, collection: str, query: str) -> Trust:
        passages = await index.sample(collection, owner=owner, limit=20 * SAMPLES)
        written = script(query)
        alike = [passage for passage in passages if script(passage.text) == written]
        if not self._reads(alike, query):
            return Trust(weight=0.0)
        # Without a passage in the query's script a model of many languages may still bridge the two.
        return await self._measured(_spread(alike or passages), can_judge=bool(alike))

    def _reads(self, alike: Sequence[Passage], query: str) -> bool:
        """Whether the model's vocabulary has words of this script. A query alone is judged only where its script is not
        the one of technical terms, which are long in every vocabulary."""
        if not isinstance(self._embedder, Literate):
            return True
        if not alike:
            return script(query) == "LATIN" or self._embedder.pieces_a_word(query) <= PIECES
        return self._embedder.pieces_a_word(" ".join(passage.text[:200] for passage in alike[:16])) <= PIECES

    async def _measured(self, passages: Sequence[Passage], *, can_judge: bool) -> Trust:
        pairs = [pair for passage in passages if (pair := _halves(passage.text)) is not None]
        if len(pairs) < FEWEST // 2:
            return Trust()
        made = await self._embedder.embed([half for pair in pairs for half in pair])
        unit = np.array(made.vectors, np.float64)
        unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        near = unit[::2] @ unit[1::2].T
        own, strangers = np.diag(near).tolist(), near[~np.eye(len(near), dtype=bool)].tolist()
        spread = math.sqrt((pvariance(own) + pvariance(strangers)) / 2)
        apart = (fmean(own) - fmean(strangers)) / max(spread, 1e-6)
        share = _reciprocal(near) / _reciprocal(_words(pairs))
        weight = min(_ramp(apart, APART, SOUND), _ramp(share, WEAK, EQUAL))
        judged = can_judge and len(pairs) >= FEWEST
        usual = Trust().own - Trust().strangers
        gap = (len(pairs) * (fmean(own) - fmean(strangers)) + PRIOR * usual) / (len(pairs) + PRIOR)
        return Trust(weight if judged else 1.0, fmean(strangers), fmean(strangers) + max(gap, 0.05))


def _spread(passages: Sequence[Passage]) -> Sequence[Passage]:
    """As many as are asked, from all over."""
    return passages[:: max(1, len(passages) // SAMPLES)][:SAMPLES]


def _halves(text: str) -> tuple[str, str] | None:
    """The words before and after the middle; of a short text all of it and its first two thirds; of a script without
    spaces, as many letters as they would have. None for a text too short for any."""
    words = text.split()
    if len(words) >= LEAST_WORDS:
        middle = len(words) // 2
        return " ".join(words[max(0, middle - HALF_WORDS) : middle]), " ".join(words[middle : middle + HALF_WORDS])
    if len(text) >= 12 * LEAST_WORDS or (len(words) < LEAST_WORDS // 2 and len(text) >= 4 * LEAST_WORDS):
        middle = len(text) // 2
        return text[max(0, middle - 3 * HALF_WORDS) : middle], text[middle : middle + 3 * HALF_WORDS]
    if len(words) >= LEAST_WORDS // 2:
        return text, " ".join(words[: -(len(words) // 3)])
    return None


def _words(pairs: Sequence[tuple[str, str]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How near the halves are by the words they share, the rare ones counting more."""
    held = [(set(query_terms(one)), set(query_terms(other))) for one, other in pairs]
    counts: dict[str, int] = {}
    for one, other in held:
        for term in one | other:
            counts[term] = counts.get(term, 0) + 1
    rare = {term: math.log(1 + (len(pairs) - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
    return np.array(
        [[sum(rare[t] for t in one & other) / math.sqrt(len(other) or 1) for _, other in held] for one, _ in held]
    )


def _reciprocal(near: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """The mean reciprocal rank of the own half; ties count half."""
    own = np.diag(near)[:, None]
    ranks = 0.5 + (near > own).sum(axis=1) + 0.5 * (near == own).sum(axis=1)
    return float((1 / ranks).mean())


def _ramp(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))
