"""Deletes runs with all of theirs: logs, signals, turns, what features keep of them, and blobs that no run refers to.

A batch is one transaction, so a process that is killed leaves each run whole or leaves nothing of it. Blobs are deleted
with the last run that refers to them (`blob_references`): the effort depends on the runs that are deleted, not on those
that are stored.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from agent.storage.sql import SqlClient, SqlStatement, format_marks

BATCH: Final = 50
"""Runs in one transaction. On SQLite other work waits for it: some milliseconds."""


class SqlCondition(NamedTuple):
    """A condition on the columns of `runs`, with the values of its marks."""

    text: str
    values: tuple[object, ...] = ()


ALWAYS: Final = SqlCondition("1 = 1")


async def delete_runs(
    statements: SqlClient,
    run_ids: Sequence[str],
    *,
    tables: Sequence[str] = (),
    condition: SqlCondition = ALWAYS,
    further: Sequence[SqlStatement] = (),
) -> int:
    """Deletes those of the runs for which the condition is true, with their logs, turns and blobs, and with their rows
    in further `tables`. Executes `further` statements after it, in the same transaction. Returns the number of runs.
    Raises `StoreError`; then nothing was deleted.

    The caller makes sure that nobody executes them.
    """
    if not run_ids:
        return 0
    checksums = await _list_blobs(statements, run_ids)
    query = f"DELETE FROM runs WHERE run_id IN ({format_marks(run_ids)}) AND {condition.text}"  # noqa: S608 - constants
    count, *_ = await statements.write_all(
        # Events, signals and references go by cascade.
        SqlStatement(query, (*run_ids, *condition.values)),
        *(delete_rows_of_gone_runs(table, run_ids) for table in ("turns", *tables)),
        *further,
        *_delete_unused_blobs(checksums),
    )
    return count


def delete_rows_of_gone_runs(table: str, run_ids: Sequence[str]) -> SqlStatement:
    """The statement that deletes the rows of those of the runs that are gone."""
    return SqlStatement(
        f"DELETE FROM {table} WHERE run_id IN ({format_marks(run_ids)}) "  # noqa: S608 - constants
        f"AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = {table}.run_id)",
        tuple(run_ids),
    )


async def _list_blobs(statements: SqlClient, run_ids: Sequence[str]) -> list[str]:
    query = f"SELECT DISTINCT checksum FROM blob_references WHERE run_id IN ({format_marks(run_ids)})"  # noqa: S608 - marks
    return sorted(str(checksum) for (checksum,) in await statements.read(query, *run_ids))


def _delete_unused_blobs(checksums: Sequence[str]) -> list[SqlStatement]:
    """The statement that deletes those of the blobs that no run refers to, if there are any blobs."""
    if not checksums:
        return []
    return [
        SqlStatement(
            f"DELETE FROM blobs WHERE checksum IN ({format_marks(checksums)}) "  # noqa: S608 - marks
            "AND NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.checksum = blobs.checksum)",
            tuple(checksums),
        )
    ]
