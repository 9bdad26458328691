"""Questions for the most or least of a column of figures ("which office has the most desks?"), answered from a table
that stands whole in one passage."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from agent.grounded_answers.columns import cells, columns, speaks
from agent.grounded_answers.passages import Passage
from agent.grounded_answers.values import mentions
from agent.text.terms import extract_query_terms, extract_terms, fold

WHOLE_CHARS = 1_500
"""A longer passage may hold a part of a table only."""
_MOST = "most highest largest biggest greatest longest heaviest tallest widest deepest fastest oldest loudest maximum"
_LEAST = "least fewest lowest smallest shortest lightest narrowest slowest youngest cheapest quietest minimum"
_SUPERLATIVE = re.compile(rf"\b(?:{'|'.join((*_MOST.split(), *_LEAST.split()))})(?:\s+expensive)?\b", re.IGNORECASE)
_WHICH = re.compile(r"\b(?:which|what|who|where|vilke[nt]|vilka|welche[rs]?|quel(?:le)?s?)\b", re.IGNORECASE)
_SAYS_COLUMN = {
    **dict.fromkeys(("longest", "shortest"), "length"), **dict.fromkeys(("heaviest", "lightest"), "weight"),
    **dict.fromkeys(("tallest",), "height"), "widest": "width", "deepest": "depth", "narrowest": "width",
    **dict.fromkeys(("fastest", "slowest"), "speed"), **dict.fromkeys(("cheapest", "most expensive",
    "least expensive"), "price"), **dict.fromkeys(("oldest", "youngest"), "age"),
    **dict.fromkeys(("loudest", "quietest"), "noise"), **dict.fromkeys(("largest", "biggest", "smallest"), "size"),
}  # fmt: skip


def extreme_rows(question: str, passages: Sequence[Passage]) -> list[tuple[Passage, int]]:
    """The rows with the most or the least of what is asked, as places in their passages; several where they are equal,
    none where no table can tell."""
    match = _SUPERLATIVE.search(question)
    if match is None or not _WHICH.search(question):
        return []
    word = fold(match[0])
    wanted = frozenset(column_terms(question)) | frozenset(extract_query_terms(_SUPERLATIVE.sub(" ", question)))
    for passage in passages:
        if len(passage.chunk.content) > WHOLE_CHARS:
            continue
        blocks: dict[int, list[int]] = {}
        for at, part in enumerate(passage.parts):
            if part.piece.kind == "row" and part.head:
                blocks.setdefault(part.piece.block, []).append(at)
        for rows in blocks.values():
            found = _extreme(passage, rows, wanted, most=word.split()[0] in _MOST.split())
            if found:
                return [(passage, at) for at in found]
    return []


def column_terms(question: str) -> list[str]:
    """The terms of the column a question's superlative speaks of: "price" for "cheapest"."""
    match = _SUPERLATIVE.search(question)
    return extract_terms(_SAYS_COLUMN.get(fold(match[0]), "")) if match is not None else []


def rest_of(words: Mapping[str, str]) -> dict[str, str]:
    """A question's telling words without its superlative."""
    return {
        term: word for term, word in words.items() if not _SUPERLATIVE.fullmatch(word) and fold(word) != "expensive"
    }


def _extreme(passage: Passage, rows: Sequence[int], wanted: frozenset[str], *, most: bool) -> list[int]:
    shares = [(speaks(column, wanted), column.at) for column in columns(passage.parts[rows[0]].head) if column.at]
    # "Which office has the most desks?" asks for the column "Desks", although there is one of "Office manager".
    best = max((share for share, _ in shares), default=0.0)
    asked = [at for share, at in shares if share and share == best]
    if len(asked) != 1 or len(rows) < 2:
        return []
    figures: list[tuple[Decimal, int]] = []
    for at in rows:
        written = cells(passage.parts[at].text)
        figure = _figure(written[asked[0]]) if asked[0] < len(written) else None
        if figure is None:
            return []
        figures.append((figure, at))
    best_figure = (max if most else min)(figure for figure, _ in figures)
    return [at for figure, at in figures if figure == best_figure]


def _figure(cell: str) -> Decimal | None:
    """The one number of a cell; None where there is none, several, or it can be read in two ways."""
    found = mentions(cell)
    numbers = [value for one in found for kind, value in one.keys if kind == "number"]
    return Decimal(numbers[0]) if len(found) == 1 and len(numbers) == 1 else None
