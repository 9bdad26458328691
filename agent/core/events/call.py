"""Calls within a run: to models, to tools, and to sub-agents, whose `span` theirs carry."""

from typing import Literal

from pydantic import Field, JsonValue

from agent.core.events.envelope import EventBody
from agent.core.models import Effect, Frozen, JsonObject, Mode, Source, Tier, Usage
from agent.core.subagents import SubAgentResult

Purpose = Literal["planner", "supervisor", "skill", "completion", "translator", "task", "subagent", "tool"]
SubAgentOutcome = Literal["done", "timeout", "turns", "budget", "output", "failed"]
"""How a sub-agent ended: with its result, or out of time, turns or budget, without a readable result, by a failure."""


class AssistantTurn(Frozen):
    """What a model said in one turn of a skill or sub-agent, kept so that a resumed one goes on where it was."""

    text: str = ""
    tool_calls: tuple[JsonObject, ...] = ()


class ModelReturned(EventBody):
    """One model call ended, well or not. `message` is kept for the turns of skills and sub-agents only."""

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
    span: str = Field(default="", description="the sub-agent that asked, if one did")


class ToolCalled(EventBody):
    """The intent: committed before the tool is called."""

    type = "tool.called"
    call_id: str
    tool: str
    args: JsonObject
    effect: Effect
    key: str = Field(description="run:plan:step:attempt[:n], the idempotency key")
    span: str = Field(default="", description="the sub-agent that calls, if one does")


class ToolReturned(EventBody):
    """The result of the intent with the same `call_id`. A value of more than 16 kB lies in `blob`; in `content_blob`
    lie the content blocks of a call by itself, of which `text` only tells."""

    type = "tool.returned"
    call_id: str
    tool: str
    output: JsonValue = None
    text: str = ""
    blob: str | None = None
    content_blob: str | None = None
    error_code: str | None = None
    error: str | None = None
    tainted: bool = False
    truncated: bool = False
    tries: int = 1
    implementation: Mode = Field(default="rules", description="llm where a model wrote the result anew")
    dropped: tuple[str, ...] = Field(default=(), description="arguments the tool does not know, left out of the call")
    duration: float = 0.0
    sources: tuple[Source, ...] = ()
    span: str = ""


class ToolRefused(EventBody):
    """The model of a skill or sub-agent asked for a tool outside its scope; the tool was not called."""

    type = "tool.refused"
    call_id: str
    tool: str
    args: JsonObject
    reason: str
    span: str = ""


class SubAgentStarted(EventBody):
    """A sub-agent begins within a call of its parent. `span` is this very one: unique in the run, the same after a
    crash, and carried by its model and tool calls. `withheld` are tools it would borrow and its parent may not give."""

    type = "subagent.started"
    agent_id: str = Field(description="which sub-agent it is: source_analyzer ...")
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
    """A sub-agent ended. But for `done`, `result` holds what it had found by then. Data of more than 16 kB lie in
    `blob`. `usage` is that of its own model calls, which count for the run too."""

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
