"""Replies to the question that a run ended with (`awaiting_input`): the request of the run that goes on, and its id."""

import hashlib
from typing import TYPE_CHECKING, Any

from agent.core.errors import NotFoundError
from agent.core.models import AgentRequest, ChatMessage
from agent.core.run_state import RunState
from agent.storage.journal import RunRow

if TYPE_CHECKING:
    from agent.runs.service import AgentService


def derive_reply_id(run_id: str) -> str:
    """The id of the run that answers the question of `run_id`.

    It follows from the asking run's id, so that nothing else has to be stored, and of two replies one is refused.
    """
    return f"run_{hashlib.sha256(f'reply to {run_id}'.encode()).hexdigest()[:32]}"


async def follow_replies(service: "AgentService[Any]", run_id: str, owner: str) -> list[RunRow]:
    """A run, the run that answers its question, and so on, oldest first. Raises `NotFoundError`."""
    rows = [await service.get_run(run_id, owner=owner)]
    while rows[-1].status == "awaiting_input":
        try:
            rows.append(await service.get_run(derive_reply_id(rows[-1].run_id), owner=owner))
        except NotFoundError:
            break
    return rows


def build_reply_request(asked: RunState, words: str, images: tuple[str, ...] = ()) -> AgentRequest:
    """The request that answers the question of a run: the same room, after the same conversation."""
    request = asked.request
    messages = None
    if request.conversation_id is None:
        question = asked.answer.text if asked.answer is not None else ""
        spoken = (("user", request.prompt), ("assistant", question))
        messages = (*(request.messages or ()), *(ChatMessage(role=role, content=text) for role, text in spoken))
    return AgentRequest(
        prompt=words,
        images=images,
        room=request.name_room(asked.room.id),
        conversation_id=request.conversation_id,
        messages=messages,
        metadata=request.get_caller_metadata(),
    )
