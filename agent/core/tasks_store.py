"""`TaskStore`: tasks, and what each of their runs left behind as JSON documents. The runs themselves are in the log."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agent.core.codec import storable, whole
from agent.core.models import JsonObject
from agent.core.statements import Statements

TaskStatus = Literal["pending", "running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Task:
    """Something to be done, as it was asked for. Times are UTC seconds."""

    task_id: str
    owner: str
    prompt: str
    context: Mapping[str, str]
    status: TaskStatus
    created: float
    updated: float


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One run of a task; `number` counts from 1. The documents are None until it has ended."""

    run_id: str
    task_id: str
    number: int
    status: TaskStatus
    ended: bool
    created: float
    updated: float
    state: JsonObject | None = None
    plan: JsonObject | None = None
    tool_results: Sequence[JsonObject] | None = None
    verification: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Documents:
    """What a run that has ended left behind."""

    status: TaskStatus
    at: float
    """When it ended, in seconds since the epoch: whoever settles it, and how often, says the same."""
    state: JsonObject
    plan: JsonObject | None
    verification: JsonObject
    tool_results: Sequence[JsonObject] = field(default_factory=tuple)


MOST_RUNS: Final = 2**31 - 1
"""More than a task's runs can be numbered."""
_TASK = "task_id, owner, prompt, context, status, created, updated"
_RUN = "run_id, task_id, number, status, ended, created, updated"
_DOCUMENTS = "state, plan, tool_results, verification"


class TaskStore:
    """The tasks by owner. Every method raises `StoreError`; another owner's things are not there."""

    def __init__(self, statements: Statements, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(self, task_id: str, owner: str, prompt: str, context: Mapping[str, str]) -> Task:
        """A new task."""
        now = self._clock()
        task = Task(task_id, owner, storable(prompt), dict(context), "pending", now, now)
        await self._statements.write(
            f"INSERT INTO tasks ({_TASK}) VALUES (?,?,?,?,?,?,?)",  # noqa: S608 - constants only
            task_id, owner, task.prompt, whole(json.dumps(task.context)), task.status, now, now,
        )  # fmt: skip
        return task

    async def get(self, task_id: str, owner: str) -> Task | None:
        """The task; None where there is none of this owner's."""
        rows = await self._statements.read(
            f"SELECT {_TASK} FROM tasks WHERE task_id = ? AND owner = ?",  # noqa: S608 - constants only
            storable(task_id), owner,
        )  # fmt: skip
        return _task(rows[0]) if rows else None

    async def newest(self, owner: str, *, limit: int, before: Task | None = None) -> list[Task]:
        """Tasks, newest first; those older than `before`."""
        newest_first = "ORDER BY created DESC, task_id DESC LIMIT ?"
        if before is None:
            query = f"SELECT {_TASK} FROM tasks WHERE owner = ? {newest_first}"  # noqa: S608 - constants only
            rows = await self._statements.read(query, owner, limit)
        else:
            older = f"SELECT {_TASK} FROM tasks WHERE owner = ? AND (created, task_id) < (?, ?) {newest_first}"  # noqa: S608 - constants only
            rows = await self._statements.read(older, owner, before.created, before.task_id, limit)
        return [_task(row) for row in rows]

    async def begin(self, task: Task, run_id: str) -> TaskRun | None:
        """Note that the task is being carried out by this run; None while another run of it has not ended."""
        now = self._clock()
        rows = await self._statements.write(
            "INSERT INTO task_runs (run_id, task_id, owner, number, status, ended, created, updated) "
            "SELECT ?, ?, ?, COALESCE(MAX(number), 0) + 1, 'running', 0, ?, ? FROM task_runs WHERE task_id = ? "
            "ON CONFLICT DO NOTHING RETURNING number",
            run_id, task.task_id, task.owner, now, now, task.task_id,
        )  # fmt: skip
        if not rows:
            return None
        await self._mark(task.task_id, "running")
        return TaskRun(run_id, task.task_id, int(rows[0][0]), "running", ended=False, created=now, updated=now)

    async def forget(self, run_id: str, task: Task) -> None:
        """Take back a run that never came to be; the task is as it was before."""
        await self._statements.write("DELETE FROM task_runs WHERE run_id = ? AND ended = 0", run_id)
        latest = await self.latest(task.task_id, task.owner)
        await self._mark(task.task_id, latest.status if latest is not None else "pending")

    async def settle(self, run: TaskRun, left: Documents) -> None:
        """Keep what a run left behind, once; doing it again changes nothing.

        The task comes first: a crash in between leaves a run that has not ended here, which is settled again."""
        await self._statements.write(
            "UPDATE tasks SET status = ?, updated = ? WHERE task_id = ? "
            "AND ? = (SELECT MAX(number) FROM task_runs WHERE task_id = ?)",
            left.status, left.at, run.task_id, run.number, run.task_id,
        )  # fmt: skip
        await self._statements.write(
            "UPDATE task_runs SET status = ?, state = ?, plan = ?, tool_results = ?, verification = ?, ended = 1, "
            "updated = ? WHERE run_id = ? AND ended = 0",
            left.status, _json(left.state), _json(left.plan), _json(list(left.tool_results)), _json(left.verification),
            left.at, run.run_id,
        )  # fmt: skip

    async def latest(self, task_id: str, owner: str) -> TaskRun | None:
        """The newest run of a task, with its documents."""
        of_task = "FROM task_runs WHERE task_id = ? AND owner = ? ORDER BY number DESC LIMIT 1"
        query = f"SELECT {_RUN}, {_DOCUMENTS} {of_task}"
        rows = await self._statements.read(query, task_id, owner)
        return _run(rows[0]) if rows else None

    async def runs(self, task_id: str, owner: str, *, limit: int, before: int = MOST_RUNS) -> list[TaskRun]:
        """The runs of a task without their documents, newest first; those of a number below `before`."""
        of_task = "FROM task_runs WHERE task_id = ? AND owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
        rows = await self._statements.read(f"SELECT {_RUN} {of_task}", task_id, owner, before, limit)
        return [_run(row) for row in rows]

    async def open_runs(self) -> list[tuple[str, TaskRun]]:
        """Every run that has not ended here, with its owner: what is to be settled after a restart."""
        unended = "FROM task_runs WHERE ended = 0 ORDER BY created"
        rows = await self._statements.read(f"SELECT owner, {_RUN} {unended}")
        return [(str(row[0]), _run(row[1:])) for row in rows]

    async def _mark(self, task_id: str, status: TaskStatus) -> None:
        await self._statements.write(
            "UPDATE tasks SET status = ?, updated = ? WHERE task_id = ?", status, self._clock(), task_id
        )


def _json(value: object) -> str:
    return whole(json.dumps(value, ensure_ascii=False))


def _task(row: Sequence[Any]) -> Task:
    return Task(row[0], row[1], row[2], json.loads(row[3]), row[4], float(row[5]), float(row[6]))


def _run(row: Sequence[Any]) -> TaskRun:
    run_id, task_id, number, status, ended, created, updated, *documents = row
    state, plan, results, verification = [json.loads(text) for text in documents] or [None] * 4
    return TaskRun(
        run_id, task_id, int(number), status, bool(ended), float(created), float(updated),
        state, plan, results, verification,
    )  # fmt: skip
