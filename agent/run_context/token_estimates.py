"""Estimates the tokens of a model call from its characters, if the provider does not report them."""

import json

from agent.core.errors import ModelError
from agent.core.models import AgentRequest, JsonObject, Room, Usage
from agent.llm.port import ONE_CALL, ModelChunk, ModelReply, ModelRequest
from agent.llm.tiers import Prices

CHARS_PER_TOKEN = 4
"""For English text. Other languages and code have fewer, so their estimates are too low."""
ANSWER_TOKENS = 1_000
"""The estimated tokens of an answer without a limit."""
LEAST_CUT_PROMPT = 1_000
"""The tokens that an endpoint reports at least of a prompt that it has cut: no context is smaller than 2,048."""
IMAGE_TOKENS = 1_000
"""The estimated tokens of an image, independent of its address or data."""


def estimate_call(request: ModelRequest) -> Usage:
    """The most that a call may use: its input, and the longest answer that it allows."""
    return Usage(
        prompt_tokens=estimate_prompt_tokens(request.messages, request.tools),
        completion_tokens=request.max_tokens or ANSWER_TOKENS,
    )


def estimate_first_call_tokens(request: AgentRequest, room: Room, longest: int | None) -> int:
    """The least that a run's first call may use, in tokens.

    `longest` is the limit of a model's reply; None means no limit. The first call is the planner's, or without planning
    the caller's own.
    """
    texts = [message.content for message in request.messages] if request.messages is not None else [request.prompt]
    reply = (longest if room.planning else request.max_tokens or longest) or ANSWER_TOKENS
    return estimate_tokens_from_chars(sum(map(len, texts))) + reply


def estimate_input_tokens(request: AgentRequest) -> int:
    """The estimated tokens of what a request brings: its messages, its prompt, images and tools of the client.

    Excludes what the room adds: its prompts, its memory and its tools' results.
    """
    messages = request.messages or ()
    texts = [request.prompt, *(message.content for message in messages)]
    structures = [*request.client_tools, *(call for message in messages for call in message.tool_calls)]
    images = len(request.images) + sum(len(message.images) for message in messages)
    chars = sum(map(len, texts)) + sum(len(json.dumps(one, ensure_ascii=False)) for one in structures)
    return estimate_tokens_from_chars(chars) + images * IMAGE_TOKENS


class UsageMeter:
    """The usage of one call.

    If the endpoint reports no token counts, they are estimated from the characters and marked as estimates: otherwise
    the call would not count against any budget. Without a reported cost, the price list applies.
    """

    def __init__(self, request: ModelRequest, prices: Prices) -> None:
        self._request = request
        self._prices = prices
        self._usage = ONE_CALL
        self._model = request.model
        self._said = 0
        self._free = False

    def add_reply(self, reply: ModelReply) -> None:
        """Adds a whole reply."""
        self._usage = reply.usage
        self._model = reply.upstream or self._model
        calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
        self._said = len(reply.text) + len(reply.reasoning) + calls

    def add_chunk(self, chunk: ModelChunk) -> None:
        """Adds a chunk of a stream."""
        self._usage = chunk.usage or self._usage
        self._model = chunk.upstream or self._model
        calls = sum(len(json.dumps(delta.get("function") or {}, ensure_ascii=False)) for delta in chunk.tool_calls)
        self._said += len(chunk.text) + len(chunk.reasoning) + calls

    def estimate_usage_after_error(self, error: BaseException) -> Usage:
        """The usage of a call that failed or was interrupted.

        A call that failed before any text is free. An interrupted call is not, because the provider charges for it.
        """
        self._free = isinstance(error, ModelError) and not self._said
        return self.usage

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        if self._free:
            return self._usage
        if self._usage.total_tokens:
            return self._prices.add_cost(self._model, self._usage)
        estimate = {
            "prompt_tokens": estimate_prompt_tokens(self._request.messages, self._request.tools),
            "completion_tokens": estimate_tokens_from_chars(self._said),
            "estimated": True,
        }
        return self._prices.add_cost(self._model, self._usage.model_copy(update=estimate))


def estimate_unread_tokens(request: ModelRequest, usage: Usage) -> int:
    """About how many tokens of its prompt the endpoint left out, as Ollama does with a prompt that is longer than its
    context; 0 unless it reports less than half of what the prompt must have.

    Few tokens are another count, such as that of the tokens outside a cache. Nobody knows how many a picture takes.
    """
    if usage.estimated or usage.prompt_tokens < LEAST_CUT_PROMPT or _has_images(request.messages):
        return 0
    estimate = estimate_prompt_tokens(request.messages, request.tools)
    return estimate - usage.prompt_tokens if usage.prompt_tokens * 2 < estimate else 0


def _has_images(messages: tuple[JsonObject, ...]) -> bool:
    parts = [part for message in messages if isinstance(content := message.get("content"), list) for part in content]
    return any(isinstance(part, dict) and "image_url" in part for part in parts)


def estimate_prompt_tokens(messages: tuple[JsonObject, ...], tools: tuple[JsonObject, ...]) -> int:
    """The estimated tokens of a call's messages and tools."""
    chars, images = 0, 0
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if isinstance(part, dict) and "image_url" in part:
                images += 1
            else:
                chars += len(str((part.get("text") or "") if isinstance(part, dict) else part or ""))
        if calls := message.get("tool_calls"):
            chars += len(json.dumps(calls, ensure_ascii=False))
    chars += sum(len(json.dumps(tool, ensure_ascii=False)) for tool in tools)
    return estimate_tokens_from_chars(chars) + images * IMAGE_TOKENS


def estimate_tokens_from_chars(chars: int) -> int:
    """The estimated tokens of a text with this many characters."""
    return -(-chars // CHARS_PER_TOKEN)
