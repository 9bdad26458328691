"""`WebConnector`: a web page, or the pages of a site."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from agent.storage.credentials import CredentialError, Credentials, WebCredential
from gateway.features.documents.engine.ingest.connectors.crawl import Crawl, WebLimits
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.robots import RequestPacer
from gateway.features.documents.engine.ingest.connectors.source_client import SourceClient
from gateway.features.documents.engine.ingest.connectors.urls import get_site, make_url_key, normalise_url, read_start
from gateway.features.documents.engine.ingest.connectors.web_account import WebAccount
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType


class WebConnector:
    """Fetches web pages, and with `recursive` the pages of the same host that they link to.

    http and https, with and without `www.`, are one host. robots.txt, `noindex` and `nofollow` are always respected.
    """

    source_type: SourceType = "web"

    def __init__(
        self,
        client: SourceClient,
        limits: WebLimits | None = None,
        *,
        credentials: Credentials | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._credentials = credentials
        self._limits = limits or WebLimits()
        self._clock = clock
        self._pacer = RequestPacer(self._limits.pause_s, clock, client.back_off.sleep)

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Implements `Connector.fetch`. A document's source is its address after redirects."""
        start, limits = _start(request), self._limits
        limits = replace(
            limits,
            depth=limits.depth if request.max_depth is None else request.max_depth,
            pages=request.max_pages or limits.pages,
        )
        crawl = Crawl(
            self._client,
            limits,
            self._pacer,
            start=start,
            recursive=request.recursive,
            workspace=workspace,
            known=known,
            clock=self._clock,
            account=await self._open_account(request.credentials_id, start),
        )
        async for document in crawl.run():
            yield document

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Implements `Connector.covers`. Every known page of a site is requested, whether linked or not."""
        start, page = _start(request), normalise_url(source)
        if page is None:
            return False
        return get_site(page) == get_site(start) if request.recursive else make_url_key(page) == make_url_key(start)

    async def _open_account(self, name: str | None, start: str) -> WebAccount | None:
        """The named credential in use. Raises `ConnectorAuthError` if it does not exist or does not fit."""
        if name is None:
            return None
        if self._credentials is None:
            raise ConnectorAuthError(f"no credentials are stored here, so there is no credential {name!r}")
        try:
            credential = await asyncio.to_thread(self._credentials.get_for, name, start)
        except CredentialError as error:
            raise ConnectorAuthError(error.message) from error
        if not isinstance(credential, WebCredential):
            kinds = "header, basic, bearer or oauth_client"
            raise ConnectorAuthError(f"the credential {name!r} is not for web sources; they take {kinds}")
        return WebAccount(name, credential, start, self._client, clock=self._clock)


def _start(request: ConnectorInput) -> str:
    start = read_start(request.source_identifier)
    if start is None:
        raise ConnectorNotFoundError(
            f"{request.source_identifier.strip()!r} is not the address of a web page; give one like https://example.com/docs/"
        )
    return start
