"""Counts and sums of a list that a tool returned, for a small model.

It adds up wrongly, and takes the sum of all entries for that of some.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.text.excerpts import SHORTEST_STEM, list_word_stems
from agent.text.json_entries import read_json_entries
from agent.text.terms import fold
from agent.tools.catalogue import split_name

MIN_ENTRIES, MAX_LINES = 3, 6
MAX_READ_CHARS = 400_000
VALUE_CHARS = 40
MAX_NUMBER = 1e15
"""Larger numbers are codes, and no float adds them up."""


def describe_list_figures(text: str, question: str, *, which: str = "in all") -> str:
    """Lines with the number of entries and what the numbers of each field add up to: of the whole list, which `which`
    names, and of the entries with a value that the question names. "" for other texts and shorter lists."""
    listed = read_json_entries(text) if len(text) <= MAX_READ_CHARS else None
    entries = [entry for entry in listed.entries if isinstance(entry, dict)] if listed is not None else []
    if len(entries) < MIN_ENTRIES:
        return ""
    lines = [_describe(entries, which), *_describe_groups(entries, question)]
    return "\n".join(line for line in lines[:MAX_LINES] if line)


def _describe_groups(entries: Sequence[JsonObject], question: str) -> Iterator[str]:
    """The lines of the entries with a value that the question names, the largest group first. Words of every value of
    a field, such as the year of its dates, name none of them."""
    stems = {stem for stem in list_word_stems(question) if len(stem) >= SHORTEST_STEM}
    groups: Counter[tuple[str, str]] = Counter()
    for name in dict.fromkeys(name for entry in entries for name in entry):
        values = [value for entry in entries if isinstance(value := entry.get(name), str) and len(value) <= VALUE_CHARS]
        named = {value: {stem for stem in stems if _has_word(value, stem)} for value in dict.fromkeys(values)}
        is_shared = len(named) > 1 or len(values) == len(entries)  # else it tells the entries apart that have it
        everywhere = set.intersection(*named.values()) if named and is_shared else set()
        groups.update((name, value) for value in values if named[value] - everywhere)
    for name, value in (group for group, _ in groups.most_common(MAX_LINES)):
        yield _describe([entry for entry in entries if entry.get(name) == value], f"with {name} {value}")


def _has_word(value: str, stem: str) -> bool:
    return any(word.startswith(stem) for word in fold(value).split())


def _describe(entries: Sequence[JsonObject], which: str) -> str:
    names = dict.fromkeys(name for entry in entries for name in entry)
    figures = [figure for name in names if (figure := _describe_field(name, [entry.get(name) for entry in entries]))]
    return "; ".join((f"{len(entries)} entries {which}", *figures))


def _describe_field(name: str, values: Sequence[JsonValue]) -> str:
    """What the values of a field add up to; "" for texts, and for identifiers, which nobody adds up."""
    answers = [value for value in values if isinstance(value, bool)]
    if answers:
        return f"{name}: {sum(answers)} true, {len(answers) - sum(answers)} false"
    numbers = [value for value in values if isinstance(value, int | float) and abs(value) < MAX_NUMBER]
    if not numbers or split_name(name).casefold().split()[-1:] == ["id"]:
        return ""
    total, least, most = (_format(figure) for figure in (sum(numbers), min(numbers), max(numbers)))
    return f"{name}: sum {total}, least {least}, most {most}"


def _format(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")
