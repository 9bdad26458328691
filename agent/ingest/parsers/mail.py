"""Mail (RFC 5322): header, subject as heading, and text; attachments by name only."""

from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser

from agent.ingest.errors import ParserCorruptError
from agent.ingest.parsers.draft import Draft
from agent.ingest.parsers.file_input import InputFile
from agent.ingest.parsers.plain import decode, read_plain
from agent.ingest.parsers.web import parse_page

_SHOWN = ("From", "To", "Cc", "Date")


def read_mail(source: InputFile) -> Draft:
    """Reads the plain body if there is one, else the HTML body. Raises `ParserCorruptError` without a mail header."""
    message = BytesParser(policy=policy.default).parsebytes(source.data)
    if not any(message.get(name) for name in (*_SHOWN, "Subject")):
        raise ParserCorruptError(f"{source.name} has no mail header", reason="damaged")
    draft = Draft()
    subject = _get_header(message, "Subject")
    if subject:
        draft.add_heading(subject, 1)
        draft.metadata["title"] = subject
    shown = {name: value for name in _SHOWN if (value := _get_header(message, name))}
    draft.metadata |= {name.lower(): value for name, value in shown.items()}
    draft.add_text("\n".join(f"{name}: {value}" for name, value in shown.items()))
    _add_body(message, draft)
    _note_attachments(message, draft)
    return draft


def _get_header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, IndexError, AttributeError):  # the standard library's header parsers on malformed headers
        return ""


def _add_body(message: EmailMessage, draft: Draft) -> None:
    part = message.get_body(("plain", "html"))
    if part is None:
        return
    text, uncertainties = _decode_content(part)
    draft.uncertainties.extend(uncertainties)
    if part.get_content_type() == "text/html":
        parse_page(text, draft)
    else:
        draft.blocks.extend(read_plain(InputFile(text.encode("utf-8", "replace"), "txt")).blocks)


def _decode_content(part: MIMEPart) -> tuple[str, tuple[str, ...]]:
    """Returns a part's text in its own charset; an unknown or wrong charset is guessed."""
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
