"""Parses ids and link addresses of Google Drive."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from gateway.features.documents.engine.ingest.errors import ConnectorNotFoundError

PREFIX = "gdrive:"
HOSTS = frozenset({"drive.google.com", "docs.google.com"})
_ID = re.compile(r"[A-Za-z0-9_-]{10,200}")
"""Google documents no format. Known ids have 19 to 44 of these characters, and none needs escaping."""
_KEY = re.compile(r"[A-Za-z0-9_-]{1,200}")
_IN_PATH = re.compile(r"/(?:d|folders)/([^/]+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """A file or folder. Some links carry a resource key, which readers of link-shared files need."""

    id: str
    resource_key: str = ""


def is_id(text: object) -> bool:
    """Whether the value can be a Drive id."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def parse(identifier: str) -> Reference:
    """Parses an id, `gdrive:<id>` or a link address. Raises `ConnectorNotFoundError` for anything else."""
    text = identifier.strip()
    if is_id(text.removeprefix(PREFIX)):
        return Reference(text.removeprefix(PREFIX))
    try:
        url = urlsplit(text)
        address = _find_in_url(url.hostname or "", url.path, parse_qs(url.query)) if url.scheme == "https" else None
    except ValueError:
        address = None
    if address is None:
        raise ConnectorNotFoundError(
            f"{identifier!r} is not in Google Drive: give the id of a file or folder, or its link"
        )
    return address


def _find_in_url(host: str, path: str, query: dict[str, list[str]]) -> Reference | None:
    if host not in HOSTS:
        return None
    # Addresses of published pages (/d/e/...) bear no id of the file.
    in_path = _IN_PATH.search(path)
    named = in_path[1] if in_path else query.get("id", [""])[0]
    key = query.get("resourcekey", [""])[0]
    return Reference(named, key if _KEY.fullmatch(key) else "") if is_id(named) else None
