"""Mail (RFC 5322): header, subject as heading, and every text part that a mail program shows; attachments by name.

A file may hold several (RFC 4155).
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from agent.core.models import JsonObject
from agent.text.encodings import Decoded, decode
from agent.text.html.encoding import decode_declared, is_utf8_in_disguise
from gateway.features.documents.engine.ingest.errors import ParserCorruptError
from gateway.features.documents.engine.ingest.parsers.calendar import iter_entries
from gateway.features.documents.engine.ingest.parsers.draft import Block, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.mail_encoding import (
    decode_field,
    decode_message,
    decode_transfer,
    join_flowed_lines,
    recode_words,
)
from gateway.features.documents.engine.ingest.parsers.mail_mending import mend_mail, split_mailbox, split_preamble
from gateway.features.documents.engine.ingest.parsers.mail_signed import find_signed_content
from gateway.features.documents.engine.ingest.parsers.plain import read_plain
from gateway.features.documents.engine.ingest.parsers.web import parse_page

_SHOWN = ("From", "Reply-To", "To", "Cc", "Bcc", "Date")
_MAX_DEPTH = 20
_ENCRYPTED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted"})
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_COPIES = frozenset({"text/x-amp-html"})
"""Alternatives for single programs, which say what the others say."""
_CARDS = frozenset({"text/vcard", "text/x-vcard", "text/directory"})
"""Cards of people, whose fields may be folded and in quoted-printable."""
_PAGE_CODE = frozenset({"text/css", "text/javascript"})
"""What a saved page needs and does not show."""
_OTHER_FORMATS = frozenset({"text/rtf"})
"""Texts that are written in a format of their own: they are files, like attachments."""
_FORWARDED = frozenset({"message/rfc822", "message/global", "message/news", "message/partial"})
"""Other messages are reports: of a delivery, of spam."""
_MAX_LISTED_WORDS = 10
_MARKUP = re.compile(r"<<|<[^>]*>")
_MIME = re.compile(r"MIME|(?i:\bmulti-?part\b)")
_UNCHANGED = policy.default.clone(refold_source="none")
"""For the bytes of a message as they came."""
_LINE_ENDS = re.compile(r"[\r\n]+")
_WORD = re.compile(r"[^\W_]+")


def read_mail(source: InputFile) -> Draft:
    """Reads a mail, or each mail of a mailbox.

    Raises `ParserCorruptError` if there is no mail header. A page that Word has saved has one without a sender.
    """
    mails = split_mailbox(source.data)
    drafts = [_read_one(mail, source.name) for mail in mails]
    if len(drafts) == 1:
        return drafts[0]
    lists = [draft.metadata.get("attachments") for draft in drafts]
    attachments = [name for names in lists if isinstance(names, list) for name in names]
    metadata: JsonObject = {"mails": len(drafts)} | ({"attachments": attachments} if attachments else {})
    return Draft(
        blocks=[block for draft in drafts for block in draft.blocks],
        metadata=metadata,
        uncertainties=[
            f"mail {number}: {note}" for number, draft in enumerate(drafts, 1) for note in draft.uncertainties
        ],
    )


def _read_one(data: bytes, name: str) -> Draft:
    message = BytesParser(policy=policy.default).parsebytes(mend_mail(data))
    if not any(message.get(field) for field in (*_SHOWN, "Subject")) and not message.is_multipart():
        raise ParserCorruptError(f"{name} has no mail header", reason="damaged")
    draft = Draft()
    subject = _get_header(message, "Subject")
    if subject:
        draft.add_heading(subject, 1)
        draft.metadata["title"] = subject
    headers = _list_headers(message)
    draft.metadata |= {field.lower(): value for field, value in headers.items()}
    draft.add_text("\n".join(f"{field}: {value}" for field, value in headers.items()))
    body = _Body()
    body.read(message)
    draft.blocks += body.blocks
    if body.attachments:
        draft.metadata["attachments"] = list(body.attachments)
        counts = Counter(body.attachments).items()
        listed = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in counts)
        body.uncertainties.append(f"attachments were not read: {listed}")
    draft.uncertainties += body.uncertainties
    return draft


def _get_header(message: MIMEPart, name: str) -> str:
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:
        field = recode_words(decode_field(_LINE_ENDS.sub("", str(raw))))
        return " ".join(str(policy.default.header_factory(name, field)).split())
    except (ValueError, IndexError, AttributeError):  # the standard library's header parsers on malformed headers
        return ""


def _list_headers(message: MIMEPart) -> dict[str, str]:
    return {name: value for name in _SHOWN if (value := _get_header(message, name))}


@dataclass
class _Body:
    """The parts of a mail that are shown, in their order."""

    blocks: list[Block] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    """Those of the attachments that a page shows within it."""
    uncertainties: list[str] = field(default_factory=list)

    def read(self, part: MIMEPart, depth: int = 0) -> None:
        """Adds a part and those in it."""
        kind = part.get_content_type()
        if depth > _MAX_DEPTH:
            self.uncertainties.append(f"parts nested more than {_MAX_DEPTH} deep were not read")
        elif kind in _ENCRYPTED:
            self._read_sealed(part, depth)
        elif kind in _FORWARDED and part.is_multipart():  # also as an attachment: mail programs open it as a mail
            self._read_forwarded(part, depth)
        elif part.get_content_disposition() == "attachment" or kind in _OTHER_FORMATS:
            self.attachments.append(_get_name(part))
        elif part.get_content_maintype() == "message" and kind != "message/external-body" and part.is_multipart():
            self._read_report(part, depth)
        elif part.get_content_maintype() == "multipart" and part.is_multipart():
            self._read_parts(part, kind, depth)
        elif part.get_content_maintype() == "multipart":
            self.uncertainties.append("the mail names parts and has no boundary between them; it was read as one text")
            self._add_plain(_decode_content(part))
        elif part.get_content_maintype() == "text" or kind in _PAGES:
            self._add_text(part, kind)
        else:
            self.attachments.append(_get_name(part))
            if part.get_content_maintype() == "image" and part.get("Content-ID"):
                self.pictures.append(_get_name(part))

    def _read_parts(self, part: MIMEPart, kind: str, depth: int) -> None:
        preamble, parts = split_preamble(part)
        parts += part.iter_parts()
        notes = (_select_foreign(preamble), "before the first"), (part.epilogue or "", "behind the last")
        for text, place in notes:
            if words := len(_list_words(text)):
                self.uncertainties.append(
                    f"text {place} part was left out, which no mail program shows ({words} words)"
                )
        if kind != "multipart/alternative":
            for one in parts:
                self.read(one, depth + 1)
            return
        # An invitation says more than its text: it is no alternative.
        parts = [one for one in parts if one.get_content_type() not in _COPIES] or parts
        calendars = [one for one in parts if one.get_content_type() == "text/calendar"]
        read = [self._read_alone(one, depth) for one in parts if one not in calendars]
        if read:
            # The alternatives should say the same. Where one is empty or only a footer, the other has the text. Mail
            # programs show the last one, with its figures and tables.
            longest, last = max(read, key=lambda body: body.count_words()), read[-1]
            is_text = 2 * last.count_words() >= longest.count_words()
            best = last if is_text and last.has_own_values(longest) else longest
            self._take(best)
            self._add_differences([one for one in read if one is not best])
        for one in calendars:
            self.read(one, depth + 1)

    def _read_alone(self, part: MIMEPart, depth: int) -> "_Body":
        body = _Body()
        body.read(part, depth + 1)
        return body

    def _take(self, body: "_Body") -> None:
        self.blocks += body.blocks
        self.attachments += body.attachments
        self.pictures += body.pictures
        self.uncertainties += body.uncertainties

    def _add_differences(self, others: Iterable["_Body"]) -> None:
        """Adds the paragraphs of other alternatives whose words are mostly nowhere in what was taken.

        Those of an alternative that is much shorter are a footer, or a note that there is another one: they are
        reported.
        """
        known_words = {word for block in self.blocks for word in _list_words(block.text)}
        count = self.count_words()
        for other in others:
            known_files = {*self.attachments, *other.pictures}
            self.attachments += [name for name in other.attachments if name not in known_files]
            strange = [block for block in other.blocks if _is_strange(_list_words(block.text), known_words)]
            if 2 * other.count_words() >= count:
                self.blocks += strange
                added = {word for block in strange for word in _list_words(block.text)}
                self._note_words(other, known_words | added)
            elif strange:
                words = sum(len(_list_words(block.text)) for block in strange)
                self.uncertainties.append(f"a shorter alternative of the text was left out ({words} words)")

    def _note_words(self, other: "_Body", read_words: Container[str]) -> None:
        """Reports words of an alternative within paragraphs that otherwise say the same. Of lines with an address only
        numbers: a plain text leads to it in words of its own, where a page has a link."""
        lines = [line for block in other.blocks for line in block.text.splitlines()]
        every = (word for line in lines for word in _list_words(line) if "://" not in line or not word.isalpha())
        words = list(dict.fromkeys(word for word in every if word not in read_words))
        if words:
            more = f" and {len(words) - _MAX_LISTED_WORDS} more" if len(words) > _MAX_LISTED_WORDS else ""
            listed = ", ".join(words[:_MAX_LISTED_WORDS])
            self.uncertainties.append(
                f"an alternative of the text has other words, which were left out: {listed}{more}"
            )

    def count_words(self) -> int:
        """The number of words without addresses: a plain text spells out what a page puts behind its links."""
        return sum(len(_list_words(block.text)) for block in self.blocks)

    def has_own_values(self, other: "_Body") -> bool:
        """Whether its figures are not those of another alternative, or are in a table."""
        mine, theirs = (
            Counter(word for block in body.blocks for word in _list_words(block.text) if any(map(str.isdigit, word)))
            for body in (self, other)
        )
        return mine != theirs or (bool(mine) and any(block.layout == "table" for block in self.blocks))

    def _read_sealed(self, part: MIMEPart, depth: int) -> None:
        """Adds a message that is signed as a whole; an encrypted one is reported."""
        content = None if part.is_multipart() else find_signed_content(decode_transfer(part))
        if content is None:
            self.uncertainties.append(f"an encrypted or signed part was not read: {_get_name(part)}")
        else:
            self.read(BytesParser(policy=policy.default).parsebytes(content), depth + 1)

    def _read_report(self, part: MIMEPart, depth: int) -> None:
        """Adds what a program says about a mail: blocks of fields, and any text or parts behind them."""
        for block in part.iter_parts():
            fields = "\n".join(f"{name}: {value}" for name, value in block.items())
            text = block.get_payload()
            has_content = block.is_multipart() or "Content-Type" in block
            texts = (fields,) if has_content else (fields, text)
            self.blocks += [Block(one) for one in texts if isinstance(one, str) and one.strip()]
            if has_content:
                self.read(block, depth + 1)

    def _read_forwarded(self, part: MIMEPart, depth: int) -> None:
        for one in part.iter_parts():
            message = _decode_message(part, one)
            if isinstance(message, EmailMessage):
                head = [_get_header(message, "Subject"), *(f"{k}: {v}" for k, v in _list_headers(message).items())]
                self.blocks.append(Block("\n".join(["Forwarded message", *filter(None, head)])))
                self.read(message, depth + 1)

    def _add_text(self, part: MIMEPart, kind: str) -> None:
        if kind in _PAGE_CODE and part.get("Content-Location"):
            return
        decoded = _decode_content(part)
        if kind in _PAGES:
            self.uncertainties += decoded.uncertainties
            draft = parse_page(decoded.text, Draft())
            self.blocks += draft.blocks
            self.uncertainties += draft.uncertainties
        elif kind == "text/calendar":
            entries = list(iter_entries(decoded.text))
            self.blocks += [Block(entry) for entry in entries]
            if not entries:
                self._add_plain(decoded)
        elif kind in {"text/enriched", "text/richtext"}:
            text = _MARKUP.sub(lambda found: "<" if found[0] == "<<" else "", decoded.text)
            self._add_plain(decoded._replace(text=text))
        elif str(part.get_param("format", "")).lower() == "flowed":
            drops_space = str(part.get_param("delsp", "")).lower() == "yes"
            self._add_plain(decoded._replace(text=join_flowed_lines(decoded.text, drops_space=drops_space)))
        else:
            self._add_plain(decoded, is_file=kind in _CARDS)

    def _add_plain(self, decoded: Decoded, *, is_file: bool = False) -> None:
        self.uncertainties += decoded.uncertainties
        self.blocks += read_plain(InputFile(decoded.text.encode("utf-8", "replace"), "txt"), is_file=is_file).blocks


def _decode_message(part: MIMEPart, message: object) -> object:
    """A forwarded message. Some programs encode it, which RFC 2046 forbids: then it was taken for one without a
    header."""
    encoding = _get_header(part, "Content-Transfer-Encoding").lower()
    if encoding not in {"base64", "quoted-printable"} or not isinstance(message, EmailMessage):
        return message
    decoded = decode_message(message.as_bytes(policy=_UNCHANGED).lstrip(), encoding)
    return message if decoded is None else BytesParser(policy=policy.default).parsebytes(decoded)


def _decode_content(part: MIMEPart) -> Decoded:
    """A part's text in its own charset; an unknown or wrong charset is guessed."""
    payload = decode_transfer(part)
    charset = part.get_content_charset("utf-8")
    if is_utf8_in_disguise(payload, charset):
        return Decoded(payload.decode(), "utf-8", (f"the mail's text is not {charset}; read as utf-8",))
    if (declared := decode_declared(payload, charset)) is not None:
        return declared
    decoded = decode(payload)
    if decoded.encoding == charset:
        return decoded
    note = f"the mail's text is not {charset}; read as {decoded.encoding}"
    return decoded._replace(uncertainties=(note, *decoded.uncertainties))


def _select_foreign(preamble: str) -> str:
    """The paragraphs of a preamble but the note for programs without MIME (RFC 2046, section 5.1.1), which names it, or
    the parts."""
    return "\n\n".join(one for one in preamble.replace("\r\n", "\n").split("\n\n") if not _MIME.search(one))


def _is_strange(words: Sequence[str], known: Container[str]) -> bool:
    return 2 * sum(word not in known for word in words) > len(words)


def _list_words(text: str) -> list[str]:
    """The words of a text but for its addresses."""
    if "@" in text or "://" in text:
        text = " ".join(one for one in text.split() if "@" not in one and "://" not in one)
    return _WORD.findall(text.casefold())


def _get_name(part: MIMEPart) -> str:
    return part.get_filename() or part.get_content_type()
