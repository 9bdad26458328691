"""The messages of conversations: kept for a while after the last one, then gone. What they came to is in the store."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field, ValidationError

from agent.core.codec import whole
from agent.core.ephemeral import Ephemeral
from agent.core.models import ChatMessage, Frozen, JsonObject

MessageRole = Literal["user", "assistant", "tool", "subagent"]
KEPT = 400
"""Messages of one conversation; beyond them the oldest go."""
CONTENT_CHARS = 20_000
LOCK_SECONDS = 60.0
"""How long a process that died in the middle of taking a message keeps others from it. Taking one lasts milliseconds:
the answering itself is held by the conversation's run."""
WINDOW_SECONDS = 60.0


class ConversationMessage(Frozen):
    """Something that was said or done. `timestamp` is UTC seconds; `metadata` names the tool or sub-agent."""

    role: MessageRole
    content: str
    timestamp: float
    metadata: JsonObject = Field(default_factory=dict)


class MessageLog:
    """The messages by conversation, its lock, and how much each user sends. Methods raise `StoreError` where the
    server of the messages cannot be reached."""

    def __init__(self, ephemeral: Ephemeral, ttl_s: float, clock: Callable[[], float] = time.time) -> None:
        self._ephemeral = ephemeral
        self._ttl_s = ttl_s
        self._clock = clock

    def message(self, role: MessageRole, content: str, metadata: JsonObject | None = None) -> ConversationMessage:
        """A message of now."""
        return ConversationMessage(
            role=role, content=whole(content)[:CONTENT_CHARS], timestamp=self._clock(), metadata=metadata or {}
        )

    async def add(self, conversation_id: str, *messages: ConversationMessage) -> None:
        """Put messages at the end, and let all of them live on."""
        lines = [whole(json.dumps(one.model_dump(mode="json"), ensure_ascii=False)) for one in messages]
        if lines:
            await self._ephemeral.append(_messages(conversation_id), *lines, ttl_s=self._ttl_s, most=KEPT)

    async def read(self, conversation_id: str, *, active: bool = False) -> list[ConversationMessage]:
        """The messages, oldest first; none once they have expired. With `active` they live on from now."""
        key = _messages(conversation_id)
        if active:
            await self._ephemeral.touch(key, self._ttl_s)
        found = []
        for line in await self._ephemeral.values(key):
            try:
                found.append(ConversationMessage.model_validate_json(line))
            except ValidationError:  # written by another version: as good as expired
                continue
        return found

    async def forget(self, conversation_id: str) -> None:
        """Remove the messages of a conversation."""
        await self._ephemeral.forget(_messages(conversation_id))

    async def take(self, conversation_id: str, token: str) -> bool:
        """Take the lock of a conversation; False while somebody else has it."""
        return await self._ephemeral.acquire(f"agent:conversation:{conversation_id}:lock", token, LOCK_SECONDS)

    async def give_back(self, conversation_id: str, token: str) -> None:
        """Give the lock back, if it is still ours."""
        await self._ephemeral.release(f"agent:conversation:{conversation_id}:lock", token)

    async def check(self) -> str:
        """Where they are kept. `StoreError` when that cannot be reached."""
        return await self._ephemeral.check()

    async def sent(self, owner: str) -> int:
        """Count a message of this user; how many there are in the minute by now."""
        return await self._ephemeral.count(_count(owner), WINDOW_SECONDS)

    async def window_left(self, owner: str) -> float:
        """Seconds until this user's messages are counted anew."""
        return await self._ephemeral.left(_count(owner))


def history(messages: Sequence[ConversationMessage]) -> tuple[ChatMessage, ...]:
    """What was said between the two, as a model is shown it."""
    return tuple(
        ChatMessage(role="user" if one.role == "user" else "assistant", content=one.content)
        for one in messages
        if one.role in ("user", "assistant")
    )


def _count(owner: str) -> str:
    return f"agent:user:{owner}:messages"


def _messages(conversation_id: str) -> str:
    return f"agent:conversation:{conversation_id}:messages"
