"""Conversations that a client makes and fills itself: metadata, and items in the form of the Responses API.

The messages of runs are turns of the same conversation. A message that a client adds becomes a turn too, so that the
next run finds it; other items (calls and their outputs) are kept for the client only.
"""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.models import JsonObject
from agent.runs.sessions import unknown_conversation_error
from agent.storage.sql import SqlClient, SqlStatement

MAX_ITEMS: Final = 10_000
"""Most items of a conversation, and most turns of runs that are listed with them."""
_ID_PREFIXES: Final = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


@dataclass(frozen=True, slots=True)
class ClientConversation:
    """A conversation. `created` is UTC seconds since 1970."""

    id: str
    metadata: dict[str, str]
    created: float


class ClientConversations:
    """Conversations by owner. `clock` gives UTC seconds since 1970. Methods raise `StoreError`, and `NotFoundError` for
    a conversation that the owner does not have.
    """

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def create(self, owner: str, metadata: dict[str, str], items: Sequence[JsonObject]) -> ClientConversation:
        """Creates a conversation with its first items, all or none."""
        made = ClientConversation(f"conv_{secrets.token_hex(24)}", metadata, self._clock())
        head = SqlStatement(
            "INSERT INTO client_conversations (owner, id, metadata, created) VALUES (?,?,?,?)",
            (owner, made.id, json.dumps(metadata), made.created),
        )
        await self._statements.write_all(head, *self._insert_items(owner, made.id, _with_ids(items)))
        return made

    async def get(self, owner: str, conversation_id: str) -> ClientConversation:
        """Returns a conversation. One that only runs have named has no metadata, and is as old as its first turn."""
        rows = await self._statements.read(
            "SELECT metadata, created FROM client_conversations WHERE owner = ? AND id = ?", owner, conversation_id
        )
        if rows:
            return ClientConversation(conversation_id, json.loads(rows[0][0]), float(rows[0][1]))
        ((first,),) = await self._statements.read(
            "SELECT min(at) FROM turns WHERE owner = ? AND conversation_id = ?", owner, conversation_id
        )
        if first is None:
            raise unknown_conversation_error(conversation_id)
        return ClientConversation(conversation_id, {}, float(first))

    async def set_metadata(self, owner: str, conversation_id: str, metadata: dict[str, str]) -> ClientConversation:
        """Replaces the metadata."""
        known = await self.get(owner, conversation_id)
        await self._statements.write(
            "INSERT INTO client_conversations (owner, id, metadata, created) VALUES (?,?,?,?) "
            "ON CONFLICT (owner, id) DO UPDATE SET metadata = excluded.metadata",
            owner, conversation_id, json.dumps(metadata), known.created,
        )  # fmt: skip
        return ClientConversation(conversation_id, metadata, known.created)

    async def delete(self, owner: str, conversation_id: str) -> None:
        """Deletes a conversation with its items and turns. Its runs stay, without a conversation."""
        await self.get(owner, conversation_id)
        values = (owner, conversation_id)
        await self._statements.write_all(
            SqlStatement("DELETE FROM client_items WHERE owner = ? AND conversation_id = ?", values),
            SqlStatement("DELETE FROM turns WHERE owner = ? AND conversation_id = ?", values),
            SqlStatement("UPDATE runs SET conversation_id = NULL WHERE owner = ? AND conversation_id = ?", values),
            SqlStatement("DELETE FROM client_conversations WHERE owner = ? AND id = ?", values),
        )

    async def add_items(self, owner: str, conversation_id: str, items: Sequence[JsonObject]) -> list[JsonObject]:
        """Adds items, all or none, and returns them with their ids. Raises `BadRequestError` for too many."""
        await self.get(owner, conversation_id)
        ((count,),) = await self._statements.read(
            "SELECT count(*) FROM client_items WHERE owner = ? AND conversation_id = ?", owner, conversation_id
        )
        if int(count) + len(items) > MAX_ITEMS:
            raise BadRequestError(f"items: a conversation holds {MAX_ITEMS:,} items; begin a new one")
        named = _with_ids(items)
        await self._statements.write_all(*self._insert_items(owner, conversation_id, named))
        return named

    async def list_items(self, owner: str, conversation_id: str) -> list[JsonObject]:
        """Returns the items, oldest first: those that the client added, and the messages of runs."""
        await self.get(owner, conversation_id)
        values = (owner, conversation_id, MAX_ITEMS)
        added = await self._statements.read(
            "SELECT at, id, data, item_id FROM client_items WHERE owner = ? AND conversation_id = ? "
            "ORDER BY id DESC LIMIT ?",
            *values,
        )
        turns = await self._statements.read(
            "SELECT at, id, role, text, run_id FROM turns WHERE owner = ? AND conversation_id = ? "
            "ORDER BY id DESC LIMIT ?",
            *values,
        )
        own = {item_id for *_, item_id in added}
        found = [(float(at), int(number), json.loads(data)) for at, number, data, _ in added]
        found += [
            (float(at), int(number), _turn_to_item(str(role), str(text), str(run_id)))
            for at, number, role, text, run_id in turns
            if run_id not in own
        ]
        return [item for *_, item in sorted(found, key=lambda entry: entry[:2])]

    async def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None:
        """Deletes an item; a run no longer finds it. Raises `NotFoundError` for an unknown one."""
        run_id, _, role = item_id.removeprefix("msg_").rpartition("-")
        values = (owner, conversation_id)
        counts = await self._statements.write_all(
            SqlStatement(
                "DELETE FROM client_items WHERE owner = ? AND conversation_id = ? AND item_id = ?", (*values, item_id)
            ),
            SqlStatement(
                "DELETE FROM turns WHERE owner = ? AND conversation_id = ? AND run_id = ?", (*values, item_id)
            ),
            SqlStatement(
                "DELETE FROM turns WHERE owner = ? AND conversation_id = ? AND run_id = ? AND role = ?",
                (*values, run_id, role),
            ),
        )
        if not any(counts):
            raise unknown_item_error(item_id)

    def _insert_items(self, owner: str, conversation_id: str, items: Sequence[JsonObject]) -> list[SqlStatement]:
        now = self._clock()
        statements = []
        for item in items:
            statements.append(
                SqlStatement(
                    "INSERT INTO client_items (owner, conversation_id, item_id, data, at) VALUES (?,?,?,?,?)",
                    (owner, conversation_id, item["id"], json.dumps(item), now),
                )
            )
            text, role = read_message(item)
            if text:
                statements.append(
                    SqlStatement(
                        "INSERT INTO turns (owner, conversation_id, run_id, role, text, tainted, at) "
                        "VALUES (?,?,?,?,?,?,?)",
                        (owner, conversation_id, item["id"], role, text, False, now),
                    )
                )
        return statements


def unknown_item_error(item_id: str) -> NotFoundError:
    """Returns the error for an item that the conversation does not have."""
    return NotFoundError(f"there is no item {item_id[:100]!r} in this conversation")


def read_message(item: JsonObject) -> tuple[str, str]:
    """Returns the text of a message and the role it has for runs; an empty text for items of other kinds."""
    if item.get("type", "message") != "message":
        return "", ""
    role = "assistant" if item.get("role") == "assistant" else "user"
    content = item.get("content")
    if not isinstance(content, list):
        return str(content or ""), role
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(str(text) for text in texts), role


def _with_ids(items: Sequence[JsonObject]) -> list[JsonObject]:
    """Returns the items with ids of ours: a client's own may be those of other conversations."""
    return [
        {**item, "id": f"{_ID_PREFIXES.get(str(item.get('type', 'message')), 'item')}_{secrets.token_hex(16)}"}
        for item in items
    ]


def _turn_to_item(role: str, text: str, run_id: str) -> JsonObject:
    own = role == "assistant"
    part: JsonObject = {"type": "output_text" if own else "input_text", "text": text}
    return {
        "id": f"msg_{run_id}-{role}",
        "type": "message",
        "status": "completed",
        "role": role,
        "content": [part | ({"annotations": []} if own else {})],
    }
