"""An OpenAI-compatible endpoint in this process: it lists models, answers with one text, and keeps what it was sent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from agent.llm.model_address import build_authorization
from tests.support.canned import serve_requests

Answer = Callable[[dict[str, Any]], str]


@dataclass
class ModelEndpoint:
    """What the endpoint lists and says. A `key` is required of every request if it is set."""

    listing: object
    tags: dict[str, Any] | None = None
    loaded: dict[str, Any] | None = None
    """What Ollama says of the models in memory."""
    key: str | None = None
    """A bearer key, or a login that begins with `Basic `."""
    answer: Answer = lambda body: "ready"
    delay_s: float = 0.0
    hold: Callable[[web.Request], Awaitable[None]] | None = None
    """Awaited before each answer."""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    origin: str = ""

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{self.origin}/v1"

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.origin.rpartition(":")[2])

    async def handle(self, request: web.Request) -> web.Response:
        """Answers any request."""
        self.paths.append(request.path)
        self.headers.append(dict(request.headers))
        await asyncio.sleep(self.delay_s)
        if self.hold is not None:
            await self.hold(request)
        wanted = None if self.key is None else build_authorization(self.key)
        if wanted is not None and request.headers.get("Authorization") != wanted:
            sent = request.headers.get("Authorization", "nothing").removeprefix("Bearer ")
            return web.json_response({"error": {"message": f"Incorrect API key provided: {sent}"}}, status=401)
        if request.path == "/v1/models":
            return web.json_response(self.listing)
        if request.path == "/api/tags" and self.tags is not None:
            return web.json_response(self.tags)
        if request.path == "/api/ps" and self.loaded is not None:
            return web.json_response(self.loaded)
        if request.path == "/v1/chat/completions":
            return web.json_response(build_completion(self.answer(await request.json())))
        return web.json_response({"error": {"message": "not found"}}, status=404)


def build_completion(text: str) -> dict[str, Any]:
    """A whole completion with this text."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def list_of(*names: str, **fields: Any) -> dict[str, Any]:
    """OpenAI's list of these models, each with the same further fields."""
    return {"object": "list", "data": [{"id": name, "object": "model", **fields} for name in names]}


@asynccontextmanager
async def model_endpoint(listing: object, **options: Any) -> AsyncIterator[ModelEndpoint]:
    """Serves an endpoint on a free port of 127.0.0.1."""
    endpoint = ModelEndpoint(listing, **options)
    async with serve_requests(endpoint.handle) as endpoint.origin:
        yield endpoint
