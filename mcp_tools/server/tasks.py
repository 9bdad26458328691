"""Tasks over MCP: the extension `io.modelcontextprotocol/tasks` (SEP-2663) of protocol version 2026-07-28.

If a client declares it, an `agent_run` that takes longer than `INLINE_SECONDS` becomes a task. The task is the durable
run: it has the run's id and survives the connection and a restart. Other clients call as before.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, JsonValue, ValidationError
from starlette.requests import Request

from agent.core.errors import ConflictError, NotFoundError, ScopeError
from agent.core.models import ENDED_STATUSES, JsonObject
from agent.run_context.run import Run
from agent.runs.input_replies import follow_replies
from agent.runs.run_intake import RunIntake
from agent.runs.service import AgentService
from agent.runs.trace_details import shorten
from agent.runs.trace_projection import build_trace
from agent.storage.journal import RunRow
from mcp_tools.server.approval import (
    MAX_FORM_CHARS,
    WAITING_MESSAGE,
    UnclearReplyError,
    get_open_question,
    parse_reply,
    submit_decision,
)
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.reply_runs import start_reply_run
from mcp_tools.server.sessions import Context
from mcp_tools.server.user_input import build_input_request, get_input_question, get_question_key, parse_answer

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 1_000
INLINE_SECONDS = 1.0
"""A run that ends within this time is returned at once; a task would cost its client a second request."""
HEADER_MISMATCH = -32020


class TaskParams(types.RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """Parameters of `tasks/update`: what the client answers to a task's `inputRequests`."""

    input_responses: dict[str, JsonValue] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task as clients see it. Times are UTC seconds since 1970; `details` holds `result`, `error` or
    `inputRequests`."""

    task_id: str
    status: types.TaskStatus
    created_at: float
    updated_at: float
    message: str = ""
    details: JsonObject = field(default_factory=dict)

    def to_wire(self) -> JsonObject:
        """The wire form. `ttlMs` is null, because runs are kept until somebody deletes them."""
        status_message: JsonObject = {"statusMessage": self.message} if self.message else {}
        return {
            "taskId": self.task_id,
            "status": self.status,
            "createdAt": _format_time(self.created_at),
            "lastUpdatedAt": _format_time(self.updated_at),
            "ttlMs": None,
            "pollIntervalMs": POLL_MS,
            **status_message,
            **self.details,
        }

    def to_created_result(self) -> JsonObject:
        """The result of the call that became this task. Only `tasks/get` returns the details."""
        return {"resultType": "task", **replace(self, details={}).to_wire()}


class RunTasks:
    """Runs as tasks.

    `intake` starts the run that goes on with a user's answer; `get_result` returns what the call of a run would return
    now; `can_elicit`: the client supports elicitation by form.
    """

    def __init__(
        self,
        intake: RunIntake,
        get_result: Callable[[str], Awaitable[types.CallToolResult]],
        *,
        can_elicit: bool,
    ) -> None:
        self._intake, self._get_result, self._can_elicit = intake, get_result, can_elicit
        self._service: AgentService[Run] = intake.service

    async def get(self, task_id: str) -> TaskState | None:
        """The run as a task; after the user answered its question, the run that goes on with the answer.

        A failed run is `completed` with a result that says so: `failed` is for calls that could not be executed.
        """
        try:
            row = await self._get_newest_run(task_id)
        except NotFoundError:
            return None
        run_id = row.run_id
        if row.status == "cancelled":
            return TaskState(task_id, "cancelled", row.created_at, row.updated_at)
        requests = await self._list_requests(run_id) if self._can_elicit else {}
        if requests:
            details: JsonObject = {"inputRequests": requests}
            return TaskState(task_id, "input_required", row.created_at, row.updated_at, WAITING_MESSAGE, details)
        # Without elicitation the task ends, as the call would without tasks: its result has the question, and the model
        # answers with run_respond. Nobody would look at a task that stays "working".
        if row.status == "awaiting_approval" or row.status in ENDED_STATUSES:
            details = {"result": _to_wire(await self._get_result(run_id))}
            return TaskState(task_id, "completed", row.created_at, row.updated_at, details=details)
        steps = build_trace(await self._service.read_events(run_id, owner=get_current_owner()))
        return TaskState(task_id, "working", row.created_at, row.updated_at, steps[-1].title if steps else row.status)

    async def _get_newest_run(self, task_id: str) -> RunRow:
        """The last run in the row of questions and answers that is the task. Raises `NotFoundError`."""
        return (await follow_replies(self._service, task_id, get_current_owner()))[-1]

    async def _list_requests(self, run_id: str) -> JsonObject:
        """The question of a run as an elicitation request, by its key; {} if it asks nothing that fits a form and that
        the caller may decide on."""
        question = await get_open_question(self._service, run_id)
        if question is not None:
            is_asked = question.fits_form and get_current_principal().may_approve
            return {question.key: _to_wire(question.build_request())} if is_asked else {}
        input_question = await get_input_question(self._service, run_id)
        if input_question is None or len(input_question) > MAX_FORM_CHARS:
            return {}
        return {get_question_key(run_id): _to_wire(build_input_request(input_question))}

    async def cancel(self, task_id: str) -> bool:
        """Cancels the run."""
        try:
            run_id = (await self._get_newest_run(task_id)).run_id
            await self._service.cancel_run(run_id, owner=get_current_owner(), reason="cancelled by the MCP client")
        except NotFoundError:
            return False
        except ConflictError:  # it has ended
            return True
        return True

    async def update(self, task_id: str, responses: JsonObject) -> bool:
        """Passes the user's decision to the run, or their answer to its question. Raises `MCPError` for an unclear
        decision, which would not be asked again, and for one of a caller who may not decide."""
        try:
            run_id = (await self._get_newest_run(task_id)).run_id
            question = await get_open_question(self._service, run_id)
        except NotFoundError:
            return False
        key = question.key if question is not None else get_question_key(run_id)
        if key not in responses:
            return True
        try:
            result = types.ElicitResult.model_validate(responses[key])
            decision = parse_reply(result) if question is not None else None
        except (ValidationError, UnclearReplyError) as error:
            problem = str(error) if isinstance(error, UnclearReplyError) else "not an elicitation result"
            raise MCPError(types.INVALID_PARAMS, f"inputResponses.{key}: {problem}") from error
        if question is not None and decision is not None:
            try:
                await submit_decision(self._service, run_id, question, decision)
            except ScopeError as error:
                raise MCPError(types.INVALID_PARAMS, error.message) from error
        words = parse_answer(result) if question is None else None
        if words is not None and await get_input_question(self._service, run_id) is not None:
            await start_reply_run(self._intake, run_id, words, is_form=True)
        return True


def supports_tasks(context: Context) -> bool:
    """Whether the client of this request can receive a task."""
    capabilities = context.session.client_capabilities
    declared = capabilities.extensions if capabilities is not None else None
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS and TASKS_EXTENSION in (declared or {})


def make_tasks_required_error() -> MCPError:
    """The error for a request that needs a client with tasks."""
    data: JsonObject = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"the client must declare {TASKS_EXTENSION}", data)


def check_task_request(context: Context, method: str, task_id: str) -> None:
    """Raises `MCPError` if the protocol version, the client or the routing header does not fit: the SDK checks these
    for its own methods only."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
    if not supports_tasks(context):
        raise make_tasks_required_error()
    routed = context.request.headers.get("mcp-name") if isinstance(context.request, Request) else None
    if routed is not None and routed != task_id:
        raise MCPError(HEADER_MISMATCH, "mcp-name header does not match the request body's 'taskId' parameter")


def make_unknown_task_error(task_id: str) -> MCPError:
    """The error for a task that does not exist, or is somebody else's."""
    return MCPError(types.INVALID_PARAMS, f"there is no task {shorten(task_id, 100)!r}")


def _to_wire(message: types.CallToolResult | types.ElicitRequest) -> JsonObject:
    """The wire form."""
    wire: JsonObject = message.model_dump(by_alias=True, mode="json", exclude_none=True)
    return wire


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
