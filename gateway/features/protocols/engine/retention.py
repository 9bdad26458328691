"""Deletes old records of tasks: what they keep of runs, and tasks without runs."""

from collections.abc import AsyncIterator, Sequence

from agent.storage.feature_tables import AgingRows, FeatureRetention, OldRows
from agent.storage.run_deletion import delete_rows_of_gone_runs
from agent.storage.sql import SqlClient, SqlStatement, format_marks, iter_pages


async def list_old_tasks(statements: SqlClient, cutoff: float) -> AsyncIterator[OldRows]:
    """Yields the tasks that have no runs and did not change since. Those whose runs are old too go with these."""
    query = (
        "SELECT task_id, updated, EXISTS (SELECT 1 FROM task_runs t JOIN runs r ON r.run_id = t.run_id "
        "WHERE t.task_id = tasks.task_id) FROM tasks WHERE task_id > ? ORDER BY task_id LIMIT ?"
    )
    async for rows in iter_pages(statements, query):
        old = [str(task_id) for task_id, updated, has_runs in rows if updated < cutoff and not has_runs]
        if old:
            yield OldRows(len(old), delete_idle_tasks(old, cutoff))


async def delete_with_runs(statements: SqlClient, run_ids: Sequence[str], cutoff: float) -> list[SqlStatement]:
    """The statements that delete what tasks keep of runs that are being forgotten, and those of the tasks that have no
    runs left and did not change since."""
    marks = format_marks(run_ids)
    rows = await statements.read(f"SELECT DISTINCT task_id FROM task_runs WHERE run_id IN ({marks})", *run_ids)  # noqa: S608 - marks
    tasks = [str(task_id) for (task_id,) in rows]
    return [delete_rows_of_gone_runs("task_runs", run_ids), delete_idle_tasks(tasks, cutoff)] if tasks else []


def delete_idle_tasks(task_ids: Sequence[str], idle_since: float) -> SqlStatement:
    """The statement that deletes those of the tasks that have no runs and did not change since."""
    return SqlStatement(
        f"DELETE FROM tasks WHERE task_id IN ({format_marks(task_ids)}) AND updated < ? "  # noqa: S608 - marks
        "AND NOT EXISTS (SELECT 1 FROM task_runs t JOIN runs r ON r.run_id = t.run_id WHERE t.task_id = tasks.task_id)",
        (*task_ids, idle_since),
    )


RETENTION = FeatureRetention(aging=(AgingRows(list_old_tasks, "tasks"),), delete_with_runs=delete_with_runs)
