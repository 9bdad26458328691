"""`WireForm`: how the requests of one model are written, as far as its endpoint's errors and replies have shown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from pydantic import JsonValue

from agent.core.models import PROVIDER_FIELDS, JsonObject
from agent.llm.call_ids import shorten_call_ids
from agent.llm.message_roles import RoleForm, arrange_roles
from agent.llm.refusals import ContextSizes
from agent.llm.schema_dialect import WHOLE, SchemaDialect

RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the limit: OpenAI's reasoning models refuse the old one, many other servers do not know the new."""
OPTIONAL = frozenset({
    "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed",
    "stream_options", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "prediction", "service_tier", "store", *RENAMED,
})  # fmt: skip
"""The parameters that may be left out: they tune the sampling or the bookkeeping. One that decides what is answered
(`stop`, `tools`, `response_format`, `reasoning_effort`) is not: leaving it out would answer another request."""
STREAM = "stream"
OPTIONAL_FIELDS = PROVIDER_FIELDS | {"name"}
"""The fields of messages that may be left out. Some providers send reasoning and refuse to get it back (Groq)."""
LEAST_REPLY_TOKENS = 64
"""The shortest reply that is worth asking for: with less room, a shorter prompt helps more."""
THOUGHT_TOKENS = 6_000
"""Added to the engine's own limits for a model that thinks: they are meant for what it writes after its thoughts."""
_SPARE = 1.1
"""How much longer than estimated another prompt may be: texts differ in characters a token."""


@dataclass(frozen=True, slots=True)
class ReplyRoom:
    """The context of a model whose endpoint refuses a prompt that, with the limit of its reply, is longer.

    `sizes` is what the endpoint said of a prompt of `chars` characters; None if it did not say.
    """

    sizes: ContextSizes | None = None
    chars: int = 0

    def fit(self, limit: int, chars: int) -> int | None:
        """The limit for a prompt of `chars` characters; None to send none, and take what is left."""
        if self.sizes is None:
            return None
        tokens = self.sizes.prompt if chars == self.chars else ceil(chars * self.sizes.prompt / self.chars * _SPARE)
        left = self.sizes.context - tokens
        return min(limit, left) if left >= min(limit, LEAST_REPLY_TOKENS) else None


@dataclass(frozen=True, slots=True)
class WireForm:
    """What is left out of, or rewritten in, the requests of one model."""

    dialect: SchemaDialect | None = WHOLE
    """The part of JSON Schema that is sent; None for no schema."""
    refused: frozenset[str] = frozenset()
    """Parameters, and fields of messages, that are not sent. Without `stream` a reply comes as a whole."""
    refused_values: frozenset[tuple[str, str]] = frozenset()
    """Parameters, with the value as JSON, that are not sent by the engine itself; a limit as it is before it is fitted
    to the prompt. A caller learns of them."""
    roles: RoleForm = "as_is"
    short_ids: bool = False
    """Whether the ids of tool calls are rewritten."""
    reply_room: ReplyRoom | None = None
    thinks: bool = False

    def write(self, body: JsonObject, *, is_own: bool) -> JsonObject:
        """The body as the endpoint takes it. `is_own` says that the engine, and not a caller, chose the parameters."""
        if is_own and isinstance(limit := body.get("max_tokens"), int):
            body["max_tokens"] = self.add_thoughts(limit)
        if self.refused:
            self._leave_out(body)
        if is_own:
            for name, value in self.refused_values:
                if name in body and json.dumps(body[name]) == value:
                    del body[name]
        messages = body["messages"]
        if self.roles != "as_is" and isinstance(messages, list):
            body["messages"] = arrange_roles(messages, self.roles)
        if self.short_ids and isinstance(messages := body["messages"], list):
            body["messages"] = shorten_call_ids(messages)
        limit_name = find_limit(body)
        if limit_name is not None and self.reply_room is not None and isinstance(limit := body[limit_name], int):
            fitting = self.reply_room.fit(limit, count_prompt_chars(body))
            body |= {limit_name: fitting} if fitting is not None else {}
            if fitting is None:
                del body[limit_name]
        return body

    def add_thoughts(self, limit: int) -> int:
        """The limit of one of the engine's own replies with its thoughts. A call for less than an answer, such as one
        that only has the prompt read, gets no more.
        """
        return limit + THOUGHT_TOKENS if self.thinks and limit >= LEAST_REPLY_TOKENS else limit

    def _leave_out(self, body: JsonObject) -> None:
        if STREAM in self.refused:
            body.pop("stream_options", None)
        for name in sorted(self.refused):
            value = body.pop(name, None)
            renamed = RENAMED.get(name)
            if value is not None and renamed is not None and renamed not in self.refused:
                body[renamed] = value
        fields = self.refused & OPTIONAL_FIELDS
        messages = body["messages"]
        if fields and isinstance(messages, list):
            body["messages"] = [
                {key: value for key, value in message.items() if key not in fields}
                for message in messages
                if isinstance(message, dict)
            ]


def find_limit(body: JsonObject) -> str | None:
    """The name under which a body limits its reply; None if it does not."""
    return next((name for name in RENAMED if name in body), None)


def count_prompt_chars(body: JsonObject) -> int:
    """The characters of a body that the model reads."""
    return sum(len(json.dumps(body.get(part), ensure_ascii=False)) for part in ("messages", "tools"))


def encode_value(value: JsonValue) -> str:
    """A parameter's value as `refused_values` has it."""
    return json.dumps(value)
