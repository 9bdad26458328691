"""What a model call is: request, reply, chunk, and the `ModelClient` port that adapters implement."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.events import Purpose
from agent.core.models import JsonObject, Usage


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A strict JSON schema the reply should follow, where the endpoint takes one."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One completion. `messages` and `tools` are in OpenAI's wire form."""

    model: str
    messages: tuple[JsonObject, ...]
    purpose: Purpose
    tools: tuple[JsonObject, ...] = ()
    response_schema: ResponseSchema | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    options: JsonObject = field(default_factory=dict)
    """Further parameters of the call, as the caller sent them, in OpenAI's names."""
    timeout_s: float = 60.0

    def wire(self, *, stream: bool, with_schema: bool) -> JsonObject:
        """The parameters of the call in OpenAI's wire form; without the schema where the endpoint refuses one."""
        body: JsonObject = {"model": self.model, "messages": [*self.messages]}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.tools:
            body["tools"] = [*self.tools]
        if self.response_schema is not None and with_schema:
            named: JsonObject = {
                "name": self.response_schema.name,
                "strict": True,
                "schema": self.response_schema.schema,
            }
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        body |= self.options
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call the model asks for. `arguments` is the raw text, perhaps no JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole completion. `usage.model_calls` is 1."""

    text: str
    model: str
    finish_reason: str
    usage: Usage
    tool_calls: tuple[ModelToolCall, ...] = ()
    reasoning: str = ""
    requests: int = 1
    """HTTP requests it took, transport retries included."""


@dataclass(frozen=True, slots=True)
class ModelChunk:
    """A piece of a streamed completion. The last one carries `finish_reason`; `usage` may come with or after it."""

    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    tool_calls: tuple[JsonObject, ...] = field(default=())
    """Raw OpenAI tool-call deltas, passed through for rooms that are a plain model."""
    requests: int = 1
    """HTTP requests it took to get the first chunk; it alone tells."""


class ModelClient(Protocol):
    """One way to models. Both methods raise subclasses of `ModelError` and nothing else (but cancellation).

    `stream` raises `ModelOutputError` when the stream ends without a finish reason (half a stream)."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One completion, not streamed; one attempt, no retries."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """One completion as chunks; errors before the first chunk are the same as `complete`'s."""
        ...

    async def check(self) -> None:
        """Raise a `ModelError` unless the endpoint answers; costs no tokens."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
