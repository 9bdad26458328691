"""Retrieve: what went before, and what is remembered. The caller's own messages win over the stored conversation."""

import logging

from agent.core.errors import AgentError
from agent.core.events import MemoryItem, MemoryRetrieved
from agent.core.memory import Recall
from agent.core.models import ChatMessage, Role
from agent.execution.run import Run
from agent.execution.screening import messages_for_models
from agent.execution.shield import Redactor, restored

log = logging.getLogger(__name__)

_NEEDS_NO_MEMORY = frozenset({"task", "greeting", "command", "tool_calls"})


async def retrieve(run: Run) -> None:
    """Record the conversation so far and the memories that have to do with the question."""
    redactor = Redactor(run)
    history, source, tainted = await _history(run)
    history = await redactor.messages(history)
    if not run.room.planning:
        await redactor.learn(run.state.request.client_tools)
    memory = run.engine.memory
    if not run.room.memory or (run.state.understood is not None and run.state.understood.route in _NEEDS_NO_MEMORY):
        await run.note(
            MemoryRetrieved(history=history, source=source, placeholders=redactor.placeholders, tainted=tainted)
        )
        return
    recall = await _recall(run)
    items = tuple(
        [
            MemoryItem(
                id=found.id,
                text=await redactor.text(found.text),
                source=found.source,
                score=_rounded(found.score),
                tainted=found.tainted,
            )
            for found in recall.memories
        ]
    )
    await run.note(
        MemoryRetrieved(
            history=history,
            items=items,
            source=source,
            requested="endpoint" if memory.has_embedder else "local",
            embedder=recall.embedder,
            fallback_reason=recall.fallback_reason,
            placeholders=redactor.placeholders,
            tainted=tainted,
        )
    )


async def _history(run: Run) -> tuple[tuple[ChatMessage, ...], str, bool]:
    """What was said before, where it is from, and whether an answer of ours in it rests on something from outside.
    What a caller sends along themselves is their own word, whatever it says who said it."""
    request = run.state.request
    if request.messages is not None:
        return messages_for_models(run), "request", False
    if request.conversation_id is None:
        return (), "none", False
    owner, store = run.state.owner, run.engine.conversations
    turns = await store.history(owner, request.conversation_id)
    tainted = bool(turns) and await store.tainted(owner, request.conversation_id)
    return tuple(ChatMessage(role=_role(role), content=text) for role, text in turns), "conversation", tainted


async def _recall(run: Run) -> Recall:
    """What the memory finds; nothing, and why, where it cannot be used: a request does not fail for want of it."""
    question = run.state.understood.question if run.state.understood else run.state.prompt
    if not run.engine.memory.has_embedder:  # it is looked up here, in what is theirs; an endpoint is not told
        question = restored(run.state, question)
    try:
        return await run.engine.memory.search(
            run.state.owner, question, conversation_id=run.state.request.conversation_id
        )
    except AgentError as error:
        log.warning("the memory cannot be searched: %s", error.message)
        return Recall(fallback_reason=error.message)
    except Exception as error:  # a driver's own fault, which no later turn would get past either
        log.exception("the memory failed in run %s", run.run_id)
        return Recall(fallback_reason=f"the memory failed ({type(error).__name__}); the log has the details")


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 3)


def _role(role: str) -> Role:
    return "assistant" if role == "assistant" else "user"
