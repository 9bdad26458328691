"""Retrieve: what went before. The caller's own messages win; else the stored conversation."""

from agent.core.events import MemoryRetrieved
from agent.core.models import ChatMessage, Role
from agent.execution.run import Run


async def retrieve(run: Run) -> None:
    """Record the conversation so far."""
    request = run.state.request
    if request.messages is not None:
        await run.emit(MemoryRetrieved(history=request.messages, source="request"))
        return
    if request.conversation_id is None:
        await run.emit(MemoryRetrieved(source="none"))
        return
    turns = await run.engine.conversations.history(run.state.owner, request.conversation_id)
    history = tuple(ChatMessage(role=_role(role), content=text) for role, text in turns)
    await run.emit(MemoryRetrieved(history=history, source="conversation"))


def _role(role: str) -> Role:
    return "assistant" if role == "assistant" else "user"
