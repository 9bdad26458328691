"""The tables of procrastinate in our database: created at the first start with a queue, and brought up to date.

procrastinate does not record its schema's version, so the comment on its table of jobs does. Its migrations are files
named by version, to be applied in order (https://procrastinate.readthedocs.io/, "Migrate the Procrastinate schema").
"""

from importlib.metadata import version
from pathlib import Path

from procrastinate.schema import SchemaManager

from agent.storage.postgres import Connection, PostgresDatabase

_LOCK = 0x57E96A7F
"""The advisory lock that lets one process at a time change these tables; any fixed number."""
_INDEXES = (
    # Per queue, so that a fetch does not pass over the jobs of other lanes.
    "CREATE INDEX IF NOT EXISTS stepgate_jobs_waiting ON procrastinate_jobs (queue_name, priority DESC, id) "
    "WHERE status = 'todo'",
    # For the search for runs without a job.
    "CREATE INDEX IF NOT EXISTS stepgate_jobs_taken ON procrastinate_jobs (queueing_lock) "
    "WHERE status IN ('doing', 'failed')",
)


async def apply_queue_schema(database: PostgresDatabase) -> None:
    """Creates or upgrades the tables, in one transaction; several processes may call it. Raises `StoreError`."""
    installed = version("procrastinate")
    if await _read_version(database) == installed:
        return
    async with database.transaction() as db:
        await db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        known = await _get_comment(db)
        if known == installed:
            return
        if known is None:
            await db.execute(SchemaManager.get_schema())
        else:
            for script in list_migrations(Path(SchemaManager.get_migrations_path()), after=known):
                await db.execute(script.read_bytes())
        for statement in _INDEXES:
            await db.execute(statement.encode())
        await db.execute(f"COMMENT ON TABLE procrastinate_jobs IS '{installed}'".encode())


def list_migrations(folder: Path, *, after: str) -> list[Path]:
    """Returns the scripts of versions after `after`, in order: `03.04.00_01_pre_name.sql` belongs to 3.4.0."""
    known = _to_numbers(after)
    return sorted(path for path in folder.glob("*.sql") if _to_numbers(path.name.split("_")[0]) > known)


def _to_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


async def _read_version(database: PostgresDatabase) -> str | None:
    async with database.transaction() as db:
        return await _get_comment(db)


async def _get_comment(db: Connection) -> str | None:
    """Returns the version that made the tables, or None if there are none."""
    # Not `to_regclass`, which answers from a cache: another process may have made the tables since this transaction
    # began to wait for the lock.
    cursor = await db.execute(
        "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE relname = 'procrastinate_jobs' "
        "AND relkind = 'r' AND pg_table_is_visible(oid)"
    )
    row = await cursor.fetchone()
    return None if row is None or row[0] is None else str(row[0])
