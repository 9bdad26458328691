"""What the connectors share: asking again after a pause, bodies read and downloaded whole, and what a status means.

Every request goes out through `SafeClient`, which checks each address it connects to.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar

import httpx
from pydantic import JsonValue

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.core.net import MAX_REDIRECTS, Answer, NoHostError, SafeClient
from agent.knowledge.connectors.partial import Partial
from agent.knowledge.errors import (
    ConnectorAuthError,
    ConnectorError,
    ConnectorNotFoundError,
    ConnectorRefusedError,
    ConnectorTooLargeError,
)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
Headers = Callable[[str], Awaitable[Mapping[str, str]]]
"""Asked for the headers of every address right before it is asked, redirects included: the place to wait for one's
turn, to refuse an address (raise), and to keep a token from strangers."""
Judge = Callable[[str, int, Mapping[str, str], bytes], ConnectorError]
"""From an address, a status of 400 or more, the headers and the beginning of the body to the error that it is."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may be different the next time."""
NOT_MODIFIED = 304
OUT_OF_RANGE = 416
"""What is there is shorter than what we have of it."""
SILENCES = 2
"""How often a source may not begin to answer."""
_SAID_BYTES = 8_192
"""How much of an error's body is looked at."""


class ConnectorPassingError(ConnectorError):
    """Raised for what may be different the next time: too many requests, a server in trouble, a broken connection.
    `retry_after_s` is how long the source asks to wait, in seconds; one that is `silent` has not begun to answer."""

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, silent: bool = False, **details: JsonValue
    ) -> None:
        super().__init__(message, **details)
        self.retry_after_s = retry_after_s
        self.silent = silent


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class BackOff:
    """How often and how patiently a source is asked again; one that stays silent twice is given up, for each silence
    costs its whole time. Waits double, give or take a quarter, so that many who were refused together do not come back
    together, and each is still longer than the one before."""

    attempts: int = 5
    first_s: float = 1.0
    longest_s: float = 60.0
    longest_retry_after_s: float = 120.0
    """A source that asks for more patience than this is given up at once."""
    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random
    now: Callable[[], datetime] = _now

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of `attempt`, which is made anew after each `ConnectorPassingError`; the last one is raised."""
        silences = 0
        for number in range(self.attempts):
            try:
                return await attempt()
            except ConnectorPassingError as error:
                asked = error.retry_after_s or 0.0
                silences += error.silent
                if number + 1 == self.attempts or silences == SILENCES or asked > self.longest_retry_after_s:
                    raise
                await self.sleep(max(asked, self.wait_s(number)))
        raise ValueError("attempts must be at least 1")

    def wait_s(self, number: int) -> float:
        """The pause after the failed attempt `number`, counted from 0."""
        wait: float = min(self.longest_s, self.first_s * 2.0**number)
        return wait * (0.75 + self.chance() / 2)

    def retry_after_s(self, header: str | None) -> float | None:
        """The seconds that a `Retry-After` header asks for, given as seconds or as a date; None for none, or odd."""
        text = (header or "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:12])
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - self.now()).total_seconds())


def judge(url: str, status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
    """The error that a status is, by the status alone."""
    if status in (401, 403):
        return ConnectorAuthError(
            f"{url} refuses us (HTTP status {status}): give a credential that may read it", status=status
        )
    if status in (404, 410):
        return ConnectorNotFoundError(f"there is nothing at {url} (HTTP status {status})", status=status)
    if status in PASSING:
        return ConnectorPassingError(f"{url} is in trouble (HTTP status {status}); try again later", status=status)
    return ConnectorError(f"{url} answered with HTTP status {status}", status=status)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer read whole. `url` is where it came from after redirects; `body` is empty for one that says 304."""

    url: str
    status: int
    headers: httpx.Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Download:
    """A body that lies in a file, whole. `checksum` is the SHA-256 of its bytes, hex; `resumed` says how often it was
    continued."""

    path: Path
    size: int
    checksum: str
    url: str
    headers: httpx.Headers
    resumed: int = 0


async def no_headers(_: str) -> Mapping[str, str]:
    """Nothing special to say to any address."""
    return {}


def anything(_: str, __: httpx.Headers) -> bool:
    """Whatever it is."""
    return True


@dataclass(frozen=True, slots=True)
class Wire:
    """Asks sources over HTTP, patiently. `timeout_s` limits one attempt, `silence_s` one pause in it, in seconds."""

    client: SafeClient
    back_off: BackOff = field(default_factory=BackOff)
    timeout_s: float = 300.0
    silence_s: float = 30.0
    judge: Judge = judge

    async def read(
        self,
        url: str,
        *,
        max_bytes: int,
        headers: Headers = no_headers,
        method: str = "GET",
        content: bytes | None = None,
        cut: bool = False,
    ) -> Reply:
        """The answer to a request, in memory: JSON, robots.txt. Redirects are followed for GET only. Raises
        `ConnectorError` and its kinds, also for a body of more than `max_bytes`, unless it may be `cut` there."""

        async def attempt() -> Reply:
            async with self._answer(url, headers, {}, method, content) as answer:
                body = b"" if answer.status == NOT_MODIFIED else await self._all(answer, max_bytes, cut=cut)
                return Reply(answer.url, answer.status, answer.headers, body)

        return await self.back_off.run(attempt)

    async def download(
        self,
        url: str,
        target: Path,
        *,
        max_bytes: int,
        headers: Headers = no_headers,
        wanted: Callable[[str, httpx.Headers], bool] = anything,
    ) -> Download | Reply:
        """The body of a GET as the file `target`, which appears only when it is whole; a `Reply` without a body where
        the source says 304, and where the address and headers are not `wanted`. What was cut off is continued where
        the source allows it (RFC 9110, 14), else begun anew; what is cut off at the same place again is given up.

        Raises `ConnectorError` and its kinds, `StoreFullError` when the disk is full."""
        async with Partial.beside(target) as part:

            async def attempt() -> Download | Reply:
                try:
                    return await self._once(url, target, part, max_bytes, headers, wanted)
                except ConnectorPassingError as error:
                    if not part.is_cut_again():
                        raise
                    message = f"{error.message}, after {part.size} bytes, and does so each time it is asked for"
                    raise ConnectorError(message, url=url) from error

            return await self.back_off.run(attempt)

    async def _once(
        self,
        url: str,
        target: Path,
        part: Partial,
        max_bytes: int,
        headers: Headers,
        wanted: Callable[[str, httpx.Headers], bool],
    ) -> Download | Reply:
        """One attempt at a download."""
        async with self._answer(url, headers, part.ask()) as answer:
            if answer.status == NOT_MODIFIED or not wanted(answer.url, answer.headers):
                return Reply(answer.url, answer.status, answer.headers)
            if not await part.begin(answer):
                raise ConnectorPassingError(f"{url} cannot be continued where it was cut off", url=url)
            if part.size + part.missing > max_bytes:
                raise _too_large(url, max_bytes)
            async for piece in answer.body:
                if part.size + len(piece) > max_bytes:
                    raise _too_large(url, max_bytes)
                await part.take(piece)
            if part.missing:
                raise ConnectorPassingError(f"{url} ended {part.missing} bytes too early", url=url)
            checksum = await part.finish(target)
            return Download(target, part.size, checksum, answer.url, answer.headers, part.resumed)

    @asynccontextmanager
    async def _answer(
        self,
        url: str,
        headers: Headers,
        more: Mapping[str, str],
        method: str = "GET",
        content: bytes | None = None,
    ) -> AsyncIterator[Answer]:
        """The answer at the end of the redirects, its status below 400; all failures as errors of connectors."""
        hop, answered = url, False
        try:
            for _ in range(MAX_REDIRECTS + 1):
                own = await headers(hop)
                async with (
                    self._limited(hop),
                    self.client.open(
                        hop, headers={**own, **more}, method=method, content=content, silence_s=self.silence_s
                    ) as answer,
                ):
                    answered = True
                    if answer.redirect is None or method != "GET":
                        if not (answer.status == OUT_OF_RANGE and "range" in more):
                            await self._refuse(answer)
                        yield answer
                        return
                    hop = answer.redirect
        except NoHostError as error:
            raise ConnectorNotFoundError(error.message, url=url) from error
        except ToolDeniedError as error:
            raise ConnectorRefusedError(error.message, url=url) from error
        except ToolInputError as error:
            raise ConnectorError(error.message, url=url) from error
        except ToolError as error:
            silent = isinstance(error, ToolTimeoutError) and not answered
            raise ConnectorPassingError(error.message, silent=silent, url=url) from error
        raise ConnectorError(f"{url} redirects more than {MAX_REDIRECTS} times", url=url)

    @asynccontextmanager
    async def _limited(self, url: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.timeout_s):
                yield
        except TimeoutError as error:
            raise ConnectorPassingError(f"{url} was not there within {self.timeout_s:g} s", url=url) from error

    async def _refuse(self, answer: Answer) -> None:
        """Raise what the answer's status is, unless it is none."""
        if answer.status < 300 or answer.status == NOT_MODIFIED:
            return
        said = await self._all(answer, _SAID_BYTES, cut=True)
        error = self.judge(answer.url, answer.status, answer.headers, said)
        if isinstance(error, ConnectorPassingError) and error.retry_after_s is None:
            error.retry_after_s = self.back_off.retry_after_s(answer.headers.get("retry-after"))
        raise error

    @staticmethod
    async def _all(answer: Answer, max_bytes: int, *, cut: bool = False) -> bytes:
        body = bytearray()
        async for piece in answer.body:
            body += piece
            if len(body) > max_bytes:
                if cut:
                    break
                raise _too_large(answer.url, max_bytes)
        return bytes(body[:max_bytes])


def _too_large(url: str, max_bytes: int) -> ConnectorTooLargeError:
    return ConnectorTooLargeError(
        f"{url} is larger than {max_bytes} bytes, the most that is fetched", url=url, limit=max_bytes
    )
