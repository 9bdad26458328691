"""The messages of conversations. They expire some time after the last one; their results stay in the store."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field, ValidationError

from agent.core.models import ChatMessage, FrozenModel, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.storage.ttl_store import TtlStore

MessageRole = Literal["user", "assistant", "tool", "subagent"]
MAX_MESSAGES = 400
"""Messages per conversation; the oldest are dropped beyond this."""
CONTENT_CHARS = 20_000
LOCK_SECONDS = 60.0
"""How long a crashed process blocks a conversation. Accepting a message takes milliseconds; while it is answered, the
conversation's run is the lock."""
WINDOW_SECONDS = 60.0


class ConversationMessage(FrozenModel):
    """One message. `timestamp` is UTC seconds; `metadata` names the tool or sub-agent."""

    role: MessageRole
    content: str
    timestamp: float
    metadata: JsonObject = Field(default_factory=dict)


class MessageLog:
    """Stores messages, the lock of each conversation, and each user's message rate.

    Methods raise `StoreError` if the server behind them cannot be reached.
    """

    def __init__(self, ephemeral: TtlStore, ttl_s: float, clock: Callable[[], float] = time.time) -> None:
        self._ephemeral = ephemeral
        self._ttl_s = ttl_s
        self._clock = clock

    def make_message(self, role: MessageRole, content: str, metadata: JsonObject | None = None) -> ConversationMessage:
        """A message with the current time."""
        return ConversationMessage(
            role=role,
            content=replace_surrogates(content)[:CONTENT_CHARS],
            timestamp=self._clock(),
            metadata=metadata or {},
        )

    async def add(self, conversation_id: str, *messages: ConversationMessage) -> None:
        """Appends messages and extends the lifetime of all messages of the conversation."""
        lines = [replace_surrogates(json.dumps(one.model_dump(mode="json"), ensure_ascii=False)) for one in messages]
        if lines:
            await self._ephemeral.append(
                _get_messages_key(conversation_id), *lines, ttl_s=self._ttl_s, most=MAX_MESSAGES
            )

    async def read(self, conversation_id: str, *, active: bool = False) -> list[ConversationMessage]:
        """The messages, oldest first; none after they expired. `active` extends their lifetime."""
        key = _get_messages_key(conversation_id)
        if active:
            await self._ephemeral.touch(key, self._ttl_s)
        messages = []
        for line in await self._ephemeral.list_values(key):
            try:
                messages.append(ConversationMessage.model_validate_json(line))
            except ValidationError:  # written by another version: as good as expired
                continue
        return messages

    async def delete(self, conversation_id: str) -> None:
        """Deletes the messages of a conversation."""
        await self._ephemeral.delete(_get_messages_key(conversation_id))

    async def acquire_lock(self, conversation_id: str, token: str) -> bool:
        """Takes the lock of a conversation; returns False while another holder has it."""
        return await self._ephemeral.acquire(f"agent:conversation:{conversation_id}:lock", token, LOCK_SECONDS)

    async def release_lock(self, conversation_id: str, token: str) -> None:
        """Releases the lock if `token` still holds it."""
        await self._ephemeral.release(f"agent:conversation:{conversation_id}:lock", token)

    async def check(self) -> str:
        """Describes where messages are stored. Raises `StoreError` if that cannot be reached."""
        return await self._ephemeral.describe_location()

    async def count_message(self, owner: str) -> int:
        """Counts a message of this user; returns how many were sent in the current window."""
        return await self._ephemeral.increment(_make_rate_key(owner), WINDOW_SECONDS)

    async def get_seconds_until_reset(self, owner: str) -> float:
        """The seconds until this user's count starts again."""
        return await self._ephemeral.get_ttl(_make_rate_key(owner))


def list_chat_history(messages: Sequence[ConversationMessage]) -> tuple[ChatMessage, ...]:
    """The messages of user and assistant, in the form that models read."""
    return tuple(
        ChatMessage(role="user" if one.role == "user" else "assistant", content=one.content)
        for one in messages
        if one.role in ("user", "assistant")
    )


def _make_rate_key(owner: str) -> str:
    return f"agent:user:{owner}:messages"


def _get_messages_key(conversation_id: str) -> str:
    return f"agent:conversation:{conversation_id}:messages"
