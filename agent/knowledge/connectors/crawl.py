"""`Crawl`: one walk over a site, page after page, nearest first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from agent.core.models import JsonObject
from agent.knowledge.connectors.base import NOT_MODIFIED, Download, Reply, Wire
from agent.knowledge.connectors.kinds import charset, file_type, media_type
from agent.knowledge.connectors.page_version import PageVersion
from agent.knowledge.connectors.pages import PageFacts, Wishes, facts_of, wishes_of
from agent.knowledge.connectors.port import Fetched, Missed
from agent.knowledge.connectors.robots import Robots, Turns
from agent.knowledge.connectors.sitemaps import pages_of
from agent.knowledge.connectors.urls import key, normal, root, shown, site
from agent.knowledge.errors import ConnectorError, ConnectorNotFoundError, ConnectorRefusedError, ConnectorTooLargeError
from agent.knowledge.models import ConnectorOutput, FileType


@dataclass(frozen=True, slots=True)
class WebLimits:
    """How far a walk goes. Bytes are those of the bodies; seconds those of the whole walk."""

    depth: int = 3
    """Links away from the start."""
    pages: int = 500
    page_bytes: int = 25_000_000
    total_bytes: int = 500_000_000
    seconds: float = 3600.0
    pause_s: float = 0.5
    """Between two requests to a host, unless its robots.txt asks for more."""
    links: int = 2000
    """Of one page."""


class _SeenError(Exception):
    """A redirect to a page that has, or gets, its own turn."""


class Crawl:
    """The state of one walk. `run` once."""

    def __init__(
        self,
        wire: Wire,
        limits: WebLimits,
        turns: Turns,
        *,
        start: str,
        recursive: bool,
        workspace: Path,
        known: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._wire = wire
        self._limits = limits
        self._turns = turns
        self._robots = Robots(wire)
        self._start = start
        self._recursive = recursive
        self._workspace = workspace
        self._known = known
        self._clock = clock
        self._until = clock() + limits.seconds
        self._waiting: deque[tuple[str, int]] = deque()
        self._seen = {key(start)}
        self._spelling = {key(source): source for source in known if self._is_own(source)}
        self._contents: set[str] = set()
        self._asked = 0
        self._bytes = 0
        self._forbidden: list[str] = []

    async def run(self) -> AsyncIterator[Fetched | Missed]:
        """The start, what it leads to, what the sitemaps name, and at last the known pages nothing leads to any more:
        whether they are gone, only the site can tell. A failure of the start is raised."""
        async for found in self._handed(await self._visit(self._start, 0)):
            yield found
        if not self._recursive:
            return
        await self._take_sitemaps()
        async for found in self._walk():
            yield found
        self._add(sorted(self._spelling.values()), self._limits.depth)
        async for found in self._walk():
            yield found
        for missed in self._left_over():
            yield missed

    async def _walk(self) -> AsyncIterator[Fetched | Missed]:
        while self._waiting and not self._spent:
            url, depth = self._waiting.popleft()
            try:
                found = await self._visit(url, depth)
            except ConnectorError as error:
                if error.details.get("robots") and url not in self._known:
                    self._forbidden.append(url)
                    continue
                found = Missed(url, shown(url), error, gone=isinstance(error, ConnectorNotFoundError))
            async for one in self._handed(found):
                yield one

    async def _handed(self, found: Fetched | Missed | None) -> AsyncIterator[Fetched | Missed]:
        """Yield it, if anything, and remove its file afterwards."""
        if found is None:
            return
        yield found
        if isinstance(found, Fetched) and found.output is not None:
            await asyncio.to_thread(Path(found.output.file_path).unlink, missing_ok=True)

    async def _visit(self, url: str, depth: int) -> Fetched | Missed | None:
        """Ask for a page and note its links. None when it is one that was met already, by address or content."""
        (await self._robots.rules(url)).check(url)
        self._asked += 1

        async def headers(hop: str) -> Mapping[str, str]:
            return await self._before(normal(hop) or hop, url, depth)

        try:
            answer = await self._wire.download(
                url,
                self._workspace / f"page-{self._asked}",
                max_bytes=min(self._limits.page_bytes, max(1, self._limits.total_bytes - self._bytes)),
                headers=headers,
                wanted=lambda where, head: _type(where, head) is not None,
            )
        except _SeenError:
            return None
        final = normal(answer.url) or answer.url
        self._seen.add(key(final))
        if isinstance(answer, Download):
            return await self._arrived(final, depth, answer)
        if answer.status == NOT_MODIFIED:
            return self._unchanged(final, depth, answer)
        return Fetched(final, shown(final), None, None, url=final)

    async def _before(self, hop: str, url: str, depth: int) -> Mapping[str, str]:
        """Called before each request: whether it may be made, when, and under which conditions."""
        if key(hop) != key(url):
            if self._recursive and site(hop) != site(self._start):
                raise ConnectorRefusedError(
                    f"{url} leads to another site, which is not followed: {hop}", url=url, to=hop
                )
            if key(hop) in self._seen:
                raise _SeenError
        rules = await self._robots.rules(hop)
        rules.check(hop)
        await self._turns.wait(site(hop), rules.pause_s)
        version = self._version(hop)
        usable = version is not None and (version.links is not None or not self._follows(depth))
        return version.conditions if version is not None and usable else {}

    async def _arrived(self, final: str, depth: int, answer: Download) -> Fetched | Missed | None:
        self._bytes += answer.size
        kind = _type(final, answer.headers)
        facts = await self._facts(final, kind, answer)
        wishes = facts.wishes & wishes_of(answer.headers)
        twice = answer.checksum in self._contents
        if wishes.keep:
            self._contents.add(answer.checksum)
        if not twice and wishes.follow and self._follows(depth):
            self._add(facts.links, depth + 1)
        if twice or not wishes.keep:
            await asyncio.to_thread(answer.path.unlink)
            return None if twice else self._unkept(final)
        links = facts.links if wishes.follow else ()
        version = PageVersion.of(answer.headers, answer.checksum, links).dumps(final)
        before = self._version(final)
        if before is not None and before.checksum == answer.checksum:
            await asyncio.to_thread(answer.path.unlink)
            return Fetched(final, shown(final), kind, None, version, url=final)
        output = ConnectorOutput(
            file_path=str(answer.path.absolute()),
            file_size_bytes=answer.size,
            source_metadata=_metadata(final, self._start, answer.headers),
            checksum=answer.checksum,
        )
        return Fetched(final, shown(final), kind, output, version, url=final)

    def _unchanged(self, final: str, depth: int, answer: Reply) -> Fetched | Missed:
        version = self._version(final)
        if version is None:
            raise ConnectorError(f"{final} says that it has not changed, but it was never read", url=final)
        wishes = wishes_of(answer.headers)
        self._contents.add(version.checksum)
        if wishes.follow and self._follows(depth):
            self._add(version.links or (), depth + 1)
        if not wishes.keep:
            return self._unkept(final)
        kind = _type(final, answer.headers) or _type(final, httpx.Headers())
        return Fetched(final, shown(final), kind, None, self._known[final], url=final)

    async def _facts(self, final: str, kind: FileType | None, answer: Download) -> PageFacts:
        if kind != "html":
            return PageFacts((), Wishes())
        charset_ = charset(answer.headers.get("content-type"))
        return await asyncio.to_thread(
            lambda: facts_of(answer.path.read_bytes(), final, charset_, most_links=self._limits.links)
        )

    def _unkept(self, final: str) -> Missed:
        """A page that asks not to be kept. In a walk it is gone; alone it is a failure, for nothing else was wanted."""
        error = ConnectorRefusedError(f"{final} asks not to be indexed (noindex)", url=final)
        if not self._recursive:
            raise error
        return Missed(final, shown(final), error, gone=True)

    async def _take_sitemaps(self) -> None:
        if not self._follows(0):
            return
        rules = await self._robots.rules(self._start)
        named = rules.sitemaps or (root(self._start, "/sitemap.xml"),)

        async def headers(hop: str) -> Mapping[str, str]:
            if site(hop) != site(self._start):
                raise ConnectorRefusedError(f"the sitemap leads to another site: {hop}", url=hop)
            rules.check(hop)
            await self._turns.wait(site(hop), rules.pause_s)
            return {}

        most = self._limits.pages
        self._add(await pages_of(self._wire, named, site(self._start), headers, most=most), 1)

    def _add(self, links: Iterable[str], depth: int) -> None:
        for link in links:
            name = key(link)
            if name not in self._seen:
                self._seen.add(name)
                self._waiting.append((self._spelling.get(name, link), depth))

    def _left_over(self) -> Iterable[Missed]:
        """What the walk did not come to, in as few words as possible. Known documents are named each: not gone."""
        left = [url for url, _ in self._waiting]
        for url in left:
            if url in self._known:
                yield Missed(
                    url, shown(url), ConnectorTooLargeError(f"{url} was not asked for: {self._spent}", url=url)
                )
        others = [url for url in left if url not in self._known]
        if others:
            message = f"{len(others)} more addresses were not asked for, the first is {others[0]}: {self._spent}"
            yield Missed(others[0], f"{len(others)} more", ConnectorTooLargeError(message, count=len(others)))
        if self._forbidden:
            file = root(self._start, "/robots.txt")
            count, first = len(self._forbidden), self._forbidden[0]
            message = f"{file} asks robots not to read {count} of the addresses, the first is {first}"
            yield Missed(file, shown(file), ConnectorRefusedError(message, count=count, robots=True))

    @property
    def _spent(self) -> str:
        """Which limit is reached; empty while none is."""
        limits = self._limits
        if self._asked >= limits.pages:
            return f"the limit of {limits.pages} pages is reached"
        if self._bytes >= limits.total_bytes:
            return f"the limit of {limits.total_bytes} bytes is reached"
        if self._clock() >= self._until:
            return f"the limit of {limits.seconds:g} s is reached"
        return ""

    def _follows(self, depth: int) -> bool:
        return self._recursive and depth < self._limits.depth

    def _is_own(self, source: str) -> bool:
        return normal(source) == source and site(source) == site(self._start)

    def _version(self, url: str) -> PageVersion | None:
        return PageVersion.loads(self._known.get(url, ""), url)


def _type(url: str, headers: httpx.Headers) -> FileType | None:
    """A page without any content type is taken for HTML, as browsers do."""
    header = headers.get("content-type")
    return file_type(header, url) or ("html" if not media_type(header) else None)


def _metadata(final: str, start: str, headers: httpx.Headers) -> JsonObject:
    names = ("content-type", "content-language", "last-modified", "etag")
    return {
        "final_url": final,
        "found_from": start,
        "headers": {name: headers[name] for name in names if name in headers},
        "fetched_at": datetime.now(UTC).isoformat(),
    }
