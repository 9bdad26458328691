"""BM25F (Robertson et al., 2004): the weighted counts of title and text, each by its length, saturate together.

The sums over postings and the score of one passage, which a vector found, come from the same formula.
"""

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from agent.knowledge.lexical import Indexed, LexicalHit, LexicalResult

SATURATION = 1.6
"""BM25's k1. On Cranfield anything from 1.2 to 2 does within a hundredth of the best."""
TITLE_WEIGHT = 2.0
TEXT_LENGTH = 0.75
TITLE_LENGTH = 0.5
"""How much a long text, or a long title, is held against a passage (BM25's b): the usual values."""
BACKGROUND_PASSAGES, BACKGROUND_HOLDING = 100.0, 2.0
"""Passages every collection is counted with for coverage, and how many of them hold any given term. Among two documents
a word that both hold is hardly less telling than one that neither does; among thousands these hundred change little."""
FILLER_SHARE = 0.25
"""What a word of the asking ("explain", "find") counts for coverage."""

Floats = NDArray[np.float64]


def rarity(passages: float, holding: float) -> float:
    """How much a term tells that `holding` of `passages` hold (BM25's idf)."""
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def weight(passages: int, holding: int) -> float:
    """What a term counts for coverage: its rarity, were there some more passages."""
    return rarity(passages + BACKGROUND_PASSAGES, holding + BACKGROUND_HOLDING)


def saturated(
    rare: float | Floats, title: Floats, text: Floats, lengths: tuple[Floats, Floats], means: tuple[float, float]
) -> Floats:
    """The scores of passages for a term, or of a passage for terms: `title` and `text` say how often each holds it,
    `lengths` how long it is."""
    counts = TITLE_WEIGHT * title / _long(lengths[0], means[0], TITLE_LENGTH)
    counts = counts + text / _long(lengths[1], means[1], TEXT_LENGTH)
    scores: Floats = rare * counts * (SATURATION + 1) / (counts + SATURATION)
    return scores


def scored(result: LexicalResult, indexed: Indexed) -> LexicalHit | None:
    """A passage by the words of a search that did not come to it; None where it holds none of them."""
    titles, texts = Counter(indexed.title_terms), Counter(indexed.text_terms)
    held = [term for term in result.rarities if term in titles or term in texts]
    if not held:
        return None
    counts = np.array([(result.rarities[term], titles[term], texts[term]) for term in held], np.float64).T
    lengths = np.array(float(len(indexed.title_terms))), np.array(float(len(indexed.text_terms)))
    score = float(saturated(counts[0], counts[1], counts[2], lengths, result.means).sum())
    total = sum(result.weights.values()) or 1.0
    coverage = min(1.0, sum(result.weights[term] for term in held) / total)
    return LexicalHit(indexed, score, coverage, len(held) == len(result.rarities))


def _long(counts: Floats, mean: float, share: float) -> Floats:
    factors: Floats = 1 - share + share * counts / (mean or 1.0)
    return factors
