"""A scripted model behind the `ModelClient` port, in process."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic import JsonValue

from agent.core.errors import ModelDownError, ModelError, ModelOutputError, ModelTimeoutError
from agent.core.models import Usage
from agent.llm.faults import build_status_error
from agent.llm.port import ModelChunk, ModelReply, ModelRequest, ModelToolCall
from tests.support.script import WIRE_FAULTS, Reply, Script, is_side_reply

STATUS = {
    "status_400": (400, "bad request"),
    "status_401": (401, "invalid key"),
    "status_429": (429, "slow down"),
    "status_500": (500, "broken"),
    "status_503": (503, "overloaded"),
    "context": (400, "This model's maximum context length is 8192 tokens"),
    "refuse_schema": (400, "response_format json_schema is not supported"),
}


class ScriptedClient:
    """Implements `ModelClient` from a script; records what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []

    def purposes(self) -> list[str]:
        """The purpose of every request, in order."""
        return [request["purpose"] for request in self.requests]

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        reply = self._answer(request, schema=request.response_schema is not None)
        if reply.fault == "refuse_schema":
            reply = self._answer(request, schema=False)
        await self._wait(reply, request)
        self._fail(reply)
        calls = tuple(ModelToolCall(c.id, c.name, json.dumps(c.args)) for c in reply.calls)
        return ModelReply(reply.text, request.model, reply.finish, _usage(reply), calls, reply.reasoning)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        reply = self._answer(request, schema=False)
        await self._wait(reply, request)
        if reply.fault != "half_stream":
            self._fail(reply)
        if reply.reasoning:
            yield ModelChunk(reasoning=reply.reasoning)
        text = reply.text[: len(reply.text) // 2] if reply.fault == "half_stream" else reply.text
        for start in range(0, len(text), reply.chunk):
            yield ModelChunk(text=text[start : start + reply.chunk])
            await asyncio.sleep(reply.pause_s)
        if reply.fault == "half_stream":
            raise ModelOutputError("the stream ended in the middle", agent_id="models")
        for index, call in enumerate(reply.calls):
            function: JsonValue = {"name": call.name, "arguments": json.dumps(call.args)}
            yield ModelChunk(tool_calls=({"index": index, "id": call.id, "function": function},))
        yield ModelChunk(finish_reason=reply.finish)
        yield ModelChunk(usage=_usage(reply))

    async def check(self) -> None:
        """Reachable."""

    async def aclose(self) -> None:
        """Nothing to close."""

    def _answer(self, request: ModelRequest, *, schema: bool) -> Reply:
        body: dict[str, Any] = {**request.options, "model": request.model, "messages": list(request.messages)}
        if request.tools:
            body["tools"] = list(request.tools)
        form = request.response_schema.schema if request.response_schema is not None else None
        reply = self.script.answer(request.purpose, body)
        if not is_side_reply(reply):
            limit = request.max_tokens
            self.requests.append(
                {"purpose": request.purpose, "body": body, "schema": schema, "form": form, "limit": limit}
            )
        if reply is None:
            raise ModelDownError(f"no rule for {request.purpose}: {json.dumps(body['messages'][-1])[:300]}")
        assert reply.fault not in WIRE_FAULTS, f"{reply.fault} is a fault of the wire: use the scripted server"
        return reply

    async def _wait(self, reply: Reply, request: ModelRequest) -> None:
        if reply.fault == "hang":
            raise ModelTimeoutError(f"no answer within {request.timeout_s:g} s")
        if reply.delay_s:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=reply.delay_s)

    def _fail(self, reply: Reply) -> None:
        if reply.fault in STATUS:
            status, message = STATUS[reply.fault]
            headers = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
            error: ModelError = build_status_error(status, headers, message.encode(), "the script")
            raise error
        if reply.fault is not None:
            raise ModelOutputError(f"the reply is no completion ({reply.fault})", agent_id="models")


def _usage(reply: Reply) -> Usage:
    return Usage(model_calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
