"""Parses source names: a path, a URL, or a file or folder of Google Drive."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from agent.core.errors import BadRequestError
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType

DRIVE = "gdrive:"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_DRIVE_HOSTS = ("drive.google.com", "docs.google.com")


def parse_source_address(
    words: str, recursive: bool | None = None, credentials_id: str | None = None
) -> ConnectorInput:
    """Parses a source name. `https://...` is the web, `gdrive:ID` and Drive links are Drive, anything else is a local
    path.

    Folders are read recursively unless `recursive` is False; a web address is one page unless it is True. Raises
    `BadRequestError` for other schemes.
    """
    given = words.strip()
    if given.startswith(DRIVE):
        return _make_source("gdrive", given.removeprefix(DRIVE) or given, recursive is not False, credentials_id)
    if given.lower().startswith(("http://", "https://")):
        if urlsplit(given).hostname in _DRIVE_HOSTS:
            return _make_source("gdrive", given, recursive is not False, credentials_id)
        return _make_source("web", given, recursive is True, credentials_id)
    scheme = _SCHEME.match(given)
    if scheme is not None:
        raise BadRequestError(
            f"addresses that begin with {scheme[0]} are not read; give a path, a web address (https://...), or "
            "gdrive:ID for Google Drive",
            param="source",
        )
    return _make_source("local", str(Path(words).expanduser()), recursive is not False, credentials_id)


def _make_source(kind: SourceType, identifier: str, recursive: bool, credentials_id: str | None) -> ConnectorInput:
    return ConnectorInput(
        source_type=kind, source_identifier=identifier, recursive=recursive, credentials_id=credentials_id
    )
