"""Limits of rendering Markdown. What is beyond them is shown as plain text, so that no answer takes long."""

from typing import Final

MAX_RENDERED_CHARS: Final = 200_000
"""Half a second of prose."""
MAX_RENDERED_LINES: Final = 10_000
"""A second of one-letter list items or table rows, whose cost is that of their lines."""
PLAIN_PIECE_CHARS: Final = 4_000
"""Longest paragraph of plain text: a browser is slow to lay out one of millions of characters."""


class RenderBudget:
    """The rest of the budget to render one text."""

    def __init__(self) -> None:
        self._chars = MAX_RENDERED_CHARS
        self._lines = MAX_RENDERED_LINES

    def measure(self, text: str) -> int:
        """How many characters from the beginning of a text still fit."""
        fits = min(len(text), self._chars)
        end = 0
        for _ in range(self._lines):
            at = text.find("\n", end, fits)
            if at < 0:
                return fits
            end = at + 1
        return end

    def spend(self, text: str) -> None:
        """Takes off a text that was rendered."""
        self._chars = max(0, self._chars - len(text))
        self._lines = max(0, self._lines - text.count("\n"))


def cut_plain_piece(text: str) -> str:
    """The first paragraph of a plain text: up to the end of a line where there is one, else of a word."""
    if len(text) <= PLAIN_PIECE_CHARS:
        return text
    for mark in ("\n", " "):
        at = text.rfind(mark, PLAIN_PIECE_CHARS // 4, PLAIN_PIECE_CHARS)
        if at > 0:
            return text[: at + 1]
    return text[:PLAIN_PIECE_CHARS]
