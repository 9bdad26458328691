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
_ANNOUNCES = "procrastinate_jobs_notify_queue_job_inserted_v1"
"""The trigger that notifies workers of a new job, in the transaction that stores it: those would commit one at a time.
`announce_job` does it instead."""


async def apply_queue_schema(database: PostgresDatabase) -> None:
    """Creates or upgrades the tables, in one transaction; several processes may call it. Raises `StoreError`."""
    installed = version("procrastinate")
    async with database.transaction() as db:
        if await _is_current(db, installed):
            return
    async with database.transaction() as db:
        await db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if await _is_current(db, installed):
            return
        comment = await _get_comment(db)
        if comment is None:
            await db.execute(SchemaManager.get_schema())
        else:
            for script in list_migrations(Path(SchemaManager.get_migrations_path()), after=comment):
                await db.execute(script.read_bytes())
        for statement in _INDEXES:
            await db.execute(statement.encode())
        await db.execute(f"ALTER TABLE procrastinate_jobs DISABLE TRIGGER {_ANNOUNCES}".encode())
        await db.execute(f"COMMENT ON TABLE procrastinate_jobs IS '{installed}'".encode())


def list_migrations(folder: Path, *, after: str) -> list[Path]:
    """The scripts of versions after `after`, in order: `03.04.00_01_pre_name.sql` belongs to 3.4.0."""
    applied_numbers = _to_numbers(after)
    return sorted(path for path in folder.glob("*.sql") if _to_numbers(path.name.split("_")[0]) > applied_numbers)


def _to_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


async def _is_current(db: Connection, installed: str) -> bool:
    if await _get_comment(db) != installed:
        return False
    cursor = await db.execute(
        "SELECT 1 FROM pg_trigger WHERE tgrelid = 'procrastinate_jobs'::regclass AND tgname = %s AND tgenabled <> 'D'",
        (_ANNOUNCES,),
    )
    return await cursor.fetchone() is None


async def _get_comment(db: Connection) -> str | None:
    """The version that made the tables, or None if there are none."""
    # Not `to_regclass`, which answers from a cache: another process may have made the tables since this transaction
    # began to wait for the lock.
    cursor = await db.execute(
        "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE relname = 'procrastinate_jobs' "
        "AND relkind = 'r' AND pg_table_is_visible(oid)"
    )
    row = await cursor.fetchone()
    return None if row is None or row[0] is None else str(row[0])
