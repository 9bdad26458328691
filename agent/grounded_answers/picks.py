"""Picked sentences and rows, and what is said with them: what they lean on, what they open, where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.grounded_answers.passages import LEANS, Part, Passage

LIST_ITEMS = 6
"""Items of a list that are said with the sentence that opens it."""


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


def with_others(chosen: list[Pick], limit: int) -> tuple[Pick, ...]:
    """The picks with what they lean on, as far as there is room, and with the lists they open."""
    return tuple(_with_what_they_open(_with_what_they_lean_on(chosen, limit)))


def places_of(picks: Sequence[Pick]) -> list[Pick]:
    """The headings that say where picked sentences stand, where it is that which is asked for: those with a number."""
    found: dict[tuple[int, int], Pick] = {}
    for pick in picks:
        for at in range(pick.at - 1, -1, -1):
            part = pick.passage.parts[at]
            if part.piece.kind == "heading" and any(letter.isdigit() for letter in part.text):
                found.setdefault((pick.passage.number, at), Pick(pick.passage, at, pick.score, 0.0))
                break
    return list(found.values())


def _with_what_they_lean_on(chosen: list[Pick], limit: int) -> list[Pick]:
    """The picks, with the sentence before one that begins with "It" or "They", as far as there is room."""
    taken = {(pick.passage.number, pick.at) for pick in chosen}
    found = list(chosen)
    for pick in chosen:
        before = pick.at - 1
        if before < 0 or (pick.passage.number, before) in taken or not LEANS.match(pick.part.text):
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
