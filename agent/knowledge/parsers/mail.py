"""Mail (RFC 5322): who wrote to whom and when, the subject as heading, the text; attachments by name only."""

from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from agent.knowledge.errors import ParserCorruptError
from agent.knowledge.parsers.draft import Draft
from agent.knowledge.parsers.plain import decode, read_plain
from agent.knowledge.parsers.source import Source
from agent.knowledge.parsers.web import page_draft

_SHOWN = ("From", "To", "Cc", "Date")


def read_mail(source: Source) -> Draft:
    """The plain body where there is one, else the HTML one. Raises `ParserCorruptError` for what has no header."""
    message = BytesParser(policy=policy.default).parsebytes(source.data)
    if not any(message.get(name) for name in (*_SHOWN, "Subject")):
        raise ParserCorruptError(f"{source.name} has no mail header", reason="damaged")
    draft = Draft()
    subject = _header(message, "Subject")
    if subject:
        draft.heading(subject, 1)
        draft.metadata["title"] = subject
    shown = {name: value for name in _SHOWN if (value := _header(message, name))}
    draft.metadata |= {name.lower(): value for name, value in shown.items()}
    draft.text("\n".join(f"{name}: {value}" for name, value in shown.items()))
    _add_body(message, draft)
    _note_attachments(message, draft)
    return draft


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, IndexError, AttributeError):  # the standard library's header parsers on malformed headers
        return ""


def _add_body(message: EmailMessage, draft: Draft) -> None:
    part = message.get_body(("plain", "html"))
    if part is None:
        return
    text, uncertainties = _content(part)
    draft.uncertainties.extend(uncertainties)
    if part.get_content_type() == "text/html":
        page_draft(text, draft)
    else:
        draft.blocks.extend(read_plain(Source(text.encode("utf-8", "replace"), "txt")).blocks)


def _content(part: MIMEPart) -> tuple[str, tuple[str, ...]]:
    """A part's text by its own charset; a charset that is unknown or wrong is guessed."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset("utf-8")
    try:
        return data.decode(charset), ()
    except (LookupError, UnicodeDecodeError):
        decoded = decode(data)
        return decoded.text, (f"the mail's text is not {charset}; read as {decoded.encoding}", *decoded.uncertainties)


def _note_attachments(message: EmailMessage, draft: Draft) -> None:
    names = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    if names:
        draft.metadata["attachments"] = list(names)
        draft.uncertainties.append(f"attachments were not read: {', '.join(names)}")
