"""HTTP for connectors: retries, bodies read or downloaded completely, and errors by status.

Every request goes through `SafeClient`, which checks each address it connects to.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import JsonValue

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.net import MAX_REDIRECTS, Answer, HostNotFoundError, SafeClient
from gateway.features.documents.engine.ingest.connectors.partial_download import PartialDownload
from gateway.features.documents.engine.ingest.errors import (
    ConnectorAuthError,
    ConnectorError,
    ConnectorNotFoundError,
    ConnectorRefusedError,
    ConnectorTooLargeError,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
Headers = Callable[[str], Awaitable[Mapping[str, str]]]
"""The headers for an address, called right before each request, redirects included. This is the place to wait
for the host's pace, to refuse an address by raising, and to keep a token from other hosts."""
ErrorForStatus = Callable[[str, int, Mapping[str, str], bytes], ConnectorError]
"""Maps an address, a status of 400 or more, the headers and the start of the body to an error."""

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may change when the request is repeated."""
NOT_MODIFIED = 304
OUT_OF_RANGE = 416
"""The resource is shorter than what was downloaded before."""
MAX_SILENT_ATTEMPTS = 2
"""How often a source may fail to start an answer before it is given up."""
_ERROR_BODY_BYTES = 8_192
"""Bytes of an error's body that are read."""


class ConnectorTransientError(ConnectorError):
    """Raised for a failure that may pass: rate limits, server errors, broken connections.

    `retry_after_s` is the pause the source asks for, in seconds. `silent`: it did not start to answer.
    """

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, silent: bool = False, **details: JsonValue
    ) -> None:
        super().__init__(message, **details)
        self.retry_after_s = retry_after_s
        self.silent = silent


class ConnectorTimeoutError(ConnectorTransientError):
    """Raised for a source that did not start to answer. It is asked once more, and then given up."""

    code = "ERR_TIMEOUT"


def _get_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is repeated, and the pauses between attempts.

    Pauses double, with a random quarter more or less, so that clients refused together do not return together. A source
    that stays silent twice is given up, because each silence costs the whole time-out.
    """

    attempts: int = 5
    first_s: float = 1.0
    longest_s: float = 60.0
    longest_retry_after_s: float = 120.0
    """A source that asks for a longer pause is given up at once."""
    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random
    now: Callable[[], datetime] = _get_now

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of `attempt`, repeating it after each `ConnectorTransientError`; raises the last one."""
        silences = 0
        for number in range(self.attempts):
            try:
                return await attempt()
            except ConnectorTransientError as error:
                pause = error.retry_after_s or 0.0
                silences += error.silent
                if number + 1 == self.attempts or silences == MAX_SILENT_ATTEMPTS or pause > self.longest_retry_after_s:
                    raise
                await self.sleep(max(pause, self.wait_s(number)))
        raise ValueError("attempts must be at least 1")

    def wait_s(self, number: int) -> float:
        """The pause in seconds after failed attempt `number`, counted from 0."""
        wait: float = min(self.longest_s, self.first_s * 2.0**number)
        return wait * (0.75 + self.chance() / 2)

    def read_retry_after(self, header: str | None) -> float | None:
        """The seconds of a `Retry-After` header (seconds or a date), or None if it is missing or invalid."""
        text = (header or "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:12])
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - self.now()).total_seconds())


def build_status_error(url: str, status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
    """The error for a status, by the status alone."""
    if status in (401, 403):
        return ConnectorAuthError(
            f"{url} denies access (HTTP status {status}): name a credential that may read it", status=status
        )
    if status in (404, 410):
        return ConnectorNotFoundError(f"there is nothing at {url} (HTTP status {status})", status=status)
    if status in TRANSIENT_STATUSES:
        return ConnectorTransientError(f"{url} is failing (HTTP status {status}); try again later", status=status)
    return ConnectorError(f"{url} answered with HTTP status {status}", status=status)


@dataclass(frozen=True, slots=True)
class SourceResponse:
    """A response read completely. `url` is the address after redirects; `body` is empty for status 304."""

    url: str
    status: int
    headers: "httpx.Headers"
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Download:
    """A body stored completely in a file. `checksum` is its SHA-256, hex; `resumed` counts continuations."""

    path: Path
    size: int
    checksum: str
    url: str
    headers: "httpx.Headers"
    resumed: int = 0


async def add_no_headers(_: str) -> Mapping[str, str]:
    """Adds no headers."""
    return {}


def accept_all(_: str, __: "httpx.Headers") -> bool:
    """Accepts every response."""
    return True


@dataclass(frozen=True, slots=True)
class SourceClient:
    """Sends the HTTP requests of connectors. `timeout_s` limits one attempt, `silence_s` one pause in it, in
    seconds."""

    client: SafeClient
    back_off: RetryPolicy = field(default_factory=RetryPolicy)
    timeout_s: float = 300.0
    silence_s: float = 30.0
    error_for_status: ErrorForStatus = build_status_error

    async def read(
        self,
        url: str,
        *,
        max_bytes: int,
        headers: Headers = add_no_headers,
        method: str = "GET",
        content: bytes | None = None,
        cut: bool = False,
    ) -> SourceResponse:
        """A response read into memory. Redirects are followed for GET only.

        Raises `ConnectorError` and its subclasses, also for a body of more than `max_bytes` unless `cut` allows
        truncation.
        """

        async def attempt() -> SourceResponse:
            async with self._open(url, headers, {}, method, content) as answer:
                body = b"" if answer.status == NOT_MODIFIED else await self._read_all(answer, max_bytes, cut=cut)
                return SourceResponse(answer.url, answer.status, answer.headers, body)

        return await self.back_off.run(attempt)

    async def download(
        self,
        url: str,
        target: Path,
        *,
        max_bytes: int,
        headers: Headers = add_no_headers,
        wanted: "Callable[[str, httpx.Headers], bool]" = accept_all,
    ) -> Download | SourceResponse:
        """Downloads the body of a GET to the file `target`, which appears only when it is complete.

        Returns a `SourceResponse` without a body for status 304 and for responses that `wanted` rejects. A broken
        download is continued if the source allows it (RFC 9110, 14), else restarted; one that breaks at the same place
        twice is given up. Raises `ConnectorError` and its subclasses, and `StoreFullError` when the disk is full.
        """
        async with PartialDownload.open_beside(target) as part:

            async def attempt() -> Download | SourceResponse:
                try:
                    return await self._download_once(url, target, part, max_bytes, headers, wanted)
                except ConnectorTransientError as error:
                    if not part.is_cut_at_same_place():
                        raise
                    message = f"{error.message}, after {part.size} bytes, on every attempt"
                    raise ConnectorError(message, url=url) from error

            return await self.back_off.run(attempt)

    async def _download_once(
        self,
        url: str,
        target: Path,
        part: PartialDownload,
        max_bytes: int,
        headers: Headers,
        wanted: "Callable[[str, httpx.Headers], bool]",
    ) -> Download | SourceResponse:
        """Makes one download attempt."""
        async with self._open(url, headers, part.request_headers()) as answer:
            if answer.status == NOT_MODIFIED or not wanted(answer.url, answer.headers):
                return SourceResponse(answer.url, answer.status, answer.headers)
            if not await part.begin_response(answer):
                raise ConnectorTransientError(f"{url} cannot be resumed where it was cut off", url=url)
            if part.size + part.missing_bytes > max_bytes:
                raise _make_too_large_error(url, max_bytes)
            async for piece in answer.body:
                if part.size + len(piece) > max_bytes:
                    raise _make_too_large_error(url, max_bytes)
                await part.write(piece)
            if part.missing_bytes:
                raise ConnectorTransientError(f"{url} ended {part.missing_bytes} bytes too early", url=url)
            checksum = await part.finish(target)
            return Download(target, part.size, checksum, answer.url, answer.headers, part.resumed)

    @asynccontextmanager
    async def _open(
        self,
        url: str,
        headers: Headers,
        more: Mapping[str, str],
        method: str = "GET",
        content: bytes | None = None,
    ) -> AsyncIterator[Answer]:
        """Opens the response at the end of the redirects. Raises all failures as connector errors."""
        hop, answered = url, False
        try:
            for _ in range(MAX_REDIRECTS + 1):
                own = await headers(hop)
                async with (
                    self._limit_time(hop),
                    self.client.open(
                        hop, headers={**own, **more}, method=method, content=content, silence_s=self.silence_s
                    ) as answer,
                ):
                    answered = True
                    following = self.client.resolve_redirect(answer) if method == "GET" else None
                    if following is None:
                        if not (answer.status == OUT_OF_RANGE and "range" in more):
                            await self._raise_for_status(answer)
                        yield answer
                        return
                    hop = following
        except HostNotFoundError as error:
            raise ConnectorNotFoundError(error.message, url=url) from error
        except ToolDeniedError as error:
            raise ConnectorRefusedError(error.message, url=url) from error
        except ToolInputError as error:
            raise ConnectorError(error.message, url=url) from error
        except ToolError as error:
            if isinstance(error, ToolTimeoutError) and not answered:
                raise ConnectorTimeoutError(error.message, silent=True, url=url) from error
            raise ConnectorTransientError(error.message, url=url) from error
        raise ConnectorError(f"{url} redirects more than {MAX_REDIRECTS} times", url=url)

    @asynccontextmanager
    async def _limit_time(self, url: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.timeout_s):
                yield
        except TimeoutError as error:
            raise ConnectorTransientError(f"{url} did not answer within {self.timeout_s:g} s", url=url) from error

    async def _raise_for_status(self, answer: Answer) -> None:
        """Raises the error for the response's status, if it is an error."""
        if answer.status < 300 or answer.status == NOT_MODIFIED:
            return
        body = await self._read_all(answer, _ERROR_BODY_BYTES, cut=True)
        error = self.error_for_status(answer.url, answer.status, answer.headers, body)
        if isinstance(error, ConnectorTransientError) and error.retry_after_s is None:
            error.retry_after_s = self.back_off.read_retry_after(answer.headers.get("retry-after"))
        raise error

    @staticmethod
    async def _read_all(answer: Answer, max_bytes: int, *, cut: bool = False) -> bytes:
        body = bytearray()
        async for piece in answer.body:
            body += piece
            if len(body) > max_bytes:
                if cut:
                    break
                raise _make_too_large_error(answer.url, max_bytes)
        return bytes(body[:max_bytes])


def _make_too_large_error(url: str, max_bytes: int) -> ConnectorTooLargeError:
    return ConnectorTooLargeError(
        f"{url} is larger than {max_bytes} bytes, the most that is fetched", url=url, limit=max_bytes
    )
