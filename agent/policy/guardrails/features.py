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
from functools import cached_property, lru_cache
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
IDEA, OPENING, ASKS = 1.0, 0.5, 0.5
"""Weights of concepts, first words of a sentence and question marks relative to words, from cross-validation."""

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
        """Returns the models in their order."""
        return cls(np.stack([model.slots for model in models]), np.array([[model.bias] for model in models]))


def hash_feature(name: str) -> int:
    """Returns the slot of a named feature."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & (SIZE - 1)


_PAIR_SLOTS: Final = {(a, b): hash_feature(f"near {a} {b}") for a in CONCEPTS for b in [*CONCEPTS, "shout"]} | {
    ("shout", b): hash_feature(f"near shout {b}") for b in [*CONCEPTS, "shout"]
}
_CONCEPT_SLOTS: Final = {name: hash_feature(f"idea {name}") for name in [*CONCEPTS, "shout"]}
_QUESTION_SLOT: Final = hash_feature("asks")
_LENGTHS: Final = np.array(NGRAM_LENGTHS)[:, None]
_FURTHER_WORDS: Final = np.array([[0], [1]])
"""Words of a feature after its first one: of a word, and of a pair of words."""
_ROWS: Final = np.arange(len(NGRAM_LENGTHS))[:, None]
_OPENING_MASKS: Final = np.array([[0x2A5B], [0x51C3]])
"""Make of the slots of a word, and of a pair of words, those of the first ones of a span."""


class HashedText:
    """The features of a text by position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._hash_letters()
        self._hash_words()

    def _hash_letters(self) -> None:
        codes = np.frombuffer(lower_same_length(self.text).encode("utf-32-le", "surrogatepass"), np.uint32).astype(
            np.uint64
        )
        codes[(codes >= 48) & (codes <= 57)] = 48
        space = (codes <= 32) | (codes == 0xA0)
        codes[space] = 32
        is_kept = np.ones(len(codes), bool)
        is_kept[1:] = ~(space[1:] & space[:-1])
        self.kept: Ints = is_kept.nonzero()[0]
        codes = codes[self.kept]
        hashes = np.zeros((len(NGRAM_LENGTHS), len(codes)), np.uint64)
        rolling = codes
        for length in range(2, max(NGRAM_LENGTHS) + 1):
            rolling = rolling[:-1] * _STEP + codes[length - 1 :]
            if length in NGRAM_LENGTHS:
                hashes[NGRAM_LENGTHS.index(length), : len(rolling)] = rolling + np.uint64(length)
        self.letters: Ints = _to_slots(hashes)
        """The slot of the n-gram that begins at each kept character, a row for each length. No span reaches the rest of
        a row."""

    def _hash_words(self) -> None:
        pattern = _WORD if self.text.isascii() or not _RUN.search(self.text) else _WORD_OR_RUN
        found_words = list(pattern.finditer(self.text))
        word_data = [
            _analyze_word(word) if len(word) <= MAX_CACHED_WORD_CHARS else _analyze_word.__wrapped__(word)
            for word in [m[0] for m in found_words]
        ]
        shouts = sum([voice == "loud" for _, _, voice in word_data]) >= 3
        places: list[int] = []
        ideas: list[int] = []
        recent: deque[tuple[int, str]] = deque()
        shout_length = 0
        for at, (_, found, voice) in enumerate(word_data):
            if shouts:
                shout_length = shout_length + 1 if voice == "loud" else 0 if voice == "plain" else shout_length
                if shout_length >= 3:
                    found = (*found, "shout")  # noqa: PLW2901 - an additional concept
            if not found:
                continue
            while recent and at - recent[0][0] > MAX_PAIR_DISTANCE:
                recent.popleft()
            near = dict.fromkeys([before for _, before in recent]) if recent else ()
            for idea in found:
                if idea not in near:  # a list of forty models counts once
                    ideas.append(_CONCEPT_SLOTS[idea])
                    ideas += [_PAIR_SLOTS[before, idea] for before in near]
            places += [at] * (len(ideas) - len(places))
            recent.extend([(at, idea) for idea in found])
        self.starts: Ints = np.array([match.start() for match in found_words], np.int64)
        raw = np.array([code for code, _, _ in word_data] + [0, 0], np.uint64)
        hashes = np.array([raw[:-1] + np.uint64(7), raw[:-1] * _STEP + raw[1:]])
        self.words: Ints = _to_slots(hashes)
        """The slots of each word, and of each word with the next one. The last column stands for no word."""
        self.idea_at: Ints = np.array(places, np.int64)
        self.ideas: Ints = np.array(ideas, np.int64)

    def score(self, weights: Weights | StackedWeights, spans: Ints) -> Floats:
        """Returns the log-odds for each span `text[start:end]`, given as rows of `spans`; a row for each model."""
        slots = weights.slots
        first, last = self.kept.searchsorted(spans).T
        until = np.maximum(last + 1 - _LENGTHS, first)
        letters = _sum_spans(slots.take(self.letters, axis=-1), first, until)
        total = letters[..., 0, :] + letters[..., 1, :] + letters[..., 2, :]
        total *= _compute_feature_weight((until - first).sum(axis=0), ENOUGH_LETTERS)
        one, end = self.starts.searchsorted(spans).T
        words = _sum_spans(slots.take(self.words, axis=-1), one, np.maximum(end - _FURTHER_WORDS, one))
        word_score = words[..., 0, :] + words[..., 1, :]
        if len(self.ideas):
            ideas = self.idea_at.searchsorted(one), self.idea_at.searchsorted(end)
            word_score += IDEA * _sum_spans(slots.take(self.ideas, axis=-1), *ideas)
        total += word_score * _compute_feature_weight(end - one, ENOUGH_WORDS)
        has_words = (end > one + _FURTHER_WORDS).astype(np.float64)
        openings = slots.take(self.words[:, one] ^ _OPENING_MASKS, axis=-1) * has_words
        total += OPENING * (openings[..., 0, :] + openings[..., 1, :])
        if len(self.questions):
            before, until = self.questions.searchsorted(spans).T
            total += slots[..., _QUESTION_SLOT, None] * (ASKS * (before < until))
        return total + weights.bias

    def build_row(self, start: int, end: int) -> tuple[Ints, Floats]:
        """Returns the slots of one span and their values, for training. `score` is their product with the weights."""
        first, last = int(np.searchsorted(self.kept, start)), int(np.searchsorted(self.kept, end))
        letters = np.concatenate(
            [
                row[first : max(last - length + 1, first)]
                for row, length in zip(self.letters, NGRAM_LENGTHS, strict=True)
            ]
        )
        one, until = int(np.searchsorted(self.starts, start)), int(np.searchsorted(self.starts, end))
        single, double = self.words[0, one:until], self.words[1, one : max(until - 1, one)]
        words = np.concatenate([single, double])
        ideas = self.ideas[np.searchsorted(self.idea_at, one) : np.searchsorted(self.idea_at, until)]
        root = float(_compute_feature_weight(np.array(until - one), ENOUGH_WORDS))
        opening = np.concatenate([single[:1] ^ _OPENING_MASKS[0], double[:1] ^ _OPENING_MASKS[1]])
        asks = [_QUESTION_SLOT] if "?" in self.text[start:end] else []
        parts = [
            (letters, float(_compute_feature_weight(np.array(len(letters)), ENOUGH_LETTERS))),
            (words, root), (ideas, IDEA * root), (opening, OPENING),
            (np.array(asks, np.int64), ASKS),
        ]  # fmt: skip
        return (
            np.concatenate([slots for slots, _ in parts]),
            np.concatenate([np.full(len(slots), value) for slots, value in parts]),
        )

    @cached_property
    def questions(self) -> Ints:
        """The positions of question marks."""
        return np.array([match.start() for match in re.finditer(r"\?", self.text)], np.int64)


@lru_cache(maxsize=1 << 14)
def _analyze_word(word: str) -> tuple[int, tuple[str, ...], str]:
    """Returns the hash of a word, its concepts, and whether it is in capitals. Cached, because words repeat."""
    small = word.lower()
    voice = "loud" if len(word) > 1 and word.isupper() else "plain" if word.isalpha() else "none"
    return zlib.crc32(small.encode("utf-8", "surrogatepass")), find_concepts(small), voice


def lower_same_length(text: str) -> str:
    """Returns the text in lower case at the same length: some capitals have two lower-case letters."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(char if len(char.lower()) != 1 else char.lower() for char in text)


def _compute_feature_weight(count: "Ints | Floats", enough: int) -> Floats:
    """Returns the weight of each of `count` features."""
    some = np.maximum(count, 1).astype(np.float64)
    share: Floats = np.minimum(some**-0.5, enough**0.5 / some)
    return share


def _to_slots(values: NDArray[np.uint64]) -> Ints:
    mixed = (values ^ (values >> np.uint64(29))) * _MIX
    return ((mixed ^ (mixed >> np.uint64(32))) & np.uint64(SIZE - 1)).astype(np.int64)


def _sum_spans(values: NDArray[np.float32], starts: Ints, ends: Ints) -> Floats:
    """Returns the sum of `values[start:end]` for each span. Values in several rows have a row of `ends` each."""
    totals = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    values.cumsum(axis=-1, dtype=np.float64, out=totals[..., 1:])
    rows = () if ends.ndim == 1 else (_ROWS[: len(ends)],)
    result: Floats = totals[..., *rows, ends] - totals[..., *rows, starts]
    return result
