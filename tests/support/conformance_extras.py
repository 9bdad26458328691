"""Adds tools, prompts, resources and tasks to the MCP server, around its own handlers.

The conformance suite calls things by names of its own. The product has no seam for them: the handlers of the SDK's
server are wrapped."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import ServerEvent

from agent.core.models import JsonObject
from mcp_tools.server.client_call import CallResult
from mcp_tools.server.sessions import Context
from mcp_tools.server.subscriptions import ChangeNotifier, SessionListener
from mcp_tools.server.tasks import TaskParams, TaskState, TaskUpdateParams, check_task_request

PublishEvent = Callable[[ServerEvent], Awaitable[None]]
"""Notifies every listening client of a change."""
CallTool = Callable[[Context, types.CallToolRequestParams], Awaitable[CallResult]]
GetPrompt = Callable[
    [Context, types.GetPromptRequestParams], Awaitable[types.GetPromptResult | types.InputRequiredResult]
]
Handler = Callable[[Context, Any], Awaitable[Any]]


class TaskSource(Protocol):
    """A store of tasks. Each method returns None or False if it does not know the task."""

    async def get(self, task_id: str) -> TaskState | None: ...

    async def cancel(self, task_id: str) -> bool: ...

    async def update(self, task_id: str, responses: JsonObject) -> bool: ...


@dataclass(frozen=True, slots=True)
class Extras:
    """What is added. Tools, prompts and resources are listed in this order, after the server's own."""

    tools: dict[str, tuple[types.Tool, CallTool]]
    prompts: dict[str, tuple[types.Prompt, GetPrompt]]
    resources: tuple[types.Resource, ...]
    templates: tuple[types.ResourceTemplate, ...]
    read: Callable[[str], types.ReadResourceResult | None]
    tasks: TaskSource


def add_extras(server: Server[Any], make_extras: Callable[[PublishEvent], Extras]) -> None:
    """Wraps the handlers of the requests that the extras answer."""
    notifier = server.lifespan.__self__  # type: ignore[attr-defined]  # the bound method `ChangeNotifier.serve`
    assert isinstance(notifier, ChangeNotifier)
    extras = make_extras(notifier.publish)
    own_schema = server.get_tool_input_schema
    assert own_schema is not None

    def get_schema(name: str) -> Any:
        return extras.tools[name][0].input_schema if name in extras.tools else own_schema(name)

    server.get_tool_input_schema = get_schema
    answers = _Answers(extras, notifier)
    for method, known in (
        ("tools/call", answers.call_tool),
        ("prompts/get", answers.get_prompt),
        ("resources/read", answers.read_resource),
        ("resources/subscribe", answers.subscribe),
        ("tasks/get", answers.get_task),
        ("tasks/cancel", answers.cancel_task),
        ("tasks/update", answers.update_task),
    ):
        _wrap(server, method, partial(_answer_known, known))
    for method, field, items in (
        ("tools/list", "tools", [tool for tool, _ in extras.tools.values()]),
        ("prompts/list", "prompts", [prompt for prompt, _ in extras.prompts.values()]),
        ("resources/list", "resources", [*extras.resources]),
        ("resources/templates/list", "resource_templates", [*extras.templates]),
    ):
        _wrap(server, method, partial(_append, field, items))


def _wrap(server: Server[Any], method: str, handle: Callable[..., Awaitable[Any]]) -> None:
    """Puts `handle` before the handler of a method, which is its first argument."""
    own = server.get_request_handler(method)
    assert own is not None, method
    server.add_request_handler(method, own.params_type, partial(handle, own.handler))


async def _append(field: str, items: list[Any], own: Handler, context: Context, params: Any) -> Any:
    page = await own(context, params)
    return page if page.next_cursor else page.model_copy(update={field: [*getattr(page, field), *items]})


async def _answer_known(known: Handler, own: Handler, context: Context, params: Any) -> Any:
    """The extras' answer; the server's own if that is None."""
    answer = await known(context, params)
    return answer if answer is not None else await own(context, params)


class _Answers:
    """What the extras answer; None to requests about other things."""

    def __init__(self, extras: Extras, notifier: ChangeNotifier) -> None:
        self._extras, self._notifier = extras, notifier

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> CallResult | None:
        found = self._extras.tools.get(params.name)
        return None if found is None else await found[1](context, params)

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> Any:
        found = self._extras.prompts.get(params.name)
        return None if found is None else await found[1](context, params)

    async def read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | None:
        return self._extras.read(str(params.uri))

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult | None:
        if all(one.uri != params.uri for one in self._extras.resources):
            return None
        SessionListener.for_session(self._notifier, context).add(str(params.uri))
        return types.EmptyResult()

    async def get_task(self, context: Context, params: TaskParams) -> JsonObject | None:
        check_task_request(context, "tasks/get", params.task_id)
        state = await self._extras.tasks.get(params.task_id)
        return None if state is None else state.to_wire()

    async def cancel_task(self, context: Context, params: TaskParams) -> JsonObject | None:
        check_task_request(context, "tasks/cancel", params.task_id)
        return {} if await self._extras.tasks.cancel(params.task_id) else None

    async def update_task(self, context: Context, params: TaskUpdateParams) -> JsonObject | None:
        check_task_request(context, "tasks/update", params.task_id)
        return {} if await self._extras.tasks.update(params.task_id, params.input_responses) else None
