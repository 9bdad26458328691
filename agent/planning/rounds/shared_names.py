"""A name that several things share: "the Schmidt booking" where two guests are called Schmidt, "the ticket about the
printer" where two titles have that word.

A small model takes the first one. Before a change of it, the user says which one is meant.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from pydantic import JsonValue

from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject, PlanStep
from agent.planning.request import PlanningRequest
from agent.planning.rounds.known_words import WORD, split_words
from agent.text.json_entries import list_json_objects
from agent.text.quantifiers import asks_for_each
from agent.text.terms import fold, is_filler, map_query_terms
from agent.tools.catalogue import is_foreign, split_name

MAX_NAMES, NAME_CHARS = 6, 60
"""Names in one question, and characters of each. More would be a list that nobody reads."""
_TITLES = frozenset({"title", "subject", "summary"})
"""Fields that say what a thing is about."""


def find_shared_names(steps: Iterable[PlanStep], request: PlanningRequest) -> tuple[str, ...]:
    """The full names of the things of which a change takes one, if the request has only what they share; empty if it
    has more of one of them, or if the changes are about all of them. Behind a title stands the thing's identifier."""
    steps = [step for step in steps if _is_change_of_server(step, request)]
    if not steps or any(asks_for_each(request.question, split_name(step.tool)) for step in steps):
        return ()
    words = _list_content_words(f"{request.question}\n{request.original}")
    used = {str(leaf) for step in steps for _, leaf in iter_leaves(step.args) if isinstance(leaf, str | int)}
    for call in request.rounds:
        entries = [] if call.failed else list_json_objects(call.text)
        named = [(entry, name) for entry in entries for name in _list_names(entry)]
        named += [(entry, title) for entry in entries for title in _list_titles(entry)]
        for entry, name in named:
            if not used.isdisjoint(_list_identifiers(entry)):
                alike = [(other, one) for other, one in named if _is_alike((entry, name), (other, one), words)]
                names = tuple(dict.fromkeys(_label(*one) for one in alike))
                chosen = {_label(other, one) for other, one in alike if not used.isdisjoint(_list_identifiers(other))}
                if 1 < len(names) <= MAX_NAMES and not chosen >= {*names}:
                    return names
    return ()


def format_choice(names: Sequence[str]) -> str:
    """The question for one of several names."""
    return f"Which one do you mean: {', '.join(names[:-1])} or {names[-1]}?"


def _is_change_of_server(step: PlanStep, request: PlanningRequest) -> bool:
    spec = request.catalogue.get_tool(step.tool)
    return spec is not None and is_foreign(spec) and request.catalogue.has_side_effect(step)


def _is_alike(one: tuple[JsonObject, str], other: tuple[JsonObject, str], words: AbstractSet[str]) -> bool:
    """Whether the request has the same words of both names, and of all else that is known of the two."""
    spoken = _list_spoken(one[1], words)
    if not spoken or _list_spoken(other[1], words) != spoken:
        return False
    return _list_spoken(_join_texts(one[0]), words) == _list_spoken(_join_texts(other[0]), words)


def _list_spoken(text: str, words: AbstractSet[str]) -> AbstractSet[str]:
    return words & {fold(word) for word in split_words(text)}


def _list_content_words(text: str) -> frozenset[str]:
    """The folded words of a text that say what it is about, and its numbers."""
    content = (word for word in map_query_terms(text).values() if not is_filler(word))
    return frozenset((*content, *(word for word in split_words(text) if any(map(str.isdigit, word)))))


def _join_texts(entry: JsonObject) -> str:
    return " ".join(str(leaf) for _, leaf in iter_leaves(entry) if isinstance(leaf, str | int))


def _label(entry: JsonObject, name: str) -> str:
    identifier = next(iter(entry.values()), None) if name in _list_titles(entry) else None
    return f"{name} ({identifier})" if isinstance(identifier, str | int) and identifier != name else name


def _list_names(entry: JsonObject) -> list[str]:
    """The names in an entry: short texts of several words in capitals, whatever the field is called."""
    return [value for value in entry.values() if isinstance(value, str) and _is_name(value)]


def _list_titles(entry: JsonObject) -> list[str]:
    """The titles of an entry that has an identifier."""
    titled = [value for field, value in entry.items() if split_name(field).casefold() in _TITLES]
    titles = [value for value in titled if isinstance(value, str) and 0 < len(value) <= NAME_CHARS]
    return titles if _list_identifiers(entry) else []


def _is_name(value: str) -> bool:
    words = WORD.findall(value) if len(value) <= NAME_CHARS else []
    return len(words) > 1 and all(map(_is_capital, words))


def _is_capital(word: str) -> bool:
    return word[0].isupper() and not word.isupper()


def _list_identifiers(entry: JsonObject) -> set[str]:
    """The codes and addresses of an entry, by which a change may name it."""
    leaves: Iterable[JsonValue] = entry.values()
    texts = {str(leaf) for leaf in leaves if isinstance(leaf, str | int) and not isinstance(leaf, bool)}
    return {text for text in texts if " " not in text and (any(map(str.isdigit, text)) or "@" in text)}
