"""`AskedModel`: the model as the tasks of the probe ask it. Implements `PlannerModel`, and counts calls and tokens."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic

from agent.core.errors import ModelAuthError, ModelDownError, ModelError, ModelRateLimitError
from agent.core.models import JsonObject
from agent.llm.chunks import has_thoughts
from agent.llm.port import ModelClient, ModelReply, ModelRequest, ResponseSchema
from agent.llm.streamed_reply import ThoughtMemory
from agent.planning.parse import read_word

REPLY_TOKENS = 300
"""Longest reply: a small model that repeats itself must not take minutes."""
PIECE_CHARS = 1_000
"""Characters of a prompt that are read at once: about ten seconds on two busy cores, with a model of 1.5 billion
parameters."""
TURN_CHARS = 15
"""What a template writes around each message, as characters of text that take as long to read."""
LOST = (ModelDownError, ModelRateLimitError, ModelAuthError)
"""Errors that say nothing of the model: it is measured another time. A time-out says that it is slow."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of one streamed call."""

    first_token_s: float
    prompt_tokens_per_s: float
    tokens_per_s: float


class AskedModel:
    """One model behind a client. Temperature 0, no repetition after a time-out."""

    def __init__(self, client: ModelClient, model: str, *, timeout_s: float) -> None:
        self._client = client
        self._model = model
        self._timeout_s = timeout_s
        self._thoughts = ThoughtMemory()
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.thinks = False
        """Whether a reply had thoughts."""
        self.lost: ModelError | None = None
        """The error of an endpoint that cannot be asked now. A planner falls back to rules, and does not raise it."""

    async def ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema | None) -> ModelReply:
        """One completion. Raises `ModelError`."""
        return await self.complete(messages, schema=schema)

    async def ask_word(self, messages: tuple[JsonObject, ...]) -> str:
        """See `PlannerModel.ask_word`."""
        return read_word((await self.complete(messages)).text)

    async def read(self, messages: tuple[JsonObject, ...]) -> None:
        """Has the endpoint read these messages, and reply with one token. Raises `ModelError`.

        They are read in pieces: what an endpoint has begun to read, the next request waits for.
        """
        for piece in _iter_beginnings(messages):
            await self._client.complete(replace(self._build_request(piece, None, ()), max_tokens=1))

    async def complete(
        self,
        messages: tuple[JsonObject, ...],
        *,
        schema: ResponseSchema | None = None,
        tools: tuple[JsonObject, ...] = (),
    ) -> ModelReply:
        """One completion, with tools if there are any. Raises `ModelError`."""
        request = self._build_request(messages, schema, tools)
        try:
            reply = await self._client.complete(request)
        except LOST as error:
            self.lost = error
            raise
        self.calls += 1
        self.prompt_tokens += reply.usage.prompt_tokens
        self.completion_tokens += reply.usage.completion_tokens
        self.thinks = self.thinks or has_thoughts(reply.reasoning, reply.text)
        return self._thoughts.split_reply(request, reply)

    async def measure_speed(self, messages: tuple[JsonObject, ...]) -> Speed:
        """The speed of a streamed call, by clock and the endpoint's count of tokens. Raises `ModelError`."""
        started = monotonic()
        first = last = 0.0
        pieces = prompt = completion = 0
        async for chunk in self._client.stream(self._build_request(messages, None, ())):
            if chunk.text or chunk.reasoning:
                last = monotonic()
                first = first or last
                pieces += 1
            if chunk.usage is not None:
                prompt, completion = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        self.calls += 1
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        until_first = max(first - started, 1e-6) if first else 0.0
        written = max(last - first, 1e-6)
        return Speed(
            first_token_s=round(until_first, 3),
            prompt_tokens_per_s=round(prompt / until_first, 1) if until_first else 0.0,
            # The first token's time is that of the prompt. Without a count each piece is a token.
            tokens_per_s=round(max((completion or pieces) - 1, 0) / written, 1) if pieces > 1 else 0.0,
        )

    def _build_request(
        self, messages: tuple[JsonObject, ...], schema: ResponseSchema | None, tools: tuple[JsonObject, ...]
    ) -> ModelRequest:
        return ModelRequest(
            model=self._model,
            messages=messages,
            purpose="probe",
            tools=tools,
            response_schema=schema,
            temperature=0.0,
            max_tokens=REPLY_TOKENS,
            timeout_s=self._timeout_s,
            retry_timeouts=False,
        )


def _iter_beginnings(messages: tuple[JsonObject, ...]) -> Iterator[tuple[JsonObject, ...]]:
    """Yields longer and longer beginnings of a conversation, then all of it. Each ends with a message of the user,
    without which some templates refuse it."""
    first, text, last = messages[0], str(messages[0]["content"]), messages[-1]
    yield from (({**first, "content": text[:end]}, last) for end in range(PIECE_CHARS, len(text), PIECE_CHARS))
    unread = len(text) % PIECE_CHARS
    for place, message in enumerate(messages[1:-1], start=1):
        unread += len(str(message["content"])) + TURN_CHARS
        if unread > PIECE_CHARS and message["role"] == last["role"]:
            yield messages[: place + 1]
            unread = 0
    yield messages
