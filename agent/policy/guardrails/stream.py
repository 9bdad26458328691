"""Filters a text that arrives in pieces: holds back what may still change and passes on the rest."""

from collections.abc import Callable
from typing import Final

MAX_HELD_CHARS: Final = 20_000
"""Maximum number of characters held back. Longer text passes in blocks of this size."""


class BufferedFilter:
    """Applies `change` to pieces as if to the whole text. `complete` returns how much of a text is final."""

    def __init__(self, change: Callable[[str], str], complete: Callable[[str], int]) -> None:
        self._change = change
        self._find_stable_length = complete
        self._held = ""

    def feed(self, piece: str) -> str:
        """Adds a piece and returns the text that is now final."""
        text = self._held + piece
        cut = self._find_stable_length(text)
        if cut == 0 and len(text) > MAX_HELD_CHARS:
            cut = len(text)
        self._held = text[cut:]
        return self._change(text[:cut])

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the remaining text."""
        rest, self._held = self._held + piece, ""
        return self._change(rest)


def find_last_word(text: str) -> int:
    """The position of the last word, at most `MAX_HELD_CHARS` before the end."""
    if not text or text[-1].isspace():
        return len(text)
    return len(text) - len(text[-MAX_HELD_CHARS:].rsplit(maxsplit=1)[-1])
