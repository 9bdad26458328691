"""Retrieve: loads the conversation and memories. The caller's own messages override the stored conversation."""

import logging
from collections.abc import Collection
from itertools import pairwise

from agent.core.errors import AgentError
from agent.core.events import MemoryItem, MemoryRetrieved
from agent.core.models import ChatMessage
from agent.core.models.words import read_stored_role
from agent.execution.earlier_run import find_confirmed, find_earlier_results
from agent.policy.guardrails.message_labels import split_attachments
from agent.policy.redaction.inbound import HistoryRedactor, restore_long_text
from agent.policy.redaction.requests import redact_history
from agent.run_context.memory import MemorySearchResult, format_exchange
from agent.run_context.message_labels import label_messages, label_prompt
from agent.run_context.run import Run

log = logging.getLogger(__name__)

SHOWN_MESSAGES = 20
"""Messages of the conversation that a completion reads. Memories of these exchanges are left out."""
_RECALLING_TOOL = "memory_search"
_ROUTES_WITHOUT_MEMORY = frozenset({"task", "greeting", "command", "tool_calls"})


async def retrieve(run: Run) -> None:
    """Records the conversation and the memories that match the question."""
    redactor = HistoryRedactor(run.state, run.redaction.secrets)
    history, source, tainted = await _load_history(run)
    history, labels = await label_messages(run, history) if run.state.request.messages else (history, ())
    prompt_label = label_prompt(run.state.prompt, has_images=bool(run.state.request.images))
    earlier = await find_earlier_results(run, history) if history else ()
    confirmed, read_servers = await find_confirmed(run) if source == "conversation" else ((), ())
    history = await redactor.redact_messages(history)
    earlier = tuple([one.model_copy(update={"text": await redactor.redact_text(one.text)}) for one in earlier])
    tainted = tainted or any(one.tainted for one in earlier)
    if not run.room.planning:
        await redactor.add_tool_texts(run.state.request.client_tools)
    retrieved = MemoryRetrieved(
        history=history,
        source=source,
        earlier_results=earlier,
        placeholders=redactor.new_placeholders,
        tainted=tainted,
        labels=labels,
        prompt_label=prompt_label,
        confirmed=confirmed,
        read_servers=read_servers,
    )
    if uses_memory(run) and _may_recall(run.state.caller_tools):
        retrieved = await _add_memories(run, redactor, retrieved)
    await run.note(retrieved)


def uses_memory(run: Run) -> bool:
    """Whether the room has a memory, and the request is of a kind that is answered with it and remembered."""
    route = run.state.understanding.route if run.state.understanding is not None else None
    return run.room.memory and route not in _ROUTES_WITHOUT_MEMORY


def _may_recall(tools: Collection[str] | None) -> bool:
    """Whether the caller's key may read what its owner has had remembered: a list of tools holds here as it does at the
    endpoint that shows memories.
    """
    return tools is None or _RECALLING_TOOL in tools


async def _add_memories(run: Run, redactor: HistoryRedactor, retrieved: MemoryRetrieved) -> MemoryRetrieved:
    """What was retrieved, with the memories that match the question. Exchanges that the history shows are left out."""
    recall = await _search_memory(run)
    visible_history = redactor.anonymize_messages(retrieved.history[-SHOWN_MESSAGES:])
    exchanges = {format_exchange(user_text, reply_text) for user_text, reply_text in pairwise(visible_history)}
    items = tuple(
        [
            MemoryItem(
                id=recalled.id,
                text=await redactor.redact_text(recalled.text),
                source=recalled.source,
                score=_round_score(recalled.score),
                tainted=recalled.tainted,
            )
            for recalled in recall.memories
            if recalled.text not in exchanges
        ]
    )
    recalled_fields = {
        "items": items,
        "requested": "endpoint" if run.engine.memory.has_embedder else "local",
        "embedder": recall.embedder,
        "fallback_reason": recall.fallback_reason,
        "placeholders": redactor.new_placeholders,
    }
    return retrieved.model_copy(update=recalled_fields)


async def _load_history(run: Run) -> tuple[tuple[ChatMessage, ...], str, bool]:
    """The earlier messages, their origin, and whether they hold external text.

    Of a caller's messages, only the results of client tools count here: these may hold pages and mails of anybody. The
    others get labels one by one.
    """
    request = run.state.request
    if request.messages is not None:
        returned = any(message.role == "tool" for message in request.messages)
        return redact_history(run.state.request, run.room.guard_input), "request", returned and run.room.planning
    if request.conversation_id is None:
        return (), "none", False
    owner, store = run.state.owner, run.engine.conversations
    turns = await store.list_turns(owner, request.conversation_id, parent=request.parent)
    tainted = bool(turns) and await store.is_tainted(owner, request.conversation_id, parent=request.parent)
    # A stored message of the user is not marked for what a client attached to it.
    tainted = tainted or any(role == "user" and split_attachments(text).attached for role, text in turns)
    return (
        tuple(ChatMessage(role=read_stored_role(role), content=text) for role, text in turns),
        "conversation",
        tainted,
    )


async def _search_memory(run: Run) -> MemorySearchResult:
    """Searches the memory. After a failure returns an empty result with the reason: the request can proceed."""
    question = run.state.understanding.question if run.state.understanding else run.state.prompt
    if not run.engine.memory.has_embedder:  # a local search gets the real words; an endpoint gets placeholders
        question = await restore_long_text(run.state, question)
    # The messages of a request replace the stored conversation, and therefore its memories.
    conversation = run.state.request.conversation_id if run.state.request.messages is None else None
    try:
        return await run.engine.memory.search(run.state.owner, question, conversation_id=conversation)
    except AgentError as error:
        log.warning("the memory cannot be searched: %s", error.message)
        return MemorySearchResult(fallback_reason=error.message)
    except Exception as error:  # a driver's defect, which would also fail every later turn
        log.exception("the memory failed in run %s", run.run_id)
        return MemorySearchResult(
            fallback_reason=f"the memory failed ({type(error).__name__}); the log has the details"
        )


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 3)
