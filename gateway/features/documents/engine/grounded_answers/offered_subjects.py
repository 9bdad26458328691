"""The reply to the gateway's own question which of the nearest subjects is meant: "Yes", "the second", or a name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.run_state import RunState
from agent.text.follow_up import list_content_words
from agent.text.terms import extract_terms, fold
from gateway.features.documents.engine.grounded_answers.no_answer_text import list_offered_subjects

_YES = frozenset(
    ["yes", "yeah", "ja", "jo", "jawohl", "genau", "oui", "si", "sim", "exactly", "precis", "da", "kylla", "joo", "نعم"]
)
"""The folded words of agreement in the languages of the fixed sentences."""
_ORDINALS = (
    "1 1st first forsta erste ersten erster erstes premier premiere primero primera primo prima eerste",
    "2 2nd second andra zweite zweiten zweiter zweites deuxieme seconde segundo segunda secondo seconda tweede",
    "3 3rd third tredje dritte dritten dritter drittes troisieme tercero tercera terzo terza derde",
)
_ORDINAL_WORDS = frozenset(" ".join(_ORDINALS).split())
_WORD = re.compile(r"\w+")
MAX_REPLY_WORDS = 8


@dataclass(frozen=True, slots=True)
class ChosenSubjects:
    """The subjects that a reply chose, and the question that they were offered for."""

    subjects: tuple[str, ...]
    question: str


def find_chosen_subjects(state: RunState, reply: str) -> ChosenSubjects | None:
    """What a reply chooses of the subjects that the last answer offered; None if it offered or the reply chose none."""
    history = state.retrieval.history if state.retrieval else ()
    if len(history) < 2 or history[-1].role != "assistant" or history[-2].role != "user":
        return None
    chosen = _choose(reply, list_offered_subjects(history[-1].content))
    return ChosenSubjects(chosen, history[-2].content.strip()) if chosen else None


def _choose(reply: str, offered: Sequence[str]) -> tuple[str, ...]:
    words = [fold(word) for word in _WORD.findall(reply)]
    if not offered or not 0 < len(words) <= MAX_REPLY_WORDS:
        return ()
    places = [place for place, names in enumerate(_ORDINALS) if set(words) & set(names.split())]
    further = [word for word in list_content_words(reply) if word not in _YES and word not in _ORDINAL_WORDS]
    if further:  # a name, or a question of its own
        own = set(extract_terms(" ".join(further)))
        return tuple(one for one in offered if own <= set(extract_terms(one)))
    if places and len(offered) > 1:
        return tuple(offered[place] for place in places if place < len(offered))
    return tuple(offered) if words[0] in _YES else ()
