"""The base class of all values, and the closed sets of words in requests, plans and answers."""

from functools import cache
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

LOCAL_OWNER = "local"
"""The owner for callers without a key."""
JsonObject = dict[str, JsonValue]
Tier = Literal["fast", "high"]
RetrievalMode = Literal["lexical", "vector", "hybrid", "hybrid_rerank"]
Mode = Literal["llm", "rules"]
Effect = Literal["read", "idempotent", "effect"]
"""`read` may be repeated freely, `idempotent` with the same key; `effect` happens at most once."""
Executor = Literal["skill", "agent", "litellm"]
Action = Literal["skill", "tool", "memory", "completion", "plan_more"]
RunStatus = Literal[
    "queued", "running", "awaiting_approval", "awaiting_input", "succeeded", "partial", "failed", "cancelled"
]
ENDED_STATUSES: frozenset[RunStatus] = frozenset(("awaiting_input", "succeeded", "partial", "failed", "cancelled"))
"""The statuses of a run that is over. `awaiting_input`: its answer is a question, and the reply to it starts another
run. `partial`: it has an answer, but did not do all that was asked."""
Completeness = Literal["complete", "partial", "aborted"]
JudgePolicy = Literal["checks", "auto", "always"]
ApprovalPolicy = Literal["never", "side_effects", "always"]
ArgumentRole = Literal["where", "amount", "content", "id", "other"]
"""What an argument of a call says: where it goes (recipient, address, path, account, channel, URL), how much, with what
content, which thing of the user's own; `other` is anything else, and is treated as `where`."""
EffectPolicy = Literal["ask_any", "ask_where"]
"""When a change with values from outside is asked about: with any such value, or only where it says where, how much, or
what nobody has described."""
RouteKind = Literal["plan", "direct", "greeting", "command", "skill", "recipe", "task", "tool_calls"]
Role = Literal["system", "developer", "user", "assistant", "tool"]
_STORED_ROLES: tuple[Role, ...] = ("assistant", "developer", "system")


def read_stored_role(role: object) -> Role:
    """The role of a message of a stored conversation; any other than the known ones is the user's."""
    return next((stored for stored in _STORED_ROLES if stored == role), "user")


PROVIDER_FIELDS = frozenset({
    "reasoning_content", "reasoning", "reasoning_details", "extra_content", "thinking_blocks",
})  # fmt: skip
"""Fields of an assistant message, besides OpenAI's, that providers want back with the tool results: what the model
thought, and signatures of it (DeepSeek, vLLM, OpenRouter, Gemini, Anthropic's by LiteLLM)."""

MODEL_OPTIONS = frozenset({
    "frequency_penalty", "logit_bias", "max_completion_tokens", "min_p", "parallel_tool_calls", "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
    "repetition_penalty", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store",
    "tool_choice", "top_k", "top_p", "user", "verbosity", "web_search_options",
    "chat_template_kwargs", "enable_thinking", "grammar", "guided_choice", "guided_grammar", "guided_json",
    "guided_regex", "json_schema", "reasoning", "repeat_penalty", "structured_outputs", "thinking",
})  # fmt: skip
"""Parameters that a caller may set for the call that writes the answer: those of OpenAI's API, and those with which
vLLM, SGLang, llama.cpp, OpenRouter and DeepSeek let a caller bind an answer to a form or switch thinking off. All
others are the gateway's: `model`, `messages`, and what the SDK takes besides, such as `api_base`."""


class DeferredModel(BaseModel):
    """The base class of what requests, tools and sub-agents take and return. Pydantic and FastAPI build its validators
    when they are first used: there are hundreds of such classes, and most processes use few of them.

    Not for bodies and parameters of routes (`defer_build=False`): FastAPI silences Pydantic's warnings about them only
    while it builds the validators itself.
    """

    model_config = ConfigDict(defer_build=True)


MAX_ENTRIES: Final = 20_000
BOUNDED: Final[Any] = Field(fail_fast=True, max_length=MAX_ENTRIES)
"""For a list that a caller sends: its first fault ends the check. A small body can have a million faults, and their
descriptions take half a minute.
"""


class FrozenModel(DeferredModel):
    """The base class of immutable values. Does not track which fields were set: Pydantic's set of them, one per value,
    took an eighth of a run's time.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_post_init(self, context: object, /) -> None:
        """Marks every field as set."""
        object.__setattr__(self, "__pydantic_fields_set__", _get_field_names(type(self)))

    def change(self, **fields: object) -> Self:
        """The value with these fields; itself, if they are what it has. Does not validate them."""
        return self if self.__dict__ | fields == self.__dict__ else self.model_copy(update=fields)


@cache
def _get_field_names(kind: type[FrozenModel]) -> set[str]:
    """The set shared by all values of a class. It must never be changed."""
    return set(kind.model_fields)
