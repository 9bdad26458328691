"""A builder's conversation on the wire: what happens while a message is answered, as one small object each."""

import json
from collections.abc import Iterator, Mapping

from agent.builder.records import Doubt
from agent.core import events as ev
from agent.core.approval import question
from agent.core.errors import AgentFailure
from agent.core.fold import RunState
from agent.core.models import JsonObject
from agent.core.trace import shorten
from agent.subagents.spawn import SPAWN_TOOLS
from gateway.sse import frame

SHOWN_CHARS = 1_000
PIPELINE_TOOLS = frozenset({"build_pipeline", "suggest_pipeline"})


def conversation_frame(body: Mapping[str, object]) -> str:
    """One object of the stream."""
    return frame(json.dumps(body, ensure_ascii=False))


class Teller:
    """Turns the events of a run into the objects of the stream, `text | tool | subagent | error`. What the
    conversation keeps (`uncertainty`, `pipeline`) is told by the door, which can look."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}
        self._said = False

    def tell(self, event: ev.Event) -> Iterator[JsonObject]:
        """What there is to tell of an event."""
        body = event.body
        match body:
            case ev.ToolCalled(span="") if body.tool not in SPAWN_TOOLS:
                yield {"type": "tool", "tool": body.tool, "status": "started", "args": body.args}
            case ev.ToolReturned(span="") if body.tool not in SPAWN_TOOLS:
                yield self._returned(body)
            case ev.SubAgentStarted():
                self._agents[body.span] = body.agent_id
                yield {"type": "subagent", "agent": body.agent_id, "status": "started"}
            case ev.ToolCalled() if body.span in self._agents:
                agent = self._agents[body.span]
                yield {"type": "subagent", "agent": agent, "status": "working", "tool": body.tool}
            case ev.SubAgentFinished():
                yield {
                    "type": "subagent",
                    "agent": body.agent_id,
                    "status": "done" if body.result.success else "failed",
                    "outcome": body.outcome,
                    "content": body.result.summary,
                }
            case ev.AnswerDelta(kind="text"):
                self._said = True
                yield {"type": "text", "content": body.text}
            case ev.AnswerStarted(restarted=True) if self._said:
                # What was said stands, as a remark on the way; the answer comes after it.
                self._said = False
                yield {"type": "text", "content": "\n\n"}
            case ev.AnswerFinished() if not self._said and body.text:
                yield {"type": "text", "content": body.text}
            case ev.RunFailed():
                yield error_object(body.failure)
            case _:
                return

    def asked(self, state: RunState) -> JsonObject:
        """The question a run waits with."""
        ids = [asked.approval_id for asked in state.waiting]
        return {"type": "text", "content": question(state), "approvals": [*ids]}

    def _returned(self, body: ev.ToolReturned) -> JsonObject:
        if body.error_code is not None:
            return {
                "type": "tool",
                "tool": body.tool,
                "status": "failed",
                "content": body.error,
                "code": body.error_code,
            }
        content = shorten(body.text, SHOWN_CHARS)
        return {"type": "tool", "tool": body.tool, "status": "done", "content": content}


def changed_state(event: ev.Event) -> bool:
    """Whether what a conversation keeps may have changed with this event: a pipeline is kept before it is tried."""
    body = event.body
    return isinstance(body, ev.SubAgentStarted) or (
        isinstance(body, ev.ToolReturned) and not body.span and body.tool in PIPELINE_TOOLS | SPAWN_TOOLS
    )


def error_object(failure: AgentFailure) -> JsonObject:
    """A failure in the stream."""
    return {"type": "error", "code": failure.error_code, "content": failure.message, "recoverable": failure.recoverable}


def doubt_object(doubt: Doubt) -> JsonObject:
    """A doubt in the stream."""
    return {
        "type": "uncertainty",
        "id": doubt.id,
        "severity": doubt.severity,
        "message": doubt.message,
        "origin": doubt.origin,
        "resolved": doubt.resolved,
    }
