"""Repairs text with lone surrogates, which JSON escapes allow and UTF-8 does not."""

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """Replaces lone surrogates with U+FFFD, so that the text can be encoded as UTF-8."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def has_surrogates(text: str) -> bool:
    """Whether the text cannot be encoded as UTF-8."""
    return _LONE_SURROGATE.search(text) is not None


def to_storable_text(text: str) -> str:
    """Replaces what a database cannot store with U+FFFD: lone surrogates, and NUL, which PostgreSQL refuses."""
    return replace_surrogates(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")
