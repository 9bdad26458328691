"""The connections of `SafeClient`: httpx on a pool that connects only to addresses that were checked.

Imported by the first request: httpx and httpcore are 5 MB, and the certificates 2 MB more.
"""

import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache

import httpcore
import httpx

from agent.core.errors import ToolDeniedError
from agent.net.addresses import Address

FAULTS = (httpx.HTTPError, httpcore.NetworkError, httpx.InvalidURL, ssl.SSLError)
"""The errors of a broken connection."""

AddressCheck = Callable[[str, int], Awaitable[list[Address]]]
"""The addresses of a host and port that may be connected to."""


def build_client(check: AddressCheck, connect_timeout_s: float, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client that sends these headers and connects only to what `check` returns."""
    pool = httpcore.AsyncConnectionPool(
        ssl_context=_load_certificates(),
        network_backend=_CheckedBackend(check),
        max_connections=50,
        max_keepalive_connections=0,  # a kept connection would outlive the check of its address
        retries=0,
    )
    return httpx.AsyncClient(
        transport=_PoolTransport(pool),
        # The caller limits the whole; a connection has less, so that the next address gets its turn.
        timeout=httpx.Timeout(None, connect=connect_timeout_s),
        trust_env=False,
        follow_redirects=False,
        headers=headers,
    )


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that were checked: no second lookup, no Unix sockets."""

    def __init__(self, check: AddressCheck) -> None:
        self._check = check
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connects to the first checked address that answers."""
        failure: Exception | None = None
        for address in await self._check(host, port):
            try:
                return await self._backend.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Always raises: Unix sockets are not allowed."""
        raise ToolDeniedError(f"the socket {path} is refused")

    async def sleep(self, seconds: float) -> None:
        """Sleeps between httpcore's retries."""
        await self._backend.sleep(seconds)


@cache
def _load_certificates() -> ssl.SSLContext:
    """Whose certificates are believed: the machine's. Read once; it takes longer than all else a client is made of."""
    return ssl.create_default_context()


class _PoolTransport(httpx.AsyncHTTPTransport):
    """Puts our own connection pool behind httpx's transport interface."""

    def __init__(self, pool: httpcore.AsyncConnectionPool) -> None:
        super().__init__(verify=_load_certificates(), trust_env=False)
        self._pool = pool
