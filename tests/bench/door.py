"""The OpenAI door of the floor and of frameworks: aiohttp on uvloop and no more, so that only the work differs.

Runs in the peers' environments too: nothing of Stepgate may be imported here.
"""

import asyncio
import inspect
import json
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
    made = make()
    await _serve(await made if inspect.isawaitable(made) else made)


def serve(make: Any) -> None:
    """Serve the worker that `make()`, which may be a coroutine function, makes inside the loop, until killed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(make))


def encode_completion(text: str) -> bytes:
    """The body of a whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    completion = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps(completion).encode()


def encode_chunk(delta: dict[str, Any], finish: str | None) -> bytes:
    """An event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()
