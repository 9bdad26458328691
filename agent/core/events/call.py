"""Calls within a run: to models, to tools and to sub-agents. Events of a sub-agent's calls carry its `span`."""

from typing import Literal

from pydantic import Field, JsonValue

from agent.core.events.envelope import EventBody
from agent.core.models import ArgumentRole, Effect, FrozenModel, JsonObject, Mode, Source, Tier, Usage
from agent.core.subagent_result import SubAgentResult

Purpose = Literal[
    "planner",
    "supervisor",
    "skill",
    "completion",
    "translator",
    "task",
    "subagent",
    "tool",
    "entailment",
    "router",
    "recipe",
    "probe",
]
SubAgentOutcome = Literal["done", "timeout", "turns", "budget", "output", "failed"]
"""How a sub-agent ended: with its result; out of time, turns or budget; with unreadable output; with a failure."""


class AssistantTurn(FrozenModel):
    """One turn of a skill's or sub-agent's model, stored so that a resumed run continues where it was."""

    text: str = ""
    tool_calls: tuple[JsonObject, ...] = Field(
        default=(), description="id, name and arguments; under `extra` what else the provider said of the call"
    )
    provider_fields: JsonObject = Field(
        default_factory=dict, description="what the provider wants back with the message: reasoning, signatures"
    )
    finish_reason: str = Field(default="stop", description="why the turn ended, in the provider's word")


class FailedUpstream(FrozenModel):
    """A model, or `model@endpoint`, that did not answer a call. `error_code` is `skipped` for one that was left out
    because it had kept failing.
    """

    model: str
    error_code: str


class ModelReturned(EventBody):
    """One model call ended, successfully or not. `message` is stored for turns of skills and sub-agents only."""

    type = "model.returned"
    purpose: Purpose
    tier: Tier
    model: str
    usage: Usage
    duration: float
    requests: int = Field(default=1, description="HTTP requests, transport retries included")
    finish_reason: str | None = None
    error_code: str | None = None
    message: AssistantTurn | None = None
    span: str = Field(default="", description="the sub-agent that made the call, if one did")
    failed_upstreams: tuple[FailedUpstream, ...] = Field(
        default=(), description="the upstreams that were to answer first, and why they did not"
    )
    unread_tokens: int = Field(
        default=0,
        description="about how many tokens of its prompt the endpoint left out; 0 unless it read less than half",
    )


class ToolCalled(EventBody):
    """The intent to call a tool, committed before the call."""

    type = "tool.called"
    call_id: str
    tool: str
    args: JsonObject
    effect: Effect
    claims_read_only: bool = Field(default=False, description="a server that nobody trusts says that it only reads")
    key: str = Field(description="run:plan:step:attempt[:n], the idempotency key")
    untrusted: dict[str, ArgumentRole] = Field(
        default_factory=dict, description="arguments with values from outside, of a call that changes something"
    )
    span: str = Field(default="", description="the sub-agent that makes the call, if one does")


class ToolReturned(EventBody):
    """The result of the call with the same `call_id`. A value of more than 16 kB is stored in `blob`. For a tool that
    was called on its own, and for one that makes artifacts, `content_blob` stores the content blocks that `text`
    describes. `whole_blob` stores a result before personal data was removed from it (see `StepOutput`).
    """

    type = "tool.returned"
    call_id: str
    tool: str
    output: JsonValue = None
    text: str = ""
    blob: str | None = None
    content_blob: str | None = None
    whole_blob: str | None = None
    error_code: str | None = None
    error: str | None = None
    error_stage: str = Field(default="", description="the check that refused the call, such as `check_config`")
    tainted: bool = False
    truncated: bool = False
    tries: int = 1
    implementation: Mode = Field(default="rules", description="llm if a model rewrote the result")
    read_from: tuple[str, ...] = Field(
        default=(),
        description="the user's own sources that the result is made of; arguments: of nothing else; empty: anything",
    )
    dropped: tuple[str, ...] = Field(
        default=(), description="arguments that earlier versions left out of the call; now such a call fails"
    )
    duration: float = 0.0
    sources: tuple[Source, ...] = ()
    span: str = ""
    same_as: str = Field(
        default="", description="the id of the same call by another step, which was made instead; empty: made itself"
    )

    def list_blobs(self) -> tuple[str, ...]:
        """See `EventBody.list_blobs`."""
        blobs = (self.blob, self.content_blob, self.whole_blob)
        return tuple(checksum for checksum in blobs if checksum is not None)


class ToolRefused(EventBody):
    """The model of a skill or sub-agent requested a tool outside of its scope. The tool was not called."""

    type = "tool.refused"
    call_id: str
    tool: str
    args: JsonObject
    reason: str
    span: str = ""


class SubAgentStarted(EventBody):
    """A sub-agent starts within a call of its parent. `span` identifies it: unique in the run, the same after a crash,
    and part of the events of its model and tool calls. `withheld` lists tools it wants and its parent may not pass on.
    """

    type = "subagent.started"
    agent_id: str = Field(description="the kind of sub-agent: source_analyzer ...")
    span: str
    parent: str = Field(default="", description="the span of the sub-agent that started it, if one did")
    depth: int = 1
    task: JsonObject = Field(default_factory=dict)
    tools: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    max_turns: int
    timeout_s: float
    tainted: bool = False


class SubAgentFinished(EventBody):
    """A sub-agent ended. Unless the outcome is `done`, `result` is what it has found so far. Data of more than 16 kB is
    stored in `blob`. `usage` is that of its own model calls, which also count for the run.
    """

    type = "subagent.finished"
    agent_id: str
    span: str
    outcome: SubAgentOutcome
    result: SubAgentResult
    blob: str | None = None
    turns: int = 0
    usage: Usage = Usage()
    effective: Mode = "llm"
    fallback_reason: str | None = None
    duration: float = 0.0

    def list_blobs(self) -> tuple[str, ...]:
        """See `EventBody.list_blobs`."""
        return () if self.blob is None else (self.blob,)
