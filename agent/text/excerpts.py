"""Shortens a long text to the entries that hold the words of a question, for a prompt that has room for some of it.

The beginning of a list of mails or bookings is seldom what was asked for, and a small model takes what it sees for all
there is.
"""

import json
import math
import re
from collections.abc import Sequence

from agent.text.json_entries import read_json_entries
from agent.text.terms import fold, map_query_terms

MAX_READ_CHARS = 400_000
"""Characters that are looked at. A longer text is a file that a tool should search."""
SHORTEST_STEM, ENDING_CHARS = 4, 2
"""Characters of a word that an entry must hold, and those of its end that may differ."""
HEAD_CHARS = 300
"""Characters of a first line that is kept as a table's head."""
NOTE_CHARS = 16
"""Characters of the note about a gap before an entry, with the ends of the lines."""
_YAML_ENTRY = re.compile(r"^- ", re.MULTILINE)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")


def cut_to_excerpt(text: str, limit: int, question: str) -> str:
    """At most about `limit` characters of a text: the entries that hold most of the question's words, in their order,
    then the first ones. Each gap is a line that says how many entries are left out.

    Entries are those of the longest list of a JSON text, of a list in YAML, paragraphs, or lines. A text whose entries
    hold none of the words begins with its first ones.
    """
    if len(text) <= limit:
        return text
    head, entries = _split_entries(text[:MAX_READ_CHARS], limit)
    scores = _score_entries(entries, question)
    left = limit - len(head)
    chosen: set[int] = set()
    for place in sorted(range(len(entries)), key=lambda place: (-scores[place], place)):
        size = len(entries[place]) + NOTE_CHARS
        if size <= left:
            chosen.add(place)
            left -= size
        elif not chosen:  # the best one alone is too long
            return f"{head}{_cut_entry(entries[place], left)}"
        elif not scores[place]:
            break
    lines = [*_iterate_lines(entries, chosen)]
    if len(text) > MAX_READ_CHARS:
        lines.append(f"[cut: {len(text) - MAX_READ_CHARS:,} more characters]")
    return head + "\n".join(lines)


def list_word_stems(question: str) -> set[str]:
    """The beginnings of a question's words, folded, without stop words: other forms of a word begin so too."""
    words = map(fold, map_query_terms(question).values())
    return {word[: max(SHORTEST_STEM, len(word) - ENDING_CHARS)] for word in words}


def _iterate_lines(entries: Sequence[str], chosen: set[int]) -> Sequence[str]:
    lines: list[str] = []
    gap = 0
    for place, entry in enumerate(entries):
        if place in chosen:
            lines += [f"[{gap} left out]"] if gap else []
            lines.append(entry)
            gap = 0
        else:
            gap += 1
    return [*lines, f"[{gap} left out]"] if gap else lines


def _cut_entry(entry: str, limit: int) -> str:
    length = max(0, limit)
    return f"{entry[:length]}\n[cut: {len(entry) - length:,} more characters]"


def _split_entries(text: str, limit: int) -> tuple[str, list[str]]:
    """What stands before the entries, and the entries."""
    entries = _split_json(text) or _split_yaml(text) or [part for part in _PARAGRAPHS.split(text) if part.strip()]
    if len(entries) <= 1 or max(map(len, entries)) > limit:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) > 1 and len(lines[0]) <= min(HEAD_CHARS, limit // 4):
            return f"{lines[0]}\n", lines[1:]
        return "", lines
    return "", entries


def _split_json(text: str) -> list[str]:
    """The entries of a JSON text, after what stands beside their list; [] for other texts."""
    listed = read_json_entries(text)
    if listed is None:
        return []
    return [_encode(one) for one in ((listed.beside,) if listed.beside is not None else ()) + listed.entries]


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _split_yaml(text: str) -> list[str]:
    starts = [match.start() for match in _YAML_ENTRY.finditer(text)]
    if len(starts) < 2 or text[: starts[0]].count("\n") > 1:
        return []
    return [text[start:end].rstrip() for start, end in zip([0, *starts[1:]], [*starts[1:], len(text)], strict=True)]


def _score_entries(entries: Sequence[str], question: str) -> list[float]:
    """How much of the question's words each entry holds: a word in few entries counts more."""
    stems = list_word_stems(question)
    folded = [fold(entry) for entry in entries]
    scores = [0.0] * len(entries)
    for stem in stems:
        holding = [place for place, entry in enumerate(folded) if stem in entry]
        weight = math.log(1 + len(entries) / len(holding)) if holding else 0.0
        for place in holding:
            scores[place] += weight
    return scores
