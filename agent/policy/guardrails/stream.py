"""Filters a text that arrives in pieces: holds back what may still change and passes on the rest."""

import re
from collections.abc import Callable
from typing import Final

from agent.policy.guardrails.pii import find_personal_data

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


CONTEXT_CHARS: Final = 400
"""Released characters that are kept: the words before a number say what it is (48), and its line."""
FOLLOWING_CHARS: Final = 32
"""Characters after a number that can say what it is (24), with the rest of a word."""
_SUSPICIOUS: Final = re.compile(r"[\d@\uff20\ufe6b]|%40|&#|&commat|\sat\s|[(\[{<]\s?at|:[a-f]{0,4}:", re.IGNORECASE)
"""All personal data in ASCII contains one of these."""
_GROUP: Final = r"(?>[(+]*\w{0,6}\d[\w()./+-]*|[A-Z]{1,4}|[(+]+)"
"""Atomic: the first digit of a group may be any of several, and a row of dates would be read in all combinations."""
_OPEN_NUMBER: Final = re.compile(rf"(?<!\S){_GROUP}(?:[ \t]{{1,2}}{_GROUP}){{0,9}}[ \t]{{0,2}}\Z")
"""A number, or groups of letters and digits, that the next piece may continue."""
_NUMBER_PART: Final = re.compile(r"[\dA-Z(+]")
"""Every group contains one of these."""
_RECENT_NUMBER: Final = re.compile(r"(?<!\S)\S{0,20}?\d(?:[ ./()+-]{0,2}\d){5,}")
_SIX_DIGITS: Final = re.compile(r"\d(?:[ ./()+-]{0,2}\d){5}")
"""Every recent number contains this, and most texts do not."""
_OPEN_ADDRESS: Final = re.compile(
    r"(?<=\S)[ \t](?:a|at|[(\[{<][ \t]?a?t?[ \t]?[)\]}>]?)"
    r"(?:[ \t]+[\w-]+(?:[ \t]+(?:dot|[(\[{<] ?dot ?[)\]}>])(?:[ \t]+(?!dot(?![\w-]))[\w-]+)?)*)?[ \t]*[^\s,;!?]*\Z",
    re.IGNORECASE,
)
"""What follows the first word of a spelled address that may be under way: `ann at`, `ann (at) example`, `ann at example
dot`."""


class PersonalDataStream:
    """A filter for one stream. What is in `own_text` stays."""

    def __init__(self, own_text: str) -> None:
        self._own_text = own_text
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """Adds a piece and returns the text that is now final."""
        self._held += piece
        return self._release(self._find_stable_length())

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the rest."""
        self._held += piece
        return self._release(len(self._held))

    def _find_stable_length(self) -> int:
        """Measures how much of the held text further characters cannot change."""
        text = self._held
        if len(text) > MAX_HELD_CHARS:
            return len(text)
        cut = find_last_word(text.rstrip(" \t"))  # `ann ` may become `ann (at) ...`
        tail = max(0, len(text) - CONTEXT_CHARS)
        if _NUMBER_PART.search(text, cut) and (number := _OPEN_NUMBER.search(text, tail)) is not None:
            cut = min(cut, number.start())
        if (address := _OPEN_ADDRESS.search(text, tail + 1)) is not None:
            cut = min(cut, max(tail, find_last_word(text[: address.start()])))
        for match in _RECENT_NUMBER.finditer(text, tail) if _SIX_DIGITS.search(text, tail) else ():
            if match.end() > len(text) - FOLLOWING_CHARS:
                cut = min(cut, match.start())
        return cut

    def _release(self, cut: int) -> str:
        if not cut:
            return ""
        whole, start = self._before + self._held, len(self._before)
        until = start + cut
        parts: list[str] = []
        at = start
        for kind, span in find_personal_data(whole) if _is_suspicious(whole[max(0, start - FOLLOWING_CHARS) :]) else ():
            if span.end <= at or span.start >= until or whole[span.start : span.end] in self._own_text:
                continue
            if span.end > until and cut < len(self._held):  # the rest of it is still held: so is all of it
                until = max(at, span.start)
                break
            parts += [whole[at : max(at, span.start)], f"[removed: {kind}]"]
            at = span.end
        parts.append(whole[at : max(at, until)])
        done = max(at, until)
        self._before = whole[max(0, done - CONTEXT_CHARS) : done]
        self._held = whole[done:]
        return "".join(parts)


def _is_suspicious(text: str) -> bool:
    """Whether a text may contain personal data. Characters outside ASCII can disguise it."""
    return not text.isascii() or _SUSPICIOUS.search(text) is not None
