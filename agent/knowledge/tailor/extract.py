"""Answers without a model: the sentences of the passages that say most of what was asked, each with its citation.

A sentence's score is the weight of the question's words it holds (rare ones weigh more), half of that for those that
only its headings or title hold, a little more for a value or name where one is asked for; times its passage's
relevance. Deterministic, and every sentence is the document's own.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.knowledge.tailor.grounding import Ground
from agent.knowledge.tailor.names import names
from agent.knowledge.tailor.passages import Part, Passage
from agent.knowledge.tailor.values import mentions
from agent.knowledge.terms import fold, query_terms

NEAR_BEST = 0.6
"""The share of the best score a sentence must reach to be said as well."""
BARELY = 0.25
"""Where the best sentences hold less of the question's words, and no passage is `RELEVANT`, nothing is answered."""
RELEVANT = 0.6
PLACE_SHARE = 0.5
ASKED_FOR = 0.15
SAME_WORDS = 0.8
"""Two sentences that share so many of their words say the same."""
LIST_ITEMS = 6
"""Items of a list that are said with the sentence that opens it."""
LONGEST = 600
"""Characters of a sentence that is said as one; longer ones are no sentences."""

_ASKS_VALUE = re.compile(
    r"\b(?:how (?:many|much|long|often|old|far|high|fast|big)|when|what (?:time|date|year|percentage|price|cost|number|"
    r"share)|which year|hur (?:m\u00e5nga|mycket|l\u00e4nge|ofta)|n\u00e4r|wie ?viel\w*|wann)\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|vem|vilka|wer|where|var|wo)\b", re.IGNORECASE)
_LEANS = re.compile(
    r"^\W*(?:he|she|it|they|this|these|those|that|its|their|such|both|han|hon|den|det|de|dessa|detta|er|sie|es|diese[rs]?)\b",
    re.IGNORECASE,
)
"""Openings that lean on the sentence before."""


@dataclass(frozen=True)
class Pick:
    """A sentence or row with its score."""

    passage: Passage
    at: int
    score: float
    own: float

    @property
    def part(self) -> Part:
        """The sentence or row itself."""
        return self.passage.parts[self.at]

    @cached_property
    def words(self) -> frozenset[str]:
        """What it says, for comparing."""
        return frozenset(self.part.terms)


def picked(question: str, ground: Ground, limit: int, must: frozenset[str] = frozenset()) -> list[Pick]:
    """The best sentences, best first. `must` are terms of which each must hold one, itself or by its place."""
    weights = _weights(question, ground)
    ranked = sorted(_ranked(question, ground, weights), key=lambda pick: -pick.score)
    if must:
        ranked = [pick for pick in ranked if must & (pick.part.terms | pick.passage.place_terms)]
    if not ranked:
        return []
    best = ranked[0].score
    chosen: list[Pick] = []
    for pick in ranked:
        if len(chosen) == limit or pick.score < NEAR_BEST * best:
            break
        if not any(_same(pick, other) for other in chosen):
            chosen.append(pick)
    chosen = _with_what_they_open(_with_what_they_lean_on(chosen, limit))
    return chosen if must or _answers(question, chosen, weights) else []


def _ranked(question: str, ground: Ground, weights: Mapping[str, float]) -> Iterable[Pick]:
    total = sum(weights.values()) or 1.0
    asks_value, asks_name = bool(_ASKS_VALUE.search(question)), bool(_ASKS_NAME.search(question))
    for passage in ground.passages:
        at_place = {term for term in weights if term in passage.place_terms}
        for at, part in enumerate(passage.parts):
            if part.piece.kind not in ("sentence", "row") or not _is_said(part.text):
                continue
            own = sum(weight for term, weight in weights.items() if term in part.terms)
            more = sum(weights[term] for term in at_place if term not in part.terms)
            score = (own + PLACE_SHARE * more) / total
            if score <= 0:
                continue
            if asks_value and mentions(part.text):
                score += ASKED_FOR
            if asks_name and names(part.text, ground.common):
                score += ASKED_FOR
            yield Pick(passage, at, score * (0.5 + 0.5 * passage.chunk.relevance_score), own / total)


def _weights(question: str, ground: Ground) -> dict[str, float]:
    """The question's terms by their rarity in the passages."""
    wanted = query_terms(question)
    counts: Counter[str] = Counter()
    total = 0
    for passage in ground.passages:
        for part in passage.parts:
            total += 1
            counts.update(term for term in wanted if term in part.terms)
    return {term: math.log(1 + (total + 1) / (1 + counts[term])) for term in wanted}


def _answers(question: str, chosen: Sequence[Pick], weights: Mapping[str, float]) -> bool:
    """Whether the sentences have enough to do with the question."""
    held = {term for pick in chosen for term in pick.part.terms | pick.passage.place_terms}
    total = sum(weights.values())
    coverage = sum(weight for term, weight in weights.items() if term in held) / total if total else 0.0
    return coverage >= BARELY or max(pick.passage.chunk.relevance_score for pick in chosen) >= RELEVANT


def _is_said(text: str) -> bool:
    return len(text) <= LONGEST and sum(letter.isalnum() for letter in text) >= 3 and not text.rstrip().endswith("?")


def _same(one: Pick, other: Pick) -> bool:
    """Whether two sentences say the same; with different figures they do not."""
    if fold(one.part.text).split() == fold(other.part.text).split():
        return True
    either = one.words | other.words
    if not either or len(one.words & other.words) / len(either) < SAME_WORDS or one.part.piece.kind == "row":
        return False
    return {m.keys for m in mentions(one.part.text)} == {m.keys for m in mentions(other.part.text)}


def _with_what_they_lean_on(chosen: list[Pick], limit: int) -> list[Pick]:
    """The picks, with the sentence before one that begins with "It" or "They", as far as there is room."""
    taken = {(pick.passage.number, pick.at) for pick in chosen}
    found = list(chosen)
    for pick in chosen:
        before = pick.at - 1
        if before < 0 or (pick.passage.number, before) in taken or not _LEANS.match(pick.part.text):
            continue
        part = pick.passage.parts[before]
        if len(found) < limit and part.piece.block == pick.part.piece.block and part.piece.kind == "sentence":
            found.append(Pick(pick.passage, before, pick.score, 0.0))
            taken.add((pick.passage.number, before))
    return found


def _with_what_they_open(chosen: list[Pick]) -> list[Pick]:
    """The picks, with the list below one that ends in a colon."""
    taken = {(pick.passage.number, pick.at) for pick in chosen}
    found = list(chosen)
    for pick in chosen:
        if not pick.part.text.rstrip().endswith(":"):
            continue
        for at in range(pick.at + 1, min(pick.at + 1 + LIST_ITEMS, len(pick.passage.parts))):
            piece = pick.passage.parts[at].piece
            if piece.kind != "sentence" or not piece.marker:
                break
            if (pick.passage.number, at) not in taken:
                found.append(Pick(pick.passage, at, pick.score, 0.0))
                taken.add((pick.passage.number, at))
    return found
