"""`Robots`: what a host asks of us in its robots.txt (RFC 9309), and `Turns`, which keeps to its pace."""

from collections.abc import Callable
from dataclasses import dataclass

from protego import Protego

from agent.knowledge.connectors.base import ConnectorPassingError, Sleep, Wire
from agent.knowledge.connectors.pages import AGENT
from agent.knowledge.connectors.urls import normal, root
from agent.knowledge.errors import ConnectorError, ConnectorRefusedError

MOST_BYTES = 512_000
"""RFC 9309, 2.5: at least 500 KiB are to be read."""
LONGEST_PAUSE_S = 30.0
"""A host that asks for longer pauses is not crawled: that is no crawl any more, and not what is waited for."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one host."""

    url: str
    rules: Protego
    reachable: bool = True

    def allow(self, url: str) -> bool:
        """Whether we may ask for this address."""
        return self.reachable and self.rules.can_fetch(url, AGENT)

    @property
    def pause_s(self) -> float:
        """The seconds between two requests that are asked for."""
        rate = self.rules.request_rate(AGENT)
        each = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
        return max(self.rules.crawl_delay(AGENT) or 0.0, each)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The addresses of its sitemaps."""
        return tuple(found for one in self.rules.sitemaps if (found := normal(one, self.url)))

    def check(self, url: str) -> None:
        """Raise `ConnectorRefusedError` when we may not ask for this address."""
        if not self.reachable:
            raise ConnectorPassingError(f"{self.url} cannot be read at the moment, so nothing there may be asked for")
        if not self.rules.can_fetch(url, AGENT):
            raise ConnectorRefusedError(f"{self.url} asks robots not to read {url}", url=url, robots=True)
        if self.pause_s > LONGEST_PAUSE_S:
            raise ConnectorRefusedError(
                f"{self.url} asks for {self.pause_s:g} s between requests, and no more than {LONGEST_PAUSE_S:g} s are "
                "waited: ask its owner for another way to the documents",
                url=url,
                robots=True,
            )


class Robots:
    """The rules of the hosts that were met, each asked for once."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._known: dict[str, Rules] = {}

    async def rules(self, url: str) -> Rules:
        """The rules for the host of `url`."""
        where = root(url, "/robots.txt")
        if where not in self._known:
            self._known[where] = await self._read(where)
        return self._known[where]

    async def _read(self, where: str) -> Rules:
        """RFC 9309, 2.3.1: a file that is refused or not there forbids nothing, a host in trouble everything."""
        try:
            reply = await self._wire.read(where, max_bytes=MOST_BYTES, cut=True)
        except ConnectorPassingError:
            return Rules(where, Protego.parse(""), reachable=False)
        except ConnectorError:
            return Rules(where, Protego.parse(""))
        return Rules(where, Protego.parse(reply.body.decode("utf-8-sig", "replace")))


class Turns:
    """A pause between two requests to a host, whoever makes them."""

    def __init__(self, pause_s: float, clock: Callable[[], float], sleep: Sleep) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def wait(self, host: str, asked_s: float) -> None:
        """Return when it is our turn; the next one comes `asked_s` seconds later, or after our own pause."""
        now = self._clock()
        turn = max(now, self._next.get(host, now))
        self._next[host] = turn + max(asked_s, self._pause_s)
        if turn > now:
            await self._sleep(turn - now)
