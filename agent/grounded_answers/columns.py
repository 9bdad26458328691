"""Tables read by their columns: which of them a question or a claim speaks of, and what a row says there."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from agent.grounded_answers.passages import Part
from agent.grounded_answers.values import Held, Mention, mentions
from agent.grounded_answers.wording import same_as
from agent.text.terms import ALL_STOP_WORDS, extract_terms, fold

_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE = re.compile(
    r"[;:()]|,\s|\s(?:and|while|but|whereas|with|och|medan|men|und|aber|mit|et|mais|y|pero)\s", re.IGNORECASE
)
"""Where one pair of a column and its value ends and another may begin."""


class Column(NamedTuple):
    """A column by its place, its title, and the terms of that."""

    at: int
    title: str
    terms: tuple[str, ...]


class Named(NamedTuple):
    """A column's title where a text says it: `text[start:end]`."""

    start: int
    end: int
    column: Column


def cells(row: str) -> list[str]:
    """The cells of a row or of a head."""
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


@lru_cache(maxsize=512)
def columns(head: str) -> tuple[Column, ...]:
    """The columns of a table's head; none where there is no head. What stands in brackets, a unit, is no part of what
    a column is called."""
    return tuple(Column(at, title, _told(title)) for at, title in enumerate(cells(head))) if head else ()


def speaks(column: Column, wanted: frozenset[str]) -> float:
    """The share of a title's terms that are wanted, themselves or by a word that says the same."""
    held = sum(bool(same_as(term) & wanted) for term in column.terms)
    return held / len(column.terms) if column.terms else 0.0


def asked_columns(row: str, head: str, wanted: Iterable[str], telling: Iterable[str]) -> tuple[int, ...]:
    """The columns of a row that a question is about: its first, those whose titles the question says (`wanted`: its
    terms), and those whose cells hold what else it tells (`telling`: its telling terms); none where it says no title,
    or all are asked."""
    known, said = columns(head), frozenset(wanted)
    shares = {column.at: speaks(column, said) for column in known if column.at}
    best = max(shares.values(), default=0.0)
    titled = {at for at, share in shares.items() if share == best} if best > 0.5 or best == 1.0 else set()
    written = cells(row)
    titled = {at for at in titled if at < len(written) and written[at]}
    if not titled or len(written) != len(known):
        return ()
    covered = {term for at in (0, *titled) for term in known[at].terms}
    covered |= {term for at in (0, *titled) for term in extract_terms(written[at])}
    left = {term for term in telling if not same_as(term) & covered}
    others = {at for at, cell in enumerate(written) if left & set(extract_terms(cell))}
    chosen = sorted({0} | titled | others)
    return tuple(chosen) if len(chosen) < len(written) else ()


def only(row: str, chosen: Sequence[int]) -> str:
    """A row or head with these columns alone."""
    written = cells(row)
    return f"| {' | '.join(written[at] for at in chosen)} |"


def row_as_line(row: str, head: str) -> str:
    """ "Item: Train; Price: 900" for a row and its head."""
    titles = cells(head) if head else []
    written = cells(row)
    told = [f"{title}: {cell}" if title else cell for title, cell in zip(titles, written, strict=False) if cell]
    line = "; ".join(told if titles else [cell for cell in written if cell])
    return line if line.endswith((".", "!", "?")) else f"{line}."


def titles_of(row: str, head: str, values: Sequence[Mention]) -> tuple[str, ...]:
    """The title above each value of a row; empty where there is no head."""
    titles = cells(head) if head else []
    places = [row[: one.start].lstrip().removeprefix("|").count("|") for one in values] if titles else []
    return tuple(titles[at] if at < len(titles) else "" for at in places)


def said_of_columns(claim: str, head: str, values: Sequence[Mention], titles: Sequence[str] = ()) -> dict[int, Column]:
    """Of which column of a table a claim says its values, by their index: of the one of the value's own title, or whose
    title it says with them, where that can be told. Rather none than a wrong one."""
    known = columns(head)
    if titles:
        own = [next((one for one in known[1:] if one.terms and one.terms == _told(title)), None) for title in titles]
        return {at: column for at, column in enumerate(own) if column is not None}
    named = list(_named(claim, known))
    found: dict[int, Column] = {}
    for start, end in _clauses(claim) if named else ():
        heads = [one for one in named if start <= one.start < end]
        told = [
            (one.start, at)
            for at, one in enumerate(values)
            if start <= one.start < end and not any(h.start <= one.start < h.end for h in named)
        ]
        if heads and not told:  # "flow and power are 95 and 420"
            return {}
        if len(heads) == 1 and len(told) == 1:
            found[told[0][1]] = heads[0].column
        elif len(heads) == len(told) and _alternate([h.start for h in heads], [place for place, _ in told]):
            found |= {at: h.column for h, (_, at) in zip(heads, told, strict=True)}
    return found


def in_column(part: Part, column: Column, value: Mention) -> bool:
    """Whether a row may hold a value in a column: not where the cell there holds another of its kind."""
    written = cells(part.text)
    cell = written[column.at] if column.at < len(written) else ""
    kinds = {kind for kind, _ in value.keys}
    if not any(kinds & {kind for kind, _ in one.keys} for one in mentions(cell)):
        return True
    return Held(cell, column.title).holds(value)


def wrong_column(rows: Iterable[Part], value: Mention, at: int, said: Callable[[str], Mapping[int, Column]]) -> str:
    """The title under which a claim says its value `at` (`said` tells it by the table's head) although a row holds it
    elsewhere; empty where there is none."""
    for row in rows:
        column = said(row.head).get(at) if row.held.holds(value) else None
        if column is not None and not in_column(row, column, value):
            return column.title
    return ""


def _told(title: str) -> tuple[str, ...]:
    bare = _ASIDE.sub(" ", title)
    told = [term for word in _WORD.findall(fold(bare)) if word not in ALL_STOP_WORDS for term in extract_terms(word)]
    return tuple(dict.fromkeys(told or extract_terms(bare)))


def _named(claim: str, known: Sequence[Column]) -> Iterator[Named]:
    """The titles a claim says in full, in its order; what is within a longer one is not said by itself."""
    words = [(one.start(), one.end(), frozenset(extract_terms(one[0]))) for one in _WORD.finditer(claim)]
    found: list[Named] = []
    for column in known[1:]:
        count = len(column.terms)
        for first in range(len(words) - count + 1 if count else 0):
            run = words[first : first + count]
            if all(same_as(term) & held for term, (_, _, held) in zip(column.terms, run, strict=True)):
                found.append(Named(run[0][0], run[-1][1], column))
    for one in sorted(found):
        if not any(o is not one and o.start <= one.start and one.end <= o.end and o != one for o in found):
            yield one


def _clauses(claim: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _CLAUSE.finditer(claim):
        yield start, match.start()
        start = match.end()
    yield start, len(claim)


def _alternate(heads: Sequence[int], told: Sequence[int]) -> bool:
    """Whether titles and values follow each other in turn, whichever comes first."""
    marks = sorted([(place, "head") for place in heads] + [(place, "value") for place in told])
    return len(marks) > 2 and all(one[1] != other[1] for one, other in pairwise(marks))
