"""`TaskService`: stored tasks, executed as runs, with the documents each run produces.

The log is the source of truth: a run's documents are built from it when the run ends, or by the next reader if the
gateway has stopped in between.
"""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from agent.core import events as ev
from agent.core.errors import AgentError, ConflictError, NotFoundError, StoreError
from agent.core.models import LOCAL_OWNER, AgentRequest, JsonObject, Webhook
from agent.core.principal import LOCAL, Principal
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.runs.gate_summary import build_gate_summary
from agent.runs.intake_ports import RequestHandler
from agent.runs.response import build_response
from agent.runs.run_end import RunEndWatcher
from agent.runs.service import AcceptedRun, AgentService, make_run_id
from gateway.features.protocols.engine.task_store import (
    MAX_RUN_NUMBER,
    Task,
    TaskDocuments,
    TaskRun,
    TaskStatus,
    TaskStore,
)
from gateway.features.protocols.engine.task_trace import build_task_trace

FetchBlob = Callable[[str], Awaitable[dict[str, object] | None]]


@dataclass(frozen=True, slots=True)
class TaskRunRequest:
    """A request to run a stored task. `origin` is added to the metadata of the run."""

    task_id: str
    origin: JsonObject = field(default_factory=dict)


def make_task_handler(tasks: "TaskService") -> RequestHandler[TaskRunRequest]:
    """The handler of requests to run a task."""

    async def accept(caller: Principal, request: TaskRunRequest, run_id: str | None) -> AcceptedRun:
        run_id = await tasks.start_run(request.task_id, caller, run_id=run_id, origin=request.origin)
        return AcceptedRun(run_id, caller.owner)

    async def find_webhook(caller: Principal, request: TaskRunRequest) -> Webhook | None:
        return await tasks.get_webhook(request.task_id, owner=caller.owner)

    return RequestHandler(TaskRunRequest, accept, find_webhook)


class TaskService:
    """The tasks of this gateway."""

    def __init__(self, store: TaskStore, service: AgentService[Any], *, room: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._service = service
        self._room = room
        self._watcher = RunEndWatcher(service, "task", clock)

    async def create_task(
        self, prompt: str, context: Mapping[str, str], *, owner: str = LOCAL_OWNER, webhook: Webhook | None = None
    ) -> Task:
        """Creates a task; `webhook` receives the end of each run. Raises what a run of it would raise:
        `BadRequestError`, `TooLargeError`, `RoomUnknownError`.
        """
        task_id = f"task_{secrets.token_hex(16)}"
        request = self._service.redact_request(self._build_request(prompt, context, task_id))
        self._service.admit(request, owner)
        redacted = request.metadata["context"]
        facts = {name: str(value) for name, value in redacted.items()} if isinstance(redacted, dict) else {}
        return await self._store.add(task_id, owner, request.prompt, facts, webhook)

    async def get_webhook(self, task_id: str, *, owner: str = LOCAL_OWNER) -> Webhook | None:
        """The webhook of the task's runs. Raises `NotFoundError`."""
        return (await self._get_stored_task(task_id, owner)).webhook

    async def get_task(self, task_id: str, *, owner: str = LOCAL_OWNER) -> tuple[Task, TaskRun | None]:
        """The task and its newest run. Raises `NotFoundError`."""
        task = await self._get_stored_task(task_id, owner)
        run = await self._store.get_latest_run(task_id, owner)
        if run is None or (run.is_ended and task.status != "running"):
            return task, run
        if not run.is_ended and not await self._store_outcome(run, owner):
            return task, run
        # The result was stored since the task was read, here or by the watcher.
        return await self._get_stored_task(task_id, owner), await self._store.get_latest_run(task_id, owner)

    async def get_latest_run(self, task_id: str, *, owner: str = LOCAL_OWNER) -> TaskRun | None:
        """The newest run of a task with its documents so far, or None without a run. Raises `NotFoundError`."""
        _, run = await self.get_task(task_id, owner=owner)
        if run is None or run.is_ended:
            return run
        try:
            events = await self._service.read_events(run.run_id, owner=owner)
        except NotFoundError:  # it is just being started
            return None
        so_far = await build_documents(events, fold(run.run_id, events), self._get_blob_value)
        return replace(
            run,
            state=so_far.state,
            plan=so_far.plan,
            tool_results=so_far.tool_results,
            verification=so_far.verification,
        )

    async def list_tasks(self, *, owner: str = LOCAL_OWNER, limit: int = 50, before: str | None = None) -> list[Task]:
        """Tasks, newest first; with `before`, those older than that task. Raises `NotFoundError` if it does not
        exist.
        """
        older = await self._get_stored_task(before, owner) if before is not None else None
        tasks = await self._store.list_newest(owner, limit=limit, before=older)
        return [
            (await self.get_task(task.task_id, owner=owner))[0] if task.status == "running" else task for task in tasks
        ]

    async def list_runs(
        self, task_id: str, *, owner: str = LOCAL_OWNER, limit: int = 50, before: int = MAX_RUN_NUMBER
    ) -> list[TaskRun]:
        """The runs of a task, newest first, without their documents. Raises `NotFoundError`."""
        await self.get_task(task_id, owner=owner)
        return await self._store.list_runs(task_id, owner, limit=limit, before=before)

    async def start_run(
        self, task_id: str, principal: Principal = LOCAL, *, run_id: str | None = None, origin: JsonObject | None = None
    ) -> str:
        """Starts a run of a task and returns its id; the run is stored. `run_id` is an id that was recorded before.

        `origin` says in the run's metadata what has started it, such as a schedule.

        Raises `NotFoundError`, `ConflictError` while the task is in progress, and what `AgentService.start_run` raises.
        """
        owner = principal.owner
        task, _ = await self.get_task(task_id, owner=owner)
        run_id = run_id or make_run_id()
        run = await self._store.start_run(task, run_id)
        if run is None:
            latest = await self._store.get_latest_run(task_id, owner)
            other_id = latest.run_id if latest is not None else "another run"
            raise ConflictError(
                f"task {task_id!r} is already in progress, in run {other_id}: see GET /tasks/{task_id}, or "
                f"cancel it by POST /v1/runs/{other_id}/cancel"
            )
        try:
            request = self._build_request(task.prompt, task.context, task_id, origin)
            await self._service.start_run(request, principal, run_id=run_id)
        except StoreError:  # the run may have been stored nevertheless; the next reader finds out
            raise
        except AgentError:
            await self._store.discard_run(run_id, task)
            raise
        self._watch_run(run, owner)
        return run_id

    async def wait_for_run(self, run_id: str, *, owner: str = LOCAL_OWNER) -> None:
        """Waits until the run has ended, waits for a person, or is left to the gateway's next start."""
        await self._service.wait_until_end(run_id, owner=owner, waits=False)

    async def resume_watching(self) -> None:
        """Stores the results of runs that ended unwatched, and watches those in progress. Raises `StoreError`."""
        for owner, run in await self._store.list_unfinished_runs():
            if not await self._store_outcome(run, owner):
                self._watch_run(run, owner)

    async def aclose(self) -> None:
        """Stores the results of ended runs and stops watching; the others are stored at the next start."""
        await self._watcher.aclose()

    def _watch_run(self, run: TaskRun, owner: str) -> None:
        """Stores the run's result when it ends."""
        self._watcher.watch(run.run_id, owner, lambda: self._store_outcome(run, owner))

    async def _get_blob_value(self, checksum: str) -> dict[str, object] | None:
        return (await self._service.get_blob_result(checksum))[0]

    async def _store_outcome(self, run: TaskRun, owner: str) -> bool:
        """Stores the documents of a run that has ended. Returns whether anything has changed."""
        progress = await self._watcher.get_progress(run.run_id, owner, run.created)
        if progress == "ended":
            events = await self._service.read_events(run.run_id, owner=owner)
            documents = await build_documents(events, fold(run.run_id, events), self._get_blob_value)
            await self._store.finish_run(run, documents)
        elif progress == "never_started":
            await self._store.discard_run(run.run_id, await self._get_stored_task(run.task_id, owner))
        return progress != "in_progress"

    async def _get_stored_task(self, task_id: str, owner: str) -> Task:
        task = await self._store.get(task_id, owner)
        if task is None:
            raise NotFoundError(f"there is no task {task_id!r}")
        return task

    def _build_request(
        self, prompt: str, context: Mapping[str, str], task_id: str, origin: JsonObject | None = None
    ) -> AgentRequest:
        metadata: JsonObject = {"task_id": task_id, "context": dict(context), **(origin or {})}
        return AgentRequest(prompt=prompt, room=self._room, metadata=metadata, interactive=False)


async def build_documents(events: Sequence[ev.Event], state: RunState, blob: FetchBlob) -> TaskDocuments:
    """The documents of a run, from its whole log; `blob` fetches long results."""
    response = build_response(events)
    blobs = {
        event.body.call_id: event.body.blob
        for event in events
        if isinstance(event.body, ev.ToolReturned) and event.body.blob is not None
    }
    results: list[JsonObject] = []
    for result in response.metadata["tool_results"]:
        checksum = blobs.get(str(result.get("call_id")))
        whole = await blob(checksum) if checksum is not None else None
        named = {**result, "implementation": _name_mode(result.get("implementation"))}
        results.append({**named, "output": _to_json_object(whole)} if whole is not None else named)
    answer = state.answer
    document = {
        "run_id": state.run_id,
        "status": state.status,
        "completeness": state.completeness,
        "room": state.room.id,
        "prompt": state.prompt,
        "context": state.request.metadata.get("context"),
        "answer": answer.model_dump(mode="json") if answer is not None else None,
        "failure": state.failure.model_dump(mode="json") if state.failure is not None else None,
        "reason": state.end_reason,
        "runtime": response.metadata["runtime"],
        "usage": response.metadata["usage"],
        "steps": [step.model_dump(mode="json") for step in response.steps],
        "trace": [*build_task_trace(response.steps, state)],
        "created_at": state.created_at,
        "ended_at": state.updated_at,
    }
    return TaskDocuments(
        status=get_task_status(state),
        at=state.updated_at,
        state=document,
        plan=state.plan.to_public_json() if state.plan is not None else None,
        tool_results=tuple(results),
        verification=_name_modes(build_gate_summary(state)),
    )


def _name_modes(verification: JsonObject) -> JsonObject:
    """Names the modes of a verification as these endpoints do: `deterministic` for rules."""
    runtime = verification.get("runtime")
    if not isinstance(runtime, dict):
        return verification
    renamed: JsonObject = {
        part: {name: _name_mode(value) for name, value in modes.items()} if isinstance(modes, dict) else modes
        for part, modes in runtime.items()
    }
    return {**verification, "runtime": renamed}


def _name_mode(value: JsonValue) -> JsonValue:
    return "deterministic" if value == "rules" else value


def get_task_status(state: RunState) -> TaskStatus:
    """The task's status for a run: only a complete, verified answer completes the task."""
    if not state.is_finished:
        return "running"
    if state.status == "cancelled":
        return "cancelled"
    return "completed" if state.completeness == "complete" else "failed"


def _to_json_object(value: dict[str, object]) -> JsonObject:
    """Converts the value, which was parsed from JSON, to a JSON object."""
    parsed: JsonObject = json.loads(json.dumps(value))
    return parsed
