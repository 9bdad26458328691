"""The OpenAI door of the floor and the peer: aiohttp on uvloop, nothing else, so that they differ in the work only.

Runs in the peer's environment too: nothing of Stepgate may be imported here.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

import uvloop
from aiohttp import web


class Worker(Protocol):
    """Answers requests; the request's `model` names the kind of work."""

    async def answer(self, body: dict[str, Any]) -> bytes:
        """A whole `chat.completion` as JSON."""
        ...

    def stream(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        """The same as server-sent events."""
        ...


WORKER = web.AppKey("worker", Worker)


async def _completions(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    worker = request.app[WORKER]
    if not body.get("stream"):
        return web.Response(body=await worker.answer(body), content_type="application/json")
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    async for piece in worker.stream(body):
        await response.write(piece)
    await response.write_eof()
    return response


async def _health(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def _serve(worker: Worker) -> None:
    app = web.Application()
    app[WORKER] = worker
    app.router.add_post("/v1/chat/completions", _completions)
    app.router.add_get("/health", _health)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    print(f"listens on http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


async def _run(make: Any) -> None:
    await _serve(make())


def serve(make: Any) -> None:
    """Serve the worker that `make()` makes inside the loop, until killed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(make))
