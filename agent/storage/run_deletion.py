"""Deletes runs with all of theirs: logs, signals, turns, deliveries, runs of tasks, and blobs that no run refers to.

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


async def delete_run(statements: SqlClient, run_id: str) -> None:
    """Deletes a run with its log, turns and blobs. A task keeps the documents of its run. Raises `StoreError`."""
    checksums = await _list_blobs(statements, [run_id])
    await statements.write_all(*_delete_with_turns([run_id]), *_delete_unused_blobs(checksums))


async def delete_runs(
    statements: SqlClient,
    run_ids: Sequence[str],
    *,
    idle_since: float | None = None,
    condition: SqlCondition = ALWAYS,
) -> int:
    """Deletes those of the runs for which the condition is true, also with what tasks keep of them. Tasks that have no
    runs left and did not change since `idle_since` (UTC seconds) go too. Returns the number of runs. Raises
    `StoreError`; then nothing was deleted.

    The caller makes sure that nobody executes them.
    """
    if not run_ids:
        return 0
    checksums = await _list_blobs(statements, run_ids)
    marks = format_marks(run_ids)
    rows = await statements.read(f"SELECT DISTINCT task_id FROM task_runs WHERE run_id IN ({marks})", *run_ids)  # noqa: S608 - marks
    tasks = [str(task_id) for (task_id,) in rows]
    count, *_ = await statements.write_all(
        *_delete_with_turns(run_ids, condition),
        _delete_without_run("task_runs", run_ids),
        *([delete_idle_tasks(tasks, idle_since)] if tasks and idle_since is not None else []),
        *_delete_unused_blobs(checksums),
    )
    return count


def delete_idle_tasks(task_ids: Sequence[str], idle_since: float) -> SqlStatement:
    """The statement that deletes those of the tasks that have no runs and did not change since."""
    return SqlStatement(
        f"DELETE FROM tasks WHERE task_id IN ({format_marks(task_ids)}) AND updated < ? "  # noqa: S608 - marks
        "AND NOT EXISTS (SELECT 1 FROM task_runs t JOIN runs r ON r.run_id = t.run_id WHERE t.task_id = tasks.task_id)",
        (*task_ids, idle_since),
    )


def _delete_with_turns(run_ids: Sequence[str], condition: SqlCondition = ALWAYS) -> list[SqlStatement]:
    """The statements that delete runs, and with them by cascade their events, signals and references."""
    query = f"DELETE FROM runs WHERE run_id IN ({format_marks(run_ids)}) AND {condition.text}"  # noqa: S608 - constants
    return [
        SqlStatement(query, (*run_ids, *condition.values)),
        _delete_without_run("turns", run_ids),
        _delete_without_run("webhook_deliveries", run_ids),
    ]


def _delete_without_run(table: str, run_ids: Sequence[str]) -> SqlStatement:
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
