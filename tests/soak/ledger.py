"""The world outside: it writes down every effect, in a process that is not killed with the gateway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(frozen=True)
class Entry:
    """One effect that happened: which tool of which run, under which key."""

    tool: str
    run_id: str
    key: str


@dataclass
class Ledger:
    """What happened, in its order. A key that `record` or `order` brings again changes nothing, as a careful target
    would have it; what `send` brings happens each time."""

    url: str = ""
    entries: list[Entry] = field(default_factory=list)
    repeated: int = 0
    """How often an idempotent effect was asked for again under its key."""

    async def add(self, request: web.Request) -> web.Response:
        """`POST /`: an effect is asked for."""
        try:
            entry = Entry(**await request.json())
        except ConnectionError:  # the client died before it named the purpose
            return web.Response(status=400)
        if entry.tool != "send" and entry in self.entries:
            self.repeated += 1
        else:
            self.entries.append(entry)
        await asyncio.sleep(0.02)  # the answer can be lost: the effect has happened
        return web.json_response({"done": entry.key})

    async def look(self, request: web.Request) -> web.Response:
        """`GET /?key=`: whether it happened."""
        key = request.query["key"]
        return web.json_response({"happened": any(entry.key == key for entry in self.entries)})

    def of(self, run_id: str) -> list[Entry]:
        """What one run has done."""
        return [entry for entry in self.entries if entry.run_id == run_id]


@asynccontextmanager
async def ledger() -> AsyncIterator[Ledger]:
    """A running one."""
    kept, app = Ledger(), web.Application()
    app.router.add_post("/", kept.add)
    app.router.add_get("/", kept.look)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    kept.url = f"http://{host}:{port}/"
    try:
        yield kept
    finally:
        await runner.cleanup()
