"""`AnswerPlace`: distinguishes a token that a template leaked from one that an answer quotes."""

import re
from dataclasses import dataclass
from typing import NamedTuple

_STRUCTURED = re.compile(
    r"\s*(?:\{|\[\s*[\[{\"]|(?:<\|?|\[)[\w:|]*(?:tool|function|invoke)|to=|<\|channel\|>)", re.IGNORECASE
)
"""The beginning of JSON, or of a call: a token within its strings belongs to a value."""
_QUOTE = re.compile(r"\\.|\"", re.DOTALL)
_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")
_INDENTED, _ITEM = re.compile(r" {4}| {0,3}\t"), re.compile(r"\s*(?:[-*+\u2022>#|]+|(?:\d{1,3}|[a-z])[.)])\s")
_HEAD_CHARS = 80
_ITEM_HEAD = re.compile(r"[\s*+>#|\u2022-]*(?:(?:\d{1,3}|[a-z])[.)]\s+)?")
"""A line up to here that holds only the mark of a list, of a quotation, of a heading or of a cell."""
_MARKUP = "\"'(`*_~[{>\u201c\u00ab\u201e\u300c\u300e"
"""What opens around a quoted token."""
_CLOSING = "\"'`*_~\u201d\u00bb\u201c\u300d\u300f"
"""What closes around it."""
_PUNCTUATION = ".,:;!?)]}|\u3002\uff0c\u3001\uff1a\uff1b\uff1f\uff01\uff09"
"""What goes on with a sentence, and with no new turn."""
_UNENDED = ",;:=(/&|\u2013\u2014\uff1a\uff0c\u3001"
"""What ends no sentence."""
_COLONS, _FIRST_CJK = (":", "\uff1a"), "\u3040"


class Behind(NamedTuple):
    """What follows a token of the template."""

    text: str
    """The text behind it, or its beginning."""
    is_last: bool
    """Whether nothing but further tokens and space follows, up to the end of the reply."""
    is_turn: bool
    """Whether the token itself begins a made-up turn, with its role."""
    is_before_turn: bool
    """Whether one begins behind it, with nothing in between but tokens and space."""


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
    tail: str = ""
    """The end of the line."""
    is_behind_blank: bool = True
    """Whether the line before is blank, or indented code."""
    is_in_list: bool = False
    """Whether the paragraphs before are of a list, whose lines are indented without being code."""

    def follow(self, text: str) -> None:
        """Reads on."""
        if self.is_structured is None and text:
            self.is_structured = _STRUCTURED.match(text) is not None
        if self.is_structured:
            self.is_in_string ^= bool(sum(mark[0] == '"' for mark in _QUOTE.finditer(text)) % 2)
            return
        *whole, line = text.split("\n")
        for ended in whole:
            head = self.head + ended[:_HEAD_CHARS]
            if _FENCE.match(head) is not None:
                self.is_fenced = not self.is_fenced
            is_indented = _INDENTED.match(head) is not None
            if head.strip() and not is_indented:
                self.is_in_list = _ITEM.match(head) is not None
            self.is_behind_blank = not head.strip() or (is_indented and self.is_behind_blank)
            self.head, self.tail, self.is_inline = "", "", False
        self.head = (self.head + line[:_HEAD_CHARS])[:_HEAD_CHARS]
        self.tail = (self.tail + line[-_HEAD_CHARS:])[-_HEAD_CHARS:]
        self.is_inline ^= bool(line.count("`") % 2)

    @property
    def is_code(self) -> bool:
        """Whether the place is in code or in a string."""
        if self.is_structured:
            return self.is_in_string
        if _FENCE.match(self.head) is not None:
            return not self.is_fenced  # a closing fence ends before the place
        return self.is_fenced or self.is_inline

    @property
    def is_indented(self) -> bool:
        """Whether the line is code because it is indented."""
        return self.is_behind_blank and not self.is_in_list and _INDENTED.match(self.head) is not None

    @property
    def is_within_sentence(self) -> bool:
        """Whether the line so far is less than a sentence: it lacks words, or an end. One word alone is an answer."""
        if _ITEM_HEAD.fullmatch(self.head.rstrip(_MARKUP)) is not None:
            return True
        sentence = self.tail.rstrip(_MARKUP).rstrip()
        if not sentence or sentence[-1] in _UNENDED:
            return True
        return sentence[-1].isalnum() and (len(self.head.split()) > 1 or sentence[-1] >= _FIRST_CJK)


class AnswerPlace:
    """Follows an answer as it is written. Reads it only where a token is, so that plain text costs nothing."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._unread = 0
        """The number of the first part that is not read."""
        self._reading = _Reading()
        self._has_spoken = False
        """Whether the answer has spoken of a token outside code: then others are likely to be quoted too."""

    def add(self, text: str) -> None:
        """Adds the next piece of the answer."""
        if text:
            self._parts.append(text)

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._parts)

    def is_quoted(self, behind: Behind, *, ends_thought: bool = False, is_asked: bool = False) -> bool:
        """Whether a token here is quoted: in code or a string of JSON, within a sentence or as the item of a list.

        Where it may be either, it is, because a stray token does less harm than half an answer. `ends_thought`: the
        token is the end of a thought. `is_asked`: the request speaks of the token.
        """
        self._reading.follow("".join(self._parts[self._unread :]))
        self._unread = len(self._parts)
        place = self._reading
        if place.is_structured or place.is_code:
            return place.is_code
        is_quoted = self._is_spoken_of(behind, ends_thought=ends_thought, has_spoken=self._has_spoken or is_asked)
        self._has_spoken |= is_quoted
        return is_quoted

    def _is_spoken_of(self, behind: Behind, *, ends_thought: bool, has_spoken: bool) -> bool:
        place, following = self._reading, behind.text[:1]
        before = place.tail.rstrip(_MARKUP)
        is_behind_fence = _FENCE.match(place.head) is not None  # a closing one, because the place is no code
        has_gap = (not before or before[-1].isspace()) and not is_behind_fence
        if place.is_indented:
            is_over = behind.is_last or (behind.is_before_turn and behind.text.startswith("\n<"))
            return has_spoken or ends_thought or not is_over
        if following and following in _PUNCTUATION:
            return True
        is_apart = has_gap or (before[-1:] in _UNENDED and bool(before) and not behind.is_last and not ends_thought)
        if not is_apart:
            return has_spoken and (ends_thought or not behind.is_last)
        if not place.head.strip():
            return has_spoken or (not ends_thought and self._opens_line(behind))
        if has_spoken:
            return True
        if behind.is_before_turn and not ends_thought:
            return following != "\n" and place.is_within_sentence
        is_continued = following in _CLOSING or (following.isspace() and bool(behind.text.split("\n")[0].strip()))
        return (bool(following) and is_continued) or place.is_within_sentence

    def _opens_line(self, behind: Behind) -> bool:
        """Whether a line that begins with the token of a turn speaks of it."""
        is_first = not self.text.strip()
        if self.text.rstrip().endswith(_COLONS):
            return True
        if behind.is_last or behind.is_before_turn:
            return False
        return is_first or not (behind.is_turn or behind.text[:1].isalnum())
