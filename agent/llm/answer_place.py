"""`AnswerPlace`: distinguishes a token that a template leaked from one that an answer quotes."""

import re
from dataclasses import dataclass

_STRUCTURED = re.compile(
    r"\s*(?:\{|\[\s*[\[{\"]|(?:<\|?|\[)[\w:|]*(?:tool|function|invoke)|to=|<\|channel\|>)", re.IGNORECASE
)
"""The beginning of JSON, or of a call: a token within its strings belongs to a value."""
_QUOTE = re.compile(r"\\.|\"", re.DOTALL)
_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")
_HEAD_CHARS = 80
_BEFORE, _AFTER = "\"'(`\u201c\u00ab\u201e", "\"').,:;!?`\u201d\u00bb\u201c"


@dataclass(slots=True)
class _Reading:
    """The state behind a part of an answer."""

    is_structured: bool | None = None
    """None before the first character."""
    is_in_string: bool = False
    is_fenced: bool = False
    is_inline: bool = False
    """Whether the line so far opened code that it did not close."""
    head: str = ""
    """The beginning of the line."""
    last: str = ""
    """The last character of the line."""

    def follow(self, text: str) -> None:
        """Reads on."""
        if self.is_structured is None and text:
            self.is_structured = _STRUCTURED.match(text) is not None
        if self.is_structured:
            self.is_in_string ^= bool(sum(mark[0] == '"' for mark in _QUOTE.finditer(text)) % 2)
            return
        *whole, line = text.split("\n")
        for ended in whole:
            if _FENCE.match(self.head + ended[:_HEAD_CHARS]) is not None:
                self.is_fenced = not self.is_fenced
            self.head, self.last, self.is_inline = "", "", False
        self.head = (self.head + line[:_HEAD_CHARS])[:_HEAD_CHARS]
        self.last = line[-1:] or self.last
        self.is_inline ^= bool(line.count("`") % 2)

    @property
    def is_code(self) -> bool:
        """Whether the place is in code or in a string."""
        if self.is_structured:
            return self.is_in_string
        if _FENCE.match(self.head) is not None:
            return not self.is_fenced  # a closing fence ends before the place
        return self.is_fenced or self.is_inline


class AnswerPlace:
    """Follows an answer as it is written. Reads it only where a token is, so that plain text costs nothing."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._unread = 0
        """The number of the first part that is not read."""
        self._reading = _Reading()

    def add(self, text: str) -> None:
        """Adds the next piece of the answer."""
        if text:
            self._parts.append(text)

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._parts)

    def is_quoted(self, after: str) -> bool:
        """Whether a token here is quoted: in code or a string of JSON, or within a sentence.

        `after` is the character behind the token, or "" at the end of the answer.
        """
        self._reading.follow("".join(self._parts[self._unread :]))
        self._unread = len(self._parts)
        place = self._reading
        if place.is_structured or place.is_code:
            return place.is_code
        is_apart = place.last.isspace() or (bool(place.last) and place.last in _BEFORE)
        goes_on = after in (" ", "\t") or (bool(after) and after in _AFTER)
        return bool(place.head.strip()) and is_apart and goes_on
