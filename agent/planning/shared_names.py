"""A name that several things share: "the Schmidt booking" where two guests are called Schmidt.

A small model takes the first one. Before a change of it, the user says which one is meant.
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject, PlanStep
from agent.planning.known_words import WORD, KnownWords, split_words
from agent.planning.request import PlanningRequest
from agent.text.json_entries import list_json_objects
from agent.text.terms import is_filler
from agent.tools.catalogue import is_foreign, split_name

MAX_NAMES, NAME_CHARS = 6, 60
"""Names in one question, and characters of each. More would be a list that nobody reads."""


def find_shared_names(steps: Iterable[PlanStep], request: PlanningRequest) -> tuple[str, ...]:
    """The full names of the things of which a change takes one, if the request has only what they share; empty if it
    has more of one name, or if the changes are about all of them."""
    steps = [step for step in steps if _is_change_of_server(step, request)]
    if not steps:
        return ()
    words = KnownWords([request.question, request.original])
    used = {str(leaf) for step in steps for _, leaf in iter_leaves(step.args) if isinstance(leaf, str | int)}
    for call in request.rounds:
        entries = [] if call.failed else list_json_objects(call.text)
        named = [(entry, name) for entry in entries for name in _list_names(entry)]
        for entry, name in named:
            if not used.isdisjoint(_list_identifiers(entry)):
                names = _list_alike(name, [other for _, other in named], words)
                chosen = {one for other, one in named if not used.isdisjoint(_list_identifiers(other))}
                if 1 < len(names) <= MAX_NAMES and not chosen >= {*names}:
                    return names
    return ()


def format_choice(names: Sequence[str]) -> str:
    """The question for one of several names."""
    return f"Which one do you mean: {', '.join(names[:-1])} or {names[-1]}?"


def _is_change_of_server(step: PlanStep, request: PlanningRequest) -> bool:
    spec = request.catalogue.get_tool(step.tool)
    return spec is not None and is_foreign(spec) and request.catalogue.has_side_effect(step)


def _list_alike(name: str, others: Iterable[str], words: KnownWords) -> tuple[str, ...]:
    """The different names of which the request has the same words as of this one."""
    spoken = _list_spoken(name, words)
    return tuple(dict.fromkeys(one for one in others if spoken and _list_spoken(one, words) == spoken))


def _list_spoken(name: str, words: KnownWords) -> frozenset[str]:
    return frozenset(word for word in split_words(name) if word in words.tokens and not is_filler(word))


def _list_names(entry: JsonObject) -> list[str]:
    """The names of people in an entry: fields that are called so, with several words in capitals."""
    return [value for field, value in entry.items() if isinstance(value, str) and _is_name(field, value)]


def _is_name(field: str, value: str) -> bool:
    words = WORD.findall(value) if len(value) <= NAME_CHARS else []
    return split_name(field).casefold().split()[-1:] == ["name"] and len(words) > 1 and all(map(_is_capital, words))


def _is_capital(word: str) -> bool:
    return word[0].isupper() and not word.isupper()


def _list_identifiers(entry: JsonObject) -> set[str]:
    """The codes and addresses of an entry, by which a change may name it."""
    leaves: Iterable[JsonValue] = entry.values()
    texts = {str(leaf) for leaf in leaves if isinstance(leaf, str | int) and not isinstance(leaf, bool)}
    return {text for text in texts if " " not in text and (any(map(str.isdigit, text)) or "@" in text)}
