"""Decides which values a person's reply to a question gives, and which it only repeats to refuse them."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from agent.text.own_words import MIN_CODE_CHARS, SCHEME, OwnWords
from agent.text.spelling import normalise_spelling
from agent.text.stated_values import is_quantity, is_unspaced

_ADDRESS: Final = re.compile(
    r"(?:(?:[a-z][a-z0-9+.-]*:)?//(?:[^/?#\s]*@)?([^/?#\s]+)|([\w-]+(?:\.[\w-]+)+(?::\d+)?))(?:[/?#]\S*)?"
)
"""A web address, and its host with the port."""
_WORD: Final = re.compile(r"[^\W_]+")
_DECIMAL: Final = re.compile(r"\d[.,]\d")


class ShownValues:
    """What questions showed and is not the person's own anyway."""

    def __init__(self, values: Iterable[str]) -> None:
        values = tuple(values)
        self._spelled = [(_spell(value), is_quantity(value)) for value in values]
        self._words = OwnWords(*values)

    def include(self, value: str) -> bool:
        """Whether a value was shown, in another spelling, within another value or cut short too, or holds a shown one.

        Of a web address the host decides. Numbers and dates are compared as a whole: 900 is not a part of 9000.
        """
        if self._words.hold(value):
            return True
        spelled, address = _spell(value), _ADDRESS.fullmatch(normalise_spelling(value))
        part = _spell(address[1] or address[2]) if address else spelled
        is_short = len(part.joined) < MIN_CODE_CHARS or is_quantity(value)
        may_be_cut = address is None and not is_short
        return any(
            _has_words(other, part)
            or (may_be_cut and part.joined in other.joined)
            or (not (is_number and len(other.joined) < MIN_CODE_CHARS) and _has_words(spelled, other))
            for other, is_number in self._spelled
        )

    def subtract_from(self, terms: Iterable[str]) -> frozenset[str]:
        """The stems that are in none of the values, not even as a part of a word."""
        left = {term: _spell(term).joined for term in frozenset(terms) - self._words.terms}
        return frozenset(term for term, word in left.items() if not any(word in one.joined for one, _ in self._spelled))


class UserReply:
    """What a person answered to a question. It gives the values that the question did not show.

    "Never pay EVE-77" repeats a value to refuse it, in whatever language, so that only an approval endorses what was
    shown. "No, send it to Bo@ours.example" gives one.
    """

    def __init__(self, text: str, shown_values: ShownValues) -> None:
        self.text = text
        self._own = OwnWords(text)
        self._shown = shown_values

    def gives(self, value: str) -> bool:
        """Whether the reply holds a value that no question showed."""
        return self._own.hold(value) and not self.repeats(value)

    def repeats(self, value: str) -> bool:
        """Whether a question showed a value."""
        return self._shown.include(value)

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of its words that no question showed."""
        return self._shown.subtract_from(self._own.terms)


class _Spelled(NamedTuple):
    """The letters and digits of a text without case, accents and separators, and where its words begin and end."""

    joined: str
    edges: frozenset[int]


def _spell(text: str) -> _Spelled:
    """The spelling of a text, without an address's scheme."""
    plain = unicodedata.normalize("NFKD", SCHEME.sub("", normalise_spelling(text), count=1)).casefold()
    words = _WORD.findall("".join(char for char in plain if unicodedata.category(char)[0] != "M"))
    edges = frozenset(accumulate(map(len, words), initial=0))
    return _Spelled("".join(words), edges)


def _has_words(whole: _Spelled, part: _Spelled) -> bool:
    """Whether a text has another one as whole words; where words have no spaces, anywhere."""
    if any(map(is_unspaced, part.joined)):
        return part.joined in whole.joined
    at, size = whole.joined.find(part.joined) if part.joined else -1, len(part.joined)
    while at >= 0 and not {at, at + size} <= whole.edges:
        at = whole.joined.find(part.joined, at + 1)
    return at >= 0


def is_same_code(one: str, other: str) -> bool:
    """Whether two texts differ in case and separators only: `EVE-77` and `eve 77`, but not `1.5` and `15`."""
    if _DECIMAL.search(one) or _DECIMAL.search(other):
        return False
    joined = _spell(one).joined
    return len(joined) >= MIN_CODE_CHARS and joined == _spell(other).joined
