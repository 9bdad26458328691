"""Numbers by which a question says which of several things it means: "hall 2", "80 trees", "version 4.1". A place that
says the same of another number ("hall 1") does not speak of it.

Amounts of a known unit ("3 days") are left out, unless it is said what they measure ("a depth of 50 cm"): a rule is
asked about with other amounts than it names."""

import re
from typing import NamedTuple

from agent.grounded_answers.sections import WORDS as SECTIONS
from agent.grounded_answers.units import unit_at
from agent.text.terms import ALL_STOP_WORDS, extract_terms, fold

VERSION = re.compile(
    r"(?<![\w.])(?:v\.?\s?)?(\d+(?:\.\d+){2,3})(?![\w]|\.\d)"
    r"|\b(?:version|release|update|utg\u00e5va|ausgabe)\s+v?(\d+(?:\.\d+){0,3})(?![\w]|\.\d)"
    r"|\b(?:in|since|from|of|with)\s+v?(\d+\.\d+)(?=\s*[?.!]?\s*$)",
    re.IGNORECASE,
)
"""A version: three numbers, or what is called one, or two numbers at a question's end ("new in 4.1?")."""
OF_AMOUNTS = frozenset(
    fold("""
    about above almost are around at below cost costs equals exceeding exceeds is least most nearly of over paid than
    under weigh weighs
    """).split()
)
"""Words before a number that is an amount, and no name's."""
_SECTIONS = frozenset(fold(SECTIONS).split("|"))
_NO_LABELS = OF_AMOUNTS | _SECTIONS | frozenset(("page", "pages", "top", "first", "last", "next"))
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_MEASURED = re.compile(r"\b([^\W\d_]{4,}) of $")
_MEASURES = re.compile(r"\b(?P<what>[^\W\d_]{4,}) of (?P<number>\d+(?:[.,]\d+)*)")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")


class Condition(NamedTuple):
    """A number and the word it goes with, as the question has them."""

    text: str
    number: str
    term: str
    is_label: bool
    """Whether the number names one of several ("hall 2"), rather than counts ("80 trees")."""
    is_measure: bool = False
    """Whether it is how much of something there is: "a depth of 50 cm"."""


def conditions_of(question: str, taken: frozenset[str]) -> tuple[Condition, ...]:
    """The conditions of a question; `taken` are words and numbers (folded) of its names and years."""
    found: list[Condition] = []
    tokens = list(_TOKEN.finditer(question))
    for at, token in enumerate(tokens):
        number = token[0]
        if not number[0].isdigit() or number in taken or _YEAR.fullmatch(number):
            continue
        if unit_at(question, *token.span()):
            if (measure := _MEASURED.search(question[: token.start()])) and _tells(measure[1], taken):
                text = question[measure.start() : token.end()]
                found.append(Condition(text, number, extract_terms(measure[1])[0], is_label=False, is_measure=True))
            continue
        before = tokens[at - 1] if at else None
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if before is not None and fold(before[0]) in _SECTIONS:
            continue
        if before is not None and _goes(question[before.end() : token.start()], before[0], taken):
            found.append(
                Condition(question[before.start() : token.end()], number, extract_terms(before[0])[0], is_label=True)
            )
        elif after is not None and _goes(question[token.end() : after.start()], after[0], taken):
            found.append(
                Condition(question[token.start() : after.end()], number, extract_terms(after[0])[0], is_label=False)
            )
    return tuple(found)


def _tells(word: str, taken: frozenset[str]) -> bool:
    return fold(word) not in ALL_STOP_WORDS | _NO_LABELS | taken


def contradicts(condition: Condition, text: str) -> bool:
    """Whether a text has the condition's word with another number, and nowhere with its own."""
    tokens = [token[0] for token in _TOKEN.finditer(text)]
    others = False
    if condition.is_measure:
        told = [one["number"] for one in _MEASURES.finditer(text) if condition.term in extract_terms(one["what"])]
        return bool(told) and condition.number not in told
    for at, token in enumerate(tokens):
        if token[0].isdigit() or condition.term not in extract_terms(token):
            continue
        beside = tokens[at + 1 : at + 2] if condition.is_label else tokens[max(0, at - 2) : at]
        numbers = [one for one in beside if one[0].isdigit()]
        if condition.number in numbers:
            return False
        others = others or bool(numbers)
    return others


def _goes(between: str, word: str, taken: frozenset[str]) -> bool:
    """Whether a word stands right beside a number and says what it is the number of."""
    folded = fold(word)
    is_word = word[0].isalpha() and len(word) > 2 and folded not in ALL_STOP_WORDS | _NO_LABELS | taken
    return between == " " and is_word and not folded.endswith("ly")
