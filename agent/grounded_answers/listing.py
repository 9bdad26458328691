"""Questions for all of something ("list all open invoices", "how many invoices did they send?"), answered by the rows
of a table, from every passage that has a part of it."""

import re
from collections.abc import Sequence

from agent.grounded_answers.columns import columns, speaks
from agent.grounded_answers.passages import Passage
from agent.grounded_answers.question import Asked
from agent.grounded_answers.verbs import verbs_of
from agent.grounded_answers.wording import same_as
from agent.text.terms import extract_query_terms, extract_terms, fold

MOST_ROWS = 30
_LISTS = re.compile(
    r"^\W*(?:please\s+|can you\s+|could you\s+)*(?:list|enumerate|name|give (?:me|us)|show (?:me|us)|"
    r"tell (?:me|us))\s+(?:a list of\s+)?(?:all|every|each|the)\b"
    r"|^\W*(?:which|what)\s+(?:\w+\s+){1,3}are there\b|^\W*what are (?:all )?the\b"
    r"|^\W*(?:lista|r\u00e4kna upp|nenne|liste)\s+(?:alla|alle|samtliga|s\u00e4mtliche)\b"
    r"|^\W*(?:vilka|welche)\s+(?:\w+\s+){1,3}(?:finns|gibt es)\b",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"\b(?:how many|hur m\u00e5nga|wie ?viele)\s+(?P<what>[^\W\d_]+)", re.IGNORECASE)
_NUMBER_OF = re.compile(
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|no))\s(?P<what>[\w-]+(?:\s[\w-]+)?)", re.IGNORECASE
)
_OF_LISTS = frozenset(
    extract_terms(
        "list lists enumerate name give show tell all every each there lista alla nenne alle liste vilka welche finns"
    )
)


Row = tuple[Passage, int]
"""A row as a place in its passage."""


def listed_rows(asked: Asked, passages: Sequence[Passage]) -> tuple[Row, ...]:
    """The rows a question wants listed: those of the table that is called as it says, which hold what it tells of
    them. None where a word of the question is spoken of neither there nor above, its verb aside."""
    counts = _COUNTS.search(asked.question)
    if not (counts or _LISTS.search(asked.question)):
        return ()
    wanted = [term for term in extract_query_terms(asked.question) if term not in _OF_LISTS]
    verbs = {term for verb in verbs_of(asked.question) for term in extract_terms(verb)}
    must = [term for term in asked.words if term not in verbs and term not in _OF_LISTS]
    must += [term for mark in asked.marks for term in extract_terms(mark.text)]
    if counts and any(_counted(counts["what"], part.text) for passage in passages for part in passage.parts):
        return ()  # "14 turbines" is the answer
    best: tuple[Row, ...] = ()
    best_score = 0.0
    for table in _tables(passages):
        head = table[0][0].parts[table[0][1]].head
        first = columns(head)[0]
        called = frozenset(extract_terms(counts["what"])) if counts else frozenset(wanted)
        told = speaks(first, called) if first.terms else 0.0
        score = told + 0.1 * sum(speaks(column, frozenset(wanted)) for column in columns(head)[1:])
        if not told or score <= best_score:
            continue
        rows = _matching(table, wanted, must, frozenset(extract_terms(head)))
        if rows:
            best, best_score = tuple(rows[:MOST_ROWS]), score
    return best


def _counted(what: str, text: str) -> bool:
    """Whether a text says how many there are: a number, at most one word, and the thing."""
    return any(extract_terms(what)[0] in extract_terms(one["what"]) for one in _NUMBER_OF.finditer(text))


def _tables(passages: Sequence[Passage]) -> list[list[Row]]:
    """The rows of every table with a head; the parts of one that was cut are joined by its head."""
    found: dict[tuple[str, str], list[Row]] = {}
    for passage in passages:
        for at, part in enumerate(passage.parts):
            if part.piece.kind == "row" and part.head:
                found.setdefault((passage.chunk.source_id, fold(part.head)), []).append((passage, at))
    return list(found.values())


def _matching(table: Sequence[Row], wanted: Sequence[str], must: Sequence[str], head: frozenset[str]) -> list[Row]:
    """The rows that hold each term some row holds and the head does not; none where one that is a must is nowhere."""
    held = [passage.parts[at].terms for passage, at in table]
    anywhere = frozenset[str]().union(*held)
    asked = [term for term in wanted if same_as(term) & anywhere and not same_as(term) & head]
    above = head | frozenset[str]().union(*(passage.around_terms(at) for passage, at in table[:1]))
    if any(not same_as(term) & (above | anywhere) for term in must):
        return []
    return [row for row, own in zip(table, held, strict=True) if all(same_as(term) & own for term in asked)]
