"""`ConnectionPool`: HTTP/1.1 connections to one model endpoint, parsed by httptools.

A model call needs a connection to one origin and the bytes of one response as they arrive. Redirects, cookies, proxies
and compressed responses are not supported, because no model call uses them.
"""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import quote, unquote, urlsplit

import aiohappyeyeballs
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MAX_CONNECTIONS = 1000
"""Runs and rooms bound how many calls there are; this only bounds a mistake."""
MAX_HEAD_BYTES = 64_000
READ_AHEAD_BYTES = 256_000
"""Unread bytes of a body after which the server has to wait."""
IDLE_SECONDS = 15.0
NEXT_ADDRESS_SECONDS = 0.25
"""Time after which the next address of a host is tried beside the one before (RFC 8305)."""
_PATH_CHARS = "/%:@!$&'()*+,;=~?"


class BrokenBodyError(Exception):
    """The connection ended within the body of a response."""


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time. `status` and `headers` are those of the last response, the names
    of the headers in lower case.
    """

    def __init__(self, pool: "ConnectionPool") -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser: HttpResponseParser
        self._pieces: list[bytes] = []
        """The parts of the body that arrived and were not read yet."""
        self._unread_bytes = 0
        self._is_paused = False
        self._is_complete = True
        self._can_be_reused = True
        self._waiter: asyncio.Future[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        """Why the connection has ended."""

    def send(self, request: bytes) -> None:
        """Sends a request. Its response is read by `read_head` and `read`."""
        self.status, self.headers = 0, {}
        self._is_complete = False
        self._pieces.clear()
        self._unread_bytes = 0
        self._parser = HttpResponseParser(self)
        self._transport.write(request)

    async def read_head(self, deadline: float) -> None:
        """Waits for `status` and `headers`. Raises as `read`."""
        while not self.status:
            await self._wait(deadline)

    async def read(self, deadline: float) -> bytes:
        """Returns the bytes of the body that have arrived, or the next ones; b"" at the end of the body.

        Raises `TimeoutError` at `deadline`, a time of the event loop; `OSError`, `HttpParserError` or `BrokenBodyError`
        if the connection has ended before.
        """
        while not self._pieces:
            if self._is_complete:
                return b""
            await self._wait(deadline)
        body = b"".join(self._pieces)
        self._pieces.clear()
        self._unread_bytes = 0
        if self._is_paused and self._error is None:
            self._is_paused = False
            self._transport.resume_reading()
        return body

    @property
    def is_idle(self) -> bool:
        """Whether the connection can carry the next request."""
        return self._is_complete and self._can_be_reused and self._error is None

    def start_idling(self) -> None:
        """Closes the connection if no request comes in time."""
        self._idle_timer = self._loop.call_later(IDLE_SECONDS, self.close)

    def stop_idling(self) -> None:
        """Keeps the connection open for the next request."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def close(self) -> None:
        """Closes the connection at once. A response that is being read ends with a `ConnectionError`."""
        self._end(ConnectionError("Connection closed"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it
        self._pool.add(self)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._is_complete:
            self._end(ConnectionError("the server sent a response without a request"))
            return
        self._unread_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._end(error)
            return
        if not self.status and self._unread_bytes > MAX_HEAD_BYTES:
            self._end(ConnectionError(f"the response's head has more than {MAX_HEAD_BYTES:,} bytes"))
        elif self._unread_bytes > READ_AHEAD_BYTES and not self._is_complete:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._error is None and self.status and not self._is_complete:
            if exc is None and not self._has_length():
                self._is_complete = True
            else:
                self._end(BrokenBodyError(str(exc or "the connection ended before the reply")))
        self._end(exc or ConnectionError("Server disconnected"))
        self.stop_idling()
        self._pool.remove(self)

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header or a trailer."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Publishes the status, unless the response only announces another one, as 100 does."""
        status = self._parser.get_status_code()
        if status >= 200:
            self.status = status

    def on_body(self, body: bytes) -> None:
        """Adds a part of the body."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Ends the response."""
        if self.status:
            self._is_complete = True
            self._can_be_reused = self._parser.should_keep_alive()

    def on_message_begin(self) -> None:
        """Begins the response, or another one after one that only announced it."""
        if self._is_complete:
            raise ConnectionError("the server sent a response without a request")
        self.headers = {}

    def _has_length(self) -> bool:
        """Returns whether the end of the body is told by itself. Otherwise the body ends with the connection."""
        return "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "")

    async def _wait(self, deadline: float) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._wake, TimeoutError())
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self, error: Exception | None = None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)

    def _end(self, error: Exception) -> None:
        """Ends the connection for a reason. Does nothing if it has ended already."""
        if self._error is None:
            self._error = error
            self._transport.abort()
            self._wake()


class ConnectionPool:
    """The connections to one endpoint. `url` is its base URL, `headers` are sent with every request.

    Raises `ValueError` for a URL or a header that cannot be sent.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        is_tls = parts.scheme == "https"
        self._host = (parts.hostname or "").encode("idna").decode()
        self._port = parts.port or (443 if is_tls else 80)
        self._path = quote(parts.path, safe=_PATH_CHARS)
        self._tls = _make_tls_context() if is_tls else None
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        host = f"[{self._host}]" if ":" in self._host else self._host
        own = {
            "host": f"{host}:{parts.port}" if parts.port else host,
            "user-agent": "Stepgate",
            "accept": "*/*",
            "accept-encoding": "identity",
        }
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            own["authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._headers = _format_headers(own | {name.lower(): value for name, value in headers.items()})

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, connect_s: float, deadline: float
    ) -> AsyncIterator[Connection]:
        """Sends a request and yields the connection after the head of the response was read.

        Closes it at the end, unless the response was read whole. Raises `ConnectingError` if there is no connection
        after `connect_s` seconds, and as `Connection.read`.
        """
        length = f"content-length: {len(body)}\r\n" if body else ""
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._headers}{_format_headers(headers)}{length}\r\n"
        async with self._slots:
            connection = self._take_idle() or await self._connect(connect_s)
            try:
                connection.send(head.encode() + body)
                await connection.read_head(deadline)
                yield connection
            finally:
                if connection.is_idle:
                    self._idle.append(connection)
                    connection.start_idling()
                else:
                    connection.close()

    def add(self, connection: Connection) -> None:
        """Adds a connection that was made."""
        self._open.add(connection)

    def remove(self, connection: Connection) -> None:
        """Removes a connection that has ended."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def aclose(self) -> None:
        """Closes all connections. Calls that are under way end with a `ConnectionError`."""
        for connection in tuple(self._open):
            connection.close()
        await asyncio.sleep(0)  # the event loop closes the sockets

    def _take_idle(self) -> Connection | None:
        """Returns the connection that was used last."""
        while self._idle:
            connection = self._idle.pop()
            connection.stop_idling()
            if connection.is_idle:
                return connection
        return None

    async def _connect(self, timeout_s: float) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                connected = await aiohappyeyeballs.start_connection(
                    addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS
                )
                _, connection = await loop.create_connection(
                    lambda: Connection(self),
                    sock=connected,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls is not None else None,
                )
        except (OSError, ValueError) as error:
            raise ConnectingError from error
        return connection


class ConnectingError(Exception):
    """There is no connection to the endpoint. The cause says why."""


def _make_tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _format_headers(headers: Mapping[str, str]) -> str:
    for value in headers.values():
        if any(char in value for char in "\r\n\0"):
            raise ValueError("a header holds a line break or a null byte")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
