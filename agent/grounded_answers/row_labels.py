"""Of which row of a table a claim says each of its values: of the one whose first cell it names before it."""

import re
from collections.abc import Sequence

from agent.grounded_answers.passages import Part
from agent.grounded_answers.values import Mention
from agent.text.terms import fold


def row_labels(parts: Sequence[Part], claim: str, values: Sequence[Mention]) -> list[frozenset[int]]:
    """For each value the rows, as places in `parts`, that the claim says it of; none where it names no row."""
    text = fold(claim) if len(fold(claim)) == len(claim) else claim.lower()
    named: list[tuple[int, int, int]] = []
    for at, part in enumerate(parts):
        if part.piece.kind == "row" and (label := first_cell(part.text)):
            found = re.finditer(rf"(?<!\w){re.escape(fold(label))}(?!\w)", text)
            named += [(match.start(), match.end(), at) for match in found]
    # "Atlas 300 Pro" is not also the row "Atlas 300".
    named = [one for one in named if not any(o[0] <= one[0] and one[1] <= o[1] and o[:2] != one[:2] for o in named)]
    return [_said_of(value, sorted(named)) for value in values]


def first_cell(row: str) -> str:
    """What a row is called; empty for a mere number."""
    cell = row.strip().strip("|").split("|", 1)[0].strip(" *_`")
    return cell if any(letter.isalpha() for letter in cell) else ""


def _said_of(value: Mention, named: Sequence[tuple[int, int, int]]) -> frozenset[int]:
    if any(start <= value.start < end for start, end, _ in named):  # part of the name itself
        return frozenset()
    before = [start for start, _, _ in named if start < value.start]
    nearest = max(before) if before else min((start for start, _, _ in named), default=None)
    return frozenset(at for start, _, at in named if start == nearest)
