"""The quote of a claim: the stretch of a passage that holds most of its values, names and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.grounded_answers.columns import Column, in_column, said_of_columns
from agent.grounded_answers.names import Name
from agent.grounded_answers.passages import Part, Passage, Quote
from agent.grounded_answers.row_labels import row_labels
from agent.grounded_answers.values import Mention

PART_COSTS = 0.75
"""Shared words that one more sentence must bring to be quoted along."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a quote must hold."""

    text: str
    values: tuple[Mention, ...]
    names: tuple[Name, ...]
    terms: frozenset[str]
    titles: tuple[str, ...] = ()
    """Of a row, the title of each value."""

    def said(self, head: str) -> dict[int, Column]:
        """Of which column of a table the values are said, by their index, where that can be told."""
        return said_of_columns(self.text, head, self.values, self.titles)

    @property
    def has_marks(self) -> bool:
        """Whether there is a number or a name to hold it by."""
        return bool(self.values or self.names)


@dataclass(frozen=True, slots=True)
class Best:
    """The best quote of one passage: which values and names it holds, by their index, and which words."""

    quote: Quote
    values: frozenset[int]
    names: frozenset[int]
    terms: frozenset[str]


def best_quote(passage: Passage, wanted: Wanted) -> Best | None:
    """The stretch of a passage that holds most of what is wanted, and of those the one that shares most words with it
    and is shortest."""
    labels = row_labels(passage.parts, wanted.text, wanted.values)
    heads = {part.head for part in passage.parts if part.head}
    said = {head: wanted.said(head) for head in heads}
    per_part = [_part_holds(at, part, wanted, labels, said.get(part.head, {})) for at, part in enumerate(passage.parts)]
    at_place = frozenset(at for at, name in enumerate(wanted.names) if passage.place.holds(name))
    best: Best | None = None
    best_score: tuple[float, ...] = ()
    for first, last in passage.windows():
        held = per_part[first:last]
        values = frozenset[int]().union(*(one[0] for one in held))
        spoken = frozenset[int]().union(*(one[1] for one in held))
        shared = frozenset[str]().union(*(one[2] for one in held))
        start, end = passage.parts[first].piece.start, passage.parts[last - 1].piece.end
        told = len(shared) - PART_COSTS * (last - first - 1)
        score = (len(values) + len(spoken | at_place), len(spoken), told, start - end)
        if best is None or score > best_score:
            quote = Quote(passage.number, start, end)
            best, best_score = Best(quote, values, spoken | at_place, shared), score
    if best is None:
        return None
    return Best(best.quote, best.values, best.names, best.terms | (wanted.terms & passage.place_terms))


def _part_holds(
    number: int, part: Part, wanted: Wanted, labels: Sequence[frozenset[int]], said: Mapping[int, Column]
) -> tuple[frozenset[int], frozenset[int], frozenset[str]]:
    """Which values, names and words a part holds. A row holds a value only if the claim says it of that row, and of no
    other column (`said`)."""
    is_row = part.piece.kind == "row"
    values = frozenset(
        at
        for at, value in enumerate(wanted.values)
        if part.held.holds(value)
        and not (is_row and labels[at] and number not in labels[at])
        and (at not in said or in_column(part, said[at], value))
    )
    spoken = frozenset(at for at, name in enumerate(wanted.names) if part.spoken.holds(name))
    return values, spoken, wanted.terms & part.terms
