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
from agent.core.models import ChatMessage, JsonObject
from agent.core.models.words import Role, read_stored_role
from agent.core.own_ids import OwnIds
from agent.policy.guardrails.message_labels import label_message, list_digests
from agent.runs.sessions import build_unknown_conversation_error
from agent.storage.journal import ConversationStore
from agent.storage.sql import Row, SqlClient, SqlStatement

MAX_ITEMS: Final = 10_000
"""Most items that a client adds to a conversation."""
_ITEMS: Final = (
    "SELECT at, 0 AS kind, id, item_id AS name, '' AS role, data AS text FROM client_items "
    "WHERE owner = ? AND conversation_id = ? UNION ALL "
    # A message that the client added is also a turn.
    "SELECT at, 1, id, run_id, role, text FROM turns t WHERE owner = ? AND conversation_id = ? AND NOT EXISTS ("
    "SELECT 1 FROM client_items c WHERE c.owner = t.owner AND c.conversation_id = t.conversation_id "
    "AND c.item_id = t.run_id)"
)
_ID_PREFIXES: Final = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


@dataclass(frozen=True, slots=True)
class ClientConversation:
    """A conversation. `created` is UTC seconds since 1970."""

    id: str
    metadata: dict[str, str]
    created: float


class ClientConversations:
    """Conversations by owner. `clock` gives UTC seconds since 1970, `own_ids` the ids; `answers` knows the answers of
    this gateway. Methods raise `StoreError`, and `NotFoundError` for a conversation that the owner does not have.
    """

    def __init__(
        self, statements: SqlClient, clock: Callable[[], float], own_ids: OwnIds, answers: ConversationStore
    ) -> None:
        self._statements = statements
        self._clock = clock
        self._own_ids = own_ids
        self._answers = answers

    async def create(self, owner: str, metadata: dict[str, str], items: Sequence[JsonObject]) -> ClientConversation:
        """Creates a conversation with its first items, all or none."""
        made = ClientConversation(self._own_ids.make_conversation_id(owner), metadata, self._clock())
        head = SqlStatement(
            "INSERT INTO client_conversations (owner, id, metadata, created) VALUES (?,?,?,?)",
            (owner, made.id, json.dumps(metadata), made.created),
        )
        await self._statements.write_all(head, *await self._insert_items(owner, made.id, _with_ids(items)))
        return made

    async def get(self, owner: str, conversation_id: str) -> ClientConversation:
        """A conversation. One that only runs have named has no metadata, and is as old as the first of them."""
        rows = await self._statements.read(
            "SELECT metadata, created FROM client_conversations WHERE owner = ? AND id = ?", owner, conversation_id
        )
        if rows:
            return ClientConversation(conversation_id, json.loads(rows[0][0]), float(rows[0][1]))
        named = (owner, conversation_id)
        ((first,),) = await self._statements.read(
            "SELECT min(at) FROM (SELECT at FROM turns WHERE owner = ? AND conversation_id = ? UNION ALL "
            "SELECT created_at AS at FROM runs WHERE owner = ? AND conversation_id = ? AND NOT hidden) AS named",
            *named, *named,
        )  # fmt: skip
        if first is None:
            raise build_unknown_conversation_error(conversation_id)
        return ClientConversation(conversation_id, {}, float(first))

    async def get_metadata(self, owner: str, conversation_id: str) -> dict[str, str]:
        """The metadata; of one that only runs have named, none."""
        rows = await self._statements.read(
            "SELECT metadata FROM client_conversations WHERE owner = ? AND id = ?", owner, conversation_id
        )
        metadata: dict[str, str] = json.loads(rows[0][0]) if rows else {}
        return metadata

    async def is_collection_named(self, owner: str, collection: str) -> bool:
        """Whether the metadata of a conversation names this collection as where its messages are answered from."""
        rows = await self._statements.read(
            "SELECT metadata FROM client_conversations WHERE owner = ? AND metadata LIKE ?", owner, '%"collection"%'
        )
        return any(json.loads(metadata).get("collection") == collection for (metadata,) in rows)

    async def set_metadata(self, owner: str, conversation_id: str, metadata: dict[str, str]) -> ClientConversation:
        """Replaces the metadata."""
        conversation = await self.get(owner, conversation_id)
        await self._statements.write(
            "INSERT INTO client_conversations (owner, id, metadata, created) VALUES (?,?,?,?) "
            "ON CONFLICT (owner, id) DO UPDATE SET metadata = excluded.metadata",
            owner, conversation_id, json.dumps(metadata), conversation.created,
        )  # fmt: skip
        return ClientConversation(conversation_id, metadata, conversation.created)

    async def delete(self, owner: str, conversation_id: str) -> Sequence[str]:
        """Deletes a conversation with its items and turns. Its runs stay, without a conversation. Returns the ids of
        those that have not ended.
        """
        await self.get(owner, conversation_id)
        values = (owner, conversation_id)
        open_runs = await self._statements.read(
            "SELECT run_id FROM runs WHERE owner = ? AND conversation_id = ? AND NOT terminal", *values
        )
        await self._statements.write_all(
            SqlStatement("DELETE FROM client_items WHERE owner = ? AND conversation_id = ?", values),
            SqlStatement("DELETE FROM turns WHERE owner = ? AND conversation_id = ?", values),
            SqlStatement("UPDATE runs SET conversation_id = NULL WHERE owner = ? AND conversation_id = ?", values),
            SqlStatement("DELETE FROM client_conversations WHERE owner = ? AND id = ?", values),
        )
        return [str(run_id) for (run_id,) in open_runs]

    async def add_items(self, owner: str, conversation_id: str, items: Sequence[JsonObject]) -> list[JsonObject]:
        """Adds items, all or none, and returns them with their ids. Raises `BadRequestError` for too many."""
        await self.get(owner, conversation_id)
        ((count,),) = await self._statements.read(
            "SELECT count(*) FROM client_items WHERE owner = ? AND conversation_id = ?", owner, conversation_id
        )
        if int(count) + len(items) > MAX_ITEMS:
            raise BadRequestError(f"items: a conversation holds {MAX_ITEMS:,} items; begin a new one")
        named = _with_ids(items)
        await self._statements.write_all(*await self._insert_items(owner, conversation_id, named))
        return named

    async def list_items(
        self, owner: str, conversation_id: str, *, limit: int, newest_first: bool = False, after: str | None = None
    ) -> tuple[list[JsonObject], bool]:
        """A page of the items, and whether there are more: those that the client added, and the messages of
        runs. The page begins after the item `after`; `BadRequestError` if there is none.
        """
        await self.get(owner, conversation_id)
        sign, direction = ("<", "DESC") if newest_first else (">", "ASC")
        condition, values = "TRUE", list[object]()
        if after is not None:
            place = await self._read_items(owner, conversation_id, *_match_item(after))
            if not place:
                raise BadRequestError(f"after: there is no item {after[:100]!r}.", param="after")
            condition, values = f"(at, kind, id) {sign} (?, ?, ?)", list(place[0][:3])
        order = f"ORDER BY at {direction}, kind {direction}, id {direction} LIMIT ?"
        rows = await self._read_items(owner, conversation_id, f"{condition} {order}", *values, limit + 1)
        return [_parse_row(row) for row in rows[:limit]], len(rows) > limit

    async def get_item(self, owner: str, conversation_id: str, item_id: str) -> JsonObject:
        """An item. Raises `NotFoundError` for an unknown one."""
        await self.get(owner, conversation_id)
        rows = await self._read_items(owner, conversation_id, *_match_item(item_id))
        if not rows:
            raise build_unknown_item_error(item_id)
        return _parse_row(rows[0])

    async def _read_items(self, owner: str, conversation_id: str, condition: str, *values: object) -> list[Row]:
        named = (owner, conversation_id)
        return await self._statements.read(
            f"SELECT at, kind, id, name, role, text FROM ({_ITEMS}) AS items WHERE {condition}",  # noqa: S608 - constants
            *named, *named, *values,
        )  # fmt: skip

    async def delete_item(self, owner: str, conversation_id: str, item_id: str) -> str:
        """Deletes an item; a run no longer finds it. Returns the id of the run that it is of, or of the client's item.
        Raises `NotFoundError` for an unknown one.
        """
        run_id, role = _split_item_id(item_id)
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
            raise build_unknown_item_error(item_id)
        return run_id

    async def _insert_items(self, owner: str, conversation_id: str, items: Sequence[JsonObject]) -> list[SqlStatement]:
        """The statements that add items. A message is trusted as one that a client sends with a request is."""
        now = self._clock()
        messages = [ChatMessage(role=role, content=text) for text, role in map(read_message, items)]
        own_answers = await self._answers.find_answer_labels(owner, list_digests(messages))
        statements = []
        for item, message in zip(items, messages, strict=True):
            statements.append(
                SqlStatement(
                    "INSERT INTO client_items (owner, conversation_id, item_id, data, at) VALUES (?,?,?,?,?)",
                    (owner, conversation_id, item["id"], json.dumps(item), now),
                )
            )
            if message.content:
                tainted = not label_message(message, own_answers).trusted
                statements.append(
                    SqlStatement(
                        "INSERT INTO turns (owner, conversation_id, run_id, role, text, tainted, at) "
                        "VALUES (?,?,?,?,?,?,?)",
                        (owner, conversation_id, item["id"], message.role, message.content, tainted, now),
                    )
                )
        return statements


def build_unknown_item_error(item_id: str) -> NotFoundError:
    """The error for an item that the conversation does not have."""
    return NotFoundError(f"there is no item {item_id[:100]!r} in this conversation")


def read_message(item: JsonObject) -> tuple[str, Role]:
    """The text of a message and the role it has for runs; an empty text for items of other kinds."""
    if item.get("type", "message") != "message":
        return "", "user"
    role = read_stored_role(item.get("role"))
    content = item.get("content")
    if not isinstance(content, list):
        return str(content or ""), role
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(str(text) for text in texts), role


def _with_ids(items: Sequence[JsonObject]) -> list[JsonObject]:
    """The items with ids of ours: a client's own may be those of other conversations."""
    return [
        {**item, "id": f"{_ID_PREFIXES.get(str(item.get('type', 'message')), 'item')}_{secrets.token_hex(16)}"}
        for item in items
    ]


def _split_item_id(item_id: str) -> tuple[str, str]:
    """The run and the role of the message that this item is, if it is one of a run."""
    run_id, _, role = item_id.removeprefix("msg_").rpartition("-")
    return run_id, role


def _match_item(item_id: str) -> tuple[str, str, str, str]:
    """The condition on `_ITEMS` for one item, with its values."""
    return "(kind = 0 AND name = ?) OR (kind = 1 AND name = ? AND role = ?)", item_id, *_split_item_id(item_id)


def _parse_row(row: Row) -> JsonObject:
    _, kind, _, name, role, text = row
    if kind:
        return _turn_to_item(str(role), str(text), str(name))
    item: JsonObject = json.loads(text)
    return item


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
