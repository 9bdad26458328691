"""What a translation must leave alone (code, links, citations, quoted words), replaced by signs and put back."""

import re
from dataclasses import dataclass

_CODE = r"```.*?(?:```|\Z)|`[^`\n]+`"
_LINK = r"https?://[^\s<>\"'`\])}]+"
_CITATION = r"\[\d{1,3}\](?:\[\d{1,3}\])*"
ANSWER = re.compile(f"{_CODE}|{_LINK}|{_CITATION}", re.DOTALL)
"""What an answer holds that is the same in every language."""
REQUEST = re.compile(f'{_CODE}|{_LINK}|"[^"\\n]{{1,300}}"|\u201c[^\u201d\\n]{{1,300}}\u201d', re.DOTALL)
"""In a request also what is quoted: it is searched for as it stands."""

_SIGN = re.compile(r"⟦\s*(\d+)\s*⟧")
_OPEN = re.compile(r"⟦[\s\d]*$")


@dataclass(frozen=True, slots=True)
class Protected:
    """A text with signs in place of what must stay, and what the signs stand for."""

    text: str
    kept: tuple[str, ...]

    def missing(self, translated: str) -> list[str]:
        """What the translation has lost, in order."""
        seen = {int(number) for number in _SIGN.findall(translated)}
        return [original for number, original in enumerate(self.kept, start=1) if number not in seen]


def protect(text: str, what: re.Pattern[str]) -> Protected:
    """`text` with every match of `what` behind a sign. Signs that stand in the text already are kept like code."""
    kept: list[str] = []

    def sign(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"⟦{len(kept)}⟧"

    return Protected(re.compile(f"{_SIGN.pattern}|{what.pattern}", re.DOTALL).sub(sign, text), tuple(kept))


class Restorer:
    """Puts back what was protected while a translation streams in. A sign that came a second time, or that was never
    given out, is dropped: it stands for nothing."""

    def __init__(self, protected: Protected) -> None:
        self._kept = protected.kept
        self._used: set[int] = set()
        self._tail = ""

    def feed(self, piece: str) -> str:
        """What can be said for certain after one more piece; half a sign waits for its end."""
        text = self._tail + piece
        half = _OPEN.search(text)
        self._tail = text[half.start() :] if half is not None and len(half[0]) < 12 else ""
        if self._tail:
            text = text[: -len(self._tail)]
        return _SIGN.sub(self._restored, text)

    def end(self) -> str:
        """What is left: half a sign as it is, and everything the translation has lost, so that no citation and no code
        is missing from the answer."""
        lost = [original for number, original in enumerate(self._kept, start=1) if number not in self._used]
        tail, self._tail = self._tail, ""
        if not lost:
            return tail
        blocks = any("\n" in original for original in lost)
        return tail + ("\n\n" if blocks else " ") + ("\n\n" if blocks else " ").join(lost)

    def _restored(self, match: re.Match[str]) -> str:
        number = int(match[1])
        if number in self._used or not 1 <= number <= len(self._kept):
            return ""
        self._used.add(number)
        return self._kept[number - 1]
