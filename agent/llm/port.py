"""The `ModelClient` port, and what its calls take and return: request, reply and why it ended, chunk."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from agent.core.events import FailedUpstream, FinishReason, Purpose
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


_REASONS: Mapping[str, FinishReason] = MappingProxyType({
    "stop": "stop", "end_turn": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop",
    "stop_token": "stop", "complete": "stop", "completed": "stop", "finish": "stop", "finished": "stop", "end": "stop",
    "done": "stop",
    "length": "length", "max_tokens": "length", "max_output_tokens": "length", "model_length": "length",
    "model_context_window_exceeded": "length", "max_completion_tokens": "length", "limit": "length",
    "tool_calls": "tool_calls", "tool_call": "tool_calls", "tool_use": "tool_calls", "function_call": "tool_calls",
    "content_filter": "content_filter", "content_filtered": "content_filter", "safety": "content_filter",
    "refusal": "content_filter", "sensitive": "content_filter", "guardrail_intervened": "content_filter",
    "prohibited_content": "content_filter", "blocklist": "content_filter", "recitation": "content_filter",
    "spii": "content_filter", "error_toxic": "content_filter",
})  # fmt: skip
"""OpenAI's reasons, and the names that providers behind its wire give to them (Anthropic, Bedrock, Cohere, Gemini, GLM,
Mistral, TGI)."""
_FAULT = re.compile(r"error$|^malformed", re.IGNORECASE)
_UNFINISHED = frozenset({"", "null", "none"})
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAME_CHARS = 60


class ReplyEnd(NamedTuple):
    """Why a reply ended. `interruption` is the provider's own word for an end that leaves it unfinished, such as
    `abort` or `network_error`; then the reason is `length`, as for any text that is not whole.
    """

    finish_reason: FinishReason
    interruption: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the model ended the reply itself: neither a limit, nor a filter, nor a fault cut it off."""
        return self.finish_reason in ("stop", "tool_calls")

    def describe(self) -> str:
        """The interruption in words; "" without one."""
        return describe_interruption(self.interruption) if self.interruption else ""


WHOLE = ReplyEnd("stop")


def read_finish_reason(value: object) -> str | None:
    """A finish reason under OpenAI's name, or as the provider writes it if it has none there. None where the reply goes
    on: some servers write "" or "null" then."""
    reason = value.lower() if isinstance(value, str) else ""
    if reason in _UNFINISHED or not isinstance(value, str):
        return None
    return _REASONS.get(reason) or _read_composed(value) or reason[:_NAME_CHARS]


def read_choice_end(choice: Mapping[str, object]) -> str | None:
    """The finish reason of a choice. Where a provider failed, a router may call the end `stop` and name the fault in
    the provider's own reason alone (OpenRouter)."""
    reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
    is_fault = bool(reason) and isinstance(native, str) and _FAULT.search(native) is not None
    return read_finish_reason(native if is_fault else reason)


def _read_composed(value: str) -> FinishReason | None:
    """The reason that a longer name holds: the member of an enumeration (`FinishReason.MAX_TOKENS`), a name in camel
    case, or one that says what it stopped at (`eos_token_id`, `stop_str`). A limit or a filter in the name counts more.
    """
    name = _HUMP.sub("_", value).lower()
    tail = name.rpartition(".")[2].removeprefix("finish_reason_")
    if (whole := _REASONS.get(tail)) is not None:
        return whole
    words = re.findall("[a-z]+", tail)
    named = (_REASONS.get(word, "stop") for word in words)
    worse = next((reason for reason in named if reason != "stop"), None)
    return worse or ("stop" if any(word.startswith(("stop", "eos")) for word in words) else None)


def read_end(finish_reason: str | None) -> ReplyEnd:
    """The end of a reply with this reason. One that the table does not know, whole or in words, is an interruption."""
    reason = read_finish_reason(finish_reason) or "stop"
    name = _REASONS.get(reason)
    return ReplyEnd("length", reason) if name is None else ReplyEnd(name)


def describe_interruption(name: str) -> str:
    """An interruption in words."""
    return f"the model's endpoint ended the reply early ({name}), so it may be incomplete; ask again"


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

    @property
    def is_whole(self) -> bool:
        """Whether the model ended the reply itself: neither a limit, nor a filter, nor a fault cut it off."""
        return read_end(self.finish_reason).is_whole


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
