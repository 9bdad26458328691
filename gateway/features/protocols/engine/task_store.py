"""`TaskStore`: tasks, and the JSON documents of their runs. The runs themselves are in the journal."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agent.core.models import JsonObject, Webhook
from agent.core.surrogates import replace_surrogates, to_storable_text
from agent.storage.sql import SqlClient

TaskStatus = Literal["pending", "running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it was requested. Times are UTC seconds."""

    task_id: str
    owner: str
    prompt: str
    context: Mapping[str, str]
    status: TaskStatus
    created: float
    updated: float
    webhook: Webhook | None = None
    """Notified of the end of each run."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One run of a task; `number` counts from 1. The documents are None until it has ended."""

    run_id: str
    task_id: str
    number: int
    status: TaskStatus
    is_ended: bool
    created: float
    updated: float
    state: JsonObject | None = None
    plan: JsonObject | None = None
    tool_results: Sequence[JsonObject] | None = None
    verification: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class TaskDocuments:
    """The documents of a run that has ended."""

    status: TaskStatus
    at: float
    """When the run ended, in UTC seconds since 1970. Taken from the log, so repeating it gives the same value."""
    state: JsonObject
    plan: JsonObject | None
    verification: JsonObject
    tool_results: Sequence[JsonObject] = field(default_factory=tuple)


MAX_RUN_NUMBER: Final = 2**31 - 1
"""Larger than the number of any run."""
_TASK_COLUMNS = "task_id, owner, prompt, context, status, created, updated, webhook"
_RUN_COLUMNS = "run_id, task_id, number, status, ended, created, updated"
_DOCUMENT_COLUMNS = "state, plan, tool_results, verification"


class TaskStore:
    """The tasks by owner. Every method raises `StoreError`. Another owner's tasks count as absent."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(
        self, task_id: str, owner: str, prompt: str, context: Mapping[str, str], webhook: Webhook | None = None
    ) -> Task:
        """Creates a task."""
        now = self._clock()
        task = Task(task_id, owner, to_storable_text(prompt), dict(context), "pending", now, now, webhook)
        webhook_json = to_storable_text(webhook.model_dump_json()) if webhook is not None else None
        await self._statements.write(
            f"INSERT INTO tasks ({_TASK_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)",  # noqa: S608 - constants only
            task_id, owner, task.prompt, replace_surrogates(json.dumps(task.context, ensure_ascii=False)), task.status,
            now, now, webhook_json,
        )  # fmt: skip
        return task

    async def get(self, task_id: str, owner: str) -> Task | None:
        """The task, or None if the owner has none of this id."""
        rows = await self._statements.read(
            f"SELECT {_TASK_COLUMNS} FROM tasks WHERE task_id = ? AND owner = ?",  # noqa: S608 - constants only
            to_storable_text(task_id), owner,
        )  # fmt: skip
        return _parse_task(rows[0]) if rows else None

    async def list_newest(self, owner: str, *, limit: int, before: Task | None = None) -> list[Task]:
        """Tasks, newest first; only those older than `before`, if given."""
        newest_first = "ORDER BY created DESC, task_id DESC LIMIT ?"
        if before is None:
            query = f"SELECT {_TASK_COLUMNS} FROM tasks WHERE owner = ? {newest_first}"  # noqa: S608 - constants only
            rows = await self._statements.read(query, owner, limit)
        else:
            older = f"SELECT {_TASK_COLUMNS} FROM tasks WHERE owner = ? AND (created, task_id) < (?, ?) {newest_first}"  # noqa: S608 - constants only
            rows = await self._statements.read(older, owner, before.created, before.task_id, limit)
        return [_parse_task(row) for row in rows]

    async def start_run(self, task: Task, run_id: str) -> TaskRun | None:
        """Stores that this run executes the task. Returns None while another run of the task has not ended."""
        now = self._clock()
        rows = await self._statements.write(
            "INSERT INTO task_runs (run_id, task_id, owner, number, status, ended, created, updated) "
            "SELECT ?, ?, ?, COALESCE(MAX(number), 0) + 1, 'running', 0, ?, ? FROM task_runs WHERE task_id = ? "
            "ON CONFLICT DO NOTHING RETURNING number",
            run_id, task.task_id, task.owner, now, now, task.task_id,
        )  # fmt: skip
        if not rows:
            return None
        await self._set_status(task.task_id, "running")
        return TaskRun(run_id, task.task_id, int(rows[0][0]), "running", is_ended=False, created=now, updated=now)

    async def discard_run(self, run_id: str, task: Task) -> None:
        """Removes a run that never started and restores the task's status."""
        await self._statements.write("DELETE FROM task_runs WHERE run_id = ? AND ended = 0", run_id)
        latest = await self.get_latest_run(task.task_id, task.owner)
        await self._set_status(task.task_id, latest.status if latest is not None else "pending")

    async def finish_run(self, run: TaskRun, left: TaskDocuments) -> None:
        """Stores the documents of a run that has ended. Repeating it changes nothing.

        Updates the task first: after a crash in between, the run still counts as unfinished and is finished again.
        """
        await self._statements.write(
            "UPDATE tasks SET status = ?, updated = ? WHERE task_id = ? "
            "AND ? = (SELECT MAX(number) FROM task_runs WHERE task_id = ?)",
            left.status, left.at, run.task_id, run.number, run.task_id,
        )  # fmt: skip
        await self._statements.write(
            "UPDATE task_runs SET status = ?, state = ?, plan = ?, tool_results = ?, verification = ?, ended = 1, "
            "updated = ? WHERE run_id = ? AND ended = 0",
            left.status, _to_json(left.state), _to_json(left.plan), _to_json(list(left.tool_results)),
            _to_json(left.verification), left.at, run.run_id,
        )  # fmt: skip

    async def get_latest_run(self, task_id: str, owner: str) -> TaskRun | None:
        """The newest run of a task with its documents."""
        of_task = "FROM task_runs WHERE task_id = ? AND owner = ? ORDER BY number DESC LIMIT 1"
        query = f"SELECT {_RUN_COLUMNS}, {_DOCUMENT_COLUMNS} {of_task}"
        rows = await self._statements.read(query, task_id, owner)
        return _parse_run(rows[0]) if rows else None

    async def list_runs(self, task_id: str, owner: str, *, limit: int, before: int = MAX_RUN_NUMBER) -> list[TaskRun]:
        """The runs of a task without their documents, newest first; only those with a number below `before`."""
        of_task = "FROM task_runs WHERE task_id = ? AND owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
        rows = await self._statements.read(f"SELECT {_RUN_COLUMNS} {of_task}", task_id, owner, before, limit)
        return [_parse_run(row) for row in rows]

    async def list_unfinished_runs(self) -> list[tuple[str, TaskRun]]:
        """Every run that has not ended here, with its owner, to be finished after a restart."""
        unended = "FROM task_runs WHERE ended = 0 ORDER BY created"
        rows = await self._statements.read(f"SELECT owner, {_RUN_COLUMNS} {unended}")
        return [(str(row[0]), _parse_run(row[1:])) for row in rows]

    async def _set_status(self, task_id: str, status: TaskStatus) -> None:
        await self._statements.write(
            "UPDATE tasks SET status = ?, updated = ? WHERE task_id = ?", status, self._clock(), task_id
        )


def _to_json(value: object) -> str:
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


def _parse_task(row: Sequence[Any]) -> Task:
    webhook = Webhook.model_validate_json(row[7]) if row[7] is not None else None
    return Task(row[0], row[1], row[2], json.loads(row[3]), row[4], float(row[5]), float(row[6]), webhook)


def _parse_run(row: Sequence[Any]) -> TaskRun:
    run_id, task_id, number, status, ended, created, updated, *documents = row
    state, plan, results, verification = [json.loads(text) for text in documents] or [None] * 4
    return TaskRun(
        run_id, task_id, int(number), status, bool(ended), float(created), float(updated),
        state, plan, results, verification,
    )  # fmt: skip
