"""A crawl of a test's website: what it found, kept by source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.net import SafeClient
from agent.knowledge.connectors.base import BackOff, Wire
from agent.knowledge.connectors.crawl import WebLimits
from agent.knowledge.connectors.port import Fetched, Missed
from agent.knowledge.connectors.web import WebConnector
from agent.knowledge.models import ConnectorInput
from tests.support.website import FakeClock, Website


@dataclass(slots=True)
class Found:
    """The yield of one walk. `bodies` has each file's bytes, by source."""

    fetched: list[Fetched] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
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

    def one(self) -> Fetched:
        """The only one."""
        assert not self.missed, self.missed
        [one] = self.fetched
        return one


class Crawler:
    """Walks a site with a clock that does not wait."""

    def __init__(self, site: Website, client: SafeClient, workspace: Path, limits: WebLimits | None = None) -> None:
        self.site = site
        self.clock = FakeClock()
        wire = Wire(client, BackOff(attempts=3, sleep=self.clock.sleep), timeout_s=10, silence_s=5)
        self.connector = WebConnector(wire, limits, clock=self.clock)
        self.workspace = workspace

    async def walk(self, start: str = "/", known: Mapping[str, str] | None = None, *, recursive: bool = True) -> Found:
        """Walk from a path of the site, or from an address."""
        url = self.site.at(start) if start.startswith("/") else start
        request = ConnectorInput(source_type="web", source_identifier=url, recursive=recursive)
        found = Found()
        async for one in self.connector.fetch(request, self.workspace, known or {}):
            if isinstance(one, Missed):
                found.missed.append(one)
                continue
            found.fetched.append(one)
            if one.output is not None:
                found.bodies[one.source] = Path(one.output.file_path).read_bytes()  # noqa: ASYNC240 - a test's file
        return found

    def left(self) -> list[str]:
        """The files that the walk left in its workspace."""
        return sorted(path.name for path in self.workspace.iterdir())
