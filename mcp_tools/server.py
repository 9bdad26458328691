"""The MCP server: the agent and every registered tool as tools, skills as prompts, runs and skills as resources.

One server object speaks both eras of the protocol, over streamable HTTP (`/mcp`) and stdio (`stepgate mcp`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.core.service import AgentService
from agent.core.trace import shorten
from agent.execution.run import Run
from agent.skills import SkillLibrary
from agent.tools import ToolRegistry, ToolSpec
from mcp_tools.agent_tools import AGENT_TOOLS
from mcp_tools.server_approval import Person, can_ask
from mcp_tools.server_attendance import Steps
from mcp_tools.server_caller import identified
from mcp_tools.server_changes import Changes, SessionListener
from mcp_tools.server_curated import OWN, View
from mcp_tools.server_extras import CallResult, ExtrasOf, no_extras
from mcp_tools.server_logging import set_level
from mcp_tools.server_pages import page_of
from mcp_tools.server_resources import Resources
from mcp_tools.server_sessions import Context
from mcp_tools.server_skills import SKILLS_EXTENSION, SkillGetParams, SkillShelf
from mcp_tools.server_state import SERVER_NAME, sealing
from mcp_tools.server_tasks import TASKS_EXTENSION, TaskParams, Tasks, TaskUpdateParams, takes_tasks
from mcp_tools.server_tools import (
    call_agent_tool,
    call_registered,
    failed,
    progress_of,
    run_tasks,
    start_as_task,
)
from mcp_tools.server_views import find_or_call, listed, schema_of

INSTRUCTIONS = (
    "Stepgate is an agent gateway. agent_run carries out a whole task (research a web page, answer from files, "
    "compare documents, calculate, plan) and returns the answer with its steps; run_get and run_cancel follow a run. "
    "A run with status awaiting_approval has done nothing of what it asks about: show the user its response, and give "
    "their decision, never your own, to run_respond. "
    "The other tools do one thing each: web_fetch reads a page, read_file, list_files and search_files read the "
    "user's files, calculator calculates, current_time tells the time."
)
CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    # How long a client may go without asking again, in milliseconds. Tools come and go with other people's servers;
    # skills and templates change with a restart; a list of runs is old at once.
    "server/discover": CacheHint(ttl_ms=300_000, scope="public"),
    "tools/list": CacheHint(ttl_ms=5_000),
    "prompts/list": CacheHint(ttl_ms=300_000),
    "resources/templates/list": CacheHint(ttl_ms=300_000, scope="public"),
}


@dataclass(frozen=True, slots=True)
class Served:
    """What the server offers."""

    service: AgentService[Run]
    registry: ToolRegistry
    skills: SkillLibrary


def build_server(
    served: Callable[[], Served], key_file: Path, extras: ExtrasOf = no_extras, view: View = OWN
) -> Server[None]:
    """The server; `served` is asked at each request, for a gateway may be wired after its routes. `view` decides which
    tools and skills there are.

    `key_file` holds the key that seals what clients carry between the rounds of a call; made when it is missing."""
    changes = Changes(lambda: served().service, lambda: served().registry)
    handlers = _Handlers(served, changes, extras, view)
    server = _Server(
        SERVER_NAME,
        version=version("stepgate"),
        title="Stepgate",
        instructions=view.description or INSTRUCTIONS,
        cache_hints=CACHE_HINTS,
        lifespan=changes.serve,
        get_tool_input_schema=handlers.input_schema,
        on_list_tools=handlers.list_tools,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=changes.listen,
        on_completion=handlers.complete,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    # Not by the constructor, which warns that later revisions have no such method; those clients never reach it.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    server.add_request_handler("skills/list", types.PaginatedRequestParams, handlers.list_skills)
    server.add_request_handler("skills/get", SkillGetParams, handlers.get_skill)
    server.add_request_handler("tasks/get", TaskParams, handlers.get_task)
    server.add_request_handler("tasks/cancel", TaskParams, handlers.cancel_task)
    server.add_request_handler("tasks/update", TaskUpdateParams, handlers.update_task)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, handlers.initialized)
    server.extensions.update({SKILLS_EXTENSION: {}, TASKS_EXTENSION: {}})
    server.middleware.append(identified)
    server.middleware.append(sealing(key_file))
    return server


class _Server(Server[None]):
    """The SDK's, saying to clients of the 2025 era too that it tells of changed tools."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)


class _Handlers:
    """One method a request of the protocol."""

    def __init__(self, served: Callable[[], Served], changes: Changes, extras: ExtrasOf, view: View) -> None:
        self._served, self._changes, self._view = served, changes, view
        self._extras = extras(changes.publish)

    async def list_tools(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """The tools of the view, in pages."""
        tools = [*listed(self._specs, self._view), *(tool for tool, _ in self._extras.tools)]
        page, cursor = page_of(tools, lambda tool: tool.name, "tools/list", params)
        return types.ListToolsResult(tools=page, next_cursor=cursor)

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool's arguments; the SDK checks `Mcp-Param-*` headers by it, at every call."""
        if name in AGENT_TOOLS:
            return AGENT_TOOLS[name].input_schema
        if (schema := schema_of(name)) is not None:
            return schema
        registry = self._served().registry
        if name in registry:
            return registry.get(name).spec.input_schema
        return next((tool.input_schema for tool, _ in self._extras.tools if tool.name == name), None)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> CallResult:
        """Carry out a call. What goes wrong in it is a result with `is_error`, which a model can act on."""
        name, arguments = params.name, params.arguments or {}
        served, view = self._served(), self._view
        if not view.permits(name):
            raise _unknown(name)
        withheld = served.registry.withheld(str(arguments.get("name")) if schema_of(name) is not None else name)
        if withheld is not None:
            return failed(withheld)
        person = Person(served.service, context, params, Steps(progress_of(context)))
        if name == "agent_run":
            try:
                arguments = view.placed(arguments)
            except BadRequestError as error:
                return failed(error.message)
            if takes_tasks(context) and person.resumed is None:
                return await start_as_task(served.service, arguments, person)
        if name in AGENT_TOOLS:
            return await call_agent_tool(served.service, AGENT_TOOLS[name], arguments, person)
        if schema_of(name) is not None:
            return await find_or_call(served.service, served.registry, self._specs, name, arguments, person, view.room)
        if name in served.registry:
            return await call_registered(served.service, served.registry.get(name), arguments, person, view.room)
        if (extra := self._extras.tool(name)) is not None:
            return await extra(context, params)
        raise _unknown(name)

    async def list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Every skill a person may call, in pages."""
        prompts = [*self._skills.prompts(), *(prompt for prompt, _ in self._extras.prompts)]
        page, cursor = page_of(prompts, lambda prompt: prompt.name, "prompts/list", params)
        return types.ListPromptsResult(prompts=page, next_cursor=cursor)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """A skill's instructions, with the task filled in."""
        extra = self._extras.prompt(params.name)
        if extra is not None:
            return await extra(context, params)
        return self._skills.prompt(params.name, (params.arguments or {}).get("task", ""))

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The reports of the newest runs, and the skills, in pages."""
        page, cursor = page_of(await self._resources.list(), lambda one: str(one.uri), "resources/list", params)
        return types.ListResourcesResult(resources=page, next_cursor=cursor)

    async def list_resource_templates(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Any run, as its steps or as a report."""
        templates = self._resources.templates()
        page, cursor = page_of(templates, lambda one: one.uri_template, "resources/templates/list", params)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=cursor)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """A run's steps as JSON or its report as Markdown, or a file of a skill."""
        return await self._resources.read(context, str(params.uri))

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """2025: tell this session when the resource changes."""
        await self._resources.check(context, str(params.uri))
        SessionListener.of(self._changes, context).add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """2025: tell it no more; a resource that was not subscribed to is no error."""
        SessionListener.of(self._changes, context).remove(str(params.uri))
        return types.EmptyResult()

    async def initialized(self, context: Context, _: types.NotificationParams) -> None:
        """2025: the session is ready to be told of changed tools."""
        SessionListener.of(self._changes, context)

    async def complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Suggestions for the argument of a template or prompt."""
        return await self._resources.complete(params)

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> JsonObject:
        """`skills/list` of the skills extension."""
        return await self._skills.list(params)

    async def get_skill(self, _: Context, params: SkillGetParams) -> JsonObject:
        """`skills/get` of the skills extension."""
        return await self._skills.get(params.uri)

    async def get_task(self, context: Context, params: TaskParams) -> JsonObject:
        """`tasks/get` of the tasks extension."""
        return await self._tasks(context).get(context, params.task_id)

    async def cancel_task(self, context: Context, params: TaskParams) -> JsonObject:
        """`tasks/cancel` of the tasks extension."""
        return await self._tasks(context).cancel(context, params.task_id)

    async def update_task(self, context: Context, params: TaskUpdateParams) -> JsonObject:
        """`tasks/update` of the tasks extension."""
        return await self._tasks(context).update(context, params)

    def _tasks(self, context: Context) -> Tasks:
        return Tasks([run_tasks(self._served().service, asks=can_ask(context)), *self._extras.tasks])

    @property
    def _specs(self) -> list[ToolSpec]:
        """The registered tools that may be called here: those the view permits and its room allows."""
        served = self._served()
        room = served.service.rooms.get(self._view.room)
        return [spec for spec in served.registry.specs(room.tools) if self._view.permits(spec.name)]

    @property
    def _skills(self) -> SkillShelf:
        skills, allowed = self._served().skills, self._view.skills
        return SkillShelf(skills if allowed is None else SkillLibrary(skills.visible(allowed)))

    @property
    def _resources(self) -> Resources:
        return Resources(self._served().service, self._skills, self._extras)


def _unknown(name: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"there is no tool named {shorten(name, 100)!r}; list the tools")
