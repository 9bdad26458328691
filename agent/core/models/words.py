"""The closed sets of words that requests, plans and answers are made of, and the root of all values."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, JsonValue

LOCAL_OWNER = "local"
"""The principal of a caller without a key."""
JsonObject = dict[str, JsonValue]
Tier = Literal["fast", "high"]
RetrievalMode = Literal["lexical", "vector", "hybrid", "hybrid_rerank"]
Mode = Literal["llm", "rules"]
Effect = Literal["read", "idempotent", "effect"]
"""`read` may be repeated freely, `idempotent` with the same key, `effect` at most once."""
Executor = Literal["skill", "agent", "litellm"]
Action = Literal["skill", "tool", "memory", "completion"]
RunStatus = Literal["queued", "running", "awaiting_approval", "succeeded", "failed", "cancelled"]
Completeness = Literal["complete", "partial", "aborted"]
JudgePolicy = Literal["checks", "auto", "always"]
ApprovalPolicy = Literal["never", "side_effects", "always"]
RouteKind = Literal["plan", "direct", "greeting", "command", "skill", "task", "tool_calls"]
Role = Literal["system", "developer", "user", "assistant", "tool"]


class Frozen(BaseModel):
    """A value that travels between parts; never changed in place. It does not know which of its fields were given and
    which left out: Pydantic's set of them, one a value, took an eighth of what a run under way does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_post_init(self, context: object, /) -> None:
        """Every field counts as given."""
        object.__setattr__(self, "__pydantic_fields_set__", _fields_of(type(self)))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """See `BaseModel.model_copy`."""
        copied = super().model_copy(update=update, deep=deep)
        copied.model_post_init(None)
        return copied


@cache
def _fields_of(kind: type[Frozen]) -> set[str]:
    """One set for all values of a kind: never to be changed."""
    return set(kind.model_fields)
