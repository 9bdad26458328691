"""Removes disguises from a text and decodes what is encoded in it, for the detectors of injections and personal data.

Only detectors read the result; the text that goes on is always the original.
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

from agent.policy.guardrails.lexicon import COMMON_ENGLISH, CONCEPTS_BY_WORD

MAX_DEPTH: Final = 3
"""Levels of nested encodings that are decoded."""
MAX_PIECES: Final = 24
"""Decoded pieces per text; further ones are not read."""
MAX_PIECE_CHARS: Final = 8_000
"""Characters of an encoded piece that are decoded."""
TAG_CHARACTERS: Final = "invisible tag characters"
COMMENT: Final = "a comment"
HIDDEN_TEXT: Final = "hidden text"
BACKWARDS: Final = "text written backwards"

_LOOKALIKE: Final = str.maketrans(
    "абвеёіјкмнорсѕтухԁɡһӏԛԝАВЕЁІЈКМНОРСЅТУХαβεικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧıǀƖℓᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ",
    "abbeeijkmhopcstyxdghlqwABEEIJKMHOPCSTYXabeiknoptuxwABEZHIKMNOPTYXilllabcdeghijklmnoprtuvwyz",
)
_LOOKALIKES: Final = frozenset(map(chr, _LOOKALIKE))
_LEET: Final = str.maketrans("013457@$!", "oieastasi")
_INVISIBLE_CATEGORIES: Final = frozenset(("Cf", "Co", "Cs"))
_KEPT_CONTROLS: Final = frozenset("\n\t\r")

_WORD = re.compile(r"\w+")
_LATIN = re.compile(r"[A-Za-z]")
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*·]{1,3}\w){7,}(?!\w)")
_LEETWORD = re.compile(r"(?<![\w@$!])(?=\w{0,12}[A-Za-z])(?=[A-Za-z]{0,12}[013457@$])[\w@$!]{3,16}")
_LEET_SIGN = re.compile(r"[013457@$]")
"""Every such word contains one of these."""
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{16,}={0,2}(?![\w+/=-])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){12,}(?![0-9A-Za-z])")
_ESCAPES = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}){6,}")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2}[\w.~-]{0,40}){3,}")
_ENTITIES = re.compile(r"(?:&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6});[\w ,.]{0,40}){4,}")
_ROT13 = frozenset(
    ("gur", "naq", "lbh", "lbhe", "nyy", "sbetrg", "vtaber", "cerivbhf", "vafgehpgvba", "vafgehpgvbaf", "cebzcg",
     "flfgrz", "erirny", "orfvqrf", "sebz", "jvgu")
)  # fmt: skip
"""Frequent English words, and words of attacks, in rot13."""
_BACKWARDS = frozenset(
    ("eht", "ruoy", "uoy", "lla", "yna", "htiw", "morf", "erongi", "tegrof", "dragersid", "edirrevo", "suoiverp",
     "roirp", "snoitcurtsni", "selur", "tpmorp", "metsys", "laever", "terces", "drowssap", "ella", "negnusiewna",
     "negirehsib", "ssigrev", "renoitkurtsni", "mölg")
)  # fmt: skip
"""The same words reversed, except `dna`, which is a word."""
_COMMENT = re.compile(
    r"<!--(?P<html>.*?)(?:-->|\Z)|^\[[^\]\n]{1,40}\]: # [(\"'](?P<markdown>[^\n]*)[)\"']", re.DOTALL | re.MULTILINE
)
_HIDDEN = re.compile(
    r"<(?P<tag>\w{1,12})[^<>]{0,200}(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0|opacity\s?:\s?0\b"
    r"|\bhidden\b)[^<>]{0,200}>(?P<text>[^<]*)",
    re.IGNORECASE,
)
_INVISIBLE_BETWEEN = re.compile(r"(?<=[A-Za-z0-9])[\u200b-\u200d\u2060\ufeff]{1,8}(?=[A-Za-z0-9+(])")
"""Without soft hyphens: replacing them by spaces would split ordinary words."""
_TAGS = re.compile(r"[\U000E0020-\U000E007E]{8,}")


@dataclass(frozen=True, slots=True)
class DeobfuscatedText:
    """A text without disguises, and the positions of its characters in the original."""

    text: str
    positions: NDArray[np.int64] | None
    """None: the positions are unchanged."""

    def to_original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span `[start, end)` of this text in the original."""
        if self.positions is None or end <= start:
            return start, end
        return int(self.positions[start]), int(self.positions[end - 1]) + 1


@dataclass(frozen=True, slots=True)
class DecodedPiece:
    """Decoded text that is hidden or encoded in a part of a text."""

    text: str
    start: int
    """Position in the original."""
    end: int
    disguise: str
    """A description of the disguise."""


def normalize_disguises(text: str) -> DeobfuscatedText:
    """The NFKC form with ASCII digits, Latin letters for look-alikes, and no invisible characters."""
    if text.isascii() and "\x00" not in text:
        return DeobfuscatedText(text, None)
    forms = {ord(char): form for char in set(text) if (form := _normalize_char(char)) != char}
    if not forms:
        return DeobfuscatedText(_replace_lookalikes(text), None)
    dropped = [code for code, form in forms.items() if not form]
    places = None
    if dropped:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        places = np.flatnonzero(~np.isin(codes, dropped)).astype(np.int64)
    return DeobfuscatedText(_replace_lookalikes(text.translate(forms)), places)


@lru_cache(maxsize=4096)
def _normalize_char(char: str) -> str:
    """The replacement of a character; empty for an invisible one."""
    if char < "\x80":
        return char if char >= " " or char in _KEPT_CONTROLS else ""
    if unicodedata.category(char) in _INVISIBLE_CATEGORIES:
        return ""
    digit = unicodedata.decimal(char, None)
    form = unicodedata.normalize("NFKC", char) if digit is None else str(digit)
    return form if len(form) == 1 else char


def split_at_invisible(text: str) -> str | None:
    """The text with spaces for zero-width characters between letters or digits, or None if there are none.

    `normalize_disguises` joins such words. The length of the text stays the same.
    """
    if text.isascii() or not _INVISIBLE_BETWEEN.search(text):
        return None
    return _INVISIBLE_BETWEEN.sub(lambda run: " " * len(run[0]), text)


def _replace_lookalikes(text: str) -> str:
    """The text with Latin letters in words that mix them with look-alikes. Greek and Cyrillic words stay."""
    if _LOOKALIKES.isdisjoint(text):
        return text
    return _WORD.sub(lambda word: word[0].translate(_LOOKALIKE) if _LATIN.search(word[0]) else word[0], text)


def decode_pieces(text: str) -> list[DecodedPiece]:
    """Up to `MAX_PIECES` hidden or encoded texts, decoded up to `MAX_DEPTH` levels deep."""
    decoded: list[DecodedPiece] = []
    wave = [DecodedPiece(text, 0, len(text), "")]
    for depth in range(MAX_DEPTH):
        following: list[DecodedPiece] = []
        for whole in wave:
            for piece in _decode_layer(whole.text):
                if len(decoded) >= MAX_PIECES:
                    return decoded
                placed = (
                    piece
                    if not depth
                    else DecodedPiece(piece.text, whole.start, whole.end, f"{piece.disguise} in {whole.disguise}")
                )
                decoded.append(placed)
                following.append(placed)
        wave = following
    return decoded


def decode_tag_characters(text: str) -> list[DecodedPiece]:
    """The text of runs of tag characters: invisible ASCII that models read. Regional flags are shorter."""
    if text.isascii():
        return []
    return [
        DecodedPiece("".join(chr(ord(char) - 0xE0000) for char in match[0]), match.start(), match.end(), TAG_CHARACTERS)
        for match in islice(_TAGS.finditer(text), MAX_PIECES)
    ]


def _decode_layer(text: str) -> Iterator[DecodedPiece]:
    for pattern, decode, how, sign in _DECODERS:
        for match in pattern.finditer(text) if sign in text else ():
            clear = decode(match[0][:MAX_PIECE_CHARS])
            if clear is not None and _is_readable(clear):
                yield DecodedPiece(clear, match.start(), match.end(), how)
    for match in _COMMENT.finditer(text) if "<" in text or "[" in text else ():
        yield DecodedPiece(
            (match["html"] or match["markdown"] or "")[:MAX_PIECE_CHARS], match.start(), match.end(), COMMENT
        )
    for match in _HIDDEN.finditer(text) if "<" in text else ():
        yield DecodedPiece(match["text"][:MAX_PIECE_CHARS], match.start(), match.end(), HIDDEN_TEXT)
    plain_text = text[:MAX_PIECE_CHARS]
    tokens = _WORD.findall(plain_text.lower())
    if sum(map(_ROT13.__contains__, tokens)) >= 2:
        yield DecodedPiece(codecs.decode(plain_text, "rot13"), 0, len(text), "rot13")
    if sum(map(_BACKWARDS.__contains__, tokens)) >= 2:
        yield DecodedPiece(plain_text[::-1], 0, len(text), BACKWARDS)
        yield DecodedPiece(_WORD.sub(lambda word: word[0][::-1], plain_text), 0, len(text), BACKWARDS)
    words = _LEETWORD.findall(plain_text) if _LEET_SIGN.search(plain_text) else []
    if sum(word.translate(_LEET).lower() in CONCEPTS_BY_WORD for word in words) >= 2:
        clear = _LEETWORD.sub(lambda match: match[0].translate(_LEET), plain_text)
        yield DecodedPiece(clear, 0, len(text), "leetspeak")


def _is_readable(plain_text: str) -> bool:
    """Whether this is text rather than bytes that happen to decode."""
    if len(plain_text) < 8 or not plain_text.isprintable():
        return False
    if _BASE64.fullmatch(plain_text) or _HEX.fullmatch(plain_text):
        return True
    letters = sum(char.isalpha() or char == " " for char in plain_text)
    return letters >= 0.8 * len(plain_text) and (" " in plain_text or not plain_text.isascii())


def _decode_base64(code: str) -> str | None:
    padded = code.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _decode_hex(code: str) -> str | None:
    digits = re.sub(r"[^0-9a-fA-F]", "", code.removeprefix("0x"))
    try:
        return bytes.fromhex(digits).decode()
    except (ValueError, UnicodeDecodeError):
        return None


def _decode_escapes(code: str) -> str | None:
    plain_text = re.sub(r"\\x(..)|\\u(....)", lambda match: chr(int(match[1] or match[2], 16)), code)
    return None if any("\ud800" <= char <= "\udfff" for char in plain_text) else plain_text


def _join_spaced_letters(code: str) -> str | None:
    """Spaced letters as words, split at wider gaps, or else into known words."""
    if not code[0].isalpha():
        return None
    words = re.split(r"[ .\-_*·]{2,}", code)
    letters = [re.sub(r"[^\w]|_", "", word) for word in words]
    if len(letters) > 1:
        return " ".join(letters)
    plain_text, rest, at = [], letters[0].lower(), 0
    while at < len(rest):
        size = next((size for size in range(14, 1, -1) if rest[at : at + size] in _KNOWN_WORDS), 1)
        plain_text.append(rest[at : at + size])
        at += size
    return " ".join(plain_text)


_KNOWN_WORDS: Final = frozenset(CONCEPTS_BY_WORD) | frozenset(COMMON_ENGLISH.split())
_DECODERS: Final[tuple[tuple[re.Pattern[str], Callable[[str], str | None], str, str], ...]] = (
    (_SPACED, _join_spaced_letters, "spaced letters", ""),
    (_BASE64, _decode_base64, "base64", ""),
    (_HEX, _decode_hex, "hexadecimal", ""),
    (_ESCAPES, _decode_escapes, "escapes", "\\"),
    (_PERCENT, unquote, "percent encoding", "%"),
    (_ENTITIES, html.unescape, "HTML entities", "&#"),
)
"""Pattern, decoder, description, and a literal that must occur in the text (searched first, because it is cheap)."""
