"""A source that tests make up: what it holds, what it says of it, and where it breaks off."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.errors import AgentError
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput, SourceType

REQUEST = ConnectorInput(source_type="web", source_identifier="https://site.example/", recursive=True)


@dataclass
class Site:
    """A `Connector` over texts by address. A page's version is its number in `versions`; pages in `missing` cannot be
    had; after `breaks_after` pages the walk raises `error`."""

    pages: dict[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, MissedDocument] = field(default_factory=dict)
    breaks_after: int | None = None
    error: AgentError | None = None
    source_type: SourceType = "web"
    known: Mapping[str, str] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    """What the last walk was told, and what it had to hand over."""

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        self.known, self.fetched = dict(known), []
        for number, (source, text) in enumerate(sorted(self.pages.items())):
            if number == self.breaks_after:
                assert self.error is not None
                raise self.error
            if source in self.missing:
                yield self.missing[source]
                continue
            yield self._page(source, text, workspace, known)

    def covers(self, request: ConnectorInput, source: str) -> bool:
        return source.startswith(request.source_identifier)

    def _page(self, source: str, text: str, workspace: Path, known: Mapping[str, str]) -> FetchedDocument:
        name = source.rsplit("/", 1)[-1]
        kind = TYPES.get(Path(name).suffix)
        version = self.versions.get(source, "")
        if version and known.get(source) == version:
            return FetchedDocument(source, name, kind, None, version, source)
        self.fetched.append(source)
        path = workspace / f"page{Path(name).suffix}"  # one place for all: each is gone when the next one comes
        path.write_text(text)
        checksum = hashlib.sha256(text.encode()).hexdigest()
        output = ConnectorOutput(
            file_path=str(path), file_size_bytes=len(text.encode()), source_metadata={}, checksum=checksum
        )
        return FetchedDocument(source, name, kind, output, version, source, len(self.pages))


def page(name: str) -> str:
    """The address of a page of the site."""
    return f"https://site.example/{name}"
