"""Selects the messages of a conversation for a model: the newest ones, without splitting a tool exchange."""

from collections.abc import Sequence

from agent.core.models import ChatMessage
from agent.core.run_state import RunState


def split_at_prompt(state: RunState) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
    """Returns the messages before the prompt and those after it.

    After the prompt may come calls of a client's tools, their results, and a prefilled answer. A stored conversation
    has no messages after it.
    """
    history = state.retrieval.history if state.retrieval is not None else ()
    position = state.request.prompt_position
    if position is None or state.request.messages is None:
        return history, ()
    return history[:position], history[position:]


def take_newest_messages(messages: Sequence[ChatMessage], limit: int) -> tuple[ChatMessage, ...]:
    """Returns the newest messages, at most `limit`.

    Providers reject a tool's result without its call, so a cut between them drops the whole exchange.
    """
    start = max(0, len(messages) - limit)
    while 0 < start < len(messages) and messages[start].role == "tool":
        start += 1
    return tuple(messages[start:])
