"""A foreign MCP server written by hand, over stdio and streamable HTTP, that sends whatever JSON a test wants.

An SDK would refuse to send malformed lists and results. `RawHttpServer` runs in the test's process, records every
request that reaches it with the credential it carries, and can hold answers back. `raw_program` is the same over
stdio.
"""

import asyncio
import json
import sys
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support import mcp_raw_program
from tests.support.mcp_raw_program import answer
from tests.support.serving import running

WRITTEN = "(written)"
"""The member of an answer that is the HTTP status, media type and body to send; `ID` in it is that of the request."""


@dataclass(frozen=True)
class Endless:
    """A body of that value that begins so and never ends, perhaps compressed."""

    begin: str
    is_packed: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers that it needs."""
        return {"content-encoding": "gzip"} if self.is_packed else {}

    async def write(self) -> AsyncIterator[bytes]:
        """Yields it, a megabyte at a time."""
        packed = zlib.compressobj(wbits=31)
        piece = self.begin.encode()
        while True:
            yield packed.compress(piece) + packed.flush(zlib.Z_SYNC_FLUSH) if self.is_packed else piece
            await asyncio.sleep(0)
            piece = b" " * 2**20


@dataclass
class RawHttpServer:
    """The server over HTTP. `held` names the stage whose answer is held back until the test ends it."""

    script: dict[str, Any] = field(default_factory=dict)
    held: str = ""
    delay_s: float = 0.0
    is_streaming: bool = False
    """Whether answers are server-sent events."""
    session: str = "s1"
    """Its header; empty: it has none."""
    requests: list[tuple[float, str, str | None]] = field(default_factory=list)
    """When each request came, its HTTP method or that of its message, and its credential."""
    url: str = ""
    release: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["RawHttpServer"]:
        """Serves while the context is open."""
        app = Starlette(routes=[Route("/mcp", self._answer, methods=["POST", "GET", "DELETE"])])
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None)
        async with running(config) as url:
            self.url = f"{url}/mcp"
            try:
                yield self
            finally:
                self.release.set()

    def list_methods(self, since: float = 0.0) -> list[str]:
        """Returns what has come since then, by `time.monotonic`."""
        return [method for at, method, _ in self.requests if at >= since]

    async def _answer(self, request: Request) -> Response:
        message = await request.json() if request.method == "POST" else {}
        method = message.get("method", request.method)
        self.requests.append((time.monotonic(), method, request.headers.get("authorization")))
        if method == self.held:
            await self.release.wait()
        await asyncio.sleep(self.delay_s)
        if request.method != "POST":
            return Response(status_code=405)
        reply = answer(message, self.script)
        headers = {"mcp-session-id": self.session} if self.session else {}
        if reply is None:
            return Response(status_code=202)
        if (written := reply.get(WRITTEN)) is not None:
            status, kind, body = written
            headers |= {"content-type": kind} if kind else {}
            if isinstance(body, Endless):
                return StreamingResponse(body.write(), status, headers | body.headers)
            data = body.replace("ID", str(reply["id"])).encode("latin-1")
            return Response(data, status, headers=headers)
        if self.is_streaming:
            event = f": waiting\r\n\r\nevent: message\r\ndata: {json.dumps(reply)}\r\n\r\n"
            return Response(event, media_type="text/event-stream", headers=headers)
        return JSONResponse(reply, headers=headers)


def raw_program(folder: Path, script: Mapping[str, Any], name: str = "script") -> dict[str, Any]:
    """The server over stdio as an entry of the file of servers. Its log is `folder/NAME.log`."""
    path = folder / name
    path.write_text(json.dumps(script))
    return {"command": sys.executable, "args": ["-I", "-S", mcp_raw_program.__file__, str(path)]}
