"""What the run that answered a message leaves in its conversation, projected from its log. Pure."""

from collections.abc import Callable, Iterator, Sequence

from agent.builder.messages import ConversationMessage, MessageRole
from agent.core import events as ev
from agent.core.approval import question
from agent.core.fold import RunState
from agent.core.models import JsonObject
from agent.core.trace import shorten
from agent.subagents.spawn import SPAWN_TOOLS

SHOWN_CHARS = 1_000

Make = Callable[[MessageRole, str, JsonObject | None], ConversationMessage]


def messages_of(events: Sequence[ev.Event], state: RunState, make: Make) -> list[ConversationMessage]:
    """What was done and said in answer, in order: tools, sub-agents, the answer. The user's message is there already;
    what they said to questions in between belongs to the questions."""
    found = [make(role, text, metadata) for role, text, metadata in _done(events)]
    found.append(make("assistant", answer_of(state), {"run_id": state.run_id, "status": state.status}))
    return found


def answer_of(state: RunState) -> str:
    """The answer, why there is none, or what the run asks of a person."""
    if state.answer is not None:
        return state.answer.text
    if state.failure is not None:
        return f"This could not be answered: {state.failure.message}"
    return question(state) or "The answer was cut short."


def _done(events: Sequence[ev.Event]) -> Iterator[tuple[MessageRole, str, JsonObject | None]]:
    for event in events:
        body = event.body
        if isinstance(body, ev.ToolReturned) and not body.span and body.tool not in SPAWN_TOOLS:
            failed = body.error_code is not None
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
