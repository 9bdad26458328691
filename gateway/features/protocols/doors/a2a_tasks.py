"""The tasks of the A2A door: a task is a run, and the runs that went on from its questions.

A run whose planner asks the user ends with its question, and the reply starts another run. For an A2A client both are
one task.

Imports the A2A SDK, so only the loaded A2A door imports this module.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task, TaskState
from a2a.utils import errors as a2a_errors

from agent.core.events import Event
from agent.runs.input_replies import derive_reply_id, follow_replies
from agent.runs.service import AgentService
from agent.storage.journal import RunRow
from gateway.features.protocols.render.a2a import STATES, build_task

MAX_LISTED = 10_000
"""The newest runs of an owner that are listed and counted."""
PAGE_SIZE, MAX_PAGE_SIZE = 50, 100
_ROWS = 500


@dataclass(frozen=True, slots=True)
class RunTask:
    """A task: its runs, oldest first. All but the last one ended with a question."""

    run_ids: tuple[str, ...]
    last: RunRow

    @property
    def task_id(self) -> str:
        """The id of the first run."""
        return self.run_ids[0]


async def find_task(service: AgentService[Any], task_id: str, owner: str) -> RunTask:
    """A task by the id of its first run. Raises `NotFoundError`."""
    rows = await follow_replies(service, task_id, owner)
    return RunTask(tuple(row.run_id for row in rows), rows[-1])


async def read_task_events(service: AgentService[Any], task: RunTask, owner: str) -> list[list[Event]]:
    """The events of each run of a task, oldest run first. Raises `NotFoundError`."""
    return [await service.read_events(run_id, owner=owner) for run_id in task.run_ids]


async def list_tasks(service: AgentService[Any], params: ListTasksRequest, owner: str) -> ListTasksResponse:
    """A page of the owner's tasks, the last changed first. Raises `InvalidParamsError`.

    Only the newest `MAX_LISTED` runs are listed and counted.
    """
    size = params.page_size if params.HasField("page_size") else PAGE_SIZE
    if not 1 <= size <= MAX_PAGE_SIZE:
        raise a2a_errors.InvalidParamsError(f"pageSize: must be 1 to {MAX_PAGE_SIZE}")
    after = _parse_token(params.page_token) if params.page_token else None
    tasks = [task for task in _group_rows(await _list_rows(service, owner)) if _matches(task, params)]
    tasks.sort(key=_order, reverse=True)
    rest = [task for task in tasks if after is None or _order(task) < after]
    page = rest[:size]
    return ListTasksResponse(
        tasks=[await _build_listed_task(service, task, params, owner) for task in page],
        next_page_token=_make_token(page[-1]) if len(rest) > size else "",
        page_size=size,
        total_size=len(tasks),
    )


async def _list_rows(service: AgentService[Any], owner: str) -> list[RunRow]:
    rows: list[RunRow] = []
    while len(rows) < MAX_LISTED:
        before = rows[-1].run_id if rows else None
        page = await service.list_runs(owner=owner, limit=_ROWS, before=before)
        rows += page
        if len(page) < _ROWS:
            break
    return rows[:MAX_LISTED]


def _group_rows(rows: Sequence[RunRow]) -> Iterator[RunTask]:
    """Yields the tasks of these runs."""
    known_run_ids = {row.run_id for row in rows}
    asked_by = {derive_reply_id(row.run_id): row.run_id for row in rows if row.status == "awaiting_input"}
    for row in rows:
        if row.status == "awaiting_input" and derive_reply_id(row.run_id) in known_run_ids:
            continue  # the task of the run that goes on from it
        run_ids = [row.run_id]
        while run_ids[0] in asked_by:
            run_ids.insert(0, asked_by[run_ids[0]])
        yield RunTask(tuple(run_ids), row)


def _matches(task: RunTask, params: ListTasksRequest) -> bool:
    row = task.last
    if params.context_id and params.context_id != (row.conversation_id or task.task_id):
        return False
    if params.status != TaskState.TASK_STATE_UNSPECIFIED and params.status != STATES[row.status]:
        return False
    since = params.status_timestamp_after
    return not params.HasField("status_timestamp_after") or row.updated_at >= since.seconds + since.nanos / 1e9


async def _build_listed_task(service: AgentService[Any], task: RunTask, params: ListTasksRequest, owner: str) -> Task:
    length = params.history_length if params.HasField("history_length") else None
    built = build_task(await read_task_events(service, task, owner), length)
    if not params.include_artifacts:
        built.ClearField("artifacts")
    return built


def _order(task: RunTask) -> tuple[float, str]:
    return task.last.updated_at, task.task_id


def _make_token(task: RunTask) -> str:
    return base64.urlsafe_b64encode(json.dumps(_order(task)).encode()).decode()


def _parse_token(token: str) -> tuple[float, str]:
    """The place in the order that a page token names. Raises `InvalidParamsError`."""
    try:
        at, task_id = json.loads(base64.urlsafe_b64decode(token))
        return float(at), str(task_id)
    except (binascii.Error, ValueError, TypeError) as error:
        raise a2a_errors.InvalidParamsError("pageToken: send the nextPageToken of an earlier page") from error
