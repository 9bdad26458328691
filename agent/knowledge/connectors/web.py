"""`WebConnector`: a page, or the pages of a site."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from agent.knowledge.connectors.base import Wire
from agent.knowledge.connectors.crawl import Crawl, WebLimits
from agent.knowledge.connectors.port import Fetched, Missed
from agent.knowledge.connectors.robots import Turns
from agent.knowledge.connectors.urls import key, normal, site
from agent.knowledge.errors import ConnectorAuthError, ConnectorNotFoundError
from agent.knowledge.models import ConnectorInput, SourceType


class WebConnector:
    """Public web pages, and what they link to. With `recursive` the walk stays on the host that it begins at, on http
    or https, with or without `www.`; robots.txt, `noindex` and `nofollow` are honoured in either case."""

    source_type: SourceType = "web"

    def __init__(
        self, wire: Wire, limits: WebLimits | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wire = wire
        self._limits = limits or WebLimits()
        self._clock = clock
        self._turns = Turns(self._limits.pause_s, clock, wire.back_off.sleep)

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[Fetched | Missed]:
        """See `Connector.fetch`. A document's source is its address after redirects."""
        if request.credentials_id is not None:
            raise ConnectorAuthError("web pages are read without credentials; leave credentials_id out")
        crawl = Crawl(
            self._wire,
            self._limits,
            self._turns,
            start=_start(request),
            recursive=request.recursive,
            workspace=workspace,
            known=known,
            clock=self._clock,
        )
        async for found in crawl.run():
            yield found

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """See `Connector.covers`. Every known page of a site is asked for, linked or not."""
        start, page = _start(request), normal(source)
        if page is None:
            return False
        return site(page) == site(start) if request.recursive else key(page) == key(start)


def _start(request: ConnectorInput) -> str:
    text = request.source_identifier.strip()
    start = normal(text if "://" in text else f"https://{text}")
    if start is None:
        raise ConnectorNotFoundError(f"{text!r} is no address of a web page; give one like https://example.com/docs/")
    return start
