"""Whether an address says something that was read: as it stands, in pieces, or in one of the usual encodings.

What somebody else's server is to learn is short more often than not: a code of six digits, a name. So little is enough
to count, and what says nothing is left out by name: words of every other address, and those the caller used themselves.
Whoever has a code of their own with a model gets past this; the address is in plain sight then, and one click away.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

DIGITS: Final = 4
"""As many in a row are a code, a year or a part of a number."""
LETTERS: Final = 5
"""Letters, or letters and digits, of one part that make a word of ours; fewer stand in any long text by chance."""
JOINED: Final = 8
"""Letters and digits of several parts together: `/Zan/zib/ar`."""
MOST_PARTS: Final = 200
"""An address of more parts than any page has is not looked through: it counts as one that carries something."""

_SCHEME: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|mailto:", re.IGNORECASE)
_DATE: Final = re.compile(r"/(?:19|20)\d\d/(?:0?[1-9]|1[0-2])(?:/(?:0?[1-9]|[12]\d|3[01]))?(?=/|$)")
_ENDING: Final = re.compile(
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
_ORDINARY: Final = frozenset(_ADDRESS_WORDS.split())
"""Words of every other address; that one of them was read says nothing."""


class Carried:
    """What was read, to hold addresses against. `asked` is what the caller and the operator wrote: a word of theirs
    tells nobody what was read."""

    def __init__(self, outside: str, asked: str = "") -> None:
        self._outside = squeeze(outside)
        self._asked = squeeze(asked)
        self._words = frozenset(re.findall(r"[^\W_]+", asked.lower()))

    def by(self, address: str) -> bool:
        """Whether an address, as a browser reads it, says something that was read."""
        values, answers = _parts(address)
        if len(values) > MOST_PARTS:
            return True
        if any(self._says(said) for value in values for said in _readings(value)):
            return True
        return any(
            self._joined(["".join(self._telling(unquote(part))) for part in parts])
            or any(self._says(said) for said in _decoded("".join(parts)))
            for parts in (values, answers)
        )

    def long_by(self, address: str) -> bool:
        """The same of an address whose host the caller named: only a part of `JOINED` letters and digits counts."""
        rest = _SCHEME.sub("", address, count=1)
        flats = (squeeze(said) for part in re.split(r"[/?&=#;,.]", rest) for said in _readings(part))
        return any(len(flat) >= JOINED and flat in self._outside for flat in flats)

    def _says(self, text: str) -> bool:
        """Whether a text, a word of it or a number in it was read."""
        pieces = self._telling(text)
        return any(self._was_read(piece) for piece in [*pieces, "".join(pieces)]) or any(
            number in self._outside for number in re.findall(rf"\d{{{DIGITS},}}", text)
        )

    def _telling(self, text: str) -> list[str]:
        """The words of a text but for those that say nothing of what was read."""
        pieces = re.findall(r"[^\W_]+", text.lower())
        return [piece for piece in pieces if piece not in _ORDINARY and not self._is_asked(piece)]

    def _is_asked(self, flat: str) -> bool:
        """Whether it is the caller's own; a number is nobody's."""
        own = flat in self._words or (len(flat) >= JOINED and flat in self._asked)
        return own and re.search(rf"\d{{{DIGITS}}}", flat) is None

    def _joined(self, flats: Sequence[str]) -> bool:
        """Whether neighbours say together what none says alone. The shortest run from each is enough: a longer one that
        was read begins with it."""
        flats = [flat for flat in flats if flat]
        for start in range(len(flats)):
            run = flats[start]
            for flat in flats[start + 1 :]:
                run += flat
                if (run.isdigit() or len(run) >= JOINED) and self._was_read(run):
                    return True
                if len(run) >= JOINED:
                    break
        return False

    def _was_read(self, flat: str) -> bool:
        if flat.isdigit():
            return len(flat) >= DIGITS and flat in self._outside
        return len(flat) >= LETTERS and flat in self._outside and not self._is_asked(flat)


def squeeze(text: str) -> str:
    """Letters and digits alone, in lower case."""
    return "".join(char for char in text.lower() if char.isalnum())


def _parts(address: str) -> tuple[list[str], list[str]]:
    """The parts of an address that whoever writes it may choose, and of its query the values by themselves. A domain
    somebody has registered says nothing; what stands before it may."""
    rest = _SCHEME.sub("", address, count=1)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path, _, query = _DATE.sub("", rest[len(authority) :]).partition("?")
    user, _, host = authority.rpartition("@")
    name, _, port = host.partition(":")
    labels = name.removeprefix("www.").split(".")[:-2]
    values = [part for part in (user, *labels, port) if part]
    values += [_ENDING.sub("", part) for part in re.split(r"[/#;,]", path) if part]
    pairs = [pair.partition("=") for pair in re.split(r"[&;#?]", query) if pair]
    values += [part for key, _, value in pairs for part in (key, value) if part]
    return values, [value or key for key, _, value in pairs]


def _readings(part: str) -> Iterator[str]:
    """A part of an address: as it stands, backwards, and what it says when decoded."""
    plain = part
    for _ in range(3):  # encoded again, it says the same
        plain = unquote(plain)
    yield plain
    yield plain[::-1]
    yield from _decoded(part)
    if plain != part:
        yield from _decoded(plain)


def _decoded(code: str) -> Iterator[str]:
    """What a text says as base64, base32 and hexadecimal digits; nothing where it is no code, or codes no text."""
    plain = code.replace("-", "+").replace("_", "/").rstrip("=")
    with suppress(ValueError):  # binascii's and decoding's errors are ValueErrors
        yield base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    with suppress(ValueError):
        yield base64.b32decode(plain + "=" * (-len(plain) % 8), casefold=True).decode()
    with suppress(ValueError):
        yield bytes.fromhex(code).decode()
