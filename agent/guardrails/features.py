"""A text as numbers for the linear models: hashed pieces of letters, words, and ideas, summed over any span at once.

A feature is a slot of a fixed table (the hashing trick), so there is no vocabulary to keep. In a span, each feature of
a group counts as often as it occurs, divided by the root of how many there are; sums over spans are differences of
running totals, so that scoring every sentence of a long text costs about as much as scoring the text once.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agent.guardrails.lexicon import CJK, CONCEPTS, RUNS, ideas_of

BITS: Final = 16
SIZE: Final = 1 << BITS
"""Slots of the table."""
LETTERS: Final = (3, 4, 5)
"""Lengths of the pieces of letters."""
NEAR: Final = 6
"""Two ideas within so many words of each other are a feature of their own, in their order."""
COMMON: Final = 24
"""Longer words are not worth remembering, and whoever sends them might send many."""
IDEA, OPENING, ASKS = 1.0, 0.5, 0.5
"""How heavy ideas, a sentence's first words and a question mark weigh beside words; found by cross-validation."""

ENOUGH_WORDS, ENOUGH_LETTERS = 64, 1_000
"""Up to so many words and pieces of letters more evidence adds up, as the root of how much there is; beyond it is
averaged. Otherwise any long text of one kind is certain in the end, and package metadata are an attack."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
_WORD_OR_RUN = re.compile(
    rf"(?=[{CJK}])(?:{'|'.join(map(re.escape, RUNS))}|.)|[^\W{CJK}]+(?:['’\-][^\W{CJK}]+)*|[^\w\s]"
)
"""Where scripts without blanks occur: their words that are known, else their characters one by one."""
_RUN = re.compile(f"[{CJK}]")
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
        pattern = _WORD if self.text.isascii() or not _RUN.search(self.text) else _WORD_OR_RUN
        found_words = list(pattern.finditer(self.text))
        known = [
            _known(word) if len(word) <= COMMON else _known.__wrapped__(word) for word in [m[0] for m in found_words]
        ]
        shouts = sum([voice == "loud" for _, _, voice in known]) >= 3
        places: list[int] = []
        ideas: list[int] = []
        recent: deque[tuple[int, str]] = deque()
        loud = 0
        for at, (_, found, voice) in enumerate(known):
            if shouts:
                loud = loud + 1 if voice == "loud" else 0 if voice == "plain" else loud
                if loud >= 3:
                    found = (*found, "shout")  # noqa: PLW2901 - what else is found
            if not found:
                continue
            while recent and at - recent[0][0] > NEAR:
                recent.popleft()
            near = dict.fromkeys([before for _, before in recent]) if recent else ()
            for idea in found:
                if idea not in near:  # a list of forty models speaks of models once, not forty times
                    ideas.append(_IDEAS[idea])
                    ideas += [_PAIRS[before, idea] for before in near]
            places += [at] * (len(ideas) - len(places))
            recent.extend([(at, idea) for idea in found])
        self.starts: Ints = np.array([match.start() for match in found_words], np.int64)
        raw = np.array([code for code, _, _ in known], np.uint64)
        self.words: Ints = _slots(raw + np.uint64(7))
        self.doubles: Ints = _slots(raw[:-1] * _STEP + raw[1:]) if len(raw) > 1 else np.zeros(0, np.int64)
        self.idea_at: Ints = np.array(places, np.int64)
        self.ideas: Ints = np.array(ideas, np.int64)

    def score(self, weights: Weights, starts: Ints, ends: Ints) -> Floats:
        """The model's log-odds for each span `text[start:end]`."""
        return self.scores((weights,), starts, ends)[0]

    def scores(self, models: Sequence[Weights], starts: Ints, ends: Ints) -> list[Floats]:
        """The same by several models, which costs less than asking one after another."""
        first, last = np.searchsorted(self.kept, starts), np.searchsorted(self.kept, ends)
        until = {length: np.maximum(last - length + 1, first) for length in LETTERS}
        pieces = _share(np.sum([end - first for end in until.values()], axis=0), ENOUGH_LETTERS)
        one, end = np.searchsorted(self.starts, starts), np.searchsorted(self.starts, ends)
        words = _share(end - one, ENOUGH_WORDS)
        before_end = np.maximum(end - 1, one)
        ideas = np.searchsorted(self.idea_at, one), np.searchsorted(self.idea_at, end)
        some, two = end > one, end > one + 1
        asks = ASKS * (np.searchsorted(self.questions, starts) < np.searchsorted(self.questions, ends))
        result = []
        for weights in models:
            slots = weights.slots
            total = _between(slots[self.pieces[LETTERS[0]]], first, until[LETTERS[0]])
            for length in LETTERS[1:]:
                total += _between(slots[self.pieces[length]], first, until[length])
            total *= pieces
            said = _between(slots[self.words], one, end)
            said += _between(slots[self.doubles], one, before_end)
            said += IDEA * _between(slots[self.ideas], *ideas)
            total += said * words
            opening = np.concatenate([slots[self.openings], [0.0]])
            double = np.concatenate([slots[self.double_openings], [0.0, 0.0]])
            total += OPENING * (np.where(some, opening[one], 0) + np.where(two, double[one], 0))
            result.append(total + slots[_QUESTION] * asks + weights.bias)
        return result

    def row(self, start: int, end: int) -> tuple[Ints, Floats]:
        """The slots of one span and their values: what a model is trained on. `score` is its product with weights."""
        first, last = int(np.searchsorted(self.kept, start)), int(np.searchsorted(self.kept, end))
        letters = np.concatenate([self.pieces[length][first : max(last - length + 1, first)] for length in LETTERS])
        one, until = int(np.searchsorted(self.starts, start)), int(np.searchsorted(self.starts, end))
        words = np.concatenate([self.words[one:until], self.doubles[one : max(until - 1, one)]])
        ideas = self.ideas[np.searchsorted(self.idea_at, one) : np.searchsorted(self.idea_at, until)]
        root = float(_share(np.array(until - one), ENOUGH_WORDS))
        opening = np.concatenate([self.openings[one:until][:1], self.double_openings[one : max(until - 1, one)][:1]])
        asks = [_QUESTION] if "?" in self.text[start:end] else []
        parts = [
            (letters, float(_share(np.array(len(letters)), ENOUGH_LETTERS))),
            (words, root), (ideas, IDEA * root), (opening, OPENING),
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


@lru_cache(maxsize=1 << 14)
def _known(word: str) -> tuple[int, tuple[str, ...], str]:
    """A word's hash, the ideas it stands for, and whether it is shouted. Texts consist of the same words again."""
    small = word.lower()
    voice = "loud" if len(word) > 1 and word.isupper() else "plain" if word.isalpha() else "none"
    return zlib.crc32(small.encode("utf-8", "surrogatepass")), ideas_of(small), voice


def lower(text: str) -> str:
    """`text` in lower case with every character where it was: a few capitals have two small letters."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(char if len(char.lower()) != 1 else char.lower() for char in text)


def _share(count: "Ints | Floats", enough: int) -> Floats:
    """What each of `count` features weighs."""
    some = np.maximum(count, 1).astype(np.float64)
    share: Floats = np.minimum(some**-0.5, enough**0.5 / some)
    return share


def _slots(values: NDArray[np.uint64]) -> Ints:
    mixed = (values ^ (values >> np.uint64(29))) * _MIX
    return ((mixed ^ (mixed >> np.uint64(32))) & np.uint64(SIZE - 1)).astype(np.int64)


def _between(values: NDArray[np.float32], starts: Ints, ends: Ints) -> Floats:
    """The sum of `values[start:end]` for each span."""
    totals = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    result: Floats = totals[np.minimum(ends, len(values))] - totals[np.minimum(starts, len(values))]
    return result
