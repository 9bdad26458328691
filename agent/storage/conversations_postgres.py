"""Turns of conversations on PostgreSQL, by owner."""

from collections.abc import Sequence
from typing import Any

from agent.core.events import TextLabel
from agent.storage.conversation_path import SELECT_PARENTS, ConversationTurns, find_excluded
from agent.storage.journal_rows import IS_SEPARATED, build_answer_label
from agent.storage.postgres import NOW_SQL, PostgresDatabase, strip_nul


class PostgresConversations(ConversationTurns):
    """Implements `ConversationStore`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def _read_turns(
        self, columns: str, owner: str, conversation_id: str, limit: int, parent: str | None
    ) -> list[tuple[Any, ...]]:
        named = (owner, strip_nul(conversation_id))
        excluded: list[str] = []
        if parent:
            async with self._database.begin_single_query() as db:
                cursor = await db.execute(SELECT_PARENTS.replace("?", "%s").encode(), named)
                excluded = find_excluded(await cursor.fetchall(), parent)
        query = (
            f"SELECT {columns} FROM turns WHERE owner = %s AND conversation_id = %s "  # noqa: S608 - constants
            "AND run_id <> ALL(%s) ORDER BY id DESC LIMIT %s"
        )
        async with self._database.begin_single_query() as db:
            cursor = await db.execute(query.encode(), (*named, excluded, limit))
            return list(await cursor.fetchall())

    async def find_answer_labels(self, owner: str, digests: Sequence[str]) -> dict[str, TextLabel]:
        """See `ConversationStore.find_answer_labels`."""
        if not digests:
            return {}
        async with self._database.begin_single_query() as db:
            cursor = await db.execute(
                "SELECT digest, bool_or(trusted), bool_and(private) FROM answer_digests "
                "WHERE owner = %s AND digest = ANY(%s) GROUP BY digest",
                (owner, list(digests)),
            )
            rows = await cursor.fetchall()
        return {str(digest): build_answer_label(trusted, private) for digest, trusted, private in rows}

    async def add_exchange(
        self, owner: str, conversation_id: str, run_id: str, question: str, answer: str | None, *, tainted: bool = False
    ) -> bool:
        """See `ConversationStore.add_exchange`."""
        async with self._database.transaction() as db:
            # Serializes exchanges of one conversation, so that the ids of two exchanges do not interleave.
            await db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{owner}/{conversation_id}",))
            if await (await db.execute(IS_SEPARATED.format("%s").encode(), (run_id,))).fetchone():
                return False
            spoken = [("user", question, False), *([("assistant", answer, tainted)] if answer is not None else [])]
            for role, text, mark in spoken:
                await db.execute(
                    "INSERT INTO turns (owner, conversation_id, run_id, role, text, tainted, at) "  # noqa: S608
                    f"VALUES (%s,%s,%s,%s,%s,%s,{NOW_SQL}) ON CONFLICT DO NOTHING",
                    (owner, strip_nul(conversation_id), run_id, role, strip_nul(text), mark),
                )
        return True
