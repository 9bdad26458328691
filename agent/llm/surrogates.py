"""Joins characters that a stream cuts in half: surrogate pairs, and the bytes of one character in UTF-8.

A server that sends each token by itself may send half an emoji. In JSON that is a lone surrogate, or bytes that are not
UTF-8, which `json.loads` gets as surrogates too (`surrogateescape`).
"""

import re

from agent.core.surrogates import has_surrogates, replace_surrogates

_ESCAPED_BYTES = re.compile("[\udc80-\udcff]+")
_OPEN_END = re.compile("(?:[\ud800-\udbff]|[\udcc2-\udcf4][\udc80-\udcbf]{0,2})\\Z")
"""Half a pair, or the beginning of a character, at the end of a text."""


def join_surrogates(text: str) -> str:
    """The text with halves that follow one another joined, and other halves replaced by U+FFFD."""
    if not has_surrogates(text):
        return text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # joins pairs
    text = _ESCAPED_BYTES.sub(lambda run: run[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace"), text)
    return replace_surrogates(text)


class SurrogateJoiner:
    """Joins the pieces of one text."""

    def __init__(self) -> None:
        self._half = ""

    @property
    def is_waiting(self) -> bool:
        """Whether half a character is kept for the next piece."""
        return bool(self._half)

    def feed(self, piece: str) -> str:
        """The text up to here, without half a character at its end."""
        text = self._half + piece
        match = _OPEN_END.search(text)
        # A whole character of escaped bytes may end like the beginning of one.
        if match is not None and _is_open(match[0]):
            self._half = match[0]
            return join_surrogates(text[: match.start()])
        self._half = ""
        return join_surrogates(text)

    def end(self) -> str:
        """The rest at the end of the text: a character that never became whole."""
        return "\ufffd" if self._half else ""


def _is_open(end: str) -> bool:
    if end[0] < "\udc00":
        return True
    first = ord(end[0]) - 0xDC00
    return len(end) < (2 if first < 0xE0 else 3 if first < 0xF0 else 4)
