"""Whether a request asks for an action with each of several things: "every ticket", "alle Räume", "T-2 and T-5"."""

import re
from itertools import pairwise

from agent.text.codes import find_codes
from agent.text.question_parts import list_sentences, split_phrases
from agent.text.terms import extract_terms

_UNIVERSAL = """each every all both everyone everybody
    jede jeder jedes jeden jedem alle allen aller sämtliche sämtlichen beide beiden jeweils
    varje alla samtliga båda bägge chaque chacun chacune tous toutes cada todos todas ambos ambas
    ogni ognuno ciascuno ciascuna tutti tutte entrambi entrambe elk elke ieder iedere hver hvert begge samtlige"""
"""English, German, Swedish, French, Spanish, Portuguese, Italian, Dutch, Danish, Norwegian: a closed class in each, and
no word of one means something else in another."""
_WORD = re.compile(r"(?<![\w-])[\w-]*[^\W\d_][\w-]*")
_JOINT = re.compile(r",|,? ?(?:and|och|und|et|y|e|en|og|&)")
_DIGITS = re.compile(r"\d+")
_UNIVERSAL_WORDS = frozenset(_UNIVERSAL.split())


def asks_for_each(text: str, action: str) -> bool:
    """Whether a request may ask for an action with each of several things, in some words of its own. A model then
    decides: "a message with all tickets" is one message.

    "Read every ticket, and write ann a summary" asks for one message: the clause that shares most words with the action
    counts, and none does where no word is shared."""
    clauses = [clause for sentence in list_sentences(text) for clause in split_phrases(sentence)]
    wanted = {*extract_terms(action)}
    shared = [len(wanted & {*extract_terms(clause)}) for clause in clauses]
    best = max(shared, default=0)
    asking = [clause for clause, count in zip(clauses, shared, strict=True) if count == best > 0]
    named = {code.text for code in find_codes(action)}
    return any(map(_says_each, asking)) or not named.isdisjoint(list_joined_codes(text))


def list_joined_codes(text: str) -> frozenset[str]:
    """The codes of one form that a text lists: "T-2 and T-5", "T-2, T-5 och T-7"."""
    pairs = (
        (one.text, other.text)
        for one, other in pairwise(find_codes(text))
        if _JOINT.fullmatch(text[one.end : other.start].strip()) and _shape(one.text) == _shape(other.text)
    )
    return frozenset(code for pair in pairs for code in pair)


def _says_each(clause: str) -> bool:
    return not _UNIVERSAL_WORDS.isdisjoint(word.casefold() for word in _WORD.findall(clause))


def _shape(code: str) -> str:
    return _DIGITS.sub("0", code)
