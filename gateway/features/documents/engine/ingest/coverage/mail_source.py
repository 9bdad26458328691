"""The text parts of a mail, by a MIME reader of its own (RFC 2045, 2046)."""

import binascii
import contextlib
import quopri
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.features.documents.engine.ingest.coverage.charsets import decode_text
from gateway.features.documents.engine.ingest.coverage.html_source import count_page
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText, split_words
from gateway.features.documents.engine.search.models import FileType

_MAX_DEPTH = 20
_ENCRYPTED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted"})
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_FIELD = re.compile(rb"^([!-9;-~]+):[ \t]*(.*(?:\r?\n[ \t].*)*)", re.MULTILINE)
_FORWARDED = frozenset({"message/rfc822", "message/global", "message/news", "message/partial"})
_ANSWERS = frozenset({"CANCEL", "REPLY", "COUNTER", "DECLINECOUNTER", "REFRESH", "ADD"})
"""The methods of a calendar that do not invite to its entries."""
_ENTRY_TEXTS = frozenset({"SUMMARY", "LOCATION", "DESCRIPTION", "COMMENT", "CATEGORIES", "CONTACT", "RESOURCES"})
_ENTRY_PAGES = frozenset({"X-ALT-DESC", "STYLED-DESCRIPTION"})
_BASE64_LINE = rb"[A-Za-z0-9+/]{4,}={0,2}"
_WHITE_SPACE = frozenset({b"09", b"0A", b"0D", b"0a", b"0d"})
_MAIL = {"content-type": "message/rfc822"}
"""What a part of a digest is that does not say what it is."""
_SPACES = re.compile(r"\s+")
_ADDRESS = re.compile(r"[A-Za-z]{2,8}://\S+")
_PARAMETER = re.compile(r""";\s*([\w*-]+)\s*=\s*("[^"]*"|[^;\s]+)""")


class _Part(NamedTuple):
    fields: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        return self.fields.get("content-type", "text/plain").partition(";")[0].strip().lower() or "text/plain"

    @property
    def is_attached(self) -> bool:
        disposition = self.fields.get("content-disposition", "")
        return disposition.strip().lower().startswith("attachment")

    def find(self, name: str) -> str:
        """A parameter of the content type."""
        for key, value in _PARAMETER.findall(self.fields.get("content-type", "")):
            if key.lower() == name:
                return str(value).strip('"')
        return ""


def read_source(data: bytes, _file_type: FileType, _encoding: str, _deadline: float) -> SourceText:
    """Counts the words of the text parts that a mail program shows. Of alternatives that say the same, one counts."""
    source = SourceText()
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    for mail in _list_mails(data):
        _count_mail(mail, source)
    return source


def _list_mails(data: bytes) -> list[bytes]:
    """The mails of a mailbox, each behind a line that names its sender and its time."""
    first, _, rest = data.partition(b"\n")
    if (
        len(first) < 20 and first.strip().isdigit() and rest[int(first) :].lstrip().startswith(b"<?xml")
    ):  # Apple Mail: flags are behind it
        return [rest[: int(first)]]
    if not data.startswith(b"From "):
        return [data]
    lines = data.splitlines(keepends=True)
    mails: list[list[bytes]] = []
    for place, line in enumerate(lines):
        is_after_gap = not place or not lines[place - 1].strip()
        if is_after_gap and _names_sender_and_time(line) and _is_header(lines, place + 1):
            mails.append([])
        elif mails:
            mails[-1].append(line.removeprefix(b">") if re.match(rb">+From ", line) else line)
    return [b"".join(one) for one in mails] if len(mails) > 1 else [data]


def _names_sender_and_time(line: bytes) -> bool:
    words = line.split()
    return line.startswith(b"From ") and b":" in line and any(word.isdigit() and len(word) == 4 for word in words)


def _is_header(lines: Sequence[bytes], start: int) -> bool:
    """Whether a field of a mail stands before the next empty line; the first line is a field."""
    if start >= len(lines) or not re.match(rb"[!-9;-~]+:", lines[start]):
        return False
    for line in lines[start:]:
        if not line.strip():
            return False
        if line.partition(b":")[0].lower() in {b"from", b"to", b"cc", b"bcc", b"reply-to", b"date", b"subject"}:
            return True
    return False


def _count_mail(data: bytes, source: SourceText) -> None:
    # The field that names the parts may stand apart from the header.
    head, gap, rest = (
        re.split(rb"(\r?\n\r?\n)", data, maxsplit=1) if b"\n\n" in data or b"\r\n\r\n" in data else (data, b"", b"")
    )
    is_apart = b"mime-version" in head.lower() and b"content-type" not in head.lower()
    if is_apart and re.match(rb"\s*content-type:\s*multipart/", rest, re.IGNORECASE):
        gap, rest = b"\n", rest.lstrip()
    _count(_split(head + gap + rest), source, 0)


def _split(data: bytes) -> _Part:
    match = re.search(rb"\r?\n\r?\n", data)
    head = data if match is None else data[: match.start()]
    if data.startswith((b"\n", b"\r\n")):
        head, body = b"", data
    else:
        body = b"" if match is None else data[match.end() :]
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(head):
        fields.setdefault(name.decode("ascii").lower(), _SPACES.sub(_unfold, value.decode("latin-1")))
    return _Part(fields, body)


def _unfold(spaces: re.Match[str]) -> str:
    """One space in place of the break of a folded line and all spaces around it; other spaces stay."""
    return " " if "\n" in spaces[0][:-1] else spaces[0]


def _count(part: _Part, source: SourceText, depth: int) -> None:
    kind = part.kind
    if depth > _MAX_DEPTH:
        return
    if kind in {"text/css", "text/javascript"} and "content-location" in part.fields:
        source.omit("code of a page", _decode(part))
    elif kind in _ENCRYPTED:
        source.omitted["encrypted part"] += 1
    elif (
        kind == "text/rtf"
        or (part.is_attached and kind not in _FORWARDED)
        or not (kind in _PAGES or kind.startswith(("multipart/", "text/", "message/")))
    ):
        source.omitted["attachment"] += 1
    elif kind.startswith("multipart/"):
        _count_parts(part, source, depth)
    elif kind == "message/external-body":
        source.omitted["attachment"] += 1
    elif kind in _FORWARDED:
        is_coded = not re.search(rb"=(?![0-9A-F]{2}|[ \t]*\r?\n|\Z)", part.body, re.IGNORECASE)
        body = _decode_transfer(part) if is_coded or "base64" in str(part.fields) else part.body
        _count(_split(body.lstrip(b"\r\n")), source, depth + 1)
    elif kind.startswith("message/"):
        inner = _split(_decode_transfer(part).lstrip(b"\r\n"))
        if "content-type" in inner.fields:
            source.add("report", "\n".join(inner.fields.values()))
            _count(inner, source, depth + 1)
        else:
            source.add("report", _decode(part))
    else:
        _add_text(part, source)


def _count_parts(part: _Part, source: SourceText, depth: int) -> None:
    children = list(_iter_parts(part))
    if part.kind == "multipart/digest":
        children = [
            one if "content-type" in one.fields else one._replace(fields={**one.fields, **_MAIL}) for one in children
        ]
    if not children:
        source.add("text of an undivided mail", _decode(part))
    elif part.kind == "multipart/alternative":
        _count_alternatives(children, source, depth)
    else:
        for child in children:
            _count(child, source, depth + 1)


def _count_alternatives(children: list[_Part], source: SourceText, depth: int) -> None:
    """Counts the last alternative, which mail programs show, unless it is a mere footer, and the others where they say
    something else. A calendar entry says something else than they do."""
    counted = [(0, SourceText())]
    children = [one for one in children if one.kind != "text/x-amp-html"] or children
    for child in children:
        if child.kind == "text/calendar":
            _count(child, source, depth + 1)
            continue
        one = SourceText()
        _count(child, one, depth + 1)
        counted.append((sum(words.total() for kind, words in one.words.items() if kind != "address"), one))
    longest = max(total for total, _ in counted)
    most, best = next(pair for pair in reversed(counted) if 2 * pair[0] >= longest)
    known_words = {word for words in best.words.values() for word in words}
    for total, other in counted:
        for kind, words in other.words.items() if other is not best else ():
            strange = Counter({word: count for word, count in words.items() if word not in known_words})
            if kind == "address":  # a page has it behind a link
                continue
            if kind == "line of an address" and not 2 * strange.total() > words.total():
                strange = Counter({word: count for word, count in strange.items() if not word.isalpha()})
            if 2 * total < most:
                source.omitted["shorter alternative"] += strange.total()
            elif 2 * strange.total() > words.total():
                best.words.setdefault(f"other {kind}", Counter()).update(strange)
            else:
                source.optional.setdefault("other words of an alternative", Counter()).update(strange)
    source.omitted = +source.omitted
    for kind, words in best.words.items():
        source.words.setdefault(kind, words.__class__()).update(words)
    source.omitted.update(best.omitted)


def _iter_parts(part: _Part) -> Iterator[_Part]:
    boundary = part.find("boundary")
    if not boundary:
        return
    line = re.compile(rb"^[ \t]*--" + re.escape(boundary.encode("latin-1")) + rb"(--)?[ \t]*\r?$", re.MULTILINE)
    start = None
    for match in line.finditer(part.body):
        if start is not None:
            yield _split(part.body[start : match.start()])
        if match[1]:
            return
        start = match.end() + 1
    if start is not None:
        yield _split(part.body[start:])


def _add_text(part: _Part, source: SourceText) -> None:
    text = _decode(part)
    if part.kind in _PAGES:
        page = count_page(text)
        for kind, words in page.words.items():
            source.words.setdefault(kind, words.__class__()).update(words)
        source.omitted.update(page.omitted)
    elif part.kind == "text/calendar":
        _add_calendar(text, source)
    elif part.kind in {"text/enriched", "text/richtext"}:
        source.add("text", re.sub(r"<<|<[^>]*>", " ", text))
    else:
        is_card = part.kind in {"text/vcard", "text/x-vcard", "text/directory"}
        for line in _iter_properties(text) if is_card else text.splitlines():
            source.add("line of an address" if _ADDRESS.search(line) else "text", _ADDRESS.sub(" ", line))
        source.add("address", " ".join(_ADDRESS.findall(text)))


def _add_calendar(text: str, source: SourceText) -> None:
    """Counts what a calendar shows of an entry as words; its times are shown in another form. A description in HTML
    counts where it says something else than the entry."""
    inside: list[str] = []
    pages: list[Counter[str]] = []
    known_words: set[str] = set()
    for line in _iter_properties(text):
        name, _, value = line.partition(":")
        if name.upper() == "METHOD" and value.strip().upper() in _ANSWERS:
            source.add("calendar entry", value)
        elif match := re.search(r";PARTSTAT=([\w-]+)", name, re.IGNORECASE):
            source.add("calendar entry", match[1].upper().replace("NEEDS-ACTION", ""))
        elif name.upper() == "BEGIN":
            inside.append(value.strip().upper())
        elif name.upper() == "END" and inside:
            if inside.pop() != "VALARM":
                _add_pages(pages, known_words, source)
                pages, known_words = [], set()
        elif "VALARM" not in inside:
            kind, text = name.partition(";")[0].upper(), re.sub(r"\\[nN]", " ", value)
            if kind in _ENTRY_PAGES:
                pages += count_page(text).words.values()
            elif kind in _ENTRY_TEXTS:
                source.add("calendar entry", text)
                known_words.update(split_words(text))


def _add_pages(pages: Sequence[Counter[str]], known_words: Container[str], source: SourceText) -> None:
    for words in pages:
        strange = Counter({word: count for word, count in words.items() if word not in known_words})
        if 2 * strange.total() > words.total():
            source.words.setdefault("calendar entry", Counter()).update(words)
        elif strange:
            source.optional.setdefault("other words of an alternative", Counter()).update(strange)


def _iter_properties(text: str) -> Iterator[str]:
    """Yields the lines of a calendar, unfolded; those in quoted-printable go on behind a sign of equality."""
    coded: list[str] = []
    for line in re.split("\r\n?|\n", re.sub(r"\r?\n[ \t]", "", text)):
        if coded or "QUOTED-PRINTABLE" in line.partition(":")[0].upper():
            coded.append(line.removesuffix("="))
            if line.endswith("="):
                continue
            yield quopri.decodestring("".join(coded).encode()).decode("utf-8", "replace")
            coded = []
        else:
            yield line
    if coded:
        yield "".join(coded)


def _decode(part: _Part) -> str:
    body = _decode_transfer(part)
    charset = part.find("charset")
    is_western = charset.lower() in {"us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252", "latin1"}
    for name in ("utf-8", charset, "cp1252") if is_western else (charset, "utf-8"):
        try:
            text = decode_text(body, name)
        except (LookupError, ValueError):
            continue
        # Words go on over the ends of lines where the space there is no part of the text (RFC 3676).
        return re.sub(r" \r?\n(?:> ?)*", "", text) if part.find("delsp").lower() == "yes" else text
    return body.decode("cp1252", "replace")


def _decode_transfer(part: _Part) -> bytes:
    encoding = part.fields.get("content-transfer-encoding", "").strip().lower()
    if encoding == "quoted-printable":
        escapes = re.findall(rb"=([0-9A-Fa-f]{2}|[ \t]*\r?\n)", part.body)
        controls = sum(int(one, 16) < ord(" ") for one in escapes if one.strip() and one not in _WHITE_SPACE)
        is_wide = part.find("charset").lower().startswith(("utf-16", "utf-32"))
        if 2 * controls >= max(len(escapes), 1) and not is_wide:  # a text that only claims to be encoded
            return part.body
        return quopri.decodestring(re.sub(rb"=[ \t]+(?=\r?\n)", b"=", part.body))
    if encoding in {"x-uuencode", "uuencode", "x-uue", "uue"}:
        return _decode_lines(part.body)
    if encoding != "base64":
        return part.body
    is_damaged = re.search(rb"[^A-Za-z0-9+/=\s]", part.body) is not None
    lines = [line.strip() for line in part.body.splitlines()] if is_damaged else part.body.split()
    coded = b"".join(line for line in lines if re.fullmatch(_BASE64_LINE, line))
    coded = coded.rstrip(b"=")
    decoded = b64decode(coded[: len(coded) - (len(coded) % 4 == 1)] + b"==")
    if is_damaged:
        try:
            decoded.decode()
        except ValueError:
            return part.body
        if not decoded:
            return part.body
        rest = [line for line in lines if not re.fullmatch(_BASE64_LINE, line)]
        return b"\n".join([decoded, *rest])
    return decoded


def _decode_lines(body: bytes) -> bytes:
    """The bytes of a uuencoded text."""
    parts = []
    for line in body.splitlines():
        if not line.startswith((b"begin ", b"end")):
            with contextlib.suppress(binascii.Error):
                parts.append(binascii.a2b_uu(line))
    return b"".join(parts)
