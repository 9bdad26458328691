"""The stream of a pipeline conversation: what happens while a message is answered, as one small object each."""

import json
from collections.abc import Iterator, Mapping

from agent.core import events as ev
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject
from agent.core.run_state import RunState
from agent.policy.approval import format_approval_question
from agent.runs.trace_details import shorten
from agent.subagents import is_spawn_tool
from gateway.features.pipeline_builder.engine.records import ConversationUncertainty
from gateway.render.sse import format_frame

MAX_RESULT_CHARS = 1_000
PIPELINE_TOOLS = frozenset({"build_pipeline", "suggest_pipeline"})


def build_conversation_frame(body: Mapping[str, object]) -> str:
    """One object of the stream as a frame."""
    return format_frame(json.dumps(body, ensure_ascii=False))


class ConversationEncoder:
    """Turns the events of a run into objects of type `text | tool | subagent | error`.

    The door adds `uncertainty` and `pipeline`, which are read from the conversation.
    """

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}
        self._text = ""
        """The text of the answer so far."""

    def encode(self, event: ev.Event) -> Iterator[JsonObject]:
        """Yields the objects for an event."""
        body = event.body
        match body:
            case ev.ToolCalled() | ev.ToolReturned() | ev.ToolRefused():
                yield from self._encode_call(body)
            case ev.SubAgentStarted():
                self._agents[body.span] = body.agent_id
                yield {"type": "subagent", "agent": body.agent_id, "status": "started"}
            case ev.SubAgentFinished():
                yield {
                    "type": "subagent",
                    "agent": body.agent_id,
                    "status": "done" if body.result.success else "failed",
                    "outcome": body.outcome,
                    "content": body.result.summary,
                }
            case ev.AnswerDelta(kind="text" | "refusal"):
                self._text += body.text
                yield {"type": "text", "content": body.text}
            case ev.AnswerStarted(restarted=True) if self._text:
                # The text so far remains as an interim remark; the answer follows it.
                self._text = ""
                yield {"type": "text", "content": "\n\n"}
            case ev.AnswerFinished() if body.text.startswith(streamed := self._text.rstrip()):
                # All of an answer that was not streamed, else what was added to it at its end.
                if rest := body.text.removeprefix(streamed).rstrip():
                    yield {"type": "text", "content": rest}
            case ev.RunFailed():
                yield build_error_object(body.failure)
            case _:
                return

    def _encode_call(self, body: ev.ToolCalled | ev.ToolReturned | ev.ToolRefused) -> Iterator[JsonObject]:
        """Yields the object for a call of the conversation, or of one of its sub-agents."""
        agent = self._agents.get(body.span)
        match body:
            case ev.ToolCalled() if agent is not None:
                yield {"type": "subagent", "agent": agent, "status": "working", "tool": body.tool}
            case ev.ToolRefused() if agent is not None:
                refusal: JsonObject = {"tool": body.tool, "content": body.reason}
                yield {"type": "subagent", "agent": agent, "status": "working", **refusal}
            case ev.ToolRefused(span=""):
                yield {"type": "tool", "tool": body.tool, "status": "refused", "content": body.reason}
            case ev.ToolCalled(span="") if not is_spawn_tool(body.tool):
                yield {"type": "tool", "tool": body.tool, "status": "started", "args": body.args}
            case ev.ToolReturned(span="") if body.error_code is not None or not is_spawn_tool(body.tool):
                # A sub-agent that was started reports its own end; one that could not be started has none.
                yield self._encode_tool_result(body)
            case _:
                return

    def encode_question(self, state: RunState) -> JsonObject:
        """The question that a waiting run asks."""
        ids = [request.approval_id for request in state.pending_approvals]
        return {"type": "text", "content": format_approval_question(state), "approvals": [*ids]}

    def _encode_tool_result(self, body: ev.ToolReturned) -> JsonObject:
        if body.error_code is not None:
            return {
                "type": "tool",
                "tool": body.tool,
                "status": "failed",
                "content": body.error,
                "code": body.error_code,
            }
        content = shorten(body.text, MAX_RESULT_CHARS)
        return {"type": "tool", "tool": body.tool, "status": "done", "content": content}


def may_change_state(event: ev.Event) -> bool:
    """Whether the event may have changed what the conversation stores. A pipeline is stored before it
    is tried.
    """
    body = event.body
    return isinstance(body, ev.SubAgentStarted) or (
        isinstance(body, ev.ToolReturned)
        and not body.span
        and (body.tool in PIPELINE_TOOLS or is_spawn_tool(body.tool))
    )


def build_error_object(failure: AgentFailure) -> JsonObject:
    """A failure as an object of the stream."""
    return {"type": "error", "code": failure.error_code, "content": failure.message, "recoverable": failure.recoverable}


def build_uncertainty_object(doubt: ConversationUncertainty) -> JsonObject:
    """An uncertainty as an object of the stream."""
    return {
        "type": "uncertainty",
        "id": doubt.id,
        "severity": doubt.severity,
        "message": doubt.message,
        "origin": doubt.origin,
        "resolved": doubt.resolved,
    }
