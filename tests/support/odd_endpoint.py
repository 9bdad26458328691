"""An OpenAI-compatible endpoint in this process, odd in one way, with a small model behind it that knows one sum."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.canned import serve_requests
from tests.support.schema_samples import NotWritableError, write_value
from tests.support.script import NEED_QUESTION, find_side_question

QUESTION = "Anna buys 240 tickets at 17.5 EUR each. What does she pay in all?"
CALL = {"tool": "calculator", "inputs": {"expression": "17.5 * 240"}}
RESULT, MADE_UP = "4200", "4500"

Body = dict[str, Any]
Refuse = Callable[[Body], tuple[int, str] | None]
Write = Callable[[Any], str]


@dataclass
class OddEndpoint:
    """How the endpoint behaves, and what it was sent.

    `refuse` says why a request is refused, with its status. `ignores_schema` has the model write as if none were sent;
    `write` turns a decision into its reply, and `answer` is what it answers with the result, or with one that it makes
    up where it was not given any. `compile_s` are seconds that each new
    schema takes, `piece_s` those before each streamed piece, `context` the tokens of a prompt, at four characters each.
    """

    refuse: Refuse = lambda body: None
    ignores_schema: bool = False
    write: Write = json.dumps
    answer: str = "Anna pays {} EUR."
    compile_s: float = 0.0
    piece_s: float = 0.0
    context: int = 1_000_000
    finish: str = "stop"
    thoughts: str = ""
    """What it thinks before each reply, in a field of its own; four characters are a token of the limit."""
    prompt_tokens: int = 9
    """The tokens of each prompt that it reports."""
    bodies: list[Body] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    """The streamed pieces of each reply that were sent before the client left."""
    compiled: set[str] = field(default_factory=set)
    origin: str = ""

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{self.origin}/v1"

    @property
    def schemas(self) -> list[Any]:
        """The schemas of all requests, None for one without."""
        return [get_schema(body) for body in self.bodies]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers any request."""
        if not request.path.endswith("/completions"):
            return web.json_response({"object": "list", "data": [{"id": "odd", "object": "model"}]})
        body = await request.json()
        self.bodies.append(body)
        refusal = self._refuse_length(body) or self.refuse(body)
        if refusal is not None:
            status, message = refusal
            return web.json_response({"error": {"message": message}}, status=status)
        schema = json.dumps(get_schema(body), sort_keys=True)
        if get_schema(body) is not None and schema not in self.compiled:
            await asyncio.sleep(self.compile_s)
            self.compiled.add(schema)
        return await self._send(request, body, self.reply(body, request.headers.get("x-stepgate-purpose", "")))

    def _refuse_length(self, body: Body) -> tuple[int, str] | None:
        tokens = len(json.dumps(body["messages"])) // 4
        if tokens <= self.context:
            return None
        return 400, f"the request exceeds the available context size ({self.context} tokens): {tokens}"

    def reply(self, body: Body, purpose: str) -> str:
        """What the model writes."""
        if purpose not in ("planner", "supervisor"):
            is_known = RESULT in json.dumps(body["messages"])
            return self.answer.format(RESULT if is_known else MADE_UP)
        decision, schema = decide(body, purpose), get_schema(body)
        if schema is None or self.ignores_schema:
            return self.write(decision)
        try:
            return json.dumps(write_value(decision, schema))
        except NotWritableError:
            return json.dumps(decision)

    async def _send(self, request: web.Request, body: Body, text: str) -> web.StreamResponse:
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": 9, "total_tokens": self.prompt_tokens + 9}
        head = {"id": "x", "model": "odd", "created": 1}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": self.finish}
            return web.json_response({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        room = 4 * body.get("max_tokens", 1_000_000)
        pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
        is_cut = len(self.thoughts) >= room
        thoughts = [self.thoughts[at : at + 4] for at in range(0, min(len(self.thoughts), room), 4)]
        deltas: list[tuple[Any, str | None]] = [({"reasoning_content": piece}, None) for piece in thoughts]
        deltas += [({"content": piece}, None) for piece in pieces if not is_cut]
        self.pieces.append(0)
        for delta, finish in [*deltas, ({}, "length" if is_cut else self.finish)]:
            await asyncio.sleep(self.piece_s)
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            frame = {**head, "object": "chat.completion.chunk", "choices": [choice], "usage": usage if finish else None}
            await response.write(f"data: {json.dumps(frame)}\n\n".encode())
            self.pieces[-1] += 1
        await response.write(b"data: [DONE]\n\n")
        return response


def decide(body: Body, purpose: str) -> Any:
    """What the model means to say to a question of the planner: it looks the sum up once, then it answers."""
    last = str(body["messages"][-1]["content"])
    if purpose == "supervisor":
        return {"reason": "it is the result", "evidence": RESULT, "outcome": "accept", "suggested_fix": ""}
    if find_side_question(body) == NEED_QUESTION:
        return "lookup"
    if "Before it is answered" in last:
        return {"tool": "calculator"}
    if RESULT in json.dumps(body["messages"]):
        return {"next": {"kind": "answer"}}
    return {"next": {"kind": "calls", "todo": ["the product of 17.5 and 240"], "calls": [{"for": 1, **CALL}]}}


def get_schema(body: Body) -> Any:
    """The schema of a request, or None."""
    return body.get("response_format", {}).get("json_schema", {}).get("schema")


@asynccontextmanager
async def serve_odd(endpoint: OddEndpoint) -> AsyncIterator[OddEndpoint]:
    """Serves the endpoint on a free port of 127.0.0.1."""
    async with serve_requests(endpoint.handle) as endpoint.origin:
        yield endpoint
