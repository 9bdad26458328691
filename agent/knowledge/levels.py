"""How urgent something is, in four levels, whatever scale the words are from: P1, SEV2, Major, `1 - Critical`."""

import re
from typing import Literal

Level = Literal["low", "medium", "high", "critical"]
LEVELS: tuple[Level, ...] = ("low", "medium", "high", "critical")
"""From harmless to worst."""

_WORDS: dict[str, Level] = {
    "blocker": "critical", "critical": "critical", "highest": "critical", "emergency": "critical",
    "disaster": "critical",
    "high": "high", "major": "high", "urgent": "high", "severe": "high", "important": "high",
    "medium": "medium", "moderate": "medium", "normal": "medium", "average": "medium", "default": "medium",
    "low": "low", "minor": "low", "lowest": "low", "trivial": "low", "cosmetic": "low", "planning": "low",
}  # fmt: skip
_NUMBERS: dict[str, Level] = {"0": "critical", "1": "critical", "2": "high", "3": "medium", "4": "low", "5": "low"}
_CODE = re.compile(r"(?:p|prio|priority|s|sev|severity|level|impact|urgency)?[\s._:#-]{0,3}([0-5])", re.IGNORECASE)
_NUMBERED = re.compile(r"([1-5])\s*[-\u2013:.]\s*([a-z]+)", re.IGNORECASE)


def level_of(value: str) -> Level | None:
    """The level a priority or severity stands for; None for a word of no scale that is known here.

    Jira's `Major` is the second of five, ServiceNow's `1 - Critical` names its level itself."""
    text = value.strip().lower()[:60]
    numbered = _NUMBERED.fullmatch(text)
    if numbered is not None:
        return _WORDS.get(numbered[2]) or _NUMBERS[numbered[1]]
    code = _CODE.fullmatch(text)
    return _NUMBERS[code[1]] if code is not None else _WORDS.get(text)


def plain(name: str) -> str:
    """A name as it is compared: without case, and without what stands between its words (`profile-media-api`)."""
    return " ".join(re.findall(r"[^\W_]+", name.casefold()))
