"""A degraded model for development: a proxy between the gateway and its model that damages replies.

    python -m gateway.features.evaluation.degraded http://127.0.0.1:11434/v1 --rate 0.2 --seed 7

Point `AGENT_LLM_BASE_URL` at the address that it prints. Each reply is damaged with the given probability by one kind
of `DAMAGE`. The choice depends on the seed, the request and how often the same request came, so that it is repeatable
even if requests come in another order. `GET /_damage` counts what was done.
"""

import argparse
import asyncio
import hashlib
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import Any

import aiohttp
from aiohttp import web

from gateway.features.evaluation.damage import DAMAGE, damage_message, list_known_tools

MAX_BODY_BYTES = 50_000_000
UPSTREAM_SECONDS = 600
START_SECONDS = 10
DROPPED_HEADERS = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
"""Ports differ from run to run; the damage to a request does not depend on them."""


class DegradedModel:
    """The proxy's state: where the model is, what is damaged how often, and what was done so far."""

    def __init__(self, upstream: str, rate: float, *, seed: int = 0, kinds: Sequence[str] = tuple(DAMAGE)) -> None:
        self.upstream = upstream.rstrip("/")
        self.rate = rate
        self.seed = seed
        self.kinds = tuple(kinds)
        self.counts: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()

    def degrade(self, request: dict[str, Any], reply: dict[str, Any]) -> str:
        """Damages the reply to a request in place, or leaves it. Returns the kind of damage, "" for none."""
        text = _PORT.sub("", json.dumps(request.get("messages"), ensure_ascii=False, sort_keys=True))
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._seen[digest] += 1
        random = Random(f"{self.seed}:{digest}:{self._seen[digest]}")  # noqa: S311 - repeatable damage, no secret
        self.counts["replies"] += 1
        message = (reply.get("choices") or [{}])[0].get("message")
        if message is None or random.random() >= self.rate:
            return ""
        kind = damage_message(message, self.kinds, random, list_known_tools(request))
        self.counts[kind or "undamaged"] += 1
        return kind

    def build_app(self) -> web.Application:
        """Builds the proxy's routes."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.cleanup_ctx.append(self._connect)
        app.router.add_get("/_damage", self._report)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_route("*", "/v1/{path:.*}", self._forward)
        return app

    async def _connect(self, app: web.Application) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=UPSTREAM_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as self._session:
            yield

    async def _report(self, request: web.Request) -> web.Response:
        return web.json_response({"rate": self.rate, "seed": self.seed, "counts": dict(self.counts)})

    async def _forward(self, request: web.Request) -> web.Response:
        """Passes on everything but completions as it is."""
        url = f"{self.upstream}/{request.match_info['path']}"
        headers = _pick_headers(request)
        async with self._session.request(request.method, url, data=await request.read(), headers=headers) as response:
            data = await response.read()
            return web.Response(body=data, status=response.status, content_type=response.content_type)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        """Asks the model for a whole reply, damages it, and sends it as the client wants it: whole or as a stream."""
        body = json.loads(await request.read())
        streams = bool(body.pop("stream", False))
        body.pop("stream_options", None)
        url = f"{self.upstream}/chat/completions"
        async with self._session.post(url, json=body, headers=_pick_headers(request)) as response:
            data = await response.read()
            if response.status != 200:
                return web.Response(body=data, status=response.status, content_type=response.content_type)
        reply = json.loads(data)
        self.degrade(body, reply)
        return await _send_stream(request, reply) if streams else web.json_response(reply)


def _pick_headers(request: web.Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.lower() not in DROPPED_HEADERS}


async def _send_stream(request: web.Request, reply: dict[str, Any]) -> web.StreamResponse:
    """Sends a whole reply as server-sent events: one chunk with the message, one with the end, one with the usage."""
    choice = reply["choices"][0]
    delta = dict(choice["message"])
    if delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(delta["tool_calls"])]
    base = {"id": reply.get("id", ""), "object": "chat.completion.chunk", "created": 0, "model": reply.get("model", "")}
    end = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason", "stop")}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**base, "choices": [end]},
        {**base, "choices": [], "usage": reply.get("usage")},
    ]
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for chunk in chunks:
        await response.write(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


@asynccontextmanager
async def serve_degraded(model: DegradedModel, port: int = 0) -> AsyncIterator[str]:
    """Yields the base URL of the running proxy, on this machine only."""
    runner = web.AppRunner(model.build_app(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@contextmanager
def serve_degraded_in_thread(model: DegradedModel) -> Iterator[str]:
    """Yields the base URL of the proxy, which runs in a thread: Inspect has the main thread's event loop."""
    started: Future[str] = Future()
    ended = threading.Event()

    async def serve() -> None:
        async with serve_degraded(model) as url:
            started.set_result(url)
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="degraded model")
    thread.start()
    try:
        yield started.result(START_SECONDS)
    finally:
        ended.set()
        thread.join()


async def _serve_until_ended(model: DegradedModel, port: int) -> None:
    async with serve_degraded(model, port) as url:
        print(f"degraded model on {url}", flush=True)  # noqa: T201 - its only output
        await asyncio.Event().wait()


def main(arguments: Sequence[str]) -> None:
    """Serves the proxy until it is ended."""
    parser = argparse.ArgumentParser(prog="python -m gateway.features.evaluation.degraded", description=__doc__)
    parser.add_argument("upstream", help="base URL of the model, such as http://127.0.0.1:11434/v1")
    parser.add_argument("--rate", type=float, default=0.2, help="probability that a reply is damaged, from 0 to 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=sorted(DAMAGE), help="only this kind; may be repeated")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args(arguments)
    model = DegradedModel(given.upstream, given.rate, seed=given.seed, kinds=given.kind or tuple(DAMAGE))
    asyncio.run(_serve_until_ended(model, given.port))


if __name__ == "__main__":
    main(sys.argv[1:])
