"""The collection of a conversation's own files: its name, and whether it goes with the conversation.

Clients that read files for one conversation upload them to this collection, as the web page does.
"""

from collections.abc import Iterable
from typing import Final

from agent.core.models import Room
from agent.core.own_ids import CONVERSATION_PREFIX, OwnIds
from agent.runs.client_conversations import ClientConversations

COLLECTION_PREFIX: Final = "chat-"
NAME_CHARS: Final = 20
"""Of the 32 random digits of the conversation's id: 80 bits, so that no two conversations have the same."""


def get_own_collection(conversation_id: str) -> str:
    """The collection of a conversation whose id this gateway made."""
    return f"{COLLECTION_PREFIX}{conversation_id.removeprefix(CONVERSATION_PREFIX)[:NAME_CHARS]}"


async def find_unshared_collection(
    owner: str, conversation_id: str, *, own_ids: OwnIds, conversations: ClientConversations, rooms: Iterable[Room]
) -> str | None:
    """The collection that belonged to a deleted conversation alone: none for an id that a client chose, which says
    nothing, and none that another conversation or a room names. It may not exist. Raises `StoreError`.
    """
    if not own_ids.is_own_conversation(conversation_id, owner):
        return None
    collection = get_own_collection(conversation_id)
    if any(collection in (room.collections or ()) for room in rooms):
        return None
    return None if await conversations.is_collection_named(owner, collection) else collection
