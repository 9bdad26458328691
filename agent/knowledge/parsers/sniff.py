"""Look before parsing: does the file hold what its type says? Every refusal here costs microseconds, and no parser
ever sees the bytes."""

import codecs
import re
import unicodedata

from agent.knowledge.errors import ParserCorruptError, ParserEmptyError, ParserEncryptedError, ParserUnsupportedError
from agent.knowledge.models import FileType
from agent.knowledge.parsers.archive import check_archive
from agent.knowledge.parsers.source import Source

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""[MS-CFB] 2.2: the container of the old Office formats, and of every password-protected new one ([MS-OFFCRYPTO])."""

_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OFFICE: dict[FileType, str] = {"docx": "word/", "pptx": "ppt/", "xlsx": "xl/"}
_WIDE_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, *_WIDE_32)
_HEAD = 8192
_ODD_SHARE = 0.02
"""Of what is looked at. Random bytes hold 10 % of control characters; a terminal's log, whose colours begin with
escapes, holds none that counts."""
_CONTROLS = frozenset(map(chr, {*range(32)} - set(b"\t\n\v\f\r\b\x1b")))
_CONTROL_BYTES = "".join(sorted(_CONTROLS)).encode()
_NO_CHARACTER = frozenset({"Cn", "Co", "Cs"})
"""Unassigned, private, half a pair; `\ufffd` of an undecodable one is none of them and is counted by the parser."""
_HTML = re.compile(rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"{\\rtf", "an RTF document"),
)


def check_source(source: Source) -> None:
    """Raises the narrowest `ParserError` when the bytes are empty, encrypted, unsafe, or no file of this type."""
    if not source.data.strip(b"\x00 \t\r\n"):
        raise ParserEmptyError(f"{source.name or 'the file'} is empty", reason="empty")
    if source.file_type in _OFFICE:
        _check_office(source)
    elif source.file_type == "pdf":
        if b"%PDF-" not in source.data[:1024]:  # PDF 1.7, appendix H.3.4.1: within the first 1,024 bytes
            raise _other(source)
    else:
        _check_text(source)


def found(data: bytes) -> str:
    """What the bytes look like, in words: a file type of ours where it is one."""
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    if data.startswith(_ZIP):
        return next((kind for kind, folder in _OFFICE.items() if folder.encode() in data), "a zip archive")
    if data.startswith(_OLE):
        return "an old or encrypted Office document"
    if _HTML.search(data[:2048]):
        return "html"
    return "binary data" if _is_binary(data) else "text"


def _check_office(source: Source) -> None:
    if source.data.startswith(_OLE):
        if _ENCRYPTED_STREAM in source.data:
            raise ParserEncryptedError(f"{source.name} is protected by a password")
        raise _other(source)
    if not source.data.startswith(_ZIP):
        raise _other(source)
    names = check_archive(source.data, source.name)
    if not any(name.startswith(_OFFICE[source.file_type]) for name in names):
        kind = next((kind for kind, folder in _OFFICE.items() if any(n.startswith(folder) for n in names)), None)
        if kind is None and "[Content_Types].xml" in names:
            raise ParserCorruptError(f"{source.name} lacks the parts of a {source.file_type}", reason="damaged")
        raise _other(source, kind or "a zip archive")


def _check_text(source: Source) -> None:
    """Text has no magic number; what can be told is that it is something else."""
    looks_like = found(source.data)
    if looks_like in {"text", "html"} or (looks_like == "a program" and not _is_binary(source.data)):
        return
    raise _other(source, looks_like)


def _is_binary(data: bytes) -> bool:
    """A NUL byte outside UTF-16 and UTF-32; those come with a byte order mark, or with a NUL in every other byte. Or
    more control characters than any text has, and behind such a mark what is no character at all."""
    head = data[:_HEAD]
    if head.startswith(_WIDE):
        width = "utf-32" if head.startswith(_WIDE_32) else "utf-16"
        text = head[: len(head) // 4 * 4].decode(width, "replace")
        odd = sum(unicodedata.category(letter) in _NO_CHARACTER or letter in _CONTROLS for letter in text)
        # A pair of UTF-16 may be cut at the end of what is looked at.
        return odd > max(1, _ODD_SHARE * len(text))
    if b"\x00" in head and not head.startswith(codecs.BOM_UTF8):
        halves = (head[0::2].count(0), head[1::2].count(0))
        return max(halves) < 0.3 * (len(head) / 2) or min(halves) > 0.05 * len(head)
    return len(head) - len(head.translate(None, _CONTROL_BYTES)) > _ODD_SHARE * len(head)


def _other(source: Source, looks_like: str | None = None) -> ParserUnsupportedError:
    kind = looks_like or found(source.data)
    return ParserUnsupportedError(
        f"{source.name or 'the file'} was given as {source.file_type} and looks like {kind}",
        expected=source.file_type,
        found=kind,
    )
