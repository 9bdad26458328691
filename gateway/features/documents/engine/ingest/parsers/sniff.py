"""Checks that a file's bytes match its declared type before a parser sees them."""

import codecs
import re
import unicodedata
from pathlib import PurePath

from gateway.features.documents.engine.ingest.errors import (
    ParserCorruptError,
    ParserEmptyError,
    ParserEncryptedError,
    ParserUnsupportedError,
)
from gateway.features.documents.engine.ingest.file_types import BUILT_IN_TYPES, TYPES
from gateway.features.documents.engine.ingest.parsers.archive import check_archive
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.search.models import FileType

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""[MS-CFB] 2.2: the container of old Office formats and of password-protected new ones ([MS-OFFCRYPTO])."""

_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_OUTLOOK_STREAM = "__properties_version1.0".encode("utf-16-le")
"""[MS-OXMSG] 2.4: the stream that every message of Outlook has."""
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OFFICE: dict[FileType, str] = {"docx": "word/", "pptx": "ppt/", "xlsx": "xl/"}
_WIDE_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, *_WIDE_32)
_NAMED_ZIP = re.compile(rb"PK\x03\x04.{26}mimetype(application/(?:epub|vnd\.oasis\.opendocument))", re.DOTALL)
"""Archives whose first entry says what they are (ISO 26300-3, EPUB OCF)."""
_ARCHIVE = "a zip archive"
_HEAD = 8192
_ODD_SHARE = 0.02
"""Share of control characters in the sample. Random bytes have 10 %; terminal logs, whose colours start with escapes,
have none that count."""
_CONTROLS = frozenset(map(chr, {*range(32)} - set(b"\t\n\v\f\r\b\x1b")))
_CONTROL_BYTES = "".join(sorted(_CONTROLS)).encode()
_NO_CHARACTER = frozenset({"Cn", "Co", "Cs"})
"""Unassigned, private and surrogate. `\\ufffd` is none of them and is counted by the parser."""
_SWITCHED = re.compile(rb"\x1b\$\)|\x1b\(I")
"""What announces a set of characters that SO and SI switch to and from (ISO 2022), as Korean mails do."""
_SWITCHES = b"\x0e\x0f"
_HTML = re.compile(rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_MAIL = re.compile(
    rb"(?:[!-9;-~]+:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)*?content-type:[ \t]*multipart/"
    rb"(?!form-data|byteranges|x-mixed-replace)",
    re.IGNORECASE,
)
"""The header of a message in parts: of a mail, and of a page that was saved with its pictures (MHTML). Programs
send others by HTTP."""
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript file"),
    (b"\x78\x9f\x3e\x22", "an attachment that only Outlook reads (winmail.dat)"),
)
_PICTURE_ADVICE = "pictures are read as pages of a PDF"
_ARCHIVE_ADVICE = "unpack it and send its files"
_ADVICE = {
    "an OpenDocument file": "save it as Word, Excel, PowerPoint or PDF",
    "an iWork document": "export it as Word, Excel, PowerPoint or PDF",
    "an RTF document": "save it as Word or PDF",
    "an e-book": "save it as PDF or HTML",
    "a PostScript file": "save it as PDF",
    "an Outlook message": "save it as .eml",
    "an attachment that only Outlook reads (winmail.dat)": "ask its sender for the mail as HTML or plain text",
    "an old or encrypted Office document": "save it as .docx, .xlsx or .pptx without a password",
    "a PNG image": _PICTURE_ADVICE,
    "a JPEG image": _PICTURE_ADVICE,
    "a GIF image": _PICTURE_ADVICE,
    "a TIFF image": _PICTURE_ADVICE,
    "a gzip archive": _ARCHIVE_ADVICE,
    "a RAR archive": _ARCHIVE_ADVICE,
    "a 7z archive": _ARCHIVE_ADVICE,
    "a zip archive": _ARCHIVE_ADVICE,
}
"""What makes a file readable that no parser reads."""
_ANY_ADVICE = "send text, PDF, HTML, Office files, CSV or mail"


def check_input_file(source: InputFile) -> None:
    """Raises the narrowest `ParserError` if the bytes are empty, encrypted, unsafe, or no file of this type."""
    if not source.data.strip(b"\x00 \t\r\n"):
        raise ParserEmptyError(f"{source.name or 'the file'} is empty", reason="empty")
    if source.file_type in _OFFICE:
        _check_office(source)
    elif source.file_type == "pdf":
        if b"%PDF-" not in source.data[:1024]:  # PDF 1.7, appendix H.3.4.1: within the first 1,024 bytes
            raise _make_mismatch_error(source)
    elif source.file_type in BUILT_IN_TYPES:
        _check_text(source)


def detect_kind(data: bytes) -> str:
    """The kind of file that the bytes look like: one of our file types, or a description."""
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    if data.startswith(_ZIP):
        return next((kind for kind, folder in _OFFICE.items() if folder.encode() in data), _name_archive(data))
    if data.startswith(_OLE):
        return "an Outlook message" if _OUTLOOK_STREAM in data else "an old or encrypted Office document"
    if _MAIL.match(data[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()):
        return "eml"
    if _HTML.search(data[:2048]):
        return "html"
    return "binary data" if _is_binary(data) else "text"


def _check_office(source: InputFile) -> None:
    if source.data.startswith(_OLE):
        if _ENCRYPTED_STREAM in source.data:
            raise ParserEncryptedError(f"{source.name} is protected by a password")
        raise _make_mismatch_error(source)
    if not source.data.startswith(_ZIP):
        raise _make_mismatch_error(source)
    names = check_archive(source.data, source.name)
    if not any(name.startswith(_OFFICE[source.file_type]) for name in names):
        kind = next((kind for kind, folder in _OFFICE.items() if any(n.startswith(folder) for n in names)), None)
        if kind is None and "[Content_Types].xml" in names:
            raise ParserCorruptError(f"{source.name} lacks the parts of a {source.file_type}", reason="damaged")
        raise _make_mismatch_error(source, kind or _name_archive(source.data))


def _name_archive(data: bytes) -> str:
    match = _NAMED_ZIP.match(data)
    if match is None:
        return "an iWork document" if b"Index/Document.iwa" in data else _ARCHIVE
    return "an e-book" if b"epub" in match[1] else "an OpenDocument file"


def _check_text(source: InputFile) -> None:
    """Text has no magic number; it is rejected if it is recognised as something else."""
    looks_like = detect_kind(source.data)
    if looks_like in {"text", "html", "eml"} or (looks_like == "a program" and not _is_binary(source.data)):
        return
    raise _make_mismatch_error(source, looks_like)


def _is_binary(data: bytes) -> bool:
    """Whether the bytes are not text: NUL bytes outside UTF-16 and UTF-32, or too many control characters.

    UTF-16 and UTF-32 are recognised by their byte order mark or by a NUL in every other byte.
    """
    head = data[:_HEAD]
    if _SWITCHED.search(head):
        head = head.translate(None, _SWITCHES)
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


def _make_mismatch_error(source: InputFile, looks_like: str | None = None) -> ParserUnsupportedError:
    kind = looks_like or detect_kind(source.data)
    name = source.name or "the file"
    is_named = TYPES.get(PurePath(name).suffix.lower()) == source.file_type
    message = f"{name} was given as {source.file_type} and looks like {kind}" if is_named else f"{name} is {kind}"
    is_readable = kind == "text" or kind in BUILT_IN_TYPES
    own_type = kind.replace("text", "txt")
    mend = f"rename it to end in .{own_type}" if is_named else f"give {own_type} as its type"
    advice = mend if is_readable else _ADVICE.get(kind, _ANY_ADVICE)
    message += f"; {advice}" if is_readable else f", which is not read; {advice}"
    return ParserUnsupportedError(message, expected=source.file_type, found=kind)
