"""How wishes for an answer's form are put: patterns, for those who obey them and those who cut them out."""

import re
from typing import Literal

Shape = Literal["plain", "json", "bullets", "table"]

SMALL = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
         "a": 1, "en": 1, "två": 2, "tre": 3, "fyra": 4, "fem": 5}  # fmt: skip
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(SMALL)})"
LIMIT = re.compile(
    rf"(?:(?:at\s+most|no\s+more\s+than|max(?:imum|imalt)?(?:\s+of)?|up\s+to|within|under|h\u00f6gst|in|on|i)\s+){{0,2}}\b{_COUNT}"
    r"(?:\s+or\s+(?:fewer|less))?[\s-]+(?:\w+\s+)?(?P<what>sentences?|words?|meningar?|ord)\b(?:\s+(?:or\s+(?:fewer|less)|at\s+most|max))?",
    re.IGNORECASE,
)
_ASKS = (
    r"\b(?:(?:give|write|make|show|send|draw|ge|visa)\s+(?:(?:me|us|mig|oss)\s+)?(?:an?|en)"
    r"|(?:as|in|into|to|with|using|return|output|reply|respond|answer|som|i)(?:\s+(?:an?|valid|pure|en))*)\s+"
)
_WORDS: tuple[tuple[Shape, str], ...] = (
    ("json", r"\bjson\b"),
    ("bullets", r"\bbullet(?:s|ed|\s*-?points?)?(?:\s+list)?\b|\blist\b|\bpunktlista\b"),
    ("table", r"\btable\b|\btabell\b"),
)
SHAPES = tuple(
    (
        shape,
        re.compile(word, re.IGNORECASE),
        re.compile(rf"{_ASKS}(?:(?!(?:the|this|that|which|your|den|det)\b)\w+\s+)?(?:{word})", re.IGNORECASE),
    )
    for shape, word in _WORDS
)
"""Each shape with its word, and with its word in an order."""
ORDERS = tuple(order for _, _, order in SHAPES)
_ORDER = re.compile(r"\s*(?:at|no|max|up|within|under|h\u00f6gst|in|i)\b", re.IGNORECASE)


def is_order(limit: str) -> bool:
    """Whether a question that says so limits its answer: "two sentences" alone may be what is asked about."""
    return _ORDER.match(limit) is not None
