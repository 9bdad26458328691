"""The ways in which a configured secret may be written: its `forms`, and `readings` of a text to look for them in.

Used by `secrets.py`.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final
from urllib.parse import quote, quote_plus

import numpy as np
from numpy.typing import NDArray

from agent.guardrails.features import lower
from agent.guardrails.views import plain

SHORTEST: Final = 8
"""Values with fewer characters are not looked for: they would be found in ordinary words, and are guessed anyway."""
LOOSE: Final = 8
LOOSE_LETTERS: Final = 16
"""Letters and digits of a form that is found in any case and whatever stands between them; without a digit among them
it takes more, for a short word stands in other words too."""
GAP: Final = 16
"""Other characters in a row that may stand between two letters of a secret."""
DEEP: Final = 3
"""Escapes of escapes are undone so often."""

_OTHERS: Final = re.compile(r"[\W_]+")
_LONG_GAP: Final = re.compile(rf"[\W_]{{{GAP + 1}}}")
_ESCAPE: Final = re.compile(
    r"%(?P<percent>[0-9A-Fa-f]{2})|(?<![0-9A-Za-z])0[xX](?P<zero>[0-9A-Fa-f]{2})(?![0-9A-Za-z])|\\(?:u(?P<u>[0-9A-Fa-f]{4})|x(?P<x>[0-9A-Fa-f]{2}))"
    r"|&(?:#(?P<dec>[0-9]{1,7})|#[xX](?P<hex>[0-9A-Fa-f]{1,6})|(?P<name>amp|lt|gt|quot|apos|sol|num|excl|plus|equals));"
)
_NUMBER: Final = {"percent": 16, "zero": 16, "u": 16, "x": 16, "dec": 10, "hex": 16}

Ints = NDArray[np.int64]


def forms(value: str) -> set[str]:
    """A secret as it may appear: itself and backwards, for JSON, HTML and URLs, in hexadecimal, and in base32, base64,
    base64 of base64 and base64 of UTF-16 wherever it begins. Escapes of every character are undone by `readings`."""
    if len(value) < SHORTEST:
        return set()
    written = {
        value,
        value[::-1],
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        value.replace("/", "\\/"),
        html.escape(value),
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        quote(quote(value, safe=""), safe=""),
    }
    written |= {re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in written}
    raw = value.encode("utf-8", "surrogatepass")
    written |= {raw.hex(), raw.hex().upper()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        once = _aligned(raw, encode, 6)
        written |= once | _aligned(value.encode("utf-16-le", "surrogatepass"), encode, 6)
        written |= {form for inner in once for form in _aligned(inner.encode(), encode, 6)}
    return written | _aligned(raw, base64.b32encode, 5)


def _aligned(raw: bytes, encode: Callable[[bytes], bytes], bits: int) -> set[str]:
    """What an encoding of `bits` a character makes of `raw` after any number of other bytes, without the characters
    that those share with it."""
    made = set()
    for before in range(3 if bits == 6 else 5):
        code = encode(b"\0" * before + raw).decode()
        made.add(code[-(-before * 8 // bits) : (before + len(raw)) * 8 // bits])
    return made


def squeezed(form: str) -> str:
    """A form in small letters, without what is neither letter nor digit; empty if that is too little to be told from
    ordinary words."""
    small = _OTHERS.sub("", lower(form))
    enough = LOOSE if any(char.isdigit() for char in small) else LOOSE_LETTERS
    return small if len(small) >= enough else ""


class Reading:
    """The letters and digits of a text in small letters. Gaps longer than `GAP` stay, as one line break: nothing is
    found across them."""

    def __init__(self, said: str, starts: Ints, ends: Ints) -> None:
        """`starts` and `ends`: where each character of `said` stands in the text."""
        self._small = lower(said)
        self._starts, self._ends = starts, ends
        long = _LONG_GAP.search(self._small)
        self.text = _OTHERS.sub("" if long is None else _gap, self._small)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """`[start, end)` of this reading in the text."""
        return int(self._starts[self._places[start]]), int(self._ends[self._places[end - 1]])

    @cached_property
    def _places(self) -> Ints:
        """Which characters of what was said were kept: worked out only where something was found."""
        kept = np.ones(len(self._small), bool)
        for gap in _OTHERS.finditer(self._small):
            first, last = gap.span()
            kept[first + (last - first > GAP) : last] = False
        return np.flatnonzero(kept).astype(np.int64)


def _gap(gap: re.Match[str]) -> str:
    return "\n" if len(gap[0]) > GAP else ""


def readings(text: str) -> Iterator[Reading]:
    """`text` without invisible characters, blanks and marks; then with its escapes undone, again and again."""
    view = plain(text)
    starts = np.arange(len(text), dtype=np.int64) if view.places is None else view.places
    ends = starts + 1
    yield Reading(view.text, starts, ends)
    said = view.text
    for _ in range(DEEP):
        if not _ESCAPE.search(said):
            break
        said, starts, ends = _unescaped(said, starts, ends)
        yield Reading(said, starts, ends)


def _unescaped(said: str, starts: Ints, ends: Ints) -> tuple[str, Ints, Ints]:
    """Every escape as the character it stands for, which has the escape's place."""
    kept = np.ones(len(said), bool)
    until = ends.copy()
    parts: list[str] = []
    at = 0
    for match in _ESCAPE.finditer(said):
        parts += [said[at : match.start()], _meant(match)]
        until[match.start()] = ends[match.end() - 1]
        kept[match.start() + 1 : match.end()] = False
        at = match.end()
    parts.append(said[at:])
    return "".join(parts), starts[kept], until[kept]


def _meant(escape: re.Match[str]) -> str:
    """Always one character, so that places stay right."""
    for name, base in _NUMBER.items():
        if escape[name] is not None:
            number = int(escape[name], base)
            return chr(number) if number < 0x110000 else "\ufffd"
    return html.unescape(escape[0])
