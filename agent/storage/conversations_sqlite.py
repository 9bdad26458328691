"""Turns of conversations on SQLite, by owner."""

import sqlite3
from collections.abc import Callable

from agent.core.surrogates import replace_surrogates
from agent.storage.sqlite import SqliteDatabase


class SqliteConversations:
    """Implements `ConversationStore`."""

    def __init__(self, database: SqliteDatabase, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def list_turns(self, owner: str, conversation_id: str, *, limit: int = 40) -> list[tuple[str, str]]:
        """See `ConversationStore.history`."""

        def unit(db: sqlite3.Connection) -> list[tuple[str, str]]:
            rows = db.execute(
                "SELECT role, text FROM turns WHERE owner = ? AND conversation_id = ? ORDER BY id DESC LIMIT ?",
                (owner, conversation_id, limit),
            ).fetchall()
            return [(str(role), str(text)) for role, text in reversed(rows)]

        return await self._database.read(unit, brief=True)

    async def is_tainted(self, owner: str, conversation_id: str, *, limit: int = 40) -> bool:
        """See `ConversationStore.tainted`."""

        def unit(db: sqlite3.Connection) -> bool:
            rows = db.execute(
                "SELECT tainted FROM turns WHERE owner = ? AND conversation_id = ? ORDER BY id DESC LIMIT ?",
                (owner, conversation_id, limit),
            )
            return any(bool(row[0]) for row in rows)

        return await self._database.read(unit, brief=True)

    async def add_exchange(
        self, owner: str, conversation_id: str, run_id: str, question: str, answer: str, *, tainted: bool = False
    ) -> None:
        """See `ConversationStore.remember`."""

        def unit(db: sqlite3.Connection) -> None:
            now = self._clock()
            db.executemany(
                "INSERT OR IGNORE INTO turns (owner, conversation_id, run_id, role, text, tainted, at) "
                "VALUES (?,?,?,?,?,?,?)",
                [
                    (owner, conversation_id, run_id, "user", replace_surrogates(question), False, now),
                    (owner, conversation_id, run_id, "assistant", replace_surrogates(answer), tainted, now),
                ],
            )

        await self._database.write(unit, brief=True)
