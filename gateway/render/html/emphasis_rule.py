"""The rule of the Markdown parser that finds bold and slanted text, also in languages without spaces between words."""

import unicodedata
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.emphasis import tokenize

_AFTER_LATIN: Final = 0x600
"""From here on letters are of scripts in which a star between a letter and a bracket marks text; before, it multiplies:
`5*(3+4)*2`."""


def add_emphasis(parser: MarkdownIt) -> None:
    """Replaces the rule of CommonMark, whose stars do nothing between a letter and a quotation mark or a bracket:
    `**“重要”**的`, `Die **„Frist“**en`."""
    parser.inline.ruler.at("emphasis", _read_stars)


def _read_stars(state: StateInline, silent: bool) -> bool:
    start, earlier = state.pos, len(state.delimiters)
    if not tokenize(state, silent):
        return False
    before, after = state.src[start - 1 : start], state.src[state.pos : state.pos + 1]
    letters = [sign for sign, other in ((before, after), (after, before)) if sign.isalpha() and _is_mark(other)]
    is_marking = state.pos - start > 1 or any(ord(sign) >= _AFTER_LATIN for sign in letters)
    if letters and is_marking and state.src[start] == "*":
        for delimiter in state.delimiters[earlier:]:
            delimiter.open = delimiter.close = True
    return True


def _is_mark(sign: str) -> bool:
    """Whether a sign is punctuation, such as a quotation mark or a bracket."""
    return bool(sign) and unicodedata.category(sign).startswith("P")
