"""Turns a text into features for the linear models: hashed letter n-grams, words and concepts, summed over any span.

A feature is a slot of a fixed table (the hashing trick), so there is no vocabulary to store. Within a span, each
feature is weighted by the inverse root of their number; running totals make scoring every sentence of a long text about
as cheap as scoring the text once.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
import zlib
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.policy.guardrails.lexicon import CJK, CJK_WORDS, CONCEPTS, find_concepts

BITS: Final = 16
SIZE: Final = 1 << BITS
"""Number of slots in the table."""
NGRAM_LENGTHS: Final = (3, 4, 5)
"""Lengths of the letter n-grams."""
MAX_PAIR_DISTANCE: Final = 6
"""Two concepts within this many words of each other are an additional feature, in their order."""
MAX_CACHED_WORD_CHARS: Final = 24
"""Longer words are not cached: they rarely repeat, and an attacker could send many."""
OPENING, ASKS = 0.5, 0.5
"""Weights of first words of a sentence and question marks relative to words and concepts, from cross-validation."""

ENOUGH_WORDS, ENOUGH_LETTERS = 64, 1_000
"""Up to these counts, evidence grows with the root of the number of features; beyond them it is averaged. Otherwise
any long uniform text, such as package metadata, would become a certain attack."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
_WORD_OR_RUN = re.compile(
    rf"(?=[{CJK}])(?:{'|'.join(map(re.escape, CJK_WORDS))}|.)|[^\W{CJK}]+(?:['’\-][^\W{CJK}]+)*|[^\w\s]"
)
"""For texts with scripts without spaces: their known words, else single characters."""
_RUN = re.compile(f"[{CJK}]")
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_STEP = np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class Weights:
    """A linear model over the table."""

    slots: NDArray[np.float32]
    bias: float


@dataclass(frozen=True, slots=True)
class StackedWeights:
    """Several linear models over the table, one a row, which score a text in one pass."""

    slots: NDArray[np.float32]
    bias: Floats

    @classmethod
    def stack(cls, *models: Weights) -> "StackedWeights":
        """The models in their order."""
        return cls(np.stack([model.slots for model in models]), np.array([[model.bias] for model in models]))


def hash_feature(name: str) -> int:
    """The slot of a named feature."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & (SIZE - 1)


_PAIR_SLOTS: Final = {(a, b): hash_feature(f"near {a} {b}") for a in CONCEPTS for b in [*CONCEPTS, "shout"]} | {
    ("shout", b): hash_feature(f"near shout {b}") for b in [*CONCEPTS, "shout"]
}
_CONCEPT_SLOTS: Final = {name: hash_feature(f"idea {name}") for name in [*CONCEPTS, "shout"]}
_QUESTION_SLOT: Final = hash_feature("asks")
_LENGTHS: Final = np.array(NGRAM_LENGTHS)[:, None]
_ENOUGH: Final = np.array([[ENOUGH_LETTERS], [ENOUGH_WORDS]])
_FURTHER_WORDS: Final = np.array([[0], [1]])
"""Words of a feature after its first one: of a word, and of a pair of words."""
_FOLDED: Final = dict.fromkeys((*range(33), 0xA0), 32) | dict.fromkeys(range(48, 58), 48)
"""Every space as a blank, and every digit as 0, for n-grams."""
_OPENING_MASKS: Final = np.array([[0x2A5B], [0x51C3]])
"""Make of the slots of a word, and of a pair of words, those of the first ones of a span."""


class HashedText:
    """The features of a text by position: a row of slots for each length of n-grams, one for words, one for pairs of
    words, and one for concepts.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        hashes = [*self._hash_letters(), *self._hash_words()]
        self._slots: Ints = np.concatenate((_to_slots(np.concatenate(hashes)), self._ideas))
        """The rows one after the other: all spans of all rows are summed at once."""
        self._offsets: Ints = np.array([[0, *accumulate(map(len, hashes))]]).T
        """Where each row begins."""

    def _hash_letters(self) -> list[NDArray[np.uint64]]:
        """The hashes of the n-grams that begin at each kept character, in a row for each length."""
        folded = lower_same_length(self.text).translate(_FOLDED)
        codes = np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        is_kept = codes != 32
        is_kept[1:] |= is_kept[:-1]  # the first one of several spaces
        is_kept[:1] = True
        self._kept: Ints = is_kept.nonzero()[0]
        codes = codes[self._kept]
        rows = []
        rolling = codes
        for length in range(2, max(NGRAM_LENGTHS) + 1):
            rolling = rolling[:-1] * _STEP + codes[length - 1 :]
            if length in NGRAM_LENGTHS:
                rows.append(rolling + np.uint64(length))
        return rows

    def _hash_words(self) -> list[NDArray[np.uint64]]:
        """The hashes of each word, and of each word with the next one. The last one of both stands for no
        word.
        """
        pattern = _WORD if self.text.isascii() or not _RUN.search(self.text) else _WORD_OR_RUN
        # `list` would hold Python's lock for a second over a megabyte of punctuation; a comprehension gives it up.
        found_words = [match for match in pattern.finditer(self.text)]  # noqa: C416
        word_data = [
            _analyze_word(word) if len(word) <= MAX_CACHED_WORD_CHARS else _analyze_word.__wrapped__(word)
            for word in [m[0] for m in found_words]
        ]
        shouts = sum([voice == "loud" for _, _, voice in word_data]) >= 3
        places: list[int] = []
        ideas: list[int] = []
        recent: deque[tuple[int, str]] = deque()
        shout_length = 0
        for at, (_, concepts, voice) in enumerate(word_data):
            if shouts:
                shout_length = shout_length + 1 if voice == "loud" else 0 if voice == "plain" else shout_length
                if shout_length >= 3:
                    concepts = (*concepts, "shout")  # noqa: PLW2901 - an additional concept
            if not concepts:
                continue
            while recent and at - recent[0][0] > MAX_PAIR_DISTANCE:
                recent.popleft()
            near = dict.fromkeys([before for _, before in recent]) if recent else ()
            for idea in concepts:
                if idea not in near:  # a list of forty models counts once
                    ideas.append(_CONCEPT_SLOTS[idea])
                    ideas += [_PAIR_SLOTS[before, idea] for before in near]
            places += [at] * (len(ideas) - len(places))
            recent.extend([(at, idea) for idea in concepts])
        self.starts: Ints = np.array([match.start() for match in found_words], np.int64)
        self._idea_at: Ints = np.array(places, np.int64)
        self._ideas: Ints = np.array(ideas, np.int64)
        raw = np.array([code for code, _, _ in word_data] + [0, 0], np.uint64)
        return [raw[:-1] + np.uint64(7), raw[:-1] * _STEP + raw[1:]]

    def score(self, weights: Weights | StackedWeights, spans: Ints) -> Floats:
        """The log-odds for each span `text[start:end]`, given as rows of `spans`; a row for each model."""
        slots = weights.slots
        begins, ends = np.empty((2, len(self._offsets), len(spans)), np.int64)
        begins[:3], last = self._kept.searchsorted(spans).T
        np.maximum(last + 1 - _LENGTHS, begins[0], out=ends[:3])
        begins[3:5], end = words = self.starts.searchsorted(spans).T
        np.maximum(end - _FURTHER_WORDS, begins[3], out=ends[3:5])
        begins[5], ends[5] = self._idea_at.searchsorted(words)
        counts = ends - begins
        totals = np.zeros((*slots.shape[:-1], len(self._slots) + 1))
        slots.take(self._slots, axis=-1).cumsum(axis=-1, dtype=np.float64, out=totals[..., 1:])
        # A span that is shorter than an n-gram sums nothing, wherever it begins: clipping leaves it so.
        sums = totals.take(ends + self._offsets, -1, mode="clip")
        sums -= totals.take(begins + self._offsets, -1, mode="clip")
        letter_sum, word_sum = sums[..., :3, :].sum(axis=-2), sums[..., 3, :] + sums[..., 4, :] + sums[..., 5, :]
        letter_weight, word_weight = _compute_feature_weight(np.array([counts[:3].sum(axis=0), counts[3]]), _ENOUGH)
        total: Floats = letter_sum * letter_weight + word_sum * word_weight
        openings = self._slots.take(begins[3] + self._offsets[3:5]) ^ _OPENING_MASKS
        total += OPENING * (slots.take(openings, axis=-1) * (counts[3:5] > 0)).sum(axis=-2)
        if "?" in self.text:
            questions = np.array([match.start() for match in re.finditer(r"\?", self.text)], np.int64)
            before, after = questions.searchsorted(spans).T
            total += slots[..., _QUESTION_SLOT, None] * (ASKS * (before < after))
        return total + weights.bias

    def build_row(self, start: int, end: int) -> tuple[Ints, Floats]:
        """The slots of one span and their values, for training. `score` is their product with the weights."""
        rows = np.split(self._slots, self._offsets[1:, 0])
        first, last = int(np.searchsorted(self._kept, start)), int(np.searchsorted(self._kept, end))
        letters = np.concatenate(
            [row[first : max(last - length + 1, first)] for row, length in zip(rows, NGRAM_LENGTHS, strict=False)]
        )
        one, until = int(np.searchsorted(self.starts, start)), int(np.searchsorted(self.starts, end))
        single, double = rows[3][one:until], rows[4][one : max(until - 1, one)]
        words = np.concatenate([single, double])
        ideas = self._ideas[np.searchsorted(self._idea_at, one) : np.searchsorted(self._idea_at, until)]
        counts = np.array([[len(letters)], [until - one]])
        letter_weight, word_weight = _compute_feature_weight(counts, _ENOUGH)[:, 0].tolist()
        opening = np.concatenate([single[:1] ^ _OPENING_MASKS[0], double[:1] ^ _OPENING_MASKS[1]])
        asks = [_QUESTION_SLOT] if "?" in self.text[start:end] else []
        parts = [
            (letters, letter_weight), (words, word_weight), (ideas, word_weight), (opening, OPENING),
            (np.array(asks, np.int64), ASKS),
        ]  # fmt: skip
        return (
            np.concatenate([slots for slots, _ in parts]),
            np.concatenate([np.full(len(slots), value) for slots, value in parts]),
        )


@lru_cache(maxsize=1 << 14)
def _analyze_word(word: str) -> tuple[int, tuple[str, ...], str]:
    """The hash of a word, its concepts, and whether it is in capitals. Cached, because words repeat."""
    small = word.lower()
    voice = "loud" if len(word) > 1 and word.isupper() else "plain" if word.isalpha() else "none"
    return zlib.crc32(small.encode("utf-8", "surrogatepass")), find_concepts(small), voice


def lower_same_length(text: str) -> str:
    """The text in lower case at the same length: some capitals have two lower-case letters."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(char if len(char.lower()) != 1 else char.lower() for char in text)


def _compute_feature_weight(count: Ints, enough: Ints) -> Floats:
    """The weight of each of `count` features."""
    some = np.maximum(count, 1.0)
    share: Floats = np.minimum(some**-0.5, enough**0.5 / some)
    return share


def _to_slots(values: NDArray[np.uint64]) -> Ints:
    mixed = (values ^ (values >> np.uint64(29))) * _MIX
    return ((mixed ^ (mixed >> np.uint64(32))) & np.uint64(SIZE - 1)).astype(np.int64)
