"""`PageVersion`: what is kept of a page, so that it need not be sent again while it stays the same."""

import json
from dataclasses import dataclass
from typing import Self

import httpx

from agent.knowledge.connectors.urls import normal, root

_LONGEST = 16_000
"""Of the links as text. A page with more is asked for anew each time, which costs less than keeping them."""


@dataclass(frozen=True, slots=True)
class PageVersion:
    """The validators of a page (RFC 9110, 8.8), the SHA-256 of its bytes, and its links: an answer that says "not
    modified" has none, and a walk must go on from there. `links` is None where they are too many to be kept."""

    checksum: str
    etag: str = ""
    modified: str = ""
    links: tuple[str, ...] | None = ()

    @classmethod
    def of(cls, headers: httpx.Headers, checksum: str, links: tuple[str, ...]) -> Self:
        """The version of a page that has just been read."""
        kept = links if sum(map(len, links)) <= _LONGEST else None
        return cls(checksum, headers.get("etag", "").strip(), headers.get("last-modified", "").strip(), kept)

    @property
    def conditions(self) -> dict[str, str]:
        """The headers that ask for the page only if it is another one."""
        asked = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in asked.items() if value}

    def dumps(self, url: str) -> str:
        """As the text that travels in `Fetched.version`."""
        here = root(url, "")
        links = None if self.links is None else [link.removeprefix(here) for link in self.links]
        return json.dumps({"sha256": self.checksum, "etag": self.etag, "modified": self.modified, "links": links})

    @classmethod
    def loads(cls, text: str, url: str) -> Self | None:
        """Read it back; None for what is none."""
        try:
            data = json.loads(text)
            links = data["links"]
            kept = None if links is None else tuple(found for one in links if (found := normal(one, url)))
            return cls(str(data["sha256"]), str(data["etag"]), str(data["modified"]), kept)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
