"""`ProviderServer`: a provider over loopback HTTP that refuses what the real one documents to refuse."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.canned import serve_requests
from tests.support.providers.rules import Refusal, Rules

Message = dict[str, Any]


@dataclass
class ProviderServer:
    """The rules, the messages it answers with, in their order, and the bodies that were sent. `raw_deltas` are sent
    as they are in place of a streamed message."""

    rules: Rules
    url: str = ""
    answers: deque[Message] = field(default_factory=deque)
    raw_deltas: list[Message] | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    accepted: list[dict[str, Any]] = field(default_factory=list)
    meet: asyncio.Barrier | None = None
    """Requests that wait for one another, so that they are under way at the same time."""

    def load(self, *answers: Message | str) -> None:
        """Give these from now on; asked for more, it says OK."""
        self.answers = deque({"content": one} if isinstance(one, str) else one for one in answers)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Refuse or answer a completion."""
        if request.path.endswith("/models"):
            return web.json_response({"object": "list", "data": [{"id": "model"}]})
        body = await request.json()
        self.bodies.append(body)
        if self.meet is not None:
            await self.meet.wait()
        refusal: Refusal | None = self.rules(body)
        if refusal is not None:
            return web.json_response(refusal.body, status=refusal.status)
        self.accepted.append(body)
        message = self.answers.popleft() if self.answers else {"content": "OK"}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        if not body.get("stream"):
            choice: Message = {
                "index": 0,
                "message": {"role": "assistant", "content": None, **message},
                "finish_reason": finish,
            }
            whole: Message = {"id": "c", "model": body["model"], "choices": [choice], "usage": _USAGE}
            return web.json_response(whole)
        return await self._stream(request, self.raw_deltas or _deltas(message), finish)

    async def _stream(self, request: web.Request, deltas: list[Message], finish: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        choices: list[Message] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
        for choice in choices:
            await response.write(f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode())
        await response.write(f"data: {json.dumps({'id': 'c', 'choices': [], 'usage': _USAGE})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


_USAGE = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}


def _deltas(message: Message) -> list[Message]:
    """A message in two pieces a text; its calls whole, each with its index unless it brings one."""
    deltas: list[Message] = [{"role": "assistant", "content": ""}]
    for key, value in message.items():
        if key == "tool_calls":
            deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(value)]
        elif isinstance(value, str):
            half = len(value) // 2
            deltas += [{key: value[:half]}, {key: value[half:]}]
        else:
            deltas.append({key: value})
    return deltas


@asynccontextmanager
async def provider(rules: Rules) -> AsyncIterator[ProviderServer]:
    """A running one, in this process."""
    server = ProviderServer(rules)
    async with serve_requests(server.answer) as url:
        server.url = f"{url}/v1"
        yield server
