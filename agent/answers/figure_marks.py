"""Marks the unexplained figures of an answer, so that readers know which ones to check."""

import re
from collections.abc import Sequence

from agent.answers.sentences import say

MARK = "[?]"
"""Follows each unexplained figure, and precedes the sentence about them."""
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)


def mark_figures(text: str, figures: Sequence[str], language: str, *, inline: bool) -> str:
    """The answer with a sentence about its unexplained `figures`, in `language` or else in English.

    With `inline`, marks each figure outside code too. A streamed text gets only the sentence: it may only grow."""
    parts = _CODE.split(text)
    if inline:
        parts[::2] = [_add_marks(part, figures) for part in parts[::2]]
    sentence = say("unexplained", language).format(figures=", ".join(figures))
    return f"{''.join(parts).rstrip()}\n\n{MARK} {sentence}" if inline else f"{text}\n\n{MARK} {sentence}"


def _add_marks(text: str, figures: Sequence[str]) -> str:
    alternatives = "|".join(re.escape(figure) for figure in sorted(figures, key=len, reverse=True))
    return re.sub(rf"(?<![\w.,])(?:{alternatives})(?![\w]|[.,]\d)", rf"\g<0> {MARK}", text) if alternatives else text
