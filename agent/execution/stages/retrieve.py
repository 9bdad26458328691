"""Retrieve: what went before, and what is remembered. The caller's own messages win over the stored conversation."""

import logging

from agent.core.errors import AgentError
from agent.core.events import MemoryItem, MemoryRetrieved
from agent.core.memory import Recall
from agent.core.models import ChatMessage, Role
from agent.execution.run import Run
from agent.execution.shield import redact_history

log = logging.getLogger(__name__)

_NEEDS_NO_MEMORY = frozenset({"task", "greeting", "command", "tool_calls"})


async def retrieve(run: Run) -> None:
    """Record the conversation so far and the memories that have to do with the question."""
    history, source = await _history(run)
    memory = run.engine.memory
    if not run.room.memory or (run.state.understood is not None and run.state.understood.route in _NEEDS_NO_MEMORY):
        await run.emit(MemoryRetrieved(history=history, source=source))
        return
    recall = await _recall(run)
    items = tuple(
        MemoryItem(
            id=found.id, text=found.text, source=found.source, score=_rounded(found.score), tainted=found.tainted
        )
        for found in recall.memories
    )
    await run.emit(
        MemoryRetrieved(
            history=history,
            items=items,
            source=source,
            requested="endpoint" if memory.has_embedder else "local",
            embedder=recall.embedder,
            fallback_reason=recall.fallback_reason,
        )
    )


async def _history(run: Run) -> tuple[tuple[ChatMessage, ...], str]:
    request = run.state.request
    if request.messages is not None:
        return await redact_history(run, request.messages), "request"
    if request.conversation_id is None:
        return (), "none"
    turns = await run.engine.conversations.history(run.state.owner, request.conversation_id)
    return tuple(ChatMessage(role=_role(role), content=text) for role, text in turns), "conversation"


async def _recall(run: Run) -> Recall:
    """What the memory finds; nothing, and why, where it cannot be used: a request does not fail for want of it."""
    question = run.state.understood.question if run.state.understood else run.state.prompt
    try:
        return await run.engine.memory.search(
            run.state.owner, question, conversation_id=run.state.request.conversation_id
        )
    except AgentError as error:
        log.warning("the memory cannot be searched: %s", error.message)
        return Recall(fallback_reason=error.message)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 3)


def _role(role: str) -> Role:
    return "assistant" if role == "assistant" else "user"
