"""Whether an answer only repeats figures of its evidence: the fast way past the comparison of values."""

import re

from agent.text.dates import MONTHS
from agent.text.number_words import FACTORS, NUMBER_WORDS, is_number_word, may_hold_compound
from agent.text.numbers import FRACTIONS
from agent.text.spoken_times import HOUR_WORDS, find_spoken_times
from agent.text.superscripts import RAISED
from agent.text.units import UNITS

_FRACTION_SIGNS = frozenset(FRACTIONS)
_POWER = re.compile(rf"\d[{RAISED}]|\d\^")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_AMBIGUOUS = re.compile(r"\d{1,3}[.,]\d{3}")
_AFTER = re.compile(r"[ \u00a0\u202f]?(?:[^\W\d_]+|[%\u2030\u00b0]|\d)")
_NEXT_WORD = re.compile(r"(?:st|nd|rd|th|er|[.]|:e)?[ \u00a0]*(?:of |de |den )?([^\W\d_]+)")
_QUOTED_WORD = re.compile(r"[^\W\d_]{2,}")
_LARGE_NUMBERS = frozenset(FACTORS).union(word for word, value in NUMBER_WORDS.items() if value > 12)
_JOINTS = frozenset("-_/:.'\u2019+\u2212@#\\")
_MONTHS_BEFORE = frozenset((*MONTHS, *(f"{name}." for name in MONTHS)))
_LINE_NUMBER = re.compile(r"\n[ \t]*(\d{1,7})(?:[:|\t]| \|)(?=\s|$)")
_MIN_NUMBERED = 3
"""Lines with consecutive numbers from which on a tool has counted them."""


def drop_line_numbers(evidence: str) -> str:
    """The text without the numbers of its lines, which a tool has put before them."""
    evidence = f"\n{evidence}"
    matches = list(_LINE_NUMBER.finditer(evidence))
    if len(matches) < _MIN_NUMBERED:
        return evidence
    numbers = [int(match[1]) for match in matches]
    counted = {
        place
        for at in range(len(numbers) - 2)
        if numbers[at + 1] == numbers[at] + 1 and numbers[at + 2] == numbers[at] + 2
        for place in (at, at + 1, at + 2)
    }
    parts: list[str] = []
    end = 0
    for at in sorted(counted):
        parts.append(evidence[end : matches[at].start() + 1])
        end = matches[at].end()
    return "".join([*parts, evidence[end:]])


def has_only_quoted_figures(text: str, evidence: str) -> bool:
    """Whether every figure of a text is in the evidence with the same unit, and none is computed.

    False means that the values have to be compared, not that one of them is missing."""
    if "=" in text or "\u2248" in text or "http" in text or _POWER.search(text) or not _FRACTION_SIGNS.isdisjoint(text):
        return False
    low = text.lower()
    words = set(_QUOTED_WORD.findall(low))
    if not _LARGE_NUMBERS.isdisjoint(words):
        return False
    if may_hold_compound(low) and any(map(is_number_word, words.difference(NUMBER_WORDS))):
        return False
    if not HOUR_WORDS.isdisjoint(words) and find_spoken_times(text):
        return False
    evidence_figures = set(_FIGURE.findall(evidence))
    return all(_is_quoted(text, match, evidence_figures, evidence) for match in _FIGURE.finditer(text))


def _is_quoted(text: str, match: re.Match[str], evidence_figures: set[str], evidence: str) -> bool:
    figure, start, end = match[0], match.start(), match.end()
    if figure not in evidence_figures or _AMBIGUOUS.fullmatch(figure):
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    if before in _JOINTS or before.isalnum() or (after in _JOINTS and text[end + 1 : end + 2].isalnum()):
        return False
    if not _MONTHS_BEFORE.isdisjoint(text[max(0, start - 24) : start].lower().split()[-2:]):
        return False
    following = _NEXT_WORD.match(text, end)
    if following is not None and following[1].lower() in MONTHS:
        return False
    follower = _AFTER.match(text, end)
    if follower is None:
        return True
    word = follower[0].lstrip().lower()
    if word.isdigit():
        return False  # digits may be grouped by spaces
    is_unit = word in UNITS or not word[0].isalpha() or follower[0][0].isalpha()
    return not is_unit or text[start : follower.end()] in evidence
