"""Finds e-mail addresses, also obfuscated ones: `%40`, `&#64;` or `(at)` instead of `@`."""

import re
from collections.abc import Iterator
from typing import Final

from agent.policy.guardrails.spans import Span

MAX_LOCAL_CHARS: Final = 64
"""Characters before the `@` (RFC 5321)."""
_AT: Final = re.compile(
    r"@|%40|&#0{0,5}64;|&#x0{0,5}40;|&commat;|\\u0040|[ \t]?[(\[{<][ \t]?(?:at|@)[ \t]?[)\]}>][ \t]?"
    r"| at (?=[\w-]{1,63}(?: dot [\w-]{1,63}){0,2} dot "
    r"(?:com|org|net|edu|gov|info|io|eu|uk|se|de|at|ch|fr|es|it|nl|no|dk|fi|pl)\b)",
    re.IGNORECASE,
)  # fmt: skip
_AT_MARKERS: Final = (
    "@", "%40", "&#", "&commat", "\\u0040", " dot ", *(f"at{space}{end}" for space in ("", " ", "\t") for end in ")]}>")
)  # fmt: skip
"""Every match of `_AT` contains one of these. Most texts contain none, and searching for them is cheaper."""
_LOCAL: Final = re.compile(r"[\w.!#$%&'*+^`{|}~-]{1,64}\Z")
_QUOTED: Final = re.compile(r'"[^"\n@]{1,62}"\Z')
_DOT: Final = r"(?:\.|[ \t]?[(\[{<][ \t]?(?:dot|punkt|\.)[ \t]?[)\]}>][ \t]?| dot )"
_DOMAIN: Final = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])|\[\d{1,3}(?:\.\d{1,3}){3}\]"
)
_SPELLED_DOMAIN: Final = re.compile(rf"(?:[^\W_][\w-]{{0,62}}{_DOT}){{1,8}}[^\W\d_]{{2,24}}(?![\w-])", re.IGNORECASE)
_LEADING_PUNCTUATION: Final = ".!#$%&'*+^`{|}~-"
_CODE_HOST_USERS: Final = frozenset(("git", "hg", "svn"))
"""Shared users of code hosts: `git@github.com` is nobody's address."""


def find_emails(text: str) -> Iterator[Span]:
    """Yields the e-mail addresses of a text."""
    low = text.lower()
    for at in _AT.finditer(text) if any(map(low.__contains__, _AT_MARKERS)) else ():
        local = _LOCAL.search(text, max(0, at.start() - MAX_LOCAL_CHARS), at.start())
        quoted = _QUOTED.search(text, max(0, at.start() - MAX_LOCAL_CHARS), at.start()) if local is None else None
        domain = (_DOMAIN if at[0] == "@" else _SPELLED_DOMAIN).match(text, at.end())
        if domain is None or (local is None and quoted is None):
            continue
        if local is None:
            start = quoted.start() if quoted is not None else at.start()
        else:
            start = local.end() - len(local[0].lstrip(_LEADING_PUNCTUATION))
        if start < at.start() and text[start : at.start()] not in _CODE_HOST_USERS:
            yield Span(start, domain.end(), "an e-mail address")
