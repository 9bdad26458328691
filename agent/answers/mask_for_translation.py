"""Masks text that a translation must not change (code, links, citations, quotations) with placeholders."""

import re
from dataclasses import dataclass

_CODE = r"```.*?(?:```|\Z)|`[^`\n]+`"
_LINK = r"https?://[^\s<>\"'`\])}]+"
_CITATION = r"\[\d{1,3}\](?:\[\d{1,3}\])*"
KEPT_IN_ANSWER = re.compile(f"{_CODE}|{_LINK}|{_CITATION}", re.DOTALL)
"""The parts of an answer that are the same in every language."""
KEPT_IN_REQUEST = re.compile(f'{_CODE}|{_LINK}|"[^"\\n]{{1,300}}"|\u201c[^\u201d\\n]{{1,300}}\u201d', re.DOTALL)
"""A request's quotations are masked too, because a search needs them unchanged."""

_PLACEHOLDER = re.compile(r"⟦\s*(\d+)\s*⟧")
_PARTIAL_PLACEHOLDER = re.compile(r"⟦[\s\d]*$")


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A text with placeholders, and their originals."""

    text: str
    originals: tuple[str, ...]

    def find_missing(self, translated: str) -> list[str]:
        """The originals that the translation lost, in order."""
        seen = {int(number) for number in _PLACEHOLDER.findall(translated)}
        return [original for number, original in enumerate(self.originals, start=1) if number not in seen]


def mask(text: str, what: re.Pattern[str]) -> MaskedText:
    """Replaces every match of `what` with a placeholder, and text that looks like a placeholder too."""
    originals: list[str] = []

    def sign(match: re.Match[str]) -> str:
        originals.append(match[0])
        return f"⟦{len(originals)}⟧"

    return MaskedText(re.compile(f"{_PLACEHOLDER.pattern}|{what.pattern}", re.DOTALL).sub(sign, text), tuple(originals))


class StreamUnmasker:
    """Restores the originals in a streamed translation.

    Drops placeholders that are repeated or unknown.
    """

    def __init__(self, protected: MaskedText) -> None:
        self._originals = protected.originals
        self._used: set[int] = set()
        self._tail = ""

    def feed(self, piece: str) -> str:
        """The restored text that is certain after this piece. Holds an incomplete placeholder back."""
        text = self._tail + piece
        half = _PARTIAL_PLACEHOLDER.search(text)
        self._tail = text[half.start() :] if half is not None and len(half[0]) < 12 else ""
        if self._tail:
            text = text[: -len(self._tail)]
        return _PLACEHOLDER.sub(self._get_original, text)

    def end(self) -> str:
        """The rest, followed by the originals that the translation lost: citations and code must survive."""
        lost = [original for number, original in enumerate(self._originals, start=1) if number not in self._used]
        tail, self._tail = self._tail, ""
        if not lost:
            return tail
        blocks = any("\n" in original for original in lost)
        return tail + ("\n\n" if blocks else " ") + ("\n\n" if blocks else " ").join(lost)

    def _get_original(self, match: re.Match[str]) -> str:
        number = int(match[1])
        if number in self._used or not 1 <= number <= len(self._originals):
            return ""
        self._used.add(number)
        return self._originals[number - 1]
