"""`OwnedMessages`: deletes the messages of an owner's conversations."""

from dataclasses import dataclass

from agent.storage.sql import SqlClient
from gateway.features.pipeline_builder.engine.messages import MessageLog


@dataclass(frozen=True, slots=True)
class OwnedMessages:
    """Implements `agent.storage.owners.OwnedStore`. The messages in another process's memory expire there."""

    statements: SqlClient
    messages: MessageLog

    async def remove_owner(self, owner: str, *, by: str) -> None:
        """Deletes the messages of each conversation. Raises `StoreError`."""
        rows = await self.statements.read("SELECT id FROM agent_conversations WHERE owner = ?", owner)
        for (conversation_id,) in rows:
            await self.messages.delete(conversation_id)
