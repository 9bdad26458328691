"""`PageVersion`: what is stored about a page to avoid downloading it again while it is unchanged."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gateway.features.documents.engine.ingest.connectors.urls import build_host_url, normalise_url

if TYPE_CHECKING:
    import httpx

_MAX_LINK_CHARS = 16_000
"""Characters of stored links. A page with more links is downloaded each time, which is cheaper."""


@dataclass(frozen=True, slots=True)
class PageVersion:
    """The validators of a page (RFC 9110, 8.8), its SHA-256, and its links.

    A "not modified" response carries no links, and the walk must continue from them. `links` is None if there are too
    many to store.
    """

    checksum: str
    etag: str = ""
    modified: str = ""
    links: tuple[str, ...] | None = ()

    @classmethod
    def from_headers(cls, headers: "httpx.Headers", checksum: str, links: tuple[str, ...]) -> Self:
        """The version of a page that was just read."""
        kept_links = links if sum(map(len, links)) <= _MAX_LINK_CHARS else None
        return cls(checksum, headers.get("etag", "").strip(), headers.get("last-modified", "").strip(), kept_links)

    @property
    def request_headers(self) -> dict[str, str]:
        """The headers of a conditional request for the page."""
        headers = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in headers.items() if value}

    def dumps(self, url: str) -> str:
        """The text stored in `FetchedDocument.version`."""
        here = build_host_url(url, "")
        links = None if self.links is None else [link.removeprefix(here) for link in self.links]
        return json.dumps({"sha256": self.checksum, "etag": self.etag, "modified": self.modified, "links": links})

    @classmethod
    def loads(cls, text: str, url: str) -> Self | None:
        """Parses a stored version, or returns None."""
        try:
            data = json.loads(text)
            links = data["links"]
            kept_links = (
                None if links is None else tuple(address for one in links if (address := normalise_url(one, url)))
            )
            return cls(str(data["sha256"]), str(data["etag"]), str(data["modified"]), kept_links)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
