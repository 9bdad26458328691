"""Detects whether an address contains text that was read: as it is, split into parts, or in a common encoding.

Exfiltrated data is often short: a six-digit code, a name. A little text is therefore enough; common words of addresses
and words of the caller do not count. A code that only the attacker and the model know is not detected; the address is
then still visible, and takes a click.
"""

import base64
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from agent.text.spelling import fold_digits

MIN_DIGITS: Final = 4
"""Digits in a row that count: a code, a year, a part of a longer number."""
MIN_LETTERS: Final = 5
"""Letters and digits of one part that count; shorter ones occur in any long text by chance."""
MIN_JOINED_CHARS: Final = 8
"""Letters and digits that count if split across parts: `/Zan/zib/ar`."""
MAX_ADDRESS_CHARS: Final = 8_000
"""A longer address counts as a leak without being searched; servers refuse it."""
MAX_PARTS: Final = 200
"""An address with more parts counts as a leak without being searched; no real page has that many."""

_SCHEME: Final = re.compile(r"\A(?:(?:[a-z][a-z0-9+.-]*:)?//|mailto:)", re.IGNORECASE)
_DATE: Final = re.compile(r"/(?:19|20)\d\d/(?:0?[1-9]|1[0-2])(?:/(?:0?[1-9]|[12]\d|3[01]))?(?=/|$)")
_AUTHORITY: Final = re.compile(r"[^/?#]*")
_MAIL_AUTHORITY: Final = re.compile(r"(?:[^?]*@)?[^/?#]*")
"""The name before an `@` may have a slash."""
_FILE_EXTENSION: Final = re.compile(
    r"\.(?:html?|xhtml|php|aspx?|md|rst|txt|pdf|json|xml|png|jpe?g|svg|py|ipynb)$", re.IGNORECASE
)
_ADDRESS_WORDS: Final = """
    about archive archives article articles assets author authors category categories changelog commit commits common
    community concept concepts contact content contents current default develop developer developers discussion
    discussions document documentation documents download downloads edition english example examples feature features
    files forum forums getting github global guide guides handbook history index install installation intro
    introduction issue issues items keyword labels latest learn library license linux login manual master media
    message module modules notes online overview package packages pages people policy posts press privacy product
    products project projects public query question questions quickstart readme reference references release releases
    report reports research resource resources result results search section security service services share source
    sources stable standard standards start started static status stories story support system tagged terms title
    topic topics tools tutorial tutorials update updates usage users value version versions video videos viewer
    watch website welcome windows
"""
COMMON_ADDRESS_WORDS: Final = frozenset(_ADDRESS_WORDS.split())
"""Common words in addresses; that one of them was also read proves nothing."""


class ExfiltrationCheck:
    """Compares addresses with the texts that were read.

    `asked` is what the caller and the operator wrote: their own words reveal nothing.
    """

    def __init__(self, outside: str, inside: str = "") -> None:
        self._outside = keep_alphanumeric(outside)
        self._asked = keep_alphanumeric(inside)
        self._words = frozenset(_find_words(inside))

    def has_leak(self, address: str) -> bool:
        """Whether an address, as a browser reads it, contains text that was read."""
        if len(address) > MAX_ADDRESS_CHARS:
            return True
        values, answers = _split_address(address)
        if len(values) > MAX_PARTS:
            return True
        if any(self._contains_outside_text(decoded) for value in values for decoded in _iter_decodings(value)):
            return True
        return any(
            self._is_split_across_parts(["".join(self._extract_significant_words(unquote(part))) for part in parts])
            or any(self._contains_outside_text(decoded) for decoded in _decode("".join(parts)))
            for parts in (values, answers)
        )

    def list_leaks(self, address: str) -> tuple[str, ...]:
        """The words and numbers of an address that were read, decoded, in order; for people."""
        values, answers = _split_address(address[:MAX_ADDRESS_CHARS])
        leaks: dict[str, None] = {}
        for value in (*values[:MAX_PARTS], "".join(answers)):
            for decoded in _iter_decodings(value):
                pieces = (*self._extract_significant_words(decoded), *_find_numbers(decoded))
                leaks |= dict.fromkeys(piece for piece in pieces if self._is_outside_text(piece))
        return tuple(leaks)

    def has_long_leak(self, address: str) -> bool:
        """The same for a host that the caller named: only parts of `MIN_JOINED_CHARS` characters count."""
        rest = _SCHEME.sub("", address, count=1)
        squeezed_parts = (
            keep_alphanumeric(decoded)
            for marks in (r"[/?&=#;,.]", r"[/?&=#;,.()\[\]]")  # some readers end an address at a bracket
            for part in re.split(marks, rest)
            for decoded in _iter_decodings(part)
        )
        return any(len(flat) >= MIN_JOINED_CHARS and flat in self._outside for flat in squeezed_parts)

    def _contains_outside_text(self, text: str) -> bool:
        """Whether a text, one of its words or one of its numbers was read."""
        pieces = self._extract_significant_words(text)
        return any(self._is_outside_text(piece) for piece in [*pieces, "".join(pieces)]) or any(
            number in self._outside for number in _find_numbers(text)
        )

    def _extract_significant_words(self, text: str) -> list[str]:
        """The words of a text without common address words and the caller's own words."""
        return [
            piece
            for piece in _find_words(text)
            if piece not in COMMON_ADDRESS_WORDS and not self._is_from_caller(piece)
        ]

    def _is_from_caller(self, flat: str) -> bool:
        """Whether a word is the caller's own. Numbers never are."""
        own = flat in self._words or (len(flat) >= MIN_JOINED_CHARS and flat in self._asked)
        return own and re.search(rf"\d{{{MIN_DIGITS}}}", flat) is None

    def _is_split_across_parts(self, squeezed_parts: Sequence[str]) -> bool:
        """Whether neighbouring parts together contain text that was read.

        The shortest run from each start is enough: a longer one begins with it.
        """
        squeezed_parts = [flat for flat in squeezed_parts if flat]
        for start in range(len(squeezed_parts)):
            run = squeezed_parts[start]
            for flat in squeezed_parts[start + 1 :]:
                run += flat
                if (run.isdigit() or len(run) >= MIN_JOINED_CHARS) and self._is_outside_text(run):
                    return True
                if len(run) >= MIN_JOINED_CHARS:
                    break
        return False

    def _is_outside_text(self, flat: str) -> bool:
        if flat.isdigit():
            return len(flat) >= MIN_DIGITS and flat in self._outside
        return len(flat) >= MIN_LETTERS and flat in self._outside and not self._is_from_caller(flat)


def keep_alphanumeric(text: str) -> str:
    """The letters and digits in their plain form."""
    if text.isascii():
        return "".join(filter(str.isalnum, text.lower()))
    # Each character is folded once: a text has many, but few different ones.
    text = unicodedata.normalize("NFKC", text)
    return text.translate({ord(char): "".join(filter(str.isalnum, _fold(char))) for char in set(text)})


def _fold(text: str) -> str:
    """A text in lower case without accents and other forms of letters and digits, such as those of another script: they
    say the same.
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    # Composed again, since the syllables of Hangul are taken apart too.
    return fold_digits(unicodedata.normalize("NFC", "".join(c for c in plain if unicodedata.category(c) != "Mn")))


def _find_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", _fold(text))


def _find_numbers(text: str) -> list[str]:
    return re.findall(rf"\d{{{MIN_DIGITS},}}", _fold(text))


def _split_address(address: str) -> tuple[list[str], list[str]]:
    """The parts of an address that its author can choose, and the values of its query.

    A registered domain is not counted; the labels before it are.
    """
    rest = _SCHEME.sub("", address, count=1)
    pattern = _MAIL_AUTHORITY if address[:7].lower() == "mailto:" else _AUTHORITY
    match = pattern.match(rest)
    authority = match[0] if match is not None else ""
    path, _, query = _DATE.sub("", rest[len(authority) :]).partition("?")
    user, _, host = authority.rpartition("@")
    name, _, port = host.partition(":")
    labels = name.removeprefix("www.").split(".")[:-2]
    values = [part for part in (user, *labels, port) if part]
    values += [_FILE_EXTENSION.sub("", part) for part in re.split(r"[/#;,]", path) if part]
    pairs = [pair.partition("=") for pair in re.split(r"[&;#?]", query) if pair]
    values += [part for key, _, value in pairs for part in (key, value) if part]
    return values, [value or key for key, _, value in pairs]


def _iter_decodings(part: str) -> Iterator[str]:
    """Yields a part of an address as it is, reversed, and decoded."""
    plain = part
    for _ in range(3):  # percent-encoding can be nested
        plain = unquote(plain)
    yield plain
    yield plain[::-1]
    yield from _decode(part)
    if plain != part:
        yield from _decode(plain)


def _decode(code: str) -> Iterator[str]:
    """Yields the text as decoded from base64, base32 and hexadecimal, if that gives text."""
    plain = code.replace("-", "+").replace("_", "/").rstrip("=")
    with suppress(ValueError):  # binascii and decoding errors are ValueErrors
        yield base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    with suppress(ValueError):
        yield base64.b32decode(plain + "=" * (-len(plain) % 8), casefold=True).decode()
    with suppress(ValueError):
        yield bytes.fromhex(re.sub(r"0x|[\W_]", "", code)).decode()
