"""The text parts of a mail, by a MIME reader of its own (RFC 2045, 2046)."""

import binascii
import quopri
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.features.documents.engine.ingest.coverage.html_source import count_page
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_MAX_DEPTH = 20
_ENCRYPTED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted"})
_FIELD = re.compile(rb"^([!-9;-~]+):[ \t]*(.*(?:\r?\n[ \t].*)*)", re.MULTILINE)
_ENTRY_TEXTS = frozenset({"SUMMARY", "LOCATION", "DESCRIPTION", "COMMENT", "CATEGORIES", "CONTACT", "RESOURCES"})
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


def read_source(data: bytes, _file_type: FileType, _encoding: str) -> SourceText:
    """Counts the words of the text parts that a mail program shows. Of alternatives that say the same, one counts."""
    source = SourceText()
    _count(_split(data), source, 0)
    return source


def _split(data: bytes) -> _Part:
    match = re.search(rb"\r?\n\r?\n", data)
    head = data if match is None else data[: match.start()]
    if data.startswith((b"\n", b"\r\n")):
        head, body = b"", data
    else:
        body = b"" if match is None else data[match.end() :]
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(head):
        fields.setdefault(name.decode("ascii").lower(), re.sub(r"\s*\r?\n\s+", " ", value.decode("latin-1")))
    return _Part(fields, body)


def _count(part: _Part, source: SourceText, depth: int) -> None:
    kind = part.kind
    if depth > _MAX_DEPTH:
        return
    if kind in _ENCRYPTED:
        source.omitted["encrypted part"] += 1
    elif part.is_attached or not kind.startswith(("multipart/", "text/", "message/")):
        source.omitted["attachment"] += 1
    elif kind.startswith("multipart/"):
        _count_parts(part, source, depth)
    elif kind == "message/rfc822":
        _count(_split(part.body), source, depth + 1)
    elif kind.startswith("message/"):
        source.add("delivery report", _decode(part))
    else:
        _add_text(part, source)


def _count_parts(part: _Part, source: SourceText, depth: int) -> None:
    children = list(_iter_parts(part))
    if not children:
        source.add("text of an undivided mail", _decode(part))
    elif part.kind == "multipart/alternative":
        _count_alternatives(children, source, depth)
    else:
        for child in children:
            _count(child, source, depth + 1)


def _count_alternatives(children: list[_Part], source: SourceText, depth: int) -> None:
    """Counts the alternative with the most words, and lines of the others that say something else. A calendar entry
    says something else than they do."""
    counted = [(0, SourceText())]
    for child in children:
        if child.kind == "text/calendar":
            _count(child, source, depth + 1)
            continue
        one = SourceText()
        _count(child, one, depth + 1)
        counted.append((sum(words.total() for words in one.words.values()), one))
    most, best = max(counted, key=lambda pair: pair[0])
    known_words = {word for words in best.words.values() for word in words}
    for total, other in counted:
        for kind, words in other.words.items() if other is not best else ():
            strange = Counter({word: count for word, count in words.items() if word not in known_words})
            if 2 * total < most:
                source.omitted["shorter alternative"] += strange.total()
            elif 2 * strange.total() > words.total():
                best.words.setdefault(f"other {kind}", Counter()).update(strange)
    source.omitted = +source.omitted
    for kind, words in best.words.items():
        source.words.setdefault(kind, words.__class__()).update(words)
    source.omitted.update(best.omitted)


def _iter_parts(part: _Part) -> Iterator[_Part]:
    boundary = part.find("boundary")
    if not boundary:
        return
    line = re.compile(rb"^--" + re.escape(boundary.encode("latin-1")) + rb"(--)?[ \t]*\r?$", re.MULTILINE)
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
    if part.kind == "text/html":
        page = count_page(text)
        for kind, words in page.words.items():
            source.words.setdefault(kind, words.__class__()).update(words)
        source.omitted.update(page.omitted)
    elif part.kind == "text/calendar":
        _add_calendar(text, source)
    else:
        source.add("text", text)


def _add_calendar(text: str, source: SourceText) -> None:
    """Counts what a calendar shows of an entry as words; its times are shown in another form."""
    inside: list[str] = []
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        name, _, value = line.partition(":")
        if name.upper() == "BEGIN":
            inside.append(value.strip().upper())
        elif name.upper() == "END" and inside:
            inside.pop()
        elif "VALARM" not in inside and name.partition(";")[0].upper() in _ENTRY_TEXTS:
            source.add("calendar entry", re.sub(r"\\[nN]", " ", value))


def _decode(part: _Part) -> str:
    body = part.body
    encoding = part.fields.get("content-transfer-encoding", "").strip().lower()
    if encoding == "base64" and not re.search(rb"[^A-Za-z0-9+/=\s]", body):
        try:
            body = b64decode(re.sub(rb"[^A-Za-z0-9+/=]", b"", body) + b"==")
        except binascii.Error:
            body = part.body
    elif encoding == "quoted-printable":
        body = quopri.decodestring(body)
    for name in (part.find("charset"), "utf-8"):
        try:
            return body.decode("cp1252" if name.lower() in {"iso-8859-1", "us-ascii"} else name)
        except (LookupError, ValueError):
            continue
    return body.decode("cp1252", "replace")
