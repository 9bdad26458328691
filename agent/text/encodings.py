"""The encoding of a text whose encoding nobody declares: byte order mark, UTF-8, else a guess."""

import codecs
import re
from itertools import islice
from typing import NamedTuple

from charset_normalizer import from_bytes

from agent.text import iso2022_jp
from agent.text.encoding_guess import guess_short_encoding

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 65_536
"""Bytes that the encoding is guessed from; more changes nothing and takes seconds."""

_SHORT = 400
"""Bytes beyond ASCII up to which the letters themselves say more than statistics."""
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_UNTOLD = frozenset({"mac_roman"})
"""What charset-normalizer takes for rarer encodings with the same letters at most places."""
_SWITCHES = {
    b"\x1b$)C": "iso2022_kr",
    **dict.fromkeys((b"\x1b$B", b"\x1b$@", b"\x1b(J", b"\x1b(I"), iso2022_jp.NAME),
}
"""What only ISO-2022-KR and ISO-2022-JP have, in which mail is written: all their bytes are ASCII."""

_ZEROS = 0.4
"""The share of zeros among the high bytes of UTF-16 from which on a text is taken for it."""
_MIXED = 3
"""How many characters of UTF-8 a text must have for each byte that is not: by chance they have fewer."""
_STRAY = re.compile("[\udc80-\udcff]")
"""A byte that cannot be UTF-8, as Python keeps it."""
_WESTERN = "cp1252"
_ABOUT_AS_WELL = 0.12
"""Of charset-normalizer's coherence (0 to 1): the largest measured gap between a Western text's wrong and right
encoding."""


class Decoded(NamedTuple):
    """A text, its encoding, and notes on the guess."""

    text: str
    encoding: str
    uncertainties: tuple[str, ...] = ()
    lost: int = 0
    """Characters that could not be decoded."""


def decode(data: bytes) -> Decoded:
    """Decodes bytes: by byte order mark or the zeros of UTF-16, else as UTF-8 where only a few bytes are none, else by
    charset-normalizer's guess."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_lossy(data, encoding)
    head = data[:_SAMPLE]
    switched = (encoding for switch, encoding in _SWITCHES.items() if switch in head) if data.isascii() else ()
    for encoding in switched:
        return _decode_lossy(data, encoding)
    if (wide := _guess_wide(head)) is not None:
        return _decode_lossy(data, wide)
    try:
        return Decoded(data.decode(), "utf-8")
    except UnicodeDecodeError:
        pass
    if (mixed := _decode_mixed(data)) is not None:
        return mixed
    decoded = _decode_lossy(data, _guess_encoding(data[:_SAMPLE]))
    return decoded._replace(uncertainties=(f"the encoding was guessed: {decoded.encoding}", *decoded.uncertainties))


def find_encoding(data: bytes) -> str | None:
    """The encoding of a text or of its beginning, as `decode` finds it; None for binary data."""
    decoded = decode(data[:_SAMPLE])
    return None if "\0" in decoded.text else decoded.encoding


def _guess_wide(data: bytes) -> str | None:
    """UTF-16 by the zeros that every second byte of a text in a Latin script is; None for anything else."""
    half = len(data) // 2
    if half < 2 or data.count(0) < _ZEROS * half:
        return None
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if data[start::2].count(0) >= _ZEROS * half and data[1 - start :: 2].count(0) == 0:
            return encoding
    return None


def _decode_mixed(data: bytes) -> Decoded | None:
    """UTF-8 in which a few characters of Windows-1252 stand, as where a log joins the lines of two programs; None where
    they are not few."""
    text = data.decode("utf-8", "surrogateescape")
    strays = len(_STRAY.findall(text))
    beyond_ascii = sum(letter > "\x7f" for letter in text) - strays
    if beyond_ascii < _MIXED * strays:
        return None
    text = _STRAY.sub(lambda match: bytes([ord(match[0]) - 0xDC00]).decode(_WESTERN, "replace"), text)
    return Decoded(text, "utf-8", (f"{strays} characters are not utf-8 and were read as {_WESTERN}",))


def _guess_encoding(data: bytes) -> str:
    """The encoding that makes words of a short text; of others charset-normalizer's best guess, or Windows-1252 if that
    fits about as well.

    By itself it takes half of the Western texts for Central European, which has the same letters at other places.
    """
    head = _cut(data)
    short = guess_short_encoding(head)
    if short is not None and (len(head) == len(data) or short in _UNTOLD):
        return short
    matches = from_bytes(data)
    best = matches.best()
    western = next((match for match in matches if _WESTERN in {match.encoding, *match.could_be_from_charset}), None)
    if best is None:
        return _WESTERN
    if western and western.chaos <= best.chaos and western.coherence >= best.coherence - _ABOUT_AS_WELL:
        return _WESTERN
    return best.encoding


def _cut(data: bytes) -> bytes:
    """The bytes up to the last that letters say enough of."""
    last = next(islice(_BEYOND_ASCII.finditer(data), _SHORT, None), None)
    return data if last is None else data[: last.start()]


def _decode_lossy(data: bytes, encoding: str) -> Decoded:
    is_switched = encoding == iso2022_jp.NAME
    text = iso2022_jp.decode_iso2022_jp(data) if is_switched else data.decode(encoding, errors="replace")
    lost = text.count("\ufffd")
    return Decoded(text, encoding, (f"{lost} characters are not {encoding} and were lost",) if lost else (), lost)
