"""robots.txt (RFC 9309): the rules of each host, and `RequestPacer`, which keeps the requested pace."""

from collections.abc import Callable
from dataclasses import dataclass

from protego import Protego

from gateway.features.documents.engine.ingest.connectors.page_links import ROBOT_NAME
from gateway.features.documents.engine.ingest.connectors.source_client import (
    ConnectorTransientError,
    Sleep,
    SourceClient,
)
from gateway.features.documents.engine.ingest.connectors.urls import build_host_url, normalise_url
from gateway.features.documents.engine.ingest.errors import ConnectorError, ConnectorRefusedError

MAX_BYTES = 512_000
"""Bytes that are read. RFC 9309, 2.5 requires at least 500 KiB."""
MAX_PAUSE_S = 30.0
"""Seconds. A host that asks for longer pauses is not crawled."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """The rules of one host."""

    url: str
    rules: Protego
    reachable: bool = True

    def allow(self, url: str) -> bool:
        """Whether this address may be requested."""
        return self.reachable and self.rules.can_fetch(url, ROBOT_NAME)

    @property
    def pause_s(self) -> float:
        """The requested seconds between two requests."""
        rate = self.rules.request_rate(ROBOT_NAME)
        each = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
        return max(self.rules.crawl_delay(ROBOT_NAME) or 0.0, each)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The addresses of the host's sitemaps."""
        return tuple(url for one in self.rules.sitemaps if (url := normalise_url(one, self.url)))

    def check_allowed(self, url: str) -> None:
        """Raises `ConnectorRefusedError` if this address may not be requested."""
        if not self.reachable:
            raise ConnectorTransientError(f"{self.url} cannot be read at the moment, so nothing may be fetched there")
        if not self.rules.can_fetch(url, ROBOT_NAME):
            raise ConnectorRefusedError(f"{self.url} asks robots not to read {url}", url=url, robots=True)
        if self.pause_s > MAX_PAUSE_S:
            raise ConnectorRefusedError(
                f"{self.url} asks for {self.pause_s:g} s between requests, and the limit is {MAX_PAUSE_S:g} s: "
                "ask the site's owner for another way to the documents",
                url=url,
                robots=True,
            )


class RobotsCache:
    """The rules of the hosts that were visited; each robots.txt is read once."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client
        self._known: dict[str, HostRules] = {}

    async def get_rules(self, url: str) -> HostRules:
        """The rules of the host of `url`."""
        where = build_host_url(url, "/robots.txt")
        if where not in self._known:
            self._known[where] = await self._read(where)
        return self._known[where]

    async def _read(self, where: str) -> HostRules:
        """Reads a robots.txt. RFC 9309, 2.3.1: a missing or refused file forbids nothing, an unreachable host
        everything."""
        try:
            reply = await self._client.read(where, max_bytes=MAX_BYTES, cut=True)
        except ConnectorTransientError:
            return HostRules(where, Protego.parse(""), reachable=False)
        except ConnectorError:
            return HostRules(where, Protego.parse(""))
        return HostRules(where, Protego.parse(reply.body.decode("utf-8-sig", "replace")))


class RequestPacer:
    """Keeps a pause between two requests to a host, across all walks."""

    def __init__(self, pause_s: float, clock: Callable[[], float], sleep: Sleep) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def wait(self, host: str, asked_s: float) -> None:
        """Waits for the next turn. The turn after it comes `asked_s` seconds later, or after the default pause if
        longer."""
        now = self._clock()
        turn = max(now, self._next.get(host, now))
        self._next[host] = turn + max(asked_s, self._pause_s)
        if turn > now:
            await self._sleep(turn - now)
