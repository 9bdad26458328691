"""Tables of features: each feature's own revisions, recorded in `feature_schema`, beside the revisions of the kernel.

The table exists once a feature has revisions. Each runs once, in one transaction with its record, while no other
process changes the schema.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Final

from agent.core.errors import StoreNewerError
from agent.storage.journal_sqlite import SqliteStore

if TYPE_CHECKING:
    from agent.storage.journal_postgres import PostgresStore

TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS feature_schema (feature TEXT NOT NULL, revision TEXT NOT NULL, "
    "applied DOUBLE PRECISION NOT NULL, PRIMARY KEY (feature, revision))"
)
_READ = "SELECT feature, revision FROM feature_schema"
_RECORD = "INSERT INTO feature_schema (feature, revision, applied) VALUES (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class FeatureRevision:
    """One change of a feature's tables, for both databases."""

    feature: str
    name: str
    sqlite: tuple[str, ...]
    postgres: tuple[str, ...]


async def apply_revisions(store: "SqliteStore | PostgresStore", revisions: Sequence[FeatureRevision]) -> list[str]:
    """Runs the revisions that the database has not had, in order; returns their names, such as `poems/1`.

    Raises `StoreNewerError` if a newer version of a feature has changed its tables, and `StoreError`.
    """
    if not revisions:
        return []
    if isinstance(store, SqliteStore):
        return await store.database.write(lambda db: _apply_sqlite(db, revisions))
    return await _apply_postgres(store, revisions)


def _apply_sqlite(db: sqlite3.Connection, revisions: Sequence[FeatureRevision]) -> list[str]:
    db.execute(TABLE)  # the write lock is held from here on
    missing = _find_missing([(str(row[0]), str(row[1])) for row in db.execute(_READ)], revisions)
    for one in missing:
        for statement in one.sqlite:
            db.execute(statement)
        db.execute(_RECORD, (one.feature, one.name, time()))
    return [f"{one.feature}/{one.name}" for one in missing]


async def _apply_postgres(store: "PostgresStore", revisions: Sequence[FeatureRevision]) -> list[str]:
    from agent.storage.postgres import MIGRATION_LOCK  # noqa: PLC0415 - its driver is not needed for SQLite

    async with store.database.transaction() as db:
        await db.execute(b"SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        await db.execute(TABLE.encode())
        rows = await (await db.execute(_READ.encode())).fetchall()
        missing = _find_missing([(str(row[0]), str(row[1])) for row in rows], revisions)
        for one in missing:
            for statement in one.postgres:
                await db.execute(statement.encode())
            await db.execute(_RECORD.replace("?", "%s").encode(), (one.feature, one.name, time()))
    return [f"{one.feature}/{one.name}" for one in missing]


def _find_missing(applied: Sequence[tuple[str, str]], revisions: Sequence[FeatureRevision]) -> list[FeatureRevision]:
    revision_keys = {(one.feature, one.name) for one in revisions}
    features = {one.feature for one in revisions}
    for feature, name in applied:
        if feature in features and (feature, name) not in revision_keys:
            raise StoreNewerError(
                f"the tables of the feature {feature!r} were changed by a newer version of it (revision {name!r}); "
                "upgrade it",
                agent_id="store",
            )
    done = set(applied)
    return [one for one in revisions if (one.feature, one.name) not in done]
