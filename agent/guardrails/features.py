"""A text as numbers for the linear models: hashed pieces of letters, words, and ideas, summed over any span at once.

A feature is a slot of a fixed table (the hashing trick), so there is no vocabulary to keep. In a span, each feature of
a group counts as often as it occurs, divided by the root of how many there are; sums over spans are differences of
running totals, so that scoring every sentence of a long text costs about as much as scoring the text once.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
import zlib
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.guardrails.lexicon import BY_WORD, CONCEPTS

BITS: Final = 16
SIZE: Final = 1 << BITS
"""Slots of the table."""
LETTERS: Final = (3, 4, 5)
"""Lengths of the pieces of letters."""
NEAR: Final = 6
"""Two ideas within so many words of each other are a feature of their own, in their order."""
IDEA, OPENING, ASKS = 1.0, 0.5, 0.5
"""How heavy ideas, a sentence's first words and a question mark weigh beside words; found by cross-validation."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_STEP = np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class Weights:
    """A linear model over the table."""

    slots: NDArray[np.float32]
    bias: float


def slot(name: str) -> int:
    """The slot of a named feature."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & (SIZE - 1)


_PAIRS: Final = {(a, b): slot(f"near {a} {b}") for a in CONCEPTS for b in [*CONCEPTS, "shout"]} | {
    ("shout", b): slot(f"near shout {b}") for b in [*CONCEPTS, "shout"]
}
_IDEAS: Final = {name: slot(f"idea {name}") for name in [*CONCEPTS, "shout"]}
_QUESTION: Final = slot("asks")


class Hashed:
    """A text's features by position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._letters()
        self._words()

    def _letters(self) -> None:
        codes = np.frombuffer(lower(self.text).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        codes[(codes >= 48) & (codes <= 57)] = 48
        space = (codes <= 32) | (codes == 0xA0)
        codes[space] = 32
        keep = np.flatnonzero(~(space & np.concatenate([[False], space[:-1]])))
        self.kept: Ints = keep.astype(np.int64)
        codes = codes[keep]
        self.pieces: dict[int, Ints] = {}
        rolling = codes
        for length in range(2, max(LETTERS) + 1):
            if len(codes) < length:
                self.pieces[length] = np.zeros(0, np.int64)
                continue
            rolling = rolling[: len(codes) - length + 1] * _STEP + codes[length - 1 :]
            self.pieces[length] = _slots(rolling + np.uint64(length))

    def _words(self) -> None:
        starts: list[int] = []
        hashes: list[int] = []
        ideas: list[tuple[int, int]] = []
        recent: deque[tuple[int, str]] = deque()
        loud = 0
        for at, match in enumerate(_WORD.finditer(self.text)):
            word = match[0]
            small = word.lower()
            starts.append(match.start())
            hashes.append(zlib.crc32(small.encode("utf-8", "surrogatepass")))
            found = BY_WORD.get(small, ())
            loud = loud + 1 if len(word) > 1 and word.isupper() else 0 if word.isalpha() else loud
            if loud >= 3:
                found = (*found, "shout")
            if not found:
                continue
            while recent and at - recent[0][0] > NEAR:
                recent.popleft()
            ideas.extend((at, _IDEAS[idea]) for idea in found)
            ideas.extend((at, _PAIRS[before, idea]) for _, before in recent for idea in found)
            recent.extend((at, idea) for idea in found)
        self.starts: Ints = np.array(starts, np.int64)
        raw = np.array(hashes, np.uint64)
        self.words: Ints = _slots(raw + np.uint64(7))
        self.doubles: Ints = _slots(raw[:-1] * _STEP + raw[1:]) if len(raw) > 1 else np.zeros(0, np.int64)
        pairs = np.array(ideas, np.int64).reshape(-1, 2)
        self.idea_at: Ints = pairs[:, 0]
        self.ideas: Ints = pairs[:, 1]

    def score(self, weights: Weights, starts: Ints, ends: Ints) -> Floats:
        """The model's log-odds for each span `text[start:end]`."""
        first, last = np.searchsorted(self.kept, starts), np.searchsorted(self.kept, ends)
        sums, count = np.zeros(len(starts)), np.zeros(len(starts))
        for length in LETTERS:
            until = np.maximum(last - length + 1, first)
            sums += _between(weights.slots[self.pieces[length]], first, until)
            count += until - first
        total = sums / np.sqrt(np.maximum(count, 1))
        one, end = np.searchsorted(self.starts, starts), np.searchsorted(self.starts, ends)
        words = _between(weights.slots[self.words], one, end)
        words += _between(weights.slots[self.doubles], one, np.maximum(end - 1, one))
        ideas = _between(
            weights.slots[self.ideas], np.searchsorted(self.idea_at, one), np.searchsorted(self.idea_at, end)
        )
        total += (words + IDEA * ideas) / np.sqrt(np.maximum(end - one, 1))
        opening = np.concatenate([weights.slots[self.openings], [0.0]])
        double = np.concatenate([weights.slots[self.double_openings], [0.0, 0.0]])
        total += OPENING * (np.where(end > one, opening[one], 0) + np.where(end > one + 1, double[one], 0))
        asks = np.searchsorted(self.questions, starts) < np.searchsorted(self.questions, ends)
        total += ASKS * weights.slots[_QUESTION] * asks + weights.bias
        return total

    def row(self, start: int, end: int) -> tuple[Ints, Floats]:
        """The slots of one span and their values: what a model is trained on. `score` is its product with weights."""
        first, last = int(np.searchsorted(self.kept, start)), int(np.searchsorted(self.kept, end))
        letters = np.concatenate([self.pieces[length][first : max(last - length + 1, first)] for length in LETTERS])
        one, until = int(np.searchsorted(self.starts, start)), int(np.searchsorted(self.starts, end))
        words = np.concatenate([self.words[one:until], self.doubles[one : max(until - 1, one)]])
        ideas = self.ideas[np.searchsorted(self.idea_at, one) : np.searchsorted(self.idea_at, until)]
        root = max(until - one, 1) ** -0.5
        opening = np.concatenate([self.openings[one:until][:1], self.double_openings[one : max(until - 1, one)][:1]])
        asks = [_QUESTION] if "?" in self.text[start:end] else []
        parts = [
            (letters, max(len(letters), 1) ** -0.5), (words, root), (ideas, IDEA * root), (opening, OPENING),
            (np.array(asks, np.int64), ASKS),
        ]  # fmt: skip
        return (
            np.concatenate([slots for slots, _ in parts]),
            np.concatenate([np.full(len(slots), value) for slots, value in parts]),
        )

    @cached_property
    def openings(self) -> Ints:
        """The slot of each word as the first of a span."""
        return self.words ^ 0x2A5B

    @cached_property
    def double_openings(self) -> Ints:
        """The slot of each two words as the first of a span."""
        return self.doubles ^ 0x51C3

    @cached_property
    def questions(self) -> Ints:
        """Where the question marks are."""
        return np.array([match.start() for match in re.finditer(r"\?", self.text)], np.int64)


def lower(text: str) -> str:
    """`text` in lower case with every character where it was: a few capitals have two small letters."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(char if len(char.lower()) != 1 else char.lower() for char in text)


def _slots(values: NDArray[np.uint64]) -> Ints:
    mixed = (values ^ (values >> np.uint64(29))) * _MIX
    return ((mixed ^ (mixed >> np.uint64(32))) & np.uint64(SIZE - 1)).astype(np.int64)


def _between(values: NDArray[np.float32], starts: Ints, ends: Ints) -> Floats:
    """The sum of `values[start:end]` for each span."""
    totals = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    result: Floats = totals[np.minimum(ends, len(values))] - totals[np.minimum(starts, len(values))]
    return result
