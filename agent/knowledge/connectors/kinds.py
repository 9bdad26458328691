"""Which type a fetched document is of, by what its source calls it and by its name."""

from email.message import Message
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from agent.knowledge.local_files import TYPES
from agent.knowledge.models import FileType

_OFFICE = "application/vnd.openxmlformats-officedocument"
MEDIA_TYPES: dict[str, FileType] = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "text/html": "html",
    "application/xhtml+xml": "html",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/markdown": "md",
    "text/x-markdown": "md",
    "message/rfc822": "eml",
}
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/zip",
                    "application/x-download", "application/force-download", "application/msword"})  # fmt: skip
"""What servers say when they do not know: the name knows better."""


def media_type(header: str | None) -> str:
    """The media type of a `content-type` header, in small letters and without its parameters."""
    return (header or "").split(";")[0].strip().lower()


def charset(header: str | None) -> str | None:
    """The charset of a `content-type` header."""
    message = Message()
    message["content-type"] = header or ""
    return message.get_content_charset()


def file_type(content_type: str | None, name: str) -> FileType | None:
    """The type of a document by its `content-type` header and its name or URL; None when nobody here reads it."""
    kind = media_type(content_type)
    if kind in MEDIA_TYPES:
        return MEDIA_TYPES[kind]
    if kind not in _VAGUE:
        return None
    return TYPES.get(suffix(name)) or ("txt" if kind == "text/plain" else None)


def suffix(name: str) -> str:
    """The ending of a file name or of a URL's path, in small letters with its dot; empty for none."""
    path = urlsplit(name).path if "://" in name else name
    return PurePosixPath(unquote(path)).suffix.lower()
