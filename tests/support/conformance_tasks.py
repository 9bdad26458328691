"""The conformance suite's tools that become tasks, with a store of their own: the product's tasks are runs."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agent.core.models import JsonObject
from mcp_tools.server.client_call import CallResult
from mcp_tools.server.sessions import Context
from mcp_tools.server.tasks import TaskState, make_tasks_required_error, supports_tasks
from tests.support.conformance_extras import CallTool


@dataclass
class _Task:
    task_id: str = field(default_factory=lambda: f"task_{secrets.token_hex(8)}")
    status: types.TaskStatus = "working"
    created_at: float = field(default_factory=time.time)
    requests: JsonObject = field(default_factory=dict)
    answers: JsonObject = field(default_factory=dict)
    details: JsonObject = field(default_factory=dict)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    work: "asyncio.Task[None] | None" = None

    async def ask(self, requests: JsonObject) -> JsonObject:
        self.requests, self.status = dict(requests), "input_required"
        await self.answered.wait()
        self.status = "working"
        return self.answers

    def state(self) -> TaskState:
        details: JsonObject = {**self.details, **({"inputRequests": self.requests} if self.requests else {})}
        return TaskState(self.task_id, self.status, self.created_at, time.time(), details=details)


Work = Callable[[_Task, dict[str, Any]], Awaitable[types.CallToolResult]]


class FixtureTasks:
    """Tasks in memory."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}

    def start(self, work: Work, arguments: dict[str, Any]) -> JsonObject:
        """Begin, and give the call's result."""
        task = _Task()
        self._tasks[task.task_id] = task
        task.work = asyncio.create_task(self._carry_out(task, work, arguments))
        return task.state().to_created_result()

    async def get(self, task_id: str) -> TaskState | None:
        task = self._tasks.get(task_id)
        return None if task is None else task.state()

    async def cancel(self, task_id: str) -> bool:
        task = self._tasks.get(task_id)
        if task is not None and task.work is not None:
            task.work.cancel()
            await asyncio.wait([task.work])
        return task is not None

    async def update(self, task_id: str, responses: JsonObject) -> bool:
        task = self._tasks.get(task_id)
        if task is None:
            return False
        for key in task.requests.keys() & responses.keys():
            del task.requests[key]
            task.answers[key] = responses[key]
        if task.answers and not task.requests:
            task.answered.set()
        return True

    @staticmethod
    async def _carry_out(task: _Task, work: Work, arguments: dict[str, Any]) -> None:
        try:
            result = await work(task, arguments)
        except asyncio.CancelledError:
            task.status, task.requests = "cancelled", {}
            raise
        except MCPError as error:
            task.status = "failed"
            task.details = {"error": error.error.model_dump(by_alias=True, mode="json", exclude_none=True)}
        else:
            task.status = "completed"
            task.details = {"result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}


def task_tools(tasks: FixtureTasks) -> tuple[tuple[types.Tool, CallTool], ...]:
    """The tools of the task scenarios."""

    def tool(name: str, work: Work, *, required: bool = False) -> tuple[types.Tool, CallTool]:
        async def call(context: Context, params: types.CallToolRequestParams) -> CallResult:
            if supports_tasks(context):
                return tasks.start(work, params.arguments or {})
            if required:
                raise make_tasks_required_error()
            return await work(_Task(), params.arguments or {})

        return _listed(name), call

    async def asks_first(context: Context, params: types.CallToolRequestParams) -> CallResult:
        reply = (params.input_responses or {}).get("user_name")
        if not supports_tasks(context):
            raise make_tasks_required_error()
        if not isinstance(reply, types.ElicitResult):
            return types.InputRequiredResult(input_requests={"user_name": _form("What is your name?", "name")})
        return tasks.start(_greet, {"name": (reply.content or {}).get("name")})

    async def greet(_: Context, params: types.CallToolRequestParams) -> CallResult:
        return await _greet(_Task(), params.arguments or {})

    return (
        (_listed("greet"), greet),
        tool("slow_compute", _compute),
        tool("failing_job", _fail, required=True),
        tool("protocol_error_job", _break),
        tool("confirm_delete", _confirm),
        tool("multi_input", _ask_twice),
        (_listed("test_tool_with_task"), asks_first),
    )


def _listed(name: str) -> types.Tool:
    return types.Tool(name=name, description="Of the task scenarios", input_schema={"type": "object", "properties": {}})


def _form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def _wire(request: types.ElicitRequest) -> JsonObject:
    return request.model_dump(by_alias=True, mode="json", exclude_none=True)


def _text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


async def _greet(_: _Task, arguments: dict[str, Any]) -> types.CallToolResult:
    return _text_result(f"Hello, {arguments.get('name')}!")


async def _compute(_: _Task, arguments: dict[str, Any]) -> types.CallToolResult:
    await asyncio.sleep(float(arguments.get("seconds", 0)))
    return _text_result(f"computed {arguments.get('label', '')}")


async def _fail(_: _Task, __: dict[str, Any]) -> types.CallToolResult:
    await asyncio.sleep(1)
    return _text_result("the job failed", is_error=True)


async def _break(_: _Task, __: dict[str, Any]) -> types.CallToolResult:
    raise MCPError(types.INTERNAL_ERROR, "the job broke")


async def _confirm(task: _Task, arguments: dict[str, Any]) -> types.CallToolResult:
    await task.ask({"confirm": _wire(_form(f"Delete {arguments.get('filename')}?", "confirm", "boolean"))})
    return _text_result("deleted")


async def _ask_twice(task: _Task, _: dict[str, Any]) -> types.CallToolResult:
    await task.ask({"first": _wire(_form("First name?", "name")), "second": _wire(_form("Second name?", "name"))})
    return _text_result("both were answered")
