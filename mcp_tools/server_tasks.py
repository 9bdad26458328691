"""Tasks over MCP, the extension `io.modelcontextprotocol/tasks` (SEP-2663) of 2026-07-28.

For a client that declares it, an `agent_run` that takes longer than a moment becomes a task, and the task is the
durable run: its id is the run's, it outlives the connection and a restart. Everybody else calls as before."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, JsonValue, ValidationError
from starlette.requests import Request

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import JsonObject
from agent.core.service import ENDED, AgentService
from agent.core.trace import project, shorten
from agent.execution.run import Run
from mcp_tools.server_approval import WAITING, UnclearError, open_question, tell, word_of
from mcp_tools.server_sessions import Context

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 1_000
MOMENT_SECONDS = 1.0
"""What ends within this time is answered at once; a task would only cost its client a second request."""
HEADER_MISMATCH = -32020


class TaskParams(types.RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """Parameters of `tasks/update`: what the client answers to a task's `inputRequests`."""

    input_responses: dict[str, JsonValue] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task as clients see it. Times are UTC seconds since 1970; `details` is `result`, `error`, `inputRequests`."""

    task_id: str
    status: types.TaskStatus
    created_at: float
    updated_at: float
    message: str = ""
    details: JsonObject = field(default_factory=dict)

    def wire(self) -> JsonObject:
        """Without a time to live: runs are kept until somebody deletes them."""
        words: JsonObject = {"statusMessage": self.message} if self.message else {}
        return {
            "taskId": self.task_id,
            "status": self.status,
            "createdAt": _iso(self.created_at),
            "lastUpdatedAt": _iso(self.updated_at),
            "ttlMs": None,
            "pollIntervalMs": POLL_MS,
            **words,
            **self.details,
        }

    def created(self) -> JsonObject:
        """As the result of the call that became this task; what it gave or asks is told by `tasks/get` alone."""
        return {"resultType": "task", **replace(self, details={}).wire()}


class TaskSource(Protocol):
    """Where tasks are kept. Each method says by None or False that it knows no such task."""

    async def get(self, task_id: str) -> TaskState | None:
        """The task as it stands."""
        ...

    async def cancel(self, task_id: str) -> bool:
        """Stop it; one that has ended stays as it is."""
        ...

    async def update(self, task_id: str, responses: JsonObject) -> bool:
        """Answer what it asked for; answers nobody waits for are dropped."""
        ...


class RunTasks:
    """Runs as tasks. `result_of` gives what the call of a run would have returned as it stands; `asks` says whether the
    client takes questions in a form."""

    def __init__(
        self,
        service: AgentService[Run],
        result_of: Callable[[str], Awaitable[types.CallToolResult]],
        *,
        asks: bool,
    ) -> None:
        self._service, self._result_of, self._asks = service, result_of, asks

    async def get(self, task_id: str) -> TaskState | None:
        """The run as a task. One that failed is complete, with a result that says so: "failed" is for calls that were
        never carried out."""
        try:
            row = await self._service.get(task_id)
        except NotFoundError:
            return None
        if row.status == "cancelled":
            return TaskState(task_id, "cancelled", row.created_at, row.updated_at)
        asked = await open_question(self._service, task_id) if row.status == "awaiting_approval" else None
        if asked is not None and asked.fits and self._asks:
            details: JsonObject = {"inputRequests": {asked.key: _wire(asked.request())}}
            return TaskState(task_id, "input_required", row.created_at, row.updated_at, WAITING, details)
        # Without a form the call is over, as it would be without tasks: its result has the question, and the model
        # answers with run_respond. A task that only went on "working" would never be looked into.
        if asked is not None or row.status in ENDED:
            details = {"result": _wire(await self._result_of(task_id))}
            return TaskState(task_id, "completed", row.created_at, row.updated_at, details=details)
        steps = project(await self._service.read(task_id))
        return TaskState(task_id, "working", row.created_at, row.updated_at, steps[-1].title if steps else row.status)

    async def cancel(self, task_id: str) -> bool:
        """Cancel the run."""
        try:
            await self._service.cancel(task_id, reason="cancelled by the MCP client")
        except NotFoundError:
            return False
        except ConflictError:  # it has ended
            return True
        return True

    async def update(self, task_id: str, responses: JsonObject) -> bool:
        """Give the run a person's word. `MCPError` for one that decides nothing: it would not be asked again."""
        try:
            asked = await open_question(self._service, task_id)
        except NotFoundError:
            return False
        if asked is not None and asked.key in responses:
            try:
                word = word_of(types.ElicitResult.model_validate(responses[asked.key]))
            except (ValidationError, UnclearError) as error:
                told = str(error) if isinstance(error, UnclearError) else "it is no result of an elicitation"
                raise MCPError(types.INVALID_PARAMS, f"inputResponses.{asked.key}: {told}") from error
            if word is not None:
                await tell(self._service, task_id, asked, word)
        return True


class Tasks:
    """The methods of the extension over several sources."""

    def __init__(self, sources: Sequence[TaskSource]) -> None:
        self._sources = sources

    async def get(self, context: Context, task_id: str) -> JsonObject:
        """`tasks/get`"""
        _admit(context, "tasks/get", task_id)
        for source in self._sources:
            if (state := await source.get(task_id)) is not None:
                return state.wire()
        raise _unknown(task_id)

    async def cancel(self, context: Context, task_id: str) -> JsonObject:
        """`tasks/cancel`: acknowledged at once; what came of it shows in `tasks/get`."""
        _admit(context, "tasks/cancel", task_id)
        for source in self._sources:
            if await source.cancel(task_id):
                return {}
        raise _unknown(task_id)

    async def update(self, context: Context, params: TaskUpdateParams) -> JsonObject:
        """`tasks/update`"""
        _admit(context, "tasks/update", params.task_id)
        for source in self._sources:
            if await source.update(params.task_id, params.input_responses):
                return {}
        raise _unknown(params.task_id)


def takes_tasks(context: Context) -> bool:
    """Whether the client of this request can be given a task."""
    capabilities = context.session.client_capabilities
    declared = capabilities.extensions if capabilities is not None else None
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS and TASKS_EXTENSION in (declared or {})


def tasks_required() -> MCPError:
    """The error for a request that only a client with tasks can make."""
    data: JsonObject = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"the client must declare {TASKS_EXTENSION}", data)


def _admit(context: Context, method: str, task_id: str) -> None:
    """Refuse what the SDK cannot check for an extension: its revision, the declaration, the routing header."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
    if not takes_tasks(context):
        raise tasks_required()
    routed = context.request.headers.get("mcp-name") if isinstance(context.request, Request) else None
    if routed is not None and routed != task_id:
        raise MCPError(HEADER_MISMATCH, "mcp-name header does not match the request body's 'taskId' parameter")


def _unknown(task_id: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"there is no task {shorten(task_id, 100)!r}")


def _wire(message: types.CallToolResult | types.ElicitRequest) -> JsonObject:
    """As it goes over the wire."""
    wire: JsonObject = message.model_dump(by_alias=True, mode="json", exclude_none=True)
    return wire


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
