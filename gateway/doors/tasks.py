"""`/tasks`: work that is kept: created, carried out, and looked at again with what each run of it left behind."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, JsonValue, WithJsonSchema

from agent.core.errors import NotFoundError
from agent.core.models import JsonObject
from agent.core.tasks_store import MOST_RUNS, Task, TaskRun, TaskStatus
from agent.planning.required import CONTEXT_CHARS, CONTEXT_KEYS, split_context
from gateway.auth import By, requires
from gateway.doors.agent import ERRORS
from gateway.doors.attendance import while_heard
from gateway.doors.body import KNOWN_ONLY, JsonRoute, refuse_unknown
from gateway.doors.catalogue import ToolItems, list_tools
from gateway.doors.wiring import Gateway
from gateway.errors import FieldError
from gateway.idempotency import begun_once
from gateway.render.errors import FailureBody

router = APIRouter(tags=["tasks"], route_class=JsonRoute, dependencies=[requires("agent")])

NAME_CHARS, MOST_NAMES = 100, 50
"""How much is told of keys that were dropped: enough to find a misspelt one."""

_UNUSABLE = {"model": FailureBody, "description": "A field has no usable value"}


class NewTask(BaseModel):
    """Something to be done. `context` holds service, priority, severity and status; other keys are dropped."""

    model_config = KNOWN_ONLY

    prompt: Annotated[JsonValue, WithJsonSchema({"type": "string", "minLength": 1})] = None
    context: Annotated[
        JsonValue, WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "nullable": True})
    ] = None


class TaskRecord(BaseModel):
    """A task with what its newest run made of it. `output` and `verification` are null until it has ended; `reason`
    says why it was not completed."""

    task_id: str
    status: TaskStatus
    prompt: str
    context: dict[str, str]
    run_id: str | None = None
    output: JsonObject | None = None
    verification: JsonObject | None = None
    failure: JsonObject | None = None
    reason: str | None = None
    created_at: datetime
    updated_at: datetime


class CreatedTask(TaskRecord):
    """A task as it was created; `dropped_context` names the keys of the context that nothing is known of."""

    dropped_context: list[str]


class TaskList(BaseModel):
    """Tasks, newest first, without output; `next` is what to pass as `before` for older ones."""

    data: list[TaskRecord]
    next: str | None = None


class TaskRunItem(BaseModel):
    """One run of a task; `number` counts from 1. Its events are at /v1/runs/{run_id}/events."""

    run_id: str
    task_id: str
    number: int
    status: TaskStatus
    created_at: datetime
    updated_at: datetime


class TaskRunList(BaseModel):
    """Runs of a task, newest first; `next` is what to pass as `before` for earlier ones."""

    data: list[TaskRunItem]
    next: int | None = None


class TaskRunDetail(TaskRunItem):
    """A run with its documents; of one that goes on, as far as it has come."""

    state: JsonObject
    plan: JsonObject | None
    tool_results: list[JsonObject]
    verification: JsonObject


@router.post("/tasks", status_code=201, responses={422: _UNUSABLE, **ERRORS})
async def create_task(body: NewTask, http: Request, stepgate: Gateway, caller: By) -> CreatedTask:
    """Create a task. It is carried out by `POST /tasks/{task_id}/run`."""
    refuse_unknown(await http.json(), NewTask)
    context, dropped = _context(body.context)
    task = await stepgate.tasks.create(_prompt(body.prompt), context, owner=caller.owner)
    return CreatedTask(**_record(task, None).model_dump(), dropped_context=dropped)


@router.get("/tasks", responses=ERRORS)
async def list_tasks(
    stepgate: Gateway, caller: By, limit: Annotated[int, Query(ge=1, le=200)] = 50, before: str | None = None
) -> TaskList:
    """List tasks."""
    tasks = await stepgate.tasks.newest(owner=caller.owner, limit=limit, before=before)
    return TaskList(
        data=[_record(task, None) for task in tasks], next=tasks[-1].task_id if len(tasks) == limit else None
    )


@router.get("/tasks/{task_id}", responses=ERRORS)
async def get_task(task_id: str, stepgate: Gateway, caller: By) -> TaskRecord:
    """One task, with what came of it."""
    return _record(*await stepgate.tasks.get(task_id, owner=caller.owner))


@router.post("/tasks/{task_id}/run", responses={202: {"model": TaskRecord}, **ERRORS})
async def run_task(
    task_id: str, http: Request, response: Response, stepgate: Gateway, caller: By, *, wait: bool = True
) -> TaskRecord:
    """Carry out a task, and return it when it has ended; 202 at once with `wait=false`. A task that is being carried
    out already is a 409 that names its run."""

    async def start(new: str | None) -> tuple[str, int]:
        return await stepgate.tasks.start(task_id, owner=caller.owner, principal=caller.principal, run_id=new), 0

    run_id, _ = await begun_once(http, start)
    http.state.run_started = True
    response.headers["x-stepgate-run-id"] = run_id
    if wait:
        await while_heard(http, stepgate.tasks.finished(run_id, owner=caller.owner))
    task, run = await stepgate.tasks.get(task_id, owner=caller.owner)
    if run is None or not run.ended:  # it goes on: nobody waits, a person has to decide, or the gateway stops
        response.status_code = 202
    return _record(task, run)


@router.get("/tasks/{task_id}/runs", responses=ERRORS)
async def list_task_runs(
    task_id: str,
    stepgate: Gateway,
    caller: By,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[int, Query(ge=1, le=MOST_RUNS)] = MOST_RUNS,
) -> TaskRunList:
    """The runs of a task."""
    runs = await stepgate.tasks.runs(task_id, owner=caller.owner, limit=limit, before=before)
    return TaskRunList(data=[_item(run) for run in runs], next=runs[-1].number if len(runs) == limit else None)


@router.get("/tasks/{task_id}/runs/latest", responses=ERRORS)
async def latest_task_run(task_id: str, stepgate: Gateway, caller: By) -> TaskRunDetail:
    """The newest run of a task with its state, plan, tool results and verification."""
    run = await stepgate.tasks.latest(task_id, owner=caller.owner)
    if run is None or run.state is None or run.verification is None:
        raise NotFoundError(f"task {task_id!r} has not been carried out yet: POST /tasks/{task_id}/run")
    return TaskRunDetail(
        **_item(run).model_dump(),
        state=run.state,
        plan=run.plan,
        tool_results=list(run.tool_results or ()),
        verification=run.verification,
    )


router.add_api_route("/tools", list_tools, methods=["GET"], response_model=ToolItems, name="tools")


def _prompt(prompt: JsonValue) -> str:
    if not isinstance(prompt, str) or not prompt.strip():
        raise FieldError("the task needs a prompt that says what to do: a text that is not empty", "prompt")
    return prompt


def _context(context: JsonValue) -> tuple[dict[str, str], list[str]]:
    """The known facts, and the names of what is dropped. Raises `FieldError` for values that are no facts."""
    if context is None:
        return {}, []
    if not isinstance(context, dict):
        raise FieldError('the context must be an object, e.g. {"service": "profile-media-api"}', "context")
    for name in CONTEXT_KEYS:
        value = context.get(name)
        if isinstance(value, bool | list | dict) or (isinstance(value, str) and len(value.strip()) > CONTEXT_CHARS):
            raise FieldError(f"{name} must be a text of at most {CONTEXT_CHARS} characters", f"context.{name}")
    kept, dropped = split_context(context)
    return kept, [name[:NAME_CHARS] for name in dropped[:MOST_NAMES]]


def _record(task: Task, run: TaskRun | None) -> TaskRecord:
    state = run.state if run is not None else None
    failure = state.get("failure") if state is not None else None
    return TaskRecord(
        task_id=task.task_id,
        status=task.status,
        prompt=task.prompt,
        context=dict(task.context),
        run_id=run.run_id if run is not None else None,
        output=_output(state, run.tool_results or ()) if state is not None and run is not None else None,
        verification=run.verification if run is not None else None,
        failure=failure if isinstance(failure, dict) else None,
        reason=str(state["reason"]) if state is not None and state.get("reason") else None,
        created_at=_time(task.created),
        updated_at=_time(task.updated),
    )


def _output(state: JsonObject, results: Sequence[JsonObject]) -> JsonObject | None:
    """The answer with its evidence, and the last good result of each tool; null where there is no answer."""
    answer = state.get("answer")
    if not isinstance(answer, dict):
        return None
    last: Mapping[str, JsonValue] = {
        str(result["tool"]): result.get("output") for result in results if result.get("ok")
    }
    kept = {name: answer.get(name) for name in ("sources", "citations", "uncertainties")}
    return {"response": answer.get("text"), **kept, "results": dict(last)}


def _item(run: TaskRun) -> TaskRunItem:
    return TaskRunItem(
        run_id=run.run_id,
        task_id=run.task_id,
        number=run.number,
        status=run.status,
        created_at=_time(run.created),
        updated_at=_time(run.updated),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
