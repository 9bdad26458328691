"""A filter over a text that comes in pieces: what may still change is held back, the rest goes on at once."""

import re
from collections.abc import Callable
from typing import Final

MOST: Final = 20_000
"""Characters held back at most. A text that keeps a filter waiting for longer is let through in blocks of this size."""
_LAST_WORD = re.compile(r"\S{0,20000}\Z")


class Held:
    """`change` over pieces as over the whole: `complete` says how much of a text no further characters can change."""

    def __init__(self, change: Callable[[str], str], complete: Callable[[str], int]) -> None:
        self._change = change
        self._complete = complete
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be said for certain after one more piece."""
        text = self._held + piece
        cut = self._complete(text)
        if cut == 0 and len(text) > MOST:
            cut = len(text)
        self._held = text[cut:]
        return self._change(text[:cut])

    def end(self) -> str:
        """The rest."""
        rest, self._held = self._held, ""
        return self._change(rest)


def last_word(text: str) -> int:
    """Where the last word begins."""
    match = _LAST_WORD.search(text, max(0, len(text) - MOST))
    return match.start() if match is not None else len(text)
