"""A crawl of a test's website: what it found, kept by source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.net import SafeClient
from agent.storage.credentials import Credentials
from gateway.features.documents.engine.ingest.connectors.crawl import WebLimits
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.source_client import RetryPolicy, SourceClient
from gateway.features.documents.engine.ingest.connectors.web import WebConnector
from gateway.features.documents.engine.search.models import ConnectorInput
from tests.support.website import FakeClock, Website


@dataclass(slots=True)
class CrawlResult:
    """The yield of one walk. `bodies` has each file's bytes, by source."""

    fetched: list[FetchedDocument] = field(default_factory=list)
    missed: list[MissedDocument] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of what was had, without the host."""
        return [one.name.partition("/")[2] for one in self.fetched]

    @property
    def new(self) -> list[str]:
        """Those of them that are new or changed."""
        return [one.name.partition("/")[2] for one in self.fetched if one.output is not None]

    @property
    def known(self) -> dict[str, str]:
        """What the next walk is told."""
        return {one.source: one.version for one in self.fetched if one.file_type is not None}

    def one(self) -> FetchedDocument:
        """The only one."""
        assert not self.missed, self.missed
        [one] = self.fetched
        return one


class Crawler:
    """Walks a site with a clock that does not wait."""

    def __init__(
        self,
        site: Website,
        client: SafeClient,
        workspace: Path,
        limits: WebLimits | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.site = site
        self.clock = FakeClock()
        source_client = SourceClient(client, RetryPolicy(attempts=3, sleep=self.clock.sleep), timeout_s=10, silence_s=5)
        self.connector = WebConnector(source_client, limits, credentials=credentials, clock=self.clock)
        self.workspace = workspace

    async def walk(
        self, start: str = "/", known: Mapping[str, str] | None = None, *, recursive: bool = True, **settings: Any
    ) -> CrawlResult:
        """Walk from a path of the site, or from an address; `settings` are those of the source."""
        url = self.site.at(start) if start.startswith("/") else start
        request = ConnectorInput(source_type="web", source_identifier=url, recursive=recursive, **settings)
        found = CrawlResult()
        async for one in self.connector.fetch(request, self.workspace, known or {}):
            if isinstance(one, MissedDocument):
                found.missed.append(one)
                continue
            found.fetched.append(one)
            if one.output is not None:
                found.bodies[one.source] = Path(one.output.file_path).read_bytes()  # noqa: ASYNC240 - a test's file
        return found

    def left(self) -> list[str]:
        """The files that the walk left in its workspace."""
        return sorted(path.name for path in self.workspace.iterdir())
