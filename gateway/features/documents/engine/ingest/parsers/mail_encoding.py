"""Encodings of the text of a mail's part: transfer encodings that mailing lists have damaged, header fields
without an encoding, and paragraphs in lines that flow (RFC 3676)."""

import quopri
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from email.message import MIMEPart

from agent.text.html.encoding import decode_declared

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=\s]")
_BASE64_LINE = re.compile(rb"[A-Za-z0-9+/]{4,}={0,2}")
_PADDED_BREAK = re.compile(rb"=[ \t]+(?=\r?\n)")
_NOT_QUOTED_PRINTABLE = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n|\Z)")
_QUOTED_SIGNS = re.compile(rb"=3D|=20(?=\r?$)|(?:=[89A-F][0-9A-F]){2}|=[ \t]*\r?$", re.MULTILINE)
"""Escapes that any longer text has in quoted-printable, and no other text: signs of equality, space at the ends of
lines, letters of UTF-8, lines that go on."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_ENCODED_WORDS = re.compile(
    r"=\?(?P<charset>[\w.:-]+)(?P<language>\*[\w-]+)?\?(?P<coding>[BbQq])\?[^?\s]*\?="
    r"(?:\s+=\?(?P=charset)(?:\*[\w-]+)?\?(?P=coding)\?[^?\s]*\?=)*"
)
"""Encoded words in the same encoding, one behind the other."""
_ENCODED_TEXT = re.compile(r"\?[BbQq]\?([^?\s]*)\?=")
_SIGNATURE = "-- "
_QUOTED = re.compile(r"(?P<marks>>*) ?(?P<text>.*)", re.DOTALL)


def decode_transfer(part: MIMEPart) -> bytes:
    """A part's bytes. A text that only claims to be base64 is taken as it is; of one that a list has added its footer
    to, both are read."""
    text = part.get_payload()
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else b""
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding == "base64":
        return decode_base64(raw)
    if encoding == "quoted-printable":
        return decode_quoted_printable(raw)
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else raw


def decode_base64(raw: bytes) -> bytes:
    """The bytes of a text in base64, also of one that was cut, and the lines around it that are none."""
    if not _NOT_BASE64.search(raw):
        return _decode_whole(raw)
    lines = [line.strip() for line in raw.splitlines()]
    decoded = _decode_whole(b"".join(line for line in lines if _BASE64_LINE.fullmatch(line)))
    if not decoded or _CONTROLS.search(decoded) or not _is_text(decoded):
        return raw
    return b"\n".join([decoded, *(line for line in lines if line and not _BASE64_LINE.fullmatch(line))])


def decode_quoted_printable(raw: bytes) -> bytes:
    """The bytes of a text in quoted-printable, or of one that only claims to be: `x=12` would be a control character,
    and nothing else of it looks encoded.

    Space behind the sign of a soft line break was added on the way."""
    decoded = quopri.decodestring(_PADDED_BREAK.sub(b"=", raw))
    return raw if _CONTROLS.search(decoded) and not _QUOTED_SIGNS.search(raw) else decoded


def decode_message(raw: bytes, encoding: str) -> bytes | None:
    """The bytes of a whole message in a transfer encoding, which RFC 2046 forbids; None for one that is not encoded."""
    if encoding == "base64" and not _NOT_BASE64.search(raw):
        return _decode_whole(raw)
    if encoding == "quoted-printable" and b"=" in raw and not _NOT_QUOTED_PRINTABLE.search(raw):
        return quopri.decodestring(raw)
    return None


def _decode_whole(raw: bytes) -> bytes:
    coded = b"".join(raw.split()).rstrip(b"=")
    if len(coded) % 4 == 1:  # a cut file: one character is no byte
        coded = coded[:-1]
    return b64decode(coded + b"==")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:  # words of a text that only claims to be base64 decode to anything
        return False
    return True


def decode_field(raw: str) -> str:
    """A header field whose bytes say nothing of their encoding: UTF-8, else Windows-1252, as old programs write it."""
    data = raw.encode("utf-8", "surrogateescape")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def recode_words(field: str) -> str:
    """A header field whose encoded words (RFC 2047) are in UTF-8: other encodings than it names are meant by what
    programs call Shift_JIS, GB2312 or ISO-8859-1. Words that follow each other may share a letter."""
    return _ENCODED_WORDS.sub(_recode, field)


def _recode(words: re.Match[str]) -> str:
    charset, language, coding = words["charset"], words["language"] or "", words["coding"].upper()
    data = b"".join(_decode_word(one[1], coding) for one in _ENCODED_TEXT.finditer(words[0]))
    decoded = decode_declared(data, charset)
    if decoded is None:
        return words[0]
    return f"=?utf-8{language}?B?{b64encode(decoded.text.encode('utf-8', 'replace')).decode()}?="


def _decode_word(text: str, coding: str) -> bytes:
    raw = text.encode("ascii", "replace")
    return _decode_whole(raw) if coding == "B" else quopri.decodestring(raw, header=True)


def join_flowed_lines(text: str, *, drops_space: bool) -> str:
    """The paragraphs of a text in `format=flowed`: a line that ends with a space goes on in the next one of the same
    depth of quotation. With `drops_space` (`delsp=yes`) that space does not belong to the text."""
    return "\n".join(_iter_paragraphs(text, drops_space=drops_space))


def _iter_paragraphs(text: str, *, drops_space: bool) -> Iterator[str]:
    marks, pending = "", ""
    is_open = False
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _QUOTED.fullmatch(line)
        assert match is not None
        own_marks, content = match["marks"], match["text"]
        is_signature = _SIGNATURE in (content, line)
        if is_open and (own_marks != marks or is_signature):
            yield _quote(marks, pending)
            is_open, pending = False, ""
        flows = content.endswith(" ") and not is_signature
        pending += content[:-1] if flows and drops_space else content
        marks, is_open = own_marks, flows
        if not flows:
            yield _quote(marks, pending)
            pending = ""
    if is_open:
        yield _quote(marks, pending)


def _quote(marks: str, text: str) -> str:
    return f"{marks} {text}" if marks else text
