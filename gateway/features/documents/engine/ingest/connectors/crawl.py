"""`Crawl`: one breadth-first walk over a web site."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.connectors.content_types import (
    detect_file_type,
    read_charset,
    read_media_type,
)
from gateway.features.documents.engine.ingest.connectors.page_links import (
    PageInfo,
    RobotsDirectives,
    parse_page,
    read_directives_from_headers,
)
from gateway.features.documents.engine.ingest.connectors.page_version import PageVersion
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.robots import RequestPacer, RobotsCache
from gateway.features.documents.engine.ingest.connectors.sitemaps import list_sitemap_pages
from gateway.features.documents.engine.ingest.connectors.source_client import (
    NOT_MODIFIED,
    Download,
    SourceClient,
    SourceResponse,
)
from gateway.features.documents.engine.ingest.connectors.urls import (
    build_host_url,
    display_url,
    get_site,
    make_url_key,
    normalise_url,
)
from gateway.features.documents.engine.ingest.connectors.web_account import WebAccount
from gateway.features.documents.engine.ingest.errors import (
    ConnectorError,
    ConnectorNotFoundError,
    ConnectorRefusedError,
    ConnectorTooLargeError,
)
from gateway.features.documents.engine.search.models import ConnectorOutput, FileType

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class WebLimits:
    """The limits of a walk. Bytes count response bodies; seconds count the whole walk."""

    depth: int = 3
    """Links away from the start page."""
    pages: int = 500
    page_bytes: int = 25_000_000
    total_bytes: int = 500_000_000
    seconds: float = 3600.0
    pause_s: float = 0.5
    """Seconds between two requests to a host, unless its robots.txt asks for more."""
    links: int = 2000
    """Links followed per page."""


class _AlreadyVisitedError(Exception):
    """Raised for a redirect to a page that is visited separately."""


class Crawl:
    """The state of one walk. Call `run` once."""

    def __init__(
        self,
        client: SourceClient,
        limits: WebLimits,
        pacer: RequestPacer,
        *,
        start: str,
        recursive: bool,
        workspace: Path,
        known: Mapping[str, str],
        clock: Callable[[], float],
        account: WebAccount | None = None,
    ) -> None:
        self._account = account
        self._client = client
        self._limits = limits
        self._pacer = pacer
        self._robots = RobotsCache(client)
        self._start = start
        self._recursive = recursive
        self._workspace = workspace
        self._known = known
        self._clock = clock
        self._deadline = clock() + limits.seconds
        self._waiting: deque[tuple[str, int]] = deque()
        self._seen = {make_url_key(start)}
        self._known_urls = {make_url_key(source): source for source in known if self._is_same_site(source)}
        self._contents: set[str] = set()
        self._request_count = 0
        self._bytes = 0
        self._forbidden: list[str] = []
        self._too_deep: dict[str, str] = {}

    async def run(self) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Yields the start page, linked pages, pages of the sitemaps, and finally known pages that nothing links to
        now.

        Known pages are requested because only the site knows whether they are gone. Raises if the start page fails.
        """
        async for document in self._yield_and_remove(await self._visit(self._start, 0)):
            yield document
        if not self._recursive:
            return
        await self._queue_sitemaps()
        async for document in self._walk():
            yield document
        self._queue(sorted(self._known_urls.values()), self._limits.depth)
        async for document in self._walk():
            yield document
        for missed in self._report_unvisited():
            yield missed

    async def _walk(self) -> AsyncIterator[FetchedDocument | MissedDocument]:
        while self._waiting and not self._limit_reached:
            url, depth = self._waiting.popleft()
            try:
                document = await self._visit(url, depth)
            except ConnectorError as error:
                if error.details.get("robots") and url not in self._known:
                    self._forbidden.append(url)
                    continue
                document = MissedDocument(url, display_url(url), error, gone=isinstance(error, ConnectorNotFoundError))
            async for one in self._yield_and_remove(document):
                yield one

    async def _yield_and_remove(
        self, found: FetchedDocument | MissedDocument | None
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Yields the document, if any, and deletes its file afterwards."""
        if found is None:
            return
        yield found
        if isinstance(found, FetchedDocument) and found.output is not None:
            await asyncio.to_thread(Path(found.output.file_path).unlink, missing_ok=True)

    async def _visit(self, url: str, depth: int) -> FetchedDocument | MissedDocument | None:
        """Requests a page and queues its links. Returns None for a page that was seen before, by address or content."""
        (await self._robots.get_rules(url)).check_allowed(url)
        self._request_count += 1

        async def build_headers(hop: str) -> Mapping[str, str]:
            return await self._prepare_request(normalise_url(hop) or hop, url, depth)

        try:
            answer = await self._client.download(
                url,
                self._workspace / f"page-{self._request_count}",
                max_bytes=min(self._limits.page_bytes, max(1, self._limits.total_bytes - self._bytes)),
                headers=build_headers,
                wanted=lambda where, head: _detect_file_type(where, head) is not None,
            )
        except _AlreadyVisitedError:
            return None
        final = normalise_url(answer.url) or answer.url
        self._seen.add(make_url_key(final))
        if isinstance(answer, Download):
            return await self._on_download(final, depth, answer)
        if answer.status == NOT_MODIFIED:
            return self._on_not_modified(final, depth, answer)
        return FetchedDocument(final, display_url(final), None, None, url=final)

    async def _prepare_request(self, hop: str, url: str, depth: int) -> Mapping[str, str]:
        """Checks, before each request, whether it is allowed; waits for its turn; returns the conditional headers."""
        if make_url_key(hop) != make_url_key(url):
            if self._recursive and get_site(hop) != get_site(self._start):
                raise ConnectorRefusedError(
                    f"{url} leads to another site, which is not followed: {hop}", url=url, to=hop
                )
            if make_url_key(hop) in self._seen:
                raise _AlreadyVisitedError
        rules = await self._robots.get_rules(hop)
        rules.check_allowed(hop)
        await self._pacer.wait(get_site(hop), rules.pause_s)
        version = self._get_version(hop)
        usable = version is not None and (version.links is not None or not self._may_follow(depth))
        conditions = version.request_headers if version is not None and usable else {}
        return {**conditions, **await self._authenticate(hop)}

    async def _authenticate(self, url: str) -> Mapping[str, str]:
        """The credential's headers for a page of the site; no other site gets them."""
        return await self._account.build_headers(url) if self._account is not None else {}

    async def _on_download(self, final: str, depth: int, answer: Download) -> FetchedDocument | MissedDocument | None:
        self._bytes += answer.size
        kind = _detect_file_type(final, answer.headers)
        page = await self._read_page(final, kind, answer)
        directives = page.directives & read_directives_from_headers(answer.headers)
        is_repeated = answer.checksum in self._contents
        if directives.may_index:
            self._contents.add(answer.checksum)
        if not is_repeated and directives.may_follow:
            self._follow(page.links, depth)
        if is_repeated or not directives.may_index:
            await asyncio.to_thread(answer.path.unlink)
            return None if is_repeated else self._handle_noindex(final)
        links = page.links if directives.may_follow else ()
        version = PageVersion.from_headers(answer.headers, answer.checksum, links).dumps(final)
        before = self._get_version(final)
        if before is not None and before.checksum == answer.checksum:
            await asyncio.to_thread(answer.path.unlink)
            return FetchedDocument(final, display_url(final), kind, None, version, url=final)
        output = ConnectorOutput(
            file_path=str(answer.path.absolute()),
            file_size_bytes=answer.size,
            source_metadata=_build_metadata(final, self._start, answer.headers),
            checksum=answer.checksum,
        )
        return FetchedDocument(final, display_url(final), kind, output, version, url=final)

    def _on_not_modified(self, final: str, depth: int, answer: SourceResponse) -> FetchedDocument | MissedDocument:
        version = self._get_version(final)
        if version is None:
            raise ConnectorError(f"{final} says that it has not changed, but it was never read", url=final)
        directives = read_directives_from_headers(answer.headers)
        self._contents.add(version.checksum)
        if directives.may_follow:
            self._follow(version.links or (), depth)
        if not directives.may_index:
            return self._handle_noindex(final)
        kind = _detect_file_type(final, answer.headers) or _detect_file_type(final, {})
        return FetchedDocument(final, display_url(final), kind, None, self._known[final], url=final)

    async def _read_page(self, final: str, kind: FileType | None, answer: Download) -> PageInfo:
        if kind != "html":
            return PageInfo((), RobotsDirectives())
        charset_ = read_charset(answer.headers.get("content-type"))
        return await asyncio.to_thread(
            lambda: parse_page(answer.path.read_bytes(), final, charset_, most_links=self._limits.links)
        )

    def _handle_noindex(self, final: str) -> MissedDocument:
        """Handles a page that asks not to be indexed: gone in a walk, an error if it is the only page requested."""
        error = ConnectorRefusedError(f"{final} asks not to be indexed (noindex)", url=final)
        if not self._recursive:
            raise error
        return MissedDocument(final, display_url(final), error, gone=True)

    async def _queue_sitemaps(self) -> None:
        if not self._may_follow(0):
            return
        rules = await self._robots.get_rules(self._start)
        named = rules.sitemaps or (build_host_url(self._start, "/sitemap.xml"),)

        async def build_headers(hop: str) -> Mapping[str, str]:
            if get_site(hop) != get_site(self._start):
                raise ConnectorRefusedError(f"the sitemap leads to another site: {hop}", url=hop)
            rules.check_allowed(hop)
            await self._pacer.wait(get_site(hop), rules.pause_s)
            return await self._authenticate(hop)

        most = self._limits.pages
        self._queue(await list_sitemap_pages(self._client, named, get_site(self._start), build_headers, most=most), 1)

    def _follow(self, links: Iterable[str], depth: int) -> None:
        """Queues the links of a page, or notes that they lie too deep."""
        if self._may_follow(depth):
            self._queue(links, depth + 1)
        elif self._recursive:
            self._too_deep |= {make_url_key(link): link for link in links}

    def _queue(self, links: Iterable[str], depth: int) -> None:
        for link in links:
            name = make_url_key(link)
            if name not in self._seen:
                self._seen.add(name)
                self._waiting.append((self._known_urls.get(name, link), depth))

    def _report_unvisited(self) -> Iterable[MissedDocument]:
        """Yields what the walk did not reach, summarised. Known documents are reported one by one, so they are not
        removed."""
        left = [url for url, _ in self._waiting]
        for url in left:
            if url in self._known:
                yield MissedDocument(
                    url,
                    display_url(url),
                    ConnectorTooLargeError(f"{url} was not requested: {self._limit_reached}", url=url),
                )
        others = [url for url in left if url not in self._known]
        if others:
            message = (
                f"{len(others)} more addresses were not requested, the first is {others[0]}: {self._limit_reached}"
            )
            yield _report_limit(
                others, f"{message} (max_pages)" if self._request_count >= self._limits.pages else message
            )
        deeper = [url for key, url in self._too_deep.items() if key not in self._seen]
        if deeper:
            yield _report_limit(
                deeper,
                f"{len(deeper)} linked addresses are more than {self._limits.depth} links from the start and were not "
                f"requested, the first is {deeper[0]} (max_depth)",
            )
        if self._forbidden:
            file = build_host_url(self._start, "/robots.txt")
            count, first = len(self._forbidden), self._forbidden[0]
            message = f"{file} asks robots not to read {count} of the addresses, the first is {first}"
            yield MissedDocument(file, display_url(file), ConnectorRefusedError(message, count=count, robots=True))

    @property
    def _limit_reached(self) -> str:
        """The limit that is reached, in words; empty if none is."""
        limits = self._limits
        if self._request_count >= limits.pages:
            return f"the limit of {limits.pages} pages is reached"
        if self._bytes >= limits.total_bytes:
            return f"the limit of {limits.total_bytes} bytes is reached"
        if self._clock() >= self._deadline:
            return f"the limit of {limits.seconds:g} s is reached"
        return ""

    def _may_follow(self, depth: int) -> bool:
        return self._recursive and depth < self._limits.depth

    def _is_same_site(self, source: str) -> bool:
        return normalise_url(source) == source and get_site(source) == get_site(self._start)

    def _get_version(self, url: str) -> PageVersion | None:
        return PageVersion.loads(self._known.get(url, ""), url)


def _detect_file_type(url: str, headers: Mapping[str, str]) -> FileType | None:
    """The file type of a response. Without a content type it is HTML, as in browsers."""
    header = headers.get("content-type")
    return detect_file_type(header, url) or ("html" if not read_media_type(header) else None)


def _report_limit(urls: Sequence[str], message: str) -> MissedDocument:
    """The note that these addresses lie beyond a limit of the walk."""
    error = ConnectorTooLargeError(message, count=len(urls))
    return MissedDocument(urls[0], f"{len(urls)} more", error, is_walk_limit=True)


def _build_metadata(final: str, start: str, headers: "httpx.Headers") -> JsonObject:
    names = ("content-type", "content-language", "last-modified", "etag")
    return {
        "final_url": final,
        "found_from": start,
        "headers": {name: headers[name] for name in names if name in headers},
        "fetched_at": datetime.now(UTC).isoformat(),
    }
