"""Turns of conversations on SQLite, by owner."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from agent.core.events import TextLabel
from agent.core.surrogates import replace_surrogates
from agent.storage.conversation_path import SELECT_PARENTS, ConversationTurns, find_excluded
from agent.storage.journal_rows import IS_SEPARATED, build_answer_label
from agent.storage.sql import format_marks
from agent.storage.sqlite import SqliteDatabase

LOOKUP_BATCH = 500
"""Digests in one query; SQLite allows 999 parameters in old builds."""


class SqliteConversations(ConversationTurns):
    """Implements `ConversationStore`."""

    def __init__(self, database: SqliteDatabase, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def _read_turns(
        self, columns: str, owner: str, conversation_id: str, limit: int, parent: str | None
    ) -> list[tuple[Any, ...]]:
        def unit(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
            named = (owner, conversation_id)
            excluded = find_excluded(db.execute(SELECT_PARENTS, named).fetchall(), parent) if parent else []
            return db.execute(
                f"SELECT {columns} FROM turns WHERE owner = ? AND conversation_id = ? "  # noqa: S608 - constants
                "AND run_id NOT IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?",
                (*named, json.dumps(excluded), limit),
            ).fetchall()

        return await self._database.read(unit, brief=True)

    async def find_answer_labels(self, owner: str, digests: Sequence[str]) -> dict[str, TextLabel]:
        """See `ConversationStore.find_answer_labels`."""

        def unit(db: sqlite3.Connection) -> dict[str, TextLabel]:
            labels: dict[str, TextLabel] = {}
            for start in range(0, len(digests), LOOKUP_BATCH):
                batch = digests[start : start + LOOKUP_BATCH]
                rows = db.execute(
                    "SELECT digest, max(trusted), min(private) FROM answer_digests WHERE owner = ? "  # noqa: S608 - marks
                    f"AND digest IN ({format_marks(batch)}) GROUP BY digest",
                    (owner, *batch),
                )
                labels |= {str(digest): build_answer_label(trusted, private) for digest, trusted, private in rows}
            return labels

        return await self._database.read(unit, brief=True) if digests else {}

    async def add_exchange(
        self, owner: str, conversation_id: str, run_id: str, question: str, answer: str | None, *, tainted: bool = False
    ) -> bool:
        """See `ConversationStore.add_exchange`."""

        def unit(db: sqlite3.Connection) -> bool:
            if db.execute(IS_SEPARATED.format("?"), (run_id,)).fetchone():
                return False
            now = self._clock()
            spoken = [("user", question, False), *([("assistant", answer, tainted)] if answer is not None else [])]
            db.executemany(
                "INSERT OR IGNORE INTO turns (owner, conversation_id, run_id, role, text, tainted, at) "
                "VALUES (?,?,?,?,?,?,?)",
                [
                    (owner, conversation_id, run_id, role, replace_surrogates(text), mark, now)
                    for role, text, mark in spoken
                ],
            )
            return True

        return await self._database.write(unit, brief=True)
