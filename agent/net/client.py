"""`SafeClient`: the only HTTP client for addresses that users and models choose.

The threat is SSRF: a request that reaches the internal network by a private address, a name that resolves to one, a
redirect, a second DNS lookup with another answer, or an unusual spelling. So every name is resolved here, every address
is checked, and the connection goes to the checked address.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.net.addresses import Address, is_public
from agent.net.coding import iter_decoded, parse_content_encoding

if TYPE_CHECKING:
    import httpx

PORTS = frozenset({80, 443, 8000, 8008, 8080, 8443})
"""Web ports. Others speak protocols that HTTP can be smuggled into (SMTP, Redis)."""
MAX_REDIRECTS = 5
CONNECT_TIMEOUT_S = 5.0
USER_AGENT = "Stepgate/0.1 (+self-hosted agent gateway)"
_HEADERS = {
    "user-agent": USER_AGENT,
    "accept": "text/html,text/plain,application/json;q=0.9,*/*;q=0.5",
    "accept-encoding": "gzip, deflate",
}

_HOST = re.compile(r"^(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?$")
_NUMBERS = re.compile(r"^(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+))*\.?$")
_DOTTED = re.compile(r"^(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}$")

Resolver = Callable[[str, int], Awaitable[list[Address]]]
CheckRedirect = Callable[[str, str], Awaitable[None]]
"""Called with the address that answered and the one that it redirects to, before that is requested. Raises to stop."""


class HostNotFoundError(ToolInputError):
    """Raised for a name that stands for no address."""


@dataclass(frozen=True, slots=True)
class Page:
    """A response body, read to its end or to the byte limit. `truncated` says which."""

    url: str
    status: int
    content_type: str
    body: bytes
    charset: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of a response whose body has not been read. `url` is the address that was requested."""

    url: str
    status: int
    headers: "httpx.Headers"
    location: str | None
    """Where it sends on to, as the server says it; None when it does not. See `SafeClient.resolve_redirect`."""
    body: AsyncIterator[bytes]
    """In pieces, decompressed; ends only where the server said that it would. `ToolError` otherwise."""


class SafeClient:
    """Fetches public web addresses, and those in `allow_hosts` (`host` or `host:port`)."""

    def __init__(self, allow_hosts: Iterable[str] = (), resolver: Resolver | None = None) -> None:
        self._allowed = frozenset(host.strip().lower() for host in allow_hosts)
        self._resolve = resolver or resolve_host

    @cached_property
    def _client(self) -> "httpx.AsyncClient":
        from agent.net.checked_connections import build_client  # noqa: PLC0415 - see its docstring

        return build_client(self._resolve_public_addresses, CONNECT_TIMEOUT_S, _HEADERS)

    async def get(
        self, url: str, *, max_bytes: int, timeout_s: float, check_redirect: CheckRedirect | None = None
    ) -> Page:
        """The page at `url`. Follows redirects and checks each, also by `check_redirect(from, to)`.

        Raises `ToolDeniedError` for an address that is not allowed, `ToolTimeoutError`, and `ToolError` for every other
        failure.
        """
        from agent.net.checked_connections import FAULTS  # noqa: PLC0415 - see its docstring

        try:
            async with asyncio.timeout(timeout_s):
                return await self._follow(url, max_bytes, check_redirect)
        except TimeoutError as error:
            raise ToolTimeoutError(f"{url} did not answer within {timeout_s:g} s") from error
        except FAULTS as error:
            raise ToolError(f"{url} cannot be fetched: {str(error) or type(error).__name__}") from error

    @asynccontextmanager
    async def open(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        content: bytes | None = None,
        silence_s: float = 30.0,
    ) -> AsyncIterator[Answer]:
        """Requests one address and yields its response unread, whatever its status. Does not follow redirects.

        `silence_s` limits each wait for data, in seconds; the caller limits the whole. Raises as `get` does, also while
        the body is read.
        """
        import httpx  # noqa: PLC0415 - as above

        from agent.net.checked_connections import FAULTS  # noqa: PLC0415

        target = self.parse_url(url)
        limits = httpx.Timeout(silence_s, connect=CONNECT_TIMEOUT_S)
        try:
            async with self._client.stream(
                method, target, headers=headers, content=content, timeout=limits
            ) as response:
                location = response.headers["location"] if response.has_redirect_location else None
                coding = response.headers.get("content-encoding")
                async with aclosing(iter_decoded(response.aiter_raw(), coding, url)) as body:
                    yield Answer(url, response.status_code, response.headers, location, body)
        except httpx.TimeoutException as error:
            raise ToolTimeoutError(f"{url} was silent for longer than {silence_s:g} s") from error
        except FAULTS as error:
            raise ToolError(f"{url} cannot be fetched: {str(error) or type(error).__name__}") from error

    def resolve_redirect(self, answer: Answer) -> str | None:
        """The address that an answer redirects to, checked as far as its form goes; None when it does not. Raises
        `ToolDeniedError` for what would be refused as an address, and for a downgrade.
        """
        if answer.location is None:
            return None
        return str(self._resolve_redirect(self.parse_url(answer.url), answer.location))

    async def check_url(self, url: str) -> None:
        """Raises what `get` would raise for the address itself, without fetching it."""
        await self.resolve_url(url)

    async def resolve_url(self, url: str) -> list[Address]:
        """The addresses of a URL's host, all of which may be connected to. Raises as `check_url` does."""
        target = self.parse_url(url)
        return await self._resolve_public_addresses(target.host, target.port or _default_port(target))

    async def aclose(self) -> None:
        """Closes connections."""
        if "_client" in vars(self):
            await self._client.aclose()

    def parse_url(self, url: str) -> "httpx.URL":
        """The parsed URL; `ToolDeniedError` for one whose form alone is reason enough."""
        import httpx  # noqa: PLC0415 - as above

        try:
            target = httpx.URL(url.strip())
        except httpx.InvalidURL as error:
            raise ToolDeniedError(f"{url!r} is not a valid URL: {error}") from error
        if target.scheme not in ("http", "https"):
            raise ToolDeniedError(f"{url!r} is refused: only http and https addresses are fetched")
        if target.userinfo:
            raise ToolDeniedError("an address with a user name or password in it is refused")
        host = target.raw_host.decode("ascii", "replace").lower()
        port = target.port or _default_port(target)
        if self._is_allowed(host, port):
            return target
        if port not in PORTS:
            hint = "AGENT_FETCH_ALLOW_HOSTS allows HOST:PORT"
            raise ToolDeniedError(f"port {port} is refused: it is not a web port ({hint})")
        _check_host_spelling(host)
        return target

    async def _follow(self, url: str, max_bytes: int, check_redirect: CheckRedirect | None) -> Page:
        target = self.parse_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream("GET", target) as response:
                if not response.has_redirect_location:
                    return await _read(response, max_bytes)
                following = self._resolve_redirect(target, response.headers["location"])
            if check_redirect is not None:
                await check_redirect(str(target), str(following))
            target = following
        raise ToolError(f"{url} redirects more than {MAX_REDIRECTS} times")

    def _resolve_redirect(self, target: "httpx.URL", location: str) -> "httpx.URL":
        """Where a redirect leads; `ToolDeniedError` for what would be refused as an address, and for a downgrade."""
        following = self.parse_url(str(target.join(location)))
        if target.scheme == "https" and following.scheme == "http":
            raise ToolDeniedError(f"{target} redirects from https to http ({following}); that is refused")
        return following

    async def _resolve_public_addresses(self, host: str, port: int) -> list[Address]:
        """Where `host` really is; `ToolDeniedError` unless every one of its addresses is public."""
        host = host.strip("[]").lower()
        addresses = await self._resolve(host, port)
        if self._is_allowed(host, port):
            return addresses
        for address in addresses:
            if not is_public(address):
                raise ToolDeniedError(
                    f"{host} is refused: {address} is not a public address "
                    f"(if you trust it, add it to AGENT_FETCH_ALLOW_HOSTS)"
                )
        return addresses

    def _is_allowed(self, host: str, port: int) -> bool:
        bare = host.strip("[]").rstrip(".")
        return bare in self._allowed or f"{bare}:{port}" in self._allowed


async def resolve_host(host: str, port: int) -> list[Address]:
    """Every address of a name, by the system's resolver. `HostNotFoundError` when there is none, `ToolError` when the
    resolver cannot say at the moment."""
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass  # a name
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        passing = isinstance(error, OSError) and error.errno == socket.EAI_AGAIN
        raise (ToolError if passing else HostNotFoundError)(f"there is no host named {host!r}") from error
    return [ipaddress.ip_address(str(entry[4][0]).split("%", 1)[0]) for entry in infos]


def _check_host_spelling(host: str) -> None:
    """Refuse spellings that different programs read differently."""
    bare = host.strip("[]")
    if "%" in bare:
        raise ToolDeniedError(f"{host!r} is refused: an address must not contain a zone or an escape")
    if ":" in bare:
        return  # an IPv6 literal; httpx has parsed it, its address is checked at connect time
    if _NUMBERS.match(bare) and not _DOTTED.match(bare):
        raise ToolDeniedError(f"{host!r} is refused: write the address as four decimal numbers")
    if not _HOST.match(bare) or bare.rstrip(".") == "localhost" or bare.rstrip(".").endswith(".localhost"):
        raise ToolDeniedError(f"{host!r} is refused: it is not a public host name")


def _default_port(url: "httpx.URL") -> int:
    return 443 if url.scheme == "https" else 80


async def _read(response: "httpx.Response", max_bytes: int) -> Page:
    parse_content_encoding(response.headers.get("content-encoding"), str(response.url))
    body = bytearray()
    truncated = False
    async for piece in response.aiter_bytes():  # after decompression: a bomb counts as what it becomes
        body += piece
        if len(body) > max_bytes:
            truncated = True
            break
    return Page(
        url=str(response.url),
        status=response.status_code,
        content_type=response.headers.get("content-type", "").split(";")[0].strip().lower(),
        body=bytes(body[:max_bytes]),
        charset=response.charset_encoding,
        truncated=truncated,
    )
