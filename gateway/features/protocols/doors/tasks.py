"""`/tasks`: stored tasks that are created, executed, and read again with the documents of each run."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import ConfigDict, Field, JsonValue, WithJsonSchema

from agent.core.errors import NotFoundError
from agent.core.models import DeferredModel, JsonObject, Webhook
from agent.core.record_item import RecordItem
from agent.planning.required import CONTEXT_CHARS, CONTEXT_KEYS, split_context
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.catalogue import ToolItems, list_tools
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.features.protocols.engine import MAX_RUN_NUMBER, Task, TaskRun, TaskRunRequest, TaskStatus
from gateway.features.protocols.parts import get_tasks
from gateway.render.error_responses import FieldError
from gateway.render.errors import FailureBody

router = APIRouter(tags=["tasks"], route_class=JsonRoute, dependencies=[require_scope("agent")])

MAX_NAME_CHARS, MAX_DROPPED_NAMES = 100, 50
"""Most dropped keys that are returned, and their length: enough to find a misspelt one."""

_UNUSABLE_FIELD = {"model": FailureBody, "description": "A field has an invalid value"}


class NewTask(StrictBody):
    """A task to create. `context` holds service, priority, severity and status; other keys are dropped."""

    # Checked by hand, so that a missing prompt is a 422 too; the schema says that it is required.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False, "required": ["prompt"]})

    prompt: Annotated[JsonValue, WithJsonSchema({"type": "string", "minLength": 1})] = None
    context: Annotated[
        JsonValue, WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "nullable": True})
    ] = None
    webhook: Webhook | None = Field(default=None, description="receives the end of each run (docs/schedules.md)")


class TaskRecord(DeferredModel):
    """A task with the result of its newest run. `plan`, `output`, `verification` and `trace` are null until it has
    ended; `reason` says why it was not completed. Each line of `trace` names its stage: plan, retrieve, execute, verify
    or finalize.
    """

    task_id: str
    status: TaskStatus
    prompt: str
    context: dict[str, str]
    run_id: str | None = None
    plan: JsonObject | None = None
    output: JsonObject | None = None
    verification: JsonObject | None = None
    trace: list[JsonObject] | None = None
    failure: JsonObject | None = None
    reason: str | None = None
    webhook: Webhook | None = None
    created_at: datetime
    updated_at: datetime


class CreatedTask(TaskRecord):
    """A created task; `dropped_context` names the unknown keys of its context."""

    dropped_context: list[str]


class TaskList(DeferredModel):
    """Tasks, newest first, without output; pass `next` as `before` for older ones."""

    data: list[TaskRecord]
    next: str | None = None


class TaskRunItem(RecordItem):
    """One run of a task; `number` counts from 1. Its events are at /v1/runs/{run_id}/events."""

    run_id: str
    task_id: str
    number: int
    status: TaskStatus
    created_at: datetime = Field(validation_alias="created")
    updated_at: datetime = Field(validation_alias="updated")


class TaskRunList(DeferredModel):
    """Runs of a task, newest first; pass `next` as `before` for earlier ones."""

    data: list[TaskRunItem]
    next: int | None = None


class TaskRunDetail(TaskRunItem):
    """A run with its documents; for a run in progress, those so far."""

    state: JsonObject
    plan: JsonObject | None
    tool_results: list[JsonObject]
    verification: JsonObject
    trace: list[JsonObject]


@router.post("/tasks", status_code=201, responses={422: _UNUSABLE_FIELD, **ERRORS})
async def create_task(body: NewTask, stepgate: Gateway, caller: CurrentCaller) -> CreatedTask:
    """Create a task. `POST /tasks/{task_id}/run` executes it."""
    context, dropped = _check_context(body.context)
    prompt = _check_prompt(body.prompt)
    if body.webhook is not None:
        await stepgate.intake.check_webhook(body.webhook, caller.owner)
    task = await get_tasks(stepgate).create_task(prompt, context, owner=caller.owner, webhook=body.webhook)
    return CreatedTask(**_to_task_record(task, None).model_dump(), dropped_context=dropped)


@router.get("/tasks", responses=ERRORS)
async def list_tasks(
    stepgate: Gateway, caller: CurrentCaller, limit: Annotated[int, Query(ge=1, le=200)] = 50, before: str | None = None
) -> TaskList:
    """List tasks."""
    tasks = await get_tasks(stepgate).list_tasks(owner=caller.owner, limit=limit, before=before)
    return TaskList(
        data=[_to_task_record(task, None) for task in tasks], next=tasks[-1].task_id if len(tasks) == limit else None
    )


@router.get("/tasks/{task_id}", responses=ERRORS)
async def get_task(task_id: str, stepgate: Gateway, caller: CurrentCaller) -> TaskRecord:
    """Return one task with its result."""
    return _to_task_record(*await get_tasks(stepgate).get_task(task_id, owner=caller.owner))


@router.post("/tasks/{task_id}/run", responses={202: {"model": TaskRecord}, **ERRORS})
async def run_task(
    task_id: str, http: Request, response: Response, stepgate: Gateway, caller: CurrentCaller, *, wait: bool = True
) -> TaskRecord:
    """Execute a task and return it when it has ended; 202 at once with `wait=false`. 409 for a task in progress, naming
    its run.
    """

    accepted = await accept_run(http, stepgate, caller, TaskRunRequest(task_id))
    response.headers[RUN_ID_HEADER] = accepted.run_id
    if wait:
        await cancel_on_disconnect(http, get_tasks(stepgate).wait_for_run(accepted.run_id, owner=caller.owner))
    task, run = await get_tasks(stepgate).get_task(task_id, owner=caller.owner)
    # Still in progress: `wait=false`, a person must decide, or the gateway is stopping.
    if run is None or not run.is_ended:
        response.status_code = 202
    return _to_task_record(task, run)


@router.get("/tasks/{task_id}/runs", responses=ERRORS)
async def list_task_runs(
    task_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[int, Query(ge=1, le=MAX_RUN_NUMBER)] = MAX_RUN_NUMBER,
) -> TaskRunList:
    """List the runs of a task."""
    runs = await get_tasks(stepgate).list_runs(task_id, owner=caller.owner, limit=limit, before=before)
    return TaskRunList(data=TaskRunItem.from_records(runs), next=runs[-1].number if len(runs) == limit else None)


@router.get("/tasks/{task_id}/runs/latest", responses=ERRORS)
async def get_latest_task_run(task_id: str, stepgate: Gateway, caller: CurrentCaller) -> TaskRunDetail:
    """Return the newest run of a task with its state, plan, tool results and verification."""
    run = await get_tasks(stepgate).get_latest_run(task_id, owner=caller.owner)
    if run is None or run.state is None or run.verification is None:
        raise NotFoundError(f"task {task_id!r} has not been run yet: POST /tasks/{task_id}/run")
    return TaskRunDetail(
        **TaskRunItem.model_validate(run).model_dump(),
        state=run.state,
        plan=run.plan,
        tool_results=list(run.tool_results or ()),
        verification=run.verification,
        trace=_get_trace(run.state),
    )


router.add_api_route("/tools", list_tools, methods=["GET"], response_model=ToolItems, name="tools")


def _check_prompt(prompt: JsonValue) -> str:
    if not isinstance(prompt, str) or not prompt.strip():
        raise FieldError("the task needs a prompt: text that is not empty", "prompt")
    return prompt


def _check_context(context: JsonValue) -> tuple[dict[str, str], list[str]]:
    """The known keys, and the names of the dropped ones. Raises `FieldError` for invalid values."""
    if context is None:
        return {}, []
    if not isinstance(context, dict):
        raise FieldError('the context must be an object, e.g. {"service": "profile-media-api"}', "context")
    for name in CONTEXT_KEYS:
        value = context.get(name)
        if isinstance(value, bool | list | dict) or (isinstance(value, str) and len(value.strip()) > CONTEXT_CHARS):
            raise FieldError(f"{name} must be a text of at most {CONTEXT_CHARS} characters", f"context.{name}")
    usable, dropped = split_context(context)
    return usable, [name[:MAX_NAME_CHARS] for name in dropped[:MAX_DROPPED_NAMES]]


def _to_task_record(task: Task, run: TaskRun | None) -> TaskRecord:
    state = run.state if run is not None else None
    failure = state.get("failure") if state is not None else None
    return TaskRecord(
        task_id=task.task_id,
        status=task.status,
        prompt=task.prompt,
        context=dict(task.context),
        run_id=run.run_id if run is not None else None,
        plan=run.plan if run is not None else None,
        output=_build_output(state, run.tool_results or ()) if state is not None and run is not None else None,
        verification=run.verification if run is not None else None,
        trace=_get_trace(state) if state is not None else None,
        failure=failure if isinstance(failure, dict) else None,
        reason=str(state["reason"]) if state is not None and state.get("reason") else None,
        webhook=task.webhook,
        created_at=_to_utc(task.created),
        updated_at=_to_utc(task.updated),
    )


def _get_trace(state: JsonObject) -> list[JsonObject]:
    """The trace of a run; for one that was stored without stages, its steps."""
    lines = state.get("trace", state.get("steps"))
    return [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []


def _build_output(state: JsonObject, results: Sequence[JsonObject]) -> JsonObject | None:
    """The answer with its evidence, and each tool's last successful result; None without an answer."""
    answer = state.get("answer")
    if not isinstance(answer, dict):
        return None
    last: Mapping[str, JsonValue] = {
        str(result["tool"]): result.get("output") for result in results if result.get("ok")
    }
    copied_fields = {name: answer.get(name) for name in ("sources", "citations", "uncertainties")}
    return {"response": answer.get("text"), **copied_fields, "results": dict(last)}


def _to_utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
