"""The same text as others may mean it: without disguises, and with what is encoded in it decoded.

Views are only read, by the detectors of injections and of personal data; what goes on is always the text itself.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from agent.guardrails.lexicon import BY_WORD, COMMON

DEPTH: Final = 3
"""Encodings inside encodings are followed so far."""
MOST: Final = 24
"""At most so many decoded pieces a text; what is over is not read, and is reported as such."""
LONGEST: Final = 8_000
"""Characters of an encoded piece that are decoded."""
TAGGED: Final = "invisible tag characters"
COMMENT: Final = "a comment"
UNSEEN: Final = "hidden text"
BACKWARDS: Final = "text written backwards"

_LOOKALIKE: Final = str.maketrans(
    "абвеёіјкмнорсѕтухԁɡһӏԛԝАВЕЁІЈКМНОРСЅТУХαβεικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧıǀƖℓᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ",
    "abbeeijkmhopcstyxdghlqwABEEIJKMHOPCSTYXabeiknoptuxwABEZHIKMNOPTYXilllabcdeghijklmnoprtuvwyz",
)
_LOOKALIKES: Final = frozenset(map(chr, _LOOKALIKE))
_LEET: Final = str.maketrans("013457@$!", "oieastasi")
_DROPPED: Final = frozenset(("Cf", "Co", "Cs"))
_KEPT: Final = frozenset("\n\t\r")

_WORD = re.compile(r"\w+")
_LATIN = re.compile(r"[A-Za-z]")
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*·]{1,3}\w){7,}(?!\w)")
_LEETWORD = re.compile(r"(?<![\w@$!])(?=\w{0,12}[A-Za-z])(?=[A-Za-z]{0,12}[013457@$])[\w@$!]{3,16}")
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{16,}={0,2}(?![\w+/=-])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){12,}(?![0-9A-Za-z])")
_ESCAPES = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}){6,}")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2}[\w.~-]{0,40}){3,}")
_ENTITIES = re.compile(r"(?:&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6});[\w ,.]{0,40}){4,}")
_ROT13 = frozenset(
    ("gur", "naq", "lbh", "lbhe", "nyy", "sbetrg", "vtaber", "cerivbhf", "vafgehpgvba", "vafgehpgvbaf", "cebzcg",
     "flfgrz", "erirny", "orfvqrf", "sebz", "jvgu")
)  # fmt: skip
"""Frequent English words, and those of an attack, as rot13 writes them."""
_BACKWARDS = frozenset(
    ("eht", "ruoy", "uoy", "lla", "yna", "htiw", "morf", "erongi", "tegrof", "dragersid", "edirrevo", "suoiverp",
     "roirp", "snoitcurtsni", "selur", "tpmorp", "metsys", "laever", "terces", "drowssap", "ella", "negnusiewna",
     "negirehsib", "ssigrev", "renoitkurtsni", "mölg")
)  # fmt: skip
"""The same, read from the end; `dna` is left out, for it has a meaning."""
_COMMENT = re.compile(
    r"<!--(?P<html>.*?)(?:-->|\Z)|^\[[^\]\n]{1,40}\]: # [(\"'](?P<markdown>[^\n]*)[)\"']", re.DOTALL | re.MULTILINE
)
_HIDDEN = re.compile(
    r"<(?P<tag>\w{1,12})[^<>]{0,200}(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0|opacity\s?:\s?0\b"
    r"|\bhidden\b)[^<>]{0,200}>(?P<text>[^<]*)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(?<=[A-Za-z0-9])[\u200b-\u200d\u2060\ufeff]{1,8}(?=[A-Za-z0-9+(])")
"""Not soft hyphens: to read those as blanks would cut the words of an honest text."""
_TAGS = re.compile(r"[\U000E0020-\U000E007E]{8,}")


@dataclass(frozen=True, slots=True)
class View:
    """A text without its disguises, and where each of its characters stands in the original."""

    text: str
    places: NDArray[np.int64] | None
    """None: every character stands where it stood."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """`[start, end)` of this text in the original."""
        if self.places is None or end <= start:
            return start, end
        return int(self.places[start]), int(self.places[end - 1]) + 1


@dataclass(frozen=True, slots=True)
class Piece:
    """What some characters of a text also say."""

    text: str
    start: int
    """Where in the original."""
    end: int
    how: str
    """How it was disguised, in words."""


def plain(text: str) -> View:
    """`text` in its compatibility form, with ASCII digits, look-alike letters as Latin ones and without invisible
    characters."""
    if text.isascii() and "\x00" not in text:
        return View(text, None)
    forms = {ord(char): form for char in set(text) if (form := _plain(char)) != char}
    if not forms:
        return View(_latin(text), None)
    dropped = [code for code, form in forms.items() if not form]
    places = None
    if dropped:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        places = np.flatnonzero(~np.isin(codes, dropped)).astype(np.int64)
    return View(_latin(text.translate(forms)), places)


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """What stands for a character; empty for what nobody sees."""
    if char < "\x80":
        return char if char >= " " or char in _KEPT else ""
    if unicodedata.category(char) in _DROPPED:
        return ""
    digit = unicodedata.decimal(char, None)
    form = unicodedata.normalize("NFKC", char) if digit is None else str(digit)
    return form if len(form) == 1 else char


def parted(text: str) -> str | None:
    """`text` with a blank for each run of zero-width characters between two letters or digits, where `plain` joins
    what they part; as long as it was. None where there are none."""
    if text.isascii() or not _BETWEEN.search(text):
        return None
    return _BETWEEN.sub(lambda run: " " * len(run[0]), text)


def _latin(text: str) -> str:
    """Words that mix Latin letters with look-alikes, in Latin letters; Greek and Cyrillic words stay what they are."""
    if _LOOKALIKES.isdisjoint(text):
        return text
    return _WORD.sub(lambda word: word[0].translate(_LOOKALIKE) if _LATIN.search(word[0]) else word[0], text)


def pieces(text: str) -> list[Piece]:
    """What is hidden or encoded in `text`, decoded as deep as `DEPTH`; at most `MOST` of them."""
    found: list[Piece] = []
    wave = [Piece(text, 0, len(text), "")]
    for depth in range(DEPTH):
        following: list[Piece] = []
        for whole in wave:
            for piece in _decoded(whole.text):
                if len(found) >= MOST:
                    return found
                placed = (
                    piece if not depth else Piece(piece.text, whole.start, whole.end, f"{piece.how} in {whole.how}")
                )
                found.append(placed)
                following.append(placed)
        wave = following
    return found


def tagged(text: str) -> list[Piece]:
    """What runs of tag characters spell: ASCII that nobody sees and models read. Flags of regions have fewer."""
    if text.isascii():
        return []
    return [
        Piece("".join(chr(ord(char) - 0xE0000) for char in match[0]), match.start(), match.end(), TAGGED)
        for match in islice(_TAGS.finditer(text), MOST)
    ]


def _decoded(text: str) -> Iterator[Piece]:
    for pattern, decode, how, sign in _CODES:
        for match in pattern.finditer(text) if sign in text else ():
            clear = decode(match[0][:LONGEST])
            if clear is not None and _reads(clear):
                yield Piece(clear, match.start(), match.end(), how)
    for match in _COMMENT.finditer(text):
        yield Piece((match["html"] or match["markdown"] or "")[:LONGEST], match.start(), match.end(), COMMENT)
    for match in _HIDDEN.finditer(text):
        yield Piece(match["text"][:LONGEST], match.start(), match.end(), UNSEEN)
    said = text[:LONGEST]
    tokens = _WORD.findall(said.lower())
    if sum(map(_ROT13.__contains__, tokens)) >= 2:
        yield Piece(codecs.decode(said, "rot13"), 0, len(text), "rot13")
    if sum(map(_BACKWARDS.__contains__, tokens)) >= 2:
        yield Piece(said[::-1], 0, len(text), BACKWARDS)
        yield Piece(_WORD.sub(lambda word: word[0][::-1], said), 0, len(text), BACKWARDS)
    words = _LEETWORD.findall(said)
    if sum(word.translate(_LEET).lower() in BY_WORD for word in words) >= 2:
        clear = _LEETWORD.sub(lambda match: match[0].translate(_LEET), said)
        yield Piece(clear, 0, len(text), "leetspeak")


def _reads(said: str) -> bool:
    """Whether this is text, not bytes that happen to decode."""
    if len(said) < 8 or not said.isprintable():
        return False
    if _BASE64.fullmatch(said) or _HEX.fullmatch(said):
        return True
    letters = sum(char.isalpha() or char == " " for char in said)
    return letters >= 0.8 * len(said) and (" " in said or not said.isascii())


def _base64(code: str) -> str | None:
    padded = code.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _hex(code: str) -> str | None:
    digits = re.sub(r"[^0-9a-fA-F]", "", code.removeprefix("0x"))
    try:
        return bytes.fromhex(digits).decode()
    except (ValueError, UnicodeDecodeError):
        return None


def _escapes(code: str) -> str | None:
    said = re.sub(r"\\x(..)|\\u(....)", lambda match: chr(int(match[1] or match[2], 16)), code)
    return None if any("\ud800" <= char <= "\udfff" for char in said) else said


def _spaced(code: str) -> str | None:
    """Letters with something between each two: words where the gaps are wider, else the words that are known."""
    if not code[0].isalpha():
        return None
    words = re.split(r"[ .\-_*·]{2,}", code)
    letters = [re.sub(r"[^\w]|_", "", word) for word in words]
    if len(letters) > 1:
        return " ".join(letters)
    said, rest, at = [], letters[0].lower(), 0
    while at < len(rest):
        size = next((size for size in range(14, 1, -1) if rest[at : at + size] in _KNOWN), 1)
        said.append(rest[at : at + size])
        at += size
    return " ".join(said)


_KNOWN: Final = frozenset(BY_WORD) | frozenset(COMMON.split())
_CODES: Final[tuple[tuple[re.Pattern[str], Callable[[str], str | None], str, str], ...]] = (
    (_SPACED, _spaced, "spaced letters", ""),
    (_BASE64, _base64, "base64", ""),
    (_HEX, _hex, "hexadecimal", ""),
    (_ESCAPES, _escapes, "escapes", "\\"),
    (_PERCENT, unquote, "percent encoding", "%"),
    (_ENTITIES, html.unescape, "HTML entities", "&#"),
)
"""A form, how it is read, what it is called, and what must stand in a text for it to be there at all."""
