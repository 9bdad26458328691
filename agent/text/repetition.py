"""Finds the place from which a text only repeats itself: a small model can fall into a loop that never ends."""

LEAST_TIMES, LEAST_TIMES_OF_SENTENCES = 20, 8
"""Times in a row that a unit must stand at the end of a text, a short one and one that is as long as a sentence."""
LEAST_CHARS, LEAST_CHARS_OF_SENTENCES = 2_000, 1_000
"""Characters of all of these. A short refrain, a row of dashes or a table of zeros is not a loop."""
SENTENCE_CHARS = 60
LONGEST_UNIT = 400


def find_loop(text: str) -> int:
    """The index from which the end of a text repeats one unit of up to 400 characters, at least 20 times and for at
    least 2,000 characters (one of 60 characters and more: 8 times and 1,000 characters); -1 if it does not. The unit's
    first occurrence is before that index."""
    tail = text[-LONGEST_UNIT * LEAST_TIMES :]
    if len(tail) < LEAST_CHARS_OF_SENTENCES:
        return -1
    last = tail[-min(len(tail) // LEAST_TIMES, LONGEST_UNIT, 40) :]
    at = tail.rfind(last, 0, len(tail) - 1)
    while at >= 0:
        unit = len(tail) - len(last) - at
        if unit > LONGEST_UNIT:
            return -1
        start = _find_start(tail, unit)
        if len(tail) - start >= _count_least_chars(tail[-unit:]):
            return len(text) - len(tail) + start + unit
        at = tail.rfind(last, 0, at + len(last) - 1)
    return -1


def _count_least_chars(unit: str) -> int:
    is_made_of_shorter = unit in (unit + unit)[1:-1]
    if len(unit) < SENTENCE_CHARS or is_made_of_shorter:
        return max(LEAST_CHARS, LEAST_TIMES * len(unit))
    return max(LEAST_CHARS_OF_SENTENCES, LEAST_TIMES_OF_SENTENCES * len(unit))


def _find_start(text: str, unit: int) -> int:
    """The index from which each character of a text equals the one `unit` characters later."""
    at = len(text) - unit - 1
    while at >= 0 and text[at] == text[at + unit]:
        at -= 1
    return at + 1
