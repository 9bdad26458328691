"""Words that mean each of several things: "every ticket", "alle Räume". A closed class in each language."""

import re

from agent.text.codes import find_codes
from agent.text.question_parts import list_sentences, split_phrases
from agent.text.stop_words import detect_candidate_languages
from agent.text.terms import extract_terms

_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_UNIVERSAL = {
    "en": "each every all both everyone everybody",
    "sv": "varje var alla samtliga båda bägge",
    "de": "jede jeder jedes jeden jedem alle allen aller sämtliche sämtlichen beide beiden jeweils",
    "fr": "chaque chacun chacune tous toutes",
    "es": "cada todos todas ambos ambas",
    "it": "ogni ognuno ciascuno ciascuna tutti tutte entrambi entrambe",
    "nl": "elk elke ieder iedere alle allen beide",
    "pt": "cada todos todas ambos ambas",
    "da": "hver hvert alle begge samtlige",
    "no": "hver hvert alle begge samtlige",
}


def asks_for_each(text: str, action: str) -> bool:
    """Whether a request asks for an action, in some words of its own, with each of several things: "every ticket", or
    "T-2 and T-5" where the action names one of them.

    "Read every ticket, and write ann a summary" asks for one message: the clause that shares most words with the action
    counts, and none does where no word is shared."""
    clauses = [clause for sentence in list_sentences(text) for clause in split_phrases(sentence)]
    wanted = {*extract_terms(action)}
    shared = [len(wanted & {*extract_terms(clause)}) for clause in clauses]
    best = max(shared, default=0)
    languages = detect_candidate_languages(text) or ("en",)
    universal = {word for language in languages for word in _UNIVERSAL.get(language, "").split()}
    asking = [clause for clause, count in zip(clauses, shared, strict=True) if count == best > 0]
    if any(not universal.isdisjoint(map(str.casefold, _WORD.findall(clause))) for clause in asking):
        return True
    named = {code.text for code in find_codes(action)}
    codes = [code.text for sentence in list_sentences(text) for code in find_codes(sentence)]
    return any(one != other and _shape(one) == _shape(other) for one in codes if one in named for other in codes)


def _shape(code: str) -> str:
    return _DIGITS.sub("0", code)
