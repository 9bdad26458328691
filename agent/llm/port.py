"""The `ModelClient` port, and what its calls take and return: request, reply, chunk."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from agent.core.events import FailedUpstream, Purpose
from agent.core.models import MODEL_OPTIONS, JsonObject, Usage


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A strict JSON schema for the reply, sent where the endpoint supports it."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One completion request. `messages` and `tools` are in OpenAI's wire form."""

    model: str
    messages: tuple[JsonObject, ...]
    purpose: Purpose
    tools: tuple[JsonObject, ...] = ()
    response_schema: ResponseSchema | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    options: JsonObject = field(default_factory=dict)
    """Further parameters of the call, as the caller sent them, in OpenAI's names."""
    fallbacks: tuple[str, ...] = ()
    """Upstreams to ask in order if `model` fails, as models or `model@endpoint`."""
    timeout_s: float = 60.0
    """Seconds: of a whole reply in all; of a streamed one until its first token, and between tokens."""
    retry_timeouts: bool = True
    """Whether a call that took too long is made once more, with twice the limit."""
    tokens_left: int | None = None
    """Tokens that the caller's budget leaves for the reply. Not sent."""

    @property
    def reply_limit(self) -> int | None:
        """The tokens after which a streamed reply is cut; None means no limit."""
        requested_limit = self.options.get("max_completion_tokens", self.max_tokens)
        limits = [limit for limit in (requested_limit, self.tokens_left) if isinstance(limit, int)]
        return min(limits, default=None)

    def to_openai(self, *, stream: bool, schema: JsonObject | None) -> JsonObject:
        """The parameters of the call in OpenAI's wire form, with the response schema as the endpoint takes it, or None
        where it takes none."""
        body: JsonObject = {"model": self.model, "messages": [*self.messages]}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.tools:
            body["tools"] = [*self.tools]
        if self.response_schema is not None and schema is not None:
            named: JsonObject = {"name": self.response_schema.name, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        body |= {name: value for name, value in self.options.items() if name in MODEL_OPTIONS}
        if "max_completion_tokens" in body:  # the caller chose this name of the limit
            body.pop("max_tokens", None)
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call the model asks for. `arguments` is the raw text, which may not be valid JSON."""

    id: str
    name: str
    arguments: str
    extra: JsonObject = field(default_factory=dict)
    """The provider's further fields of the call, such as Gemini's `extra_content`; they go back with the result."""


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
    provider_fields: JsonObject = field(default_factory=dict)
    """Those of `PROVIDER_FIELDS` that came; they go back with the message."""
    refused: bool = False
    """Whether `text` is the model's refusal (OpenAI's `refusal`)."""
    upstream: str = ""
    """The upstream that answered in place of the requested model."""
    failed_upstreams: tuple[FailedUpstream, ...] = ()


_NO_FIELDS: JsonObject = {}
"""Shared by chunks, and never changed."""


class ModelChunk(NamedTuple):
    """One chunk of a streamed completion. The last one has `finish_reason`; `usage` may come with or after it.

    A named tuple is made in a quarter of the time of a frozen dataclass.
    """

    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    tool_calls: tuple[JsonObject, ...] = ()
    """Raw OpenAI tool-call deltas, passed through for rooms that are a plain model."""
    provider_fields: JsonObject = _NO_FIELDS
    """Pieces of `ModelReply.provider_fields`, to be joined by `join_fields`."""
    refusal: str = ""
    """A piece of the model's refusal, in place of `text`."""
    requests: int = 1
    """HTTP requests it took to get the first chunk; only that chunk has the number."""
    upstream: str = ""
    """As in `ModelReply`; the first chunk has it."""
    failed_upstreams: tuple[FailedUpstream, ...] = ()
    restarts: bool = False
    """Whether all text before this chunk was the model's thought, which its template had begun in the prompt. The
    chunk has the thought as `reasoning`."""

    @property
    def is_token(self) -> bool:
        """Whether there is a piece of the reply or its end, and not only a count of tokens."""
        return bool(self.text or self.finish_reason is not None or self.has_parts_besides_text)

    @property
    def has_parts_besides_text(self) -> bool:
        """Whether there are parts whose place among the pieces of text counts, or calls of tools."""
        return bool(self.reasoning or self.refusal or self.tool_calls or self.provider_fields)


ONE_CALL = Usage(model_calls=1)
"""The usage of a call whose tokens are not known."""


class ModelClient(Protocol):
    """Calls models. Its methods raise subclasses of `ModelError` and nothing else, besides cancellation.

    `stream` raises `ModelOutputError` when the stream ends without a finish reason.
    """

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One completion, without streaming and without retries."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Yields one completion in chunks. Errors before the first chunk are those of `complete`."""
        ...

    async def check(self) -> None:
        """Raises a `ModelError` unless the endpoint answers. Costs no tokens."""
        ...

    async def aclose(self) -> None:
        """Closes connections."""
        ...
