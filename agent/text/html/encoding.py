"""The encoding of HTML: byte order mark, declared charset under the names that browsers use, else a guess.

Encoding Standard, 4.2: a page that calls itself ISO-8859-1 is read as Windows-1252, and so on.
"""

import codecs
import re
from collections.abc import Iterator

import webencodings  # type: ignore[import-untyped]

from agent.text import iso2022_jp
from agent.text.encodings import Decoded, decode

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?\s*+([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{2,40})["']""")
_HEAD_BYTES = 4096
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WESTERN = frozenset({"iso8859-1", "iso8859-15", "cp1252"})
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    # A `meta` that could be read is no UTF-16.
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
"""What browsers read pages as that declare an encoding, by Python's names; some labels, such as
`latin-1`, only Python knows."""

_UNREAD = frozenset({"replacement", "x-user-defined"})
"""What browsers do not read. Mails may be in such an encoding (ISO-2022-KR, HZ)."""


def decode_page(data: bytes, charset: str | None = None) -> Decoded:
    """Decodes a page: `charset` is what the server or the mail says of it. One that does not fit its bytes is passed
    over."""
    if not data.startswith(_MARKS):
        for name in _iter_declared(data, charset):
            if is_utf8_in_disguise(data, name):
                note = f"the page is not {name.strip().lower()}, as it declares; read as utf-8"
                return Decoded(data.decode(), "utf-8", (note,))
            if (decoded := decode_declared(data, name)) is not None:
                return decoded
    return decode(data)


def is_utf8_in_disguise(data: bytes, charset: str) -> bool:
    """Whether a text that is declared as Western European is UTF-8: by chance its letters beyond ASCII would not be."""
    try:
        if data.isascii() or codecs.lookup(charset.strip()).name not in _WESTERN:
            return False
        data.decode()
    except (LookupError, ValueError):
        return False
    return True


def decode_declared(data: bytes, charset: str) -> Decoded | None:
    """The text in a declared charset as browsers read it; None if it is unknown, or the bytes are not in it."""
    encoding = find_codec(charset)
    if encoding is None:
        return None
    if _is_ascii(charset) and not data.isascii():  # the declaration is wrong whatever the bytes are: more often UTF-8
        return decode_declared(data, "utf-8") or decode_declared(data, "latin-1")
    if encoding == iso2022_jp.NAME:
        text = iso2022_jp.decode_iso2022_jp(data)
        return None if "\ufffd" in text else Decoded(text, encoding)
    try:
        return Decoded(data.decode(encoding), encoding)
    except (LookupError, ValueError):  # LookupError: a codec that is no text encoding
        if encoding != "cp1252":
            return None
        # Five bytes are unassigned in Windows-1252; browsers read them as control characters.
        return Decoded("".join(_decode_byte(byte) for byte in data), encoding)


def find_codec(charset: str) -> str | None:
    """Python's name of the encoding that a label means to browsers and mail programs; None for an unknown label."""
    try:
        standard = webencodings.lookup(charset)
        is_read = standard is not None and standard.name not in _UNREAD
        name = str((standard.codec_info if is_read else codecs.lookup(charset.strip())).name)
    except (LookupError, ValueError):
        return None
    return _SUPERSETS.get(name, name)


def _is_ascii(charset: str) -> bool:
    try:
        return codecs.lookup(charset.strip()).name == "ascii"
    except (LookupError, ValueError):
        return False


def _iter_declared(data: bytes, charset: str | None) -> Iterator[str]:
    if charset:
        yield charset
    for pattern in (_CHARSET, _XML):
        if match := pattern.search(data[:_HEAD_BYTES]):
            yield match[1].decode("ascii")


def _decode_byte(byte: int) -> str:
    return bytes([byte]).decode("cp1252", "ignore") or chr(byte)
