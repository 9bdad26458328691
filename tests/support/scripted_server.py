"""A scripted model as a server: its own process, real HTTP and SSE, OpenAI's wire.

`python -m tests.support.scripted_server PORT [HOST]` prints the port it listens on. `POST /_script` replaces the
script, `GET /_requests` tells what was asked.
"""

import asyncio
import json
import sys
from time import monotonic, sleep
from typing import Any, Self

import httpx
from aiohttp import web

from tests.support.processes import DEADLINE_S, Process, start
from tests.support.script import Reply, Script, is_side_reply
from tests.support.scripted_wire import CUT_SHORT, refusal, send_stream, send_whole

SCRIPT = web.AppKey("script", dict[str, Script])
REQUESTS = web.AppKey("requests", list[dict[str, Any]])


class ScriptedServer:
    """The server as a context manager: `.url` is its base URL."""

    def __init__(self, script: Script, host: str = "127.0.0.1") -> None:
        self._script = script
        self._host = host
        self._process: Process | None = None
        self.root = ""

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"{self.root}/v1"

    def __enter__(self) -> Self:
        self._process = start([sys.executable, "-m", "tests.support.scripted_server", "0", self._host])
        port = self._process.line_with("listening on ").rsplit(" ", 1)[1]
        self.root = f"http://{self._host}:{port}"
        self.load(self._script)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()

    def load(self, script: Script) -> None:
        """Replace the script and forget the requests."""
        httpx.post(f"{self.root}/_script", content=script.dumps(), timeout=10).raise_for_status()

    def requests(self) -> list[dict[str, Any]]:
        """What was asked, in order: `purpose`, `body`, `path`."""
        asked: list[dict[str, Any]] = httpx.get(f"{self.root}/_requests", timeout=300).json()
        return asked

    def wait_for(self, purpose: str, times: int = 1) -> None:
        """Return once so many requests of this purpose have arrived; AssertionError when they do not in time."""
        until = monotonic() + DEADLINE_S
        while self.purposes().count(purpose) < times:
            sleep(0.005)
            assert monotonic() < until, f"no {purpose} request arrived; there were {self.purposes()}"

    def purposes(self) -> list[str]:
        """The purpose of every request, in order."""
        return [request["purpose"] for request in self.requests()]


async def _completions(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    purpose = request.headers.get("x-stepgate-purpose", "")
    reply = request.app[SCRIPT]["script"].answer(purpose, body)
    if not is_side_reply(reply):
        request.app[REQUESTS].append({"purpose": purpose, "body": body, "path": request.path})
    if reply is None:
        return web.json_response({"error": {"message": f"no rule for {purpose}: {body['messages'][-1]}"}}, status=500)
    if reply.fault == "refuse_schema" and "response_format" not in body:
        reply = request.app[SCRIPT]["script"].answer(purpose, body) or reply
    if reply.fault == "hang":
        await asyncio.Event().wait()
    if reply.delay_s:
        await asyncio.sleep(reply.delay_s)
    refused = refusal(request, reply)
    if refused is not None:
        return refused
    if body.get("stream"):
        return await send_stream(request, _frames(body, reply), reply)
    return await send_whole(request, _whole(body, reply), reply)


def _whole(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.args)}}
            for c in reply.calls
        ]
    return {
        "id": "cmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": _usage(reply),
    }


def _frames(body: dict[str, Any], reply: Reply) -> list[dict[str, Any]]:
    """The chunks of a streamed completion."""
    chunk = {"id": "cmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def frame(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    frames = [frame({"role": "assistant", "content": ""})]
    if reply.reasoning:
        frames.append(frame({"reasoning_content": reply.reasoning}))
    text = reply.text[: len(reply.text) // 2] if reply.fault in CUT_SHORT else reply.text
    frames += [frame({"content": text[at : at + reply.chunk]}) for at in range(0, len(text), reply.chunk)]
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": json.dumps(call.args)}
        call_delta = {"index": index, "id": call.id, "type": "function", "function": function}
        frames.append(frame({"tool_calls": [call_delta]}))
    if reply.fault in CUT_SHORT:
        return frames
    return [*frames, frame({}, reply.finish), {**chunk, "choices": [], "usage": _usage(reply)}]


def _usage(reply: Reply) -> dict[str, int]:
    total = reply.prompt_tokens + reply.completion_tokens
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": total,
    }


async def _embeddings(request: web.Request) -> web.Response:
    """Vectors that tell texts apart by their length, in the input's order."""
    body = await request.json()
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [
        {"object": "embedding", "index": at, "embedding": [1.0, len(text) / 8, 0.5]} for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})


async def _models(request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})


async def _load(request: web.Request) -> web.Response:
    request.app[SCRIPT]["script"] = Script.loads(await request.text())
    request.app[REQUESTS].clear()
    return web.Response()


async def _requests(request: web.Request) -> web.Response:
    return web.json_response(request.app[REQUESTS])


async def serve(port: int, host: str) -> None:
    """Serve until ended."""
    app = web.Application(client_max_size=50_000_000)
    app[SCRIPT] = {"script": Script()}
    app[REQUESTS] = []
    app.router.add_post("/v1/chat/completions", _completions)
    app.router.add_post("/v1/embeddings", _embeddings)
    app.router.add_get("/v1/models", _models)
    app.router.add_post("/_script", _load)
    app.router.add_get("/_requests", _requests)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    print(f"listening on {runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"))
