"""Maps severities and priorities of any scale to four levels: P1, SEV2, Major, `1 - Critical`."""

import re
from typing import Literal

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
"""From harmless to worst."""

_SEVERITY_BY_WORD: dict[str, Severity] = {
    "blocker": "critical", "critical": "critical", "highest": "critical", "emergency": "critical",
    "disaster": "critical",
    "high": "high", "major": "high", "urgent": "high", "severe": "high", "important": "high",
    "medium": "medium", "moderate": "medium", "normal": "medium", "average": "medium", "default": "medium",
    "low": "low", "minor": "low", "lowest": "low", "trivial": "low", "cosmetic": "low", "planning": "low",
}  # fmt: skip
_SEVERITY_BY_NUMBER: dict[str, Severity] = {
    "0": "critical",
    "1": "critical",
    "2": "high",
    "3": "medium",
    "4": "low",
    "5": "low",
}
_CODE = re.compile(r"(?:p|prio|priority|s|sev|severity|level|impact|urgency)?[\s._:#-]{0,3}([0-5])", re.IGNORECASE)
_NUMBERED = re.compile(r"([1-5])\s*[-\u2013:.]\s*([a-z]+)", re.IGNORECASE)


def parse_severity(value: str) -> Severity | None:
    """The level that a priority or severity stands for, or None if the scale is unknown.

    Jira's `Major` is the second of five levels; ServiceNow's `1 - Critical` names its level itself.
    """
    text = value.strip().lower()[:60]
    numbered = _NUMBERED.fullmatch(text)
    if numbered is not None:
        return _SEVERITY_BY_WORD.get(numbered[2]) or _SEVERITY_BY_NUMBER[numbered[1]]
    code = _CODE.fullmatch(text)
    return _SEVERITY_BY_NUMBER[code[1]] if code is not None else _SEVERITY_BY_WORD.get(text)


def normalize_name(name: str) -> str:
    """A name for comparison: lower case, without separators (`profile-media-api`)."""
    return " ".join(re.findall(r"[^\W_]+", name.casefold()))
