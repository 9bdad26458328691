"""The encoding of a text whose encoding nobody declares: byte order mark, UTF-8, else a guess."""

import codecs
from typing import NamedTuple

from charset_normalizer import from_bytes

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 65_536
"""Bytes that the encoding is guessed from; more changes nothing and takes seconds."""

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
    """Decodes bytes: by byte order mark, else as UTF-8 if valid, else by charset-normalizer's guess."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_lossy(data, encoding)
    try:
        return Decoded(data.decode(), "utf-8")
    except UnicodeDecodeError:
        pass
    decoded = _decode_lossy(data, _guess_encoding(data[:_SAMPLE]))
    return decoded._replace(uncertainties=(f"the encoding was guessed: {decoded.encoding}", *decoded.uncertainties))


def _guess_encoding(data: bytes) -> str:
    """Charset-normalizer's best guess, or Windows-1252 if that fits about as well.

    By itself it takes half of the Western texts for Central European, which has the same letters at other places.
    """
    matches = from_bytes(data)
    best = matches.best()
    western = next((match for match in matches if _WESTERN in {match.encoding, *match.could_be_from_charset}), None)
    if best is None:
        return _WESTERN
    if western and western.chaos <= best.chaos and western.coherence >= best.coherence - _ABOUT_AS_WELL:
        return _WESTERN
    return best.encoding


def _decode_lossy(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, errors="replace")
    lost = text.count("\ufffd")
    return Decoded(text, encoding, (f"{lost} characters are not {encoding} and were lost",) if lost else (), lost)
