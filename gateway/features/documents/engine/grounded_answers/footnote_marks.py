"""Footnote marks of documents, which would look like our citations."""

import re

_FOOTNOTE = re.compile(r"\[\d{1,3}\](?!\()")


def strip_footnote_marks(text: str) -> str:
    """The text without its own footnote marks, which would look like our citations."""
    return _FOOTNOTE.sub("", text).strip()
