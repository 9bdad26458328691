"""Measures how well an embedder reads a collection: it has to match the two halves of sampled passages.

The halves of a passage share a topic and few words (inverse cloze task: Lee et al., 2019). A model that reads the
language puts them closer to each other than to halves of other passages, whatever the scale of its cosines; a model
that does not read it finds all halves alike. The lexical search solves the same task, and the comparison gives
the weight of the vector branch in this collection.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance
from time import monotonic

import numpy as np

from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedder, LanguageAwareEmbedder
from agent.text.terms import detect_script, extract_query_terms
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.measured_values import MeasuredValues

log = logging.getLogger(__name__)

SAMPLE_PASSAGES = 32
"""Passages in a sample. Means differ by a tenth between samples, and by far more between languages."""
MIN_SAMPLES = 8
"""With fewer passages the weight is not measured; four still give the mean cosine of unrelated halves."""
PRIOR_SAMPLES = 4.0
"""The number of samples that the default gap between related and unrelated cosines counts for."""
HALF_WORDS = 30
"""Longer halves cost more and change nothing."""
MIN_WORDS = 12
NO_EFFECT, FULL_EFFECT = 0.4, 0.9
"""Effect size (d') between related and unrelated halves at which the weight is 0 and 1. MiniLM reaches 1.5 to 2.5 on
four kinds of English texts and 0.0 on Arabic ones."""
NO_RANK, FULL_RANK = 0.5, 0.8
"""Mean reciprocal rank relative to that of the lexical search at which the weight is 0 and 1."""
MAX_PIECES_PER_WORD = 3.0
"""A vocabulary that splits words into more pieces was built for other languages. MiniLM has 1.1 pieces for an English
word, 2 for a Swedish and 4 for an Arabic one."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a calibration: the weight of the vector branch (1: as much as the words) and two mean cosines.

    `unrelated_cosine` is that of halves of different passages, `related_cosine` that of the halves of one passage. The
    defaults are those of MiniLM and serve collections that are too small to be measured.
    """

    weight: float = 1.0
    unrelated_cosine: float = 0.15
    related_cosine: float = 0.5


class EmbedderCalibration:
    """Calibrates one embedder, once per hour for each vector space, collection and script."""

    def __init__(self, embedder: Embedder, *, clock: Callable[[], float] = monotonic) -> None:
        self._embedder = embedder
        self._calibrations = MeasuredValues[tuple[str, str, VectorSpace, str], Calibration](clock)

    async def calibrate(
        self, index: LexicalIndex, owner: str, collection: str, space: VectorSpace, query: str
    ) -> Calibration:
        """The calibration of the model in this collection, for queries in the script of `query`.

        Raises `EmbedderError` and `StoreError`.
        """
        script = detect_script(query)

        async def measure() -> Calibration:
            calibration = await self._calibrate_collection(index, owner, collection, query)
            log.info("calibration of %s in %s, %s: %s", space, collection, script, calibration)
            return calibration

        return await self._calibrations.get((owner, collection, space, script), measure)

    async def _calibrate_collection(self, index: LexicalIndex, owner: str, collection: str, query: str) -> Calibration:
        passages = await index.sample(collection, owner=owner, limit=20 * SAMPLE_PASSAGES)
        written = detect_script(query)
        same_script = [passage for passage in passages if detect_script(passage.text) == written]
        if not self._can_read_script(same_script, query):
            return Calibration(weight=0.0)
        # Without a passage in the script of the query, a multilingual model may still match the two.
        return await self._measure(_spread_sample(same_script or passages), can_judge=bool(same_script))

    def _can_read_script(self, same_script: Sequence[Passage], query: str) -> bool:
        """Whether the model's vocabulary covers the script.

        A query alone is judged only if it is not in Latin script: technical terms are long in every vocabulary.
        """
        if not isinstance(self._embedder, LanguageAwareEmbedder):
            return True
        if not same_script:
            return detect_script(query) == "LATIN" or self._embedder.count_tokens_per_word(query) <= MAX_PIECES_PER_WORD
        return (
            self._embedder.count_tokens_per_word(" ".join(passage.text[:200] for passage in same_script[:16]))
            <= MAX_PIECES_PER_WORD
        )

    async def _measure(self, passages: Sequence[Passage], *, can_judge: bool) -> Calibration:
        pairs = [pair for passage in passages if (pair := _split_halves(passage.text)) is not None]
        if len(pairs) < MIN_SAMPLES // 2:
            return Calibration()
        embedded = await self._embedder.embed([half for pair in pairs for half in pair])
        unit = np.array(embedded.vectors, np.float64)
        unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        similarities = unit[::2] @ unit[1::2].T
        related, unrelated = (
            np.diag(similarities).tolist(),
            similarities[~np.eye(len(similarities), dtype=bool)].tolist(),
        )
        spread = math.sqrt((pvariance(related) + pvariance(unrelated)) / 2)
        effect_size = (fmean(related) - fmean(unrelated)) / max(spread, 1e-6)
        share = _compute_mean_reciprocal_rank(similarities) / _compute_mean_reciprocal_rank(
            _compute_lexical_similarity(pairs)
        )
        weight = min(_clamp_ramp(effect_size, NO_EFFECT, FULL_EFFECT), _clamp_ramp(share, NO_RANK, FULL_RANK))
        judged = can_judge and len(pairs) >= MIN_SAMPLES
        default_gap = Calibration().related_cosine - Calibration().unrelated_cosine
        gap = (len(pairs) * (fmean(related) - fmean(unrelated)) + PRIOR_SAMPLES * default_gap) / (
            len(pairs) + PRIOR_SAMPLES
        )
        return Calibration(weight if judged else 1.0, fmean(unrelated), fmean(unrelated) + max(gap, 0.05))


def _spread_sample(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Selects at most `SAMPLE_PASSAGES` passages, spread over the whole sequence."""
    return passages[:: max(1, len(passages) // SAMPLE_PASSAGES)][:SAMPLE_PASSAGES]


def _split_halves(text: str) -> tuple[str, str] | None:
    """The words before and after the middle of a text, or None if the text is too short.

    A short text is compared with its first two thirds. A text without spaces is cut by letters.
    """
    words = text.split()
    if len(words) >= MIN_WORDS:
        middle = len(words) // 2
        return " ".join(words[max(0, middle - HALF_WORDS) : middle]), " ".join(words[middle : middle + HALF_WORDS])
    if len(text) >= 12 * MIN_WORDS or (len(words) < MIN_WORDS // 2 and len(text) >= 4 * MIN_WORDS):
        middle = len(text) // 2
        return text[max(0, middle - 3 * HALF_WORDS) : middle], text[middle : middle + 3 * HALF_WORDS]
    if len(words) >= MIN_WORDS // 2:
        return text, " ".join(words[: -(len(words) // 3)])
    return None


def _compute_lexical_similarity(pairs: Sequence[tuple[str, str]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The similarity of all pairs of halves by their shared terms, weighted by idf."""
    term_sets = [(set(extract_query_terms(one)), set(extract_query_terms(other))) for one, other in pairs]
    counts: dict[str, int] = {}
    for one, other in term_sets:
        for term in one | other:
            counts[term] = counts.get(term, 0) + 1
    rare = {term: math.log(1 + (len(pairs) - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
    return np.array(
        [
            [sum(rare[t] for t in one & other) / math.sqrt(len(other) or 1) for _, other in term_sets]
            for one, _ in term_sets
        ]
    )


def _compute_mean_reciprocal_rank(similarities: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """The mean reciprocal rank of the matching half; ties count half."""
    related = np.diag(similarities)[:, None]
    ranks = 0.5 + (similarities > related).sum(axis=1) + 0.5 * (similarities == related).sum(axis=1)
    return float((1 / ranks).mean())


def _clamp_ramp(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))
