"""`CannedServer`: an HTTP server on a free port that gives the answers it was told to give, in their order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Canned:
    """One answer. `hangs` is how long nothing comes, in seconds; `resets` ends the connection instead."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: float = 0.0
    resets: bool = False


@dataclass
class CannedServer:
    """What is to be answered, and the bodies that were sent."""

    url: str = ""
    answers: deque[Canned] = field(default_factory=deque)
    seen: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def load(self, *answers: Canned) -> None:
        """Give these from now on; asked for more, it answers 500."""
        self.answers = deque(answers)

    async def answer(self, request: web.Request) -> web.Response:
        """The next answer."""
        self.seen.append(await request.read())
        self.paths.append(request.path)
        canned = self.answers.popleft() if self.answers else Canned(500, b"no answer is left")
        if canned.hangs:
            await asyncio.sleep(canned.hangs)
        if canned.resets and request.transport is not None:
            request.transport.abort()
        return web.Response(status=canned.status, body=canned.body, headers=dict(canned.headers))


@asynccontextmanager
async def canned_server() -> AsyncIterator[CannedServer]:
    """A running one, in this process."""
    server = CannedServer()
    async with serve_requests(server.answer) as server.url:
        yield server


@asynccontextmanager
async def serve_requests(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """The address of a server on a free port, in this process, all of whose requests get an `answer`."""
    app = web.Application(client_max_size=50_000_000)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
