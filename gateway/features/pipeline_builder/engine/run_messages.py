"""Projects the messages of a conversation from the log of the run that answered it. Pure."""

from collections.abc import Callable, Iterator, Sequence

from agent.core import events as ev
from agent.core.models import JsonObject
from agent.core.run_state import RunState
from agent.policy.approval import format_approval_question
from agent.runs.trace_details import shorten
from agent.subagents import is_spawn_tool
from gateway.features.pipeline_builder.engine.messages import ConversationMessage, MessageRole

SHOWN_CHARS = 1_000

MessageFactory = Callable[[MessageRole, str, JsonObject | None], ConversationMessage]


def build_run_messages(events: Sequence[ev.Event], state: RunState, make: MessageFactory) -> list[ConversationMessage]:
    """The messages for tools, sub-agents, decisions and the answer, in order.

    The user's message is stored already.
    """
    run_messages = [make(role, text, metadata) for role, text, metadata in _iter_steps(events)]
    run_messages.append(make("assistant", find_answer(state), {"run_id": state.run_id, "status": state.status}))
    return run_messages


def find_answer(state: RunState) -> str:
    """The answer, the reason why there is none, or the question the run asks a person."""
    if state.answer is not None:
        return state.answer.text
    if state.failure is not None:
        return f"This could not be answered: {state.failure.message}"
    return format_approval_question(state) or "The answer was cut short."


def _iter_steps(events: Sequence[ev.Event]) -> Iterator[tuple[MessageRole, str, JsonObject | None]]:
    for event in events:
        body = event.body
        if isinstance(body, ev.ToolRefused) and not body.span:
            yield "tool", shorten(body.reason, SHOWN_CHARS), {"tool_name": body.tool, "success": False}
        elif isinstance(body, ev.ToolReturned) and not body.span:
            failed = body.error_code is not None
            if is_spawn_tool(body.tool) and not failed:
                continue  # the end of the sub-agent says it
            text = (body.error or "it failed") if failed else body.text
            yield "tool", shorten(text, SHOWN_CHARS), {"tool_name": body.tool, "success": not failed}
        elif isinstance(body, ev.SubAgentFinished):
            yield (
                "subagent",
                body.result.summary,
                {
                    "subagent_type": body.agent_id,
                    "success": body.result.success,
                    "outcome": body.outcome,
                    "prompt_tokens": body.usage.prompt_tokens,
                    "completion_tokens": body.usage.completion_tokens,
                    "cost_usd": body.usage.cost_usd,
                },
            )
        elif isinstance(body, ev.ApprovalDecided):
            yield "user", body.reason or body.decision, {"approval_id": body.approval_id, "decision": body.decision}
