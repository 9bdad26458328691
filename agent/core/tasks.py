"""`TaskService`: tasks are created, carried out as runs of the one engine, and kept with what their runs left behind.

The log is the truth: the documents of a run are projected from it when the run ends, or by whoever looks next, should
the gateway have stopped in between.
"""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.core import events as ev
from agent.core.errors import AgentError, ConflictError, NotFoundError, StoreError
from agent.core.fold import RunState, fold
from agent.core.following import BEGINNING_SECONDS, Following
from agent.core.models import LOCAL_OWNER, AgentRequest, JsonObject
from agent.core.principal import Principal
from agent.core.response import respond
from agent.core.service import AgentService, new_run_id
from agent.core.tasks_store import MOST_RUNS, Documents, Task, TaskRun, TaskStatus, TaskStore
from agent.core.verification import verification_of

Blob = Callable[[str], Awaitable[dict[str, object] | None]]


class TaskService:
    """The tasks of this gateway."""

    def __init__(self, store: TaskStore, service: AgentService[Any], *, room: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._service = service
        self._room = room
        self._clock = clock
        self._following = Following(service, "task")

    async def create(self, prompt: str, context: Mapping[str, str], *, owner: str = LOCAL_OWNER) -> Task:
        """A new task. Raises what a run of it would be refused with: `BadRequestError`, `TooLargeError`,
        `RoomUnknownError`."""
        task_id = f"task_{secrets.token_hex(16)}"
        request = self._service.screened(self._request(prompt, context, task_id))
        self._service.admit(request)
        told = request.metadata["context"]
        facts = {name: str(value) for name, value in told.items()} if isinstance(told, dict) else {}
        return await self._store.add(task_id, owner, request.prompt, facts)

    async def get(self, task_id: str, *, owner: str = LOCAL_OWNER) -> tuple[Task, TaskRun | None]:
        """The task and its newest run. `NotFoundError`."""
        task = await self._task(task_id, owner)
        run = await self._store.latest(task_id, owner)
        if run is None or (run.ended and task.status != "running"):
            return task, run
        if not run.ended and not await self._settle(run, owner):
            return task, run
        # Settled here, or by who follows the run, since the task was read.
        return await self._task(task_id, owner), await self._store.latest(task_id, owner)

    async def latest(self, task_id: str, *, owner: str = LOCAL_OWNER) -> TaskRun | None:
        """The newest run of a task with its documents, also while it goes on; None before it. `NotFoundError`."""
        _, run = await self.get(task_id, owner=owner)
        if run is None or run.ended:
            return run
        try:
            events = await self._service.read(run.run_id, owner=owner)
        except NotFoundError:  # it is just being begun
            return None
        so_far = await documents(events, fold(run.run_id, events), self._service.blob_value)
        return replace(
            run,
            state=so_far.state,
            plan=so_far.plan,
            tool_results=so_far.tool_results,
            verification=so_far.verification,
        )

    async def newest(self, *, owner: str = LOCAL_OWNER, limit: int = 50, before: str | None = None) -> list[Task]:
        """Tasks, newest first; those older than the task `before`. `NotFoundError` for a `before` there is none of."""
        older = await self._task(before, owner) if before is not None else None
        tasks = await self._store.newest(owner, limit=limit, before=older)
        return [(await self.get(task.task_id, owner=owner))[0] if task.status == "running" else task for task in tasks]

    async def runs(
        self, task_id: str, *, owner: str = LOCAL_OWNER, limit: int = 50, before: int = MOST_RUNS
    ) -> list[TaskRun]:
        """The runs of a task, newest first, without their documents. `NotFoundError`."""
        await self.get(task_id, owner=owner)
        return await self._store.runs(task_id, owner, limit=limit, before=before)

    async def start(
        self,
        task_id: str,
        *,
        owner: str = LOCAL_OWNER,
        key: str | None = None,
        principal: Principal | None = None,
        run_id: str | None = None,
    ) -> str:
        """Begin to carry out a task; the id of the run, which is on disk. `principal` is on whose behalf, with the
        tools and the runs their key allows. `run_id` is the id it is to have, where one was noted for it before.

        Raises `NotFoundError`, `ConflictError` while it is being carried out, and what `AgentService.start` raises."""
        task, latest = await self.get(task_id, owner=owner)
        run_id = run_id or new_run_id()
        run = await self._store.begin(task, run_id)
        if run is None:
            latest = await self._store.latest(task_id, owner)
            under_way = latest.run_id if latest is not None else "another run"
            raise ConflictError(
                f"task {task_id!r} is being carried out already, by {under_way}: look at GET /tasks/{task_id}, or "
                f"cancel it by POST /v1/runs/{under_way}/cancel"
            )
        try:
            request = self._request(task.prompt, task.context, task_id)
            service = self._service if principal is None else self._service.of(principal)
            await service.start(request, owner=owner, run_id=run_id, key=key)
        except StoreError:  # it may have been stored all the same; whoever looks next will see
            raise
        except AgentError:
            await self._store.forget(run_id, task)
            raise
        self._follow(run, owner)
        return run_id

    async def finished(self, run_id: str, *, owner: str = LOCAL_OWNER) -> None:
        """Return when the run has ended, waits for a person, or is left to the gateway's next start."""
        await self._service.until_over(run_id, owner=owner, waits=False)

    async def resume(self) -> None:
        """Settle what ended while nobody looked, and follow what still goes on. Raises `StoreError`."""
        for owner, run in await self._store.open_runs():
            if not await self._settle(run, owner):
                self._follow(run, owner)

    async def aclose(self) -> None:
        """Let go of the runs that are being followed; they are settled at the next start."""
        await self._following.aclose()

    def _follow(self, run: TaskRun, owner: str) -> None:
        """Settle the run when it ends, whether anybody waits for it or not."""
        self._following.follow(run.run_id, owner, lambda: self._settle(run, owner))

    async def _settle(self, run: TaskRun, owner: str) -> bool:
        """Keep what a run left behind, if it has ended by now; whether anything has changed."""
        try:
            events = await self._service.read(run.run_id, owner=owner)
        except NotFoundError:
            if self._clock() - run.created < BEGINNING_SECONDS:
                return False
            await self._store.forget(run.run_id, await self._task(run.task_id, owner))
            return True
        state = fold(run.run_id, events)
        if not state.finished:
            return False
        await self._store.settle(run, await documents(events, state, self._service.blob_value))
        return True

    async def _task(self, task_id: str, owner: str) -> Task:
        task = await self._store.get(task_id, owner)
        if task is None:
            raise NotFoundError(f"there is no task {task_id!r}")
        return task

    def _request(self, prompt: str, context: Mapping[str, str], task_id: str) -> AgentRequest:
        metadata: JsonObject = {"task_id": task_id, "context": dict(context)}
        return AgentRequest(prompt=prompt, room=self._room, metadata=metadata)


async def documents(events: Sequence[ev.Event], state: RunState, blob: Blob) -> Documents:
    """What a run that has ended leaves behind, from its whole log; long results are fetched by `blob`."""
    response = respond(events)
    blobs = {
        event.body.call_id: event.body.blob
        for event in events
        if isinstance(event.body, ev.ToolReturned) and event.body.blob is not None
    }
    results: list[JsonObject] = []
    for result in response.metadata["tool_results"]:
        checksum = blobs.get(str(result.get("call_id")))
        whole = await blob(checksum) if checksum is not None else None
        results.append({**result, "output": _json(whole)} if whole is not None else result)
    answer = state.answer
    kept = {
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
        "created_at": state.created_at,
        "ended_at": state.updated_at,
    }
    return Documents(
        status=status_of(state),
        at=state.updated_at,
        state=kept,
        plan=state.plan.shown() if state.plan is not None else None,
        tool_results=tuple(results),
        verification=verification_of(state),
    )


def status_of(state: RunState) -> TaskStatus:
    """What a run makes of its task: nothing but a whole, verified answer completes it."""
    if not state.finished:
        return "running"
    if state.status == "cancelled":
        return "cancelled"
    return "completed" if state.completeness == "complete" else "failed"


def _json(value: dict[str, object]) -> JsonObject:
    """The value as JSON: it has been read from there."""
    parsed: JsonObject = json.loads(json.dumps(value))
    return parsed
