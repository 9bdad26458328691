"""The encodings of a configured secret, and normalized texts to search for them. Used by `secrets.py`."""

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

from agent.policy.guardrails.deobfuscation import normalize_disguises
from agent.policy.guardrails.text_features import lower_same_length

MIN_SECRET_CHARS: Final = 8
"""Shorter values are not searched: they would match ordinary words, and are easy to guess anyway."""
MIN_SQUEEZED_CHARS: Final = 8
MIN_SQUEEZED_LETTERS: Final = 16
"""Letters and digits that an encoding needs to be found in any case and with any separators. Without a digit it needs
more, because a short word is part of other words."""
MAX_GAP: Final = 16
"""Other characters in a row that may stand between two letters of a secret."""
MAX_UNESCAPE_ROUNDS: Final = 3
"""Levels of nested escapes that are decoded."""

_NON_ALPHANUMERIC: Final = re.compile(r"[\W_]+")
_LONG_GAP: Final = re.compile(rf"[\W_]{{{MAX_GAP + 1}}}")
_ESCAPE: Final = re.compile(
    r"%(?P<percent>[0-9A-Fa-f]{2})|(?<![0-9A-Za-z])0[xX](?P<zero>[0-9A-Fa-f]{2})(?![0-9A-Za-z])|\\(?:u(?P<u>[0-9A-Fa-f]{4})|x(?P<x>[0-9A-Fa-f]{2}))"
    r"|&(?:#(?P<dec>[0-9]{1,7})|#[xX](?P<hex>[0-9A-Fa-f]{1,6})|(?P<name>amp|lt|gt|quot|apos|sol|num|excl|plus|equals));"
)
_NUMBER_BASES: Final = {"percent": 16, "zero": 16, "u": 16, "x": 16, "dec": 10, "hex": 16}

Ints = NDArray[np.int64]


def list_encodings(value: str) -> set[str]:
    """The encodings of a secret: itself, reversed, escaped for JSON, HTML and URLs, hexadecimal, base32,
    base64, base64 of base64, and base64 of UTF-16, at every offset.

    Escapes of every character are undone by `iter_normalized_texts` instead.
    """
    if len(value) < MIN_SECRET_CHARS:
        return set()
    encodings = {
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
    encodings |= {re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in encodings}
    raw = value.encode("utf-8", "surrogatepass")
    encodings |= {raw.hex(), raw.hex().upper()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        once = _encode_at_offsets(raw, encode, 6)
        encodings |= once | _encode_at_offsets(value.encode("utf-16-le", "surrogatepass"), encode, 6)
        encodings |= {form for inner in once for form in _encode_at_offsets(inner.encode(), encode, 6)}
    return encodings | _encode_at_offsets(raw, base64.b32encode, 5)


def _encode_at_offsets(raw: bytes, encode: Callable[[bytes], bytes], bits: int) -> set[str]:
    """The encodings of `raw` after any number of other bytes.

    Characters that also encode neighbouring bytes are left out; a character encodes `bits` bits.
    """
    encoded = set()
    for before in range(3 if bits == 6 else 5):
        code = encode(b"\0" * before + raw).decode()
        encoded.add(code[-(-before * 8 // bits) : (before + len(raw)) * 8 // bits])
    return encoded


def squeeze_encoding(form: str) -> str:
    """The letters and digits of an encoding in lower case; empty if ordinary words could match it."""
    small = _NON_ALPHANUMERIC.sub("", lower_same_length(form))
    enough = MIN_SQUEEZED_CHARS if any(char.isdigit() for char in small) else MIN_SQUEEZED_LETTERS
    return small if len(small) >= enough else ""


class NormalizedText:
    """The letters and digits of a text in lower case.

    A gap longer than `MAX_GAP` becomes a line break, so that nothing matches across it.
    """

    def __init__(self, source: str, starts: Ints, ends: Ints) -> None:
        """Takes the text `said` and the original start and end of each of its characters."""
        self._lower = lower_same_length(source)
        self._starts, self._ends = starts, ends
        long = _LONG_GAP.search(self._lower)
        self.text = _NON_ALPHANUMERIC.sub("" if long is None else _replace_gap, self._lower)

    def to_original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span `[start, end)` of this text in the original."""
        return int(self._starts[self._kept_positions[start]]), int(self._ends[self._kept_positions[end - 1]])

    @cached_property
    def _kept_positions(self) -> Ints:
        """The positions of the kept characters, computed only after a match."""
        is_kept = np.ones(len(self._lower), bool)
        for gap in _NON_ALPHANUMERIC.finditer(self._lower):
            first, last = gap.span()
            is_kept[first + (last - first > MAX_GAP) : last] = False
        return np.flatnonzero(is_kept).astype(np.int64)


def _replace_gap(gap: re.Match[str]) -> str:
    return "\n" if len(gap[0]) > MAX_GAP else ""


def iter_normalized_texts(text: str) -> Iterator[NormalizedText]:
    """Yields the text without invisible characters, spaces and punctuation, then with its escapes undone repeatedly."""
    view = normalize_disguises(text)
    starts = np.arange(len(text), dtype=np.int64) if view.positions is None else view.positions
    ends = starts + 1
    yield NormalizedText(view.text, starts, ends)
    source = view.text
    for _ in range(MAX_UNESCAPE_ROUNDS):
        if not _ESCAPE.search(source):
            break
        source, starts, ends = _unescape(source, starts, ends)
        yield NormalizedText(source, starts, ends)


def _unescape(source: str, starts: Ints, ends: Ints) -> tuple[str, Ints, Ints]:
    """The text with every escape decoded; the character gets the span of its escape."""
    is_kept = np.ones(len(source), bool)
    until = ends.copy()
    parts: list[str] = []
    at = 0
    for match in _ESCAPE.finditer(source):
        parts += [source[at : match.start()], _decode_escape(match)]
        until[match.start()] = ends[match.end() - 1]
        is_kept[match.start() + 1 : match.end()] = False
        at = match.end()
    parts.append(source[at:])
    return "".join(parts), starts[is_kept], until[is_kept]


def _decode_escape(escape: re.Match[str]) -> str:
    """Exactly one character, so that positions stay correct."""
    for name, base in _NUMBER_BASES.items():
        if escape[name] is not None:
            number = int(escape[name], base)
            return chr(number) if number < 0x110000 else "\ufffd"
    return html.unescape(escape[0])
