"""How many tokens a model call takes, where nobody tells: by its characters."""

import json

from agent.core.errors import ModelError
from agent.core.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.core.llm.prices import Prices
from agent.core.models import AgentRequest, Room, Usage

CHARS_PER_TOKEN = 4
"""Of English text; other languages and code have fewer, so that an estimate is rather too low for them."""
ANSWER_TOKENS = 1_000
"""What an answer without a limit is taken to cost, until it is known."""
IMAGE_TOKENS = 1_000
"""What an image is taken to cost, however long its address or its data is."""


def expected(request: ModelRequest) -> Usage:
    """What a call may take: what is sent, and the longest answer it asks for."""
    return Usage(prompt_tokens=_sent(request), completion_tokens=request.max_tokens or ANSWER_TOKENS)


def first_call(request: AgentRequest, room: Room, longest: int) -> int:
    """What the first call of a run may cost at the least; `longest` is the longest reply asked of a model, in tokens. A
    plain model is asked for what the caller wants, a planner for a plan."""
    said = [message.content for message in request.messages] if request.messages is not None else [request.prompt]
    reply = longest if room.planning else request.max_tokens or longest
    return _tokens(sum(map(len, said))) + reply


class Bill:
    """What one call has cost. Endpoints that tell no tokens would be free of every budget: theirs are what was sent and
    what was said come to, and the usage is marked as estimated. Of those that tell no cost it is that of the list."""

    def __init__(self, request: ModelRequest, prices: Prices) -> None:
        self._request = request
        self._prices = prices
        self._usage = Usage(model_calls=1)
        self._said = 0
        self._free = False

    def reply(self, reply: ModelReply) -> None:
        """A whole reply has come."""
        self._usage = reply.usage
        calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
        self._said = len(reply.text) + len(reply.reasoning) + calls

    def chunk(self, chunk: ModelChunk) -> None:
        """A piece of a stream has come."""
        self._usage = chunk.usage or self._usage
        calls = sum(len(json.dumps(delta.get("function") or {}, ensure_ascii=False)) for delta in chunk.tool_calls)
        self._said += len(chunk.text) + len(chunk.reasoning) + calls

    def ended(self, error: BaseException) -> Usage:
        """What it has cost when it failed or was cut short. Free is what failed before anything was said; what we cut
        short is not: the provider has begun it."""
        self._free = isinstance(error, ModelError) and not self._said
        return self.spent

    @property
    def spent(self) -> Usage:
        """What it has cost by now."""
        if self._free:
            return self._usage
        if self._usage.total_tokens:
            return self._prices.priced(self._request.model, self._usage)
        estimate = {"prompt_tokens": _sent(self._request), "completion_tokens": _tokens(self._said), "estimated": True}
        return self._prices.priced(self._request.model, self._usage.model_copy(update=estimate))


def _sent(request: ModelRequest) -> int:
    chars, images = 0, 0
    for message in request.messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if isinstance(part, dict) and "image_url" in part:
                images += 1
            else:
                chars += len(str((part.get("text") or "") if isinstance(part, dict) else part or ""))
        if calls := message.get("tool_calls"):
            chars += len(json.dumps(calls, ensure_ascii=False))
    chars += sum(len(json.dumps(tool, ensure_ascii=False)) for tool in request.tools)
    return _tokens(chars) + images * IMAGE_TOKENS


def _tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)
