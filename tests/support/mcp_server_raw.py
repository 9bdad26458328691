"""A foreign MCP server written by hand, over stdio and streamable HTTP, that sends whatever JSON a test wants.

An SDK would refuse to send malformed lists and results. `RawHttpServer` runs in the test's process, records every
request that reaches it with the credential it carries, and can hold answers back. `python -m
tests.support.mcp_server_raw FILE` serves the script in FILE on standard input and output and writes each received line
to FILE.log.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.processes import ROOT
from tests.support.serving import running

ECHO: dict[str, Any] = {"name": "echo", "inputSchema": {"type": "object"}}
WRITTEN = "(written)"
"""The member of an answer that is the HTTP status, media type and body to send; `ID` in it is that of the request."""
ABSENT = "(absent)"
"""The value of a member that an answer leaves out, such as `jsonrpc`."""
DEFAULTS: dict[str, Any] = {
    "tools/list": {"result": {"tools": [ECHO]}},
    "tools/call": {"result": {"content": [{"type": "text", "text": "done"}]}},
}


def answer(message: Mapping[str, Any], script: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer to a message by the script: method, or `tools/call NAME`, to what stands beside `id`.

    A list in the script has one answer for each page, chosen by the cursor. Notifications have none.
    """
    if "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        capabilities = script.get("capabilities", {"tools": {}})
        info = {"name": "raw", "version": "1"}
        version = params["protocolVersion"]
        own = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        return {**head, "result": {**own, **script.get("initialize", {})}}
    known = {**DEFAULTS, **script}
    reply = known.get(f"{method} {params.get('name')}", known.get(method))
    if isinstance(reply, list):
        reply = reply[int(params.get("cursor") or 0)]
    reply = reply or {"error": {"code": -32601, "message": "no such method"}}
    return {name: value for name, value in {**head, **reply}.items() if value != ABSENT}


@dataclass
class RawHttpServer:
    """The server over HTTP. `held` names the stage whose answer is held back until the test ends it."""

    script: dict[str, Any] = field(default_factory=dict)
    held: str = ""
    delay_s: float = 0.0
    is_streaming: bool = False
    """Whether answers are server-sent events."""
    session: str = "s1"
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
        headers = {"mcp-session-id": self.session}
        if reply is None:
            return Response(status_code=202)
        if (written := reply.get(WRITTEN)) is not None:
            status, kind, body = written
            data = body.replace("ID", str(reply["id"])).encode("latin-1")
            return Response(data, status, headers=headers | ({"content-type": kind} if kind else {}))
        if self.is_streaming:
            event = f": waiting\r\n\r\nevent: message\r\ndata: {json.dumps(reply)}\r\n\r\n"
            return Response(event, media_type="text/event-stream", headers=headers)
        return JSONResponse(reply, headers=headers)


def raw_program(folder: Path, script: Mapping[str, Any], name: str = "script") -> dict[str, Any]:
    """The server over stdio as an entry of the file of servers. Its log is `folder/NAME.log`."""
    path = folder / name
    path.write_text(json.dumps(script))
    return {"command": sys.executable, "args": ["-m", "tests.support.mcp_server_raw", str(path)], "cwd": str(ROOT)}


def main() -> None:
    """Serves lines of JSON-RPC. The script's `start_s` delays the start, `sleep METHOD` an answer."""
    path = Path(sys.argv[1])
    script = json.loads(path.read_text())
    time.sleep(script.get("start_s", 0))
    log = path.with_suffix(".log").open("a", buffering=1)
    for line in sys.stdin:
        log.write(f"{time.monotonic()} {line}")
        message = json.loads(line)
        time.sleep(script.get(f"sleep {message.get('method')}", 0))
        reply = answer(message, script)
        if reply is not None:
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
