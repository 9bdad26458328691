"""Mails whose first lines programs have damaged, in the form that the parser of the standard library reads; and the
mails of a mailbox."""

import codecs
import re
from email import policy
from email.message import MIMEPart
from email.parser import BytesParser

_HEADER = re.compile(rb"(?:[!-9;-~]+:|From )")
_MAX_JUNK = 20
"""Lines that may stand before the header."""
_BARE_BOUNDARY = re.compile(rb"(;\s*boundary=)([^\"\s;]*[=:?()<>@,/\[\]][^\"\s;]*)", re.IGNORECASE)
"""A boundary with signs that RFC 2045 allows in quotes only."""
_GAP = re.compile(
    rb"(?:\r?\n){2,}(?=content-type:[ \t]*multipart/[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*boundary=)", re.IGNORECASE
)
"""Empty lines within the header, before the field that says that the mail has parts."""
_SEPARATOR = re.compile(
    rb"(?:\A|(?<=\n)\r?\n)From (?=[^\r\n]*\d\d:\d\d)(?=[^\r\n]*\b(?:19|20)\d\d\b)[^\r\n]*+\r?\n(?=[!-9;-~]+:)"
)
"""The line before each mail of a mailbox (RFC 4155): who sent it, and when, with the year."""
_APPLE_SIZE = re.compile(rb"(\d{1,12})[ \t]*\r?\n")
"""The first line of a file of Apple Mail: the mail's bytes, behind which its flags stand as XML."""
_FIELD_OF_MAIL = re.compile(rb"^(?:from|to|cc|bcc|reply-to|date|subject):", re.IGNORECASE | re.MULTILINE)
"""A header has one of these; in the text of a mail, a line such as `From 9:30 on 1 May 2026` has none behind it."""
_HEADER_END = re.compile(rb"\n\r?\n")
_QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.MULTILINE)


def split_mailbox(data: bytes) -> list[bytes]:
    """The mails of a mailbox, and the mail of a file of Apple Mail; other data as it is."""
    if (size := _APPLE_SIZE.match(data)) is not None and data[size.end() + int(size[1]) :].startswith(b"<?xml"):
        return [data[size.end() : size.end() + int(size[1])]]
    data = data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n") if b"From " in data[:100] else data
    lines = _SEPARATOR.finditer(data) if data.startswith(b"From ") else ()
    starts = [one for one in lines if _begins_mail(data, one.end())]
    if len(starts) < 2 or starts[0].start():
        return [data]
    ends = [one.start() for one in starts[1:]] + [len(data)]
    mails = [data[one.end() : end] for one, end in zip(starts, ends, strict=True)]
    return [_QUOTED_SEPARATOR.sub(rb"\1", mail) for mail in mails]


def _begins_mail(data: bytes, start: int) -> bool:
    end = _HEADER_END.search(data, start)
    return _FIELD_OF_MAIL.search(data, start, end.start() + 1 if end is not None else len(data)) is not None


def mend_mail(data: bytes) -> bytes:
    """The mail without what stands before its header, its boundaries in quotes and its header in one piece."""
    mail = _drop_junk(data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n"))
    mail = _BARE_BOUNDARY.sub(rb'\1"\2"', mail)
    end = re.search(rb"(?:\r?\n){2}", mail)
    head = mail[: end.start()].lower() if end is not None else b""
    gap = _GAP.match(mail, end.start()) if end is not None else None
    if gap is None or b"mime-version:" not in head or b"content-type:" in head:
        return mail
    return mail[: gap.start()] + b"\n" + mail[gap.end() :]


def split_preamble(part: MIMEPart) -> tuple[str, list[MIMEPart]]:
    """What stands before the first part, and the parts there whose boundaries are indented: no parser sees these."""
    boundary = part.get_boundary()
    preamble = part.preamble or ""
    if not boundary or boundary not in preamble:
        return preamble, []
    before, *parts = re.split(rf"^[ \t]+--{re.escape(boundary)}[ \t]*\r?\n", preamble, flags=re.MULTILINE)
    parser = BytesParser(policy=policy.default)
    return before, [parser.parsebytes(one.encode("utf-8", "surrogateescape")) for one in parts]


def _drop_junk(mail: bytes) -> bytes:
    """The mail from its first header field on, if that is near."""
    lines = mail.split(b"\n", _MAX_JUNK + 1)
    for place, line in enumerate(lines[: _MAX_JUNK + 1]):
        if not line.strip():
            break
        if _HEADER.match(line):
            return b"\n".join(lines[place:])
    return mail
