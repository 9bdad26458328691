"""Determines the file type of a fetched document from its media type and its name."""

import re
from email.message import Message
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from gateway.features.documents.engine.ingest.file_types import MEDIA_TYPES, TYPES
from gateway.features.documents.engine.search.models import FileType

_UNSPECIFIC_TYPES = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/zip",
                    "application/x-download", "application/force-download", "application/msword"})  # fmt: skip
"""Media types that servers send when they do not know; the file name decides then."""
_TEXT_TYPES = frozenset({
    "application/javascript", "application/json", "application/sql", "application/toml", "application/typescript",
    "application/x-httpd-php", "application/x-javascript", "application/x-perl", "application/x-python",
    "application/x-ruby", "application/x-sh", "application/x-yaml", "application/xml", "application/yaml",
})  # fmt: skip
"""Source code and data as text, besides every `text/...`."""
_STRUCTURED = re.compile(r"application/(?:.+\+(?:json|xml|yaml)|(?:x-)?(?:ndjson|jsonl|json-lines))")
"""Data in a format that is text, such as feeds (`application/rss+xml`), and JSON by the line."""


def read_media_type(header: str | None) -> str:
    """The media type of a `content-type` header in lower case, without parameters."""
    return (header or "").split(";")[0].strip().lower()


def read_charset(header: str | None) -> str | None:
    """The charset of a `content-type` header."""
    message = Message()
    message["content-type"] = header or ""
    return message.get_content_charset()


def detect_file_type(content_type: str | None, name: str) -> FileType | None:
    """A document's file type by its `content-type` header and its name or URL; None if no parser reads it."""
    kind = read_media_type(content_type)
    if kind in MEDIA_TYPES:
        return MEDIA_TYPES[kind]
    if kind not in _UNSPECIFIC_TYPES:
        is_text = kind.startswith("text/") or kind in _TEXT_TYPES or _STRUCTURED.fullmatch(kind) is not None
        return "txt" if is_text else None
    return TYPES.get(get_suffix(name)) or ("txt" if kind == "text/plain" else None)


def get_suffix(name: str) -> str:
    """The suffix of a file name or URL path in lower case with its dot; empty if there is none."""
    path = urlsplit(name).path if "://" in name else name
    return PurePosixPath(unquote(path)).suffix.lower()
