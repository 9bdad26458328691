"""A website for tests: real HTTP on a free loopback port, with the manners and the bad manners of real ones."""

import asyncio
import hashlib
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.net import Address, SafeClient

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ANY_HOST = "docs.example"
OTHER_HOST = "other.example"
NAMES = (ANY_HOST, f"www.{ANY_HOST}", OTHER_HOST)
"""Names that lead to the site, besides 127.0.0.1."""


@dataclass(slots=True)
class RecordedRequest:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    host: str


@dataclass(slots=True)
class Page:
    """What is at a path. With `tagged` it has an ETag and is not sent twice; with `ranges` it can be continued."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    tagged: bool = False
    ranges: bool = False
    cuts: list[int] = field(default_factory=list)
    """The first answers end after so many bytes, though the header promises the whole."""

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'

    async def answer(self, request: web.Request) -> web.StreamResponse:
        headers = {"content-type": self.kind, **self.headers}
        if self.tagged or self.ranges:
            headers["etag"] = self.etag
            if request.headers.get("if-none-match") == self.etag:
                return web.Response(status=304, headers=headers)
        body, status = self.body, self.status
        asked = request.headers.get("range", "")
        if self.ranges and asked and request.headers.get("if-range", self.etag) == self.etag:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            headers["content-range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            body, status = body[start:], 206
        if not self.cuts:
            return web.Response(status=status, body=body, headers=headers)
        response = web.StreamResponse(status=status, headers={**headers, "content-length": str(len(body))})
        await response.prepare(request)
        await response.write(body[: self.cuts.pop(0)])
        await asyncio.sleep(0)
        if request.transport is not None:
            request.transport.close()
        return response


class Website:
    """The site as an async context manager. What is not put there is 404."""

    def __init__(self) -> None:
        self.asked: list[RecordedRequest] = []
        self._at: dict[str, list[Handler]] = {}
        app = web.Application(client_max_size=10**9)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._server = TestServer(app, host="127.0.0.1")

    async def __aenter__(self) -> Self:
        await self._server.start_server(shutdown_timeout=0.1)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.port or 0

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        """The address of a path."""
        return f"http://{host}:{self.port}{path}"

    def client(self) -> SafeClient:
        """A client that may ask this site, by address and by name, and nothing else inside."""

        async def resolve(host: str, _: int) -> list[Address]:
            return [ipaddress.ip_address("127.0.0.1" if host in NAMES else host)]

        return SafeClient([f"{host}:{self.port}" for host in ("127.0.0.1", *NAMES)], resolve)

    def put(self, path: str, *answers: Page | Handler) -> None:
        """What is at a path (with its query): one answer after the other, the last one from then on."""
        self._at[path] = [one.answer if isinstance(one, Page) else one for one in answers]

    def html(
        self, path: str, *links: str, text: str = "", head: str = "", headers: dict[str, str] | None = None
    ) -> Page:
        """Put a page with links there; it has an ETag."""
        anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
        body = f"<html><head>{head}</head><body><h1>{text or path}</h1>{anchors}</body></html>"
        page = Page(body.encode(), headers=headers or {}, tagged=True)
        self.put(path, page)
        return page

    def remove(self, path: str) -> None:
        """From now on 404."""
        del self._at[path]

    def paths(self, *, without: Iterable[str] = ("/robots.txt", "/sitemap.xml")) -> list[str]:
        """The paths that were asked for, in order."""
        return [one.path for one in self.asked if one.path not in without]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(RecordedRequest(request.method, request.path_qs, headers, request.host.partition(":")[0]))
        answers = self._at.get(request.path_qs)
        if not answers:
            return web.Response(status=404, text="nothing here")
        return await (answers.pop(0) if len(answers) > 1 else answers[0])(request)


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Pass the time at once."""
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
