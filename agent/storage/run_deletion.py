"""Deletes runs with all of theirs: logs, signals, turns, deliveries, runs of tasks, and blobs that no run refers to.

A batch is one transaction, so a process that is killed leaves each run whole or leaves nothing of it. Blobs are deleted
with the last run that refers to them (`blob_references`): the effort depends on the runs that are deleted, not on those
that are stored.
"""

from collections.abc import Sequence
from typing import Final

from agent.storage.sql import SqlClient, SqlStatement, format_marks

BATCH: Final = 50
"""Runs in one transaction. On SQLite other work waits for it: some milliseconds."""


async def delete_run(statements: SqlClient, run_id: str) -> None:
    """Deletes a run with its log, turns and blobs. A task keeps the documents of its run. Raises `StoreError`."""
    checksums = await _list_blobs(statements, [run_id])
    await statements.write_all(*_delete_with_turns([run_id]), *_delete_unused_blobs(checksums))


async def delete_runs(statements: SqlClient, run_ids: Sequence[str], *, idle_since: float | None = None) -> int:
    """Deletes runs, also with what tasks keep of them. Tasks that have no runs left and did not change since
    `idle_since` (UTC seconds) go too. Returns the number of runs. Raises `StoreError`; then nothing was deleted.

    The caller makes sure that nobody executes them.
    """
    if not run_ids:
        return 0
    checksums = await _list_blobs(statements, run_ids)
    marks = format_marks(run_ids)
    rows = await statements.read(f"SELECT DISTINCT task_id FROM task_runs WHERE run_id IN ({marks})", *run_ids)  # noqa: S608 - marks
    tasks = [str(task_id) for (task_id,) in rows]
    _, _, count, *_ = await statements.write_all(
        *_delete_with_turns(run_ids),
        SqlStatement(f"DELETE FROM task_runs WHERE run_id IN ({marks})", tuple(run_ids)),  # noqa: S608 - marks
        *([delete_idle_tasks(tasks, idle_since)] if tasks and idle_since is not None else []),
        *_delete_unused_blobs(checksums),
    )
    return count


def delete_idle_tasks(task_ids: Sequence[str], idle_since: float) -> SqlStatement:
    """Returns the statement that deletes those of the tasks that have no runs and did not change since."""
    return SqlStatement(
        f"DELETE FROM tasks WHERE task_id IN ({format_marks(task_ids)}) AND updated < ? "  # noqa: S608 - marks
        "AND NOT EXISTS (SELECT 1 FROM task_runs t JOIN runs r ON r.run_id = t.run_id WHERE t.task_id = tasks.task_id)",
        (*task_ids, idle_since),
    )


def _delete_with_turns(run_ids: Sequence[str]) -> list[SqlStatement]:
    """Returns the statements that delete runs, and with them by cascade their events, signals and references."""
    of_runs, values = f"WHERE run_id IN ({format_marks(run_ids)})", tuple(run_ids)
    return [
        SqlStatement(f"DELETE FROM turns {of_runs}", values),  # noqa: S608 - marks
        SqlStatement(f"DELETE FROM webhook_deliveries {of_runs}", values),  # noqa: S608 - marks
        SqlStatement(f"DELETE FROM runs {of_runs}", values),  # noqa: S608 - marks
    ]


async def _list_blobs(statements: SqlClient, run_ids: Sequence[str]) -> list[str]:
    query = f"SELECT DISTINCT checksum FROM blob_references WHERE run_id IN ({format_marks(run_ids)})"  # noqa: S608 - marks
    return sorted(str(checksum) for (checksum,) in await statements.read(query, *run_ids))


def _delete_unused_blobs(checksums: Sequence[str]) -> list[SqlStatement]:
    """Returns the statement that deletes those of the blobs that no run refers to, if there are any blobs."""
    if not checksums:
        return []
    return [
        SqlStatement(
            f"DELETE FROM blobs WHERE checksum IN ({format_marks(checksums)}) "  # noqa: S608 - marks
            "AND NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.checksum = blobs.checksum)",
            tuple(checksums),
        )
    ]
