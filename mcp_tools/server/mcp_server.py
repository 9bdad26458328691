"""The MCP server: the agent and every registered tool as tools, skills as prompts, runs and skills as resources.

One server object serves protocol eras 2025 and 2026, over streamable HTTP (`/mcp`) and stdio (`stepgate mcp`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from agent.core.errors import BadRequestError, RoomUnknownError
from agent.core.models import JsonObject
from agent.runs.run_intake import RunIntake
from agent.runs.service import AgentService
from agent.runs.trace_details import shorten
from agent.skills import SkillLibrary
from agent.tools import ToolRegistry, ToolSpec
from mcp_tools.server.agent_tools import AGENT_TOOLS
from mcp_tools.server.approval import can_elicit
from mcp_tools.server.call_conversations import add_argument
from mcp_tools.server.client_call import CallResult, ClientCall
from mcp_tools.server.current_principal import get_current_owner, get_current_principal, set_principal
from mcp_tools.server.log_messages import set_level
from mcp_tools.server.pagination import paginate
from mcp_tools.server.progress import StepProgress
from mcp_tools.server.request_state import SERVER_NAME, make_state_boundary
from mcp_tools.server.resources import TEMPLATES, Resources
from mcp_tools.server.sessions import Context
from mcp_tools.server.skills import SKILLS_EXTENSION, SkillGetParams, SkillViews
from mcp_tools.server.stored_prompts import StoredPrompts
from mcp_tools.server.subscriptions import ChangeNotifier, SessionListener
from mcp_tools.server.tasks import (
    TASKS_EXTENSION,
    RunTasks,
    TaskParams,
    TaskUpdateParams,
    check_task_request,
    make_unknown_task_error,
    supports_tasks,
)
from mcp_tools.server.tool_search import call_search_tool, get_search_tool_schema, list_view_tools
from mcp_tools.server.tools import (
    call_agent_run_as_task,
    call_agent_tool,
    call_registered_tool,
    make_error_result,
    make_progress_sender,
    make_run_tasks,
)
from mcp_tools.server.toolsets import QUERY_PARAMETER, Toolsets
from mcp_tools.server.views import View

INSTRUCTIONS = (
    "Stepgate is an agent gateway. agent_run does a whole task (research a web page, answer from files, "
    "compare documents, calculate, plan) and returns the answer with its steps; run_get and run_cancel follow a run. "
    "A run with status awaiting_approval has done nothing of what it asks about: show the user its response, and give "
    "their decision, never your own, to run_respond. "
    "The other tools do one thing each: {uses}. "
    "tools_find finds all others, such as calculator, current_time, schedules and the tools of connected servers."
)
CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    # How long a client may cache a response, in milliseconds. Tools appear and disappear with external servers; skills
    # and templates change only with a restart; saved prompts at any time; a list of runs is outdated at once.
    "server/discover": CacheHint(ttl_ms=300_000, scope="public"),
    "tools/list": CacheHint(ttl_ms=5_000),
    "prompts/list": CacheHint(ttl_ms=5_000),
    "resources/templates/list": CacheHint(ttl_ms=300_000, scope="public"),
}


@dataclass(frozen=True, slots=True)
class ServerDependencies:
    """The dependencies of the server's handlers."""

    intake: RunIntake
    registry: ToolRegistry
    skills: SkillLibrary
    stored_prompts: Sequence[StoredPrompts] = ()
    """The prompts that features offer."""

    @property
    def service(self) -> AgentService[Any]:
        """The runs of the gateway."""
        return self.intake.service


def build_server(
    get_dependencies: Callable[[], ServerDependencies],
    key_file: Path,
    view: View,
    toolsets: Toolsets,
) -> Server[None]:
    """Builds the server. `view` decides which tools and skills it offers.

    `get_dependencies` is called for each request, because routes are created before the gateway's services. `key_file`
    holds the key that seals state carried by clients between the rounds of a call; it is created if missing.
    """
    notifier = ChangeNotifier(lambda: get_dependencies().service, lambda: get_dependencies().registry)
    handlers = _Handlers(get_dependencies, notifier, view, toolsets)
    server = _Server(
        SERVER_NAME,
        version=version("stepgate"),
        title="Stepgate",
        instructions=view.description or INSTRUCTIONS.format(uses=toolsets.describe_uses()),
        cache_hints=CACHE_HINTS,
        lifespan=notifier.serve,
        get_tool_input_schema=handlers.get_input_schema,
        on_list_tools=handlers.list_tools,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=notifier.listen,
        on_completion=handlers.complete,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    # The constructor would warn that later protocol versions lack this method; their clients never call it.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    server.add_request_handler("skills/list", types.PaginatedRequestParams, handlers.list_skills)
    server.add_request_handler("skills/get", SkillGetParams, handlers.get_skill)
    server.add_request_handler("tasks/get", TaskParams, handlers.get_task)
    server.add_request_handler("tasks/cancel", TaskParams, handlers.cancel_task)
    server.add_request_handler("tasks/update", TaskUpdateParams, handlers.update_task)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, handlers.handle_initialized)
    server.extensions.update({SKILLS_EXTENSION: {}, TASKS_EXTENSION: {}})
    server.middleware.append(set_principal)
    server.middleware.append(make_state_boundary(key_file))
    return server


class _Server(Server[None]):
    """The SDK's server, which also announces changes of the tool list to clients of era 2025."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class _Handlers:
    """The request handlers, one method for each request of the protocol."""

    def __init__(
        self,
        get_dependencies: Callable[[], ServerDependencies],
        notifier: ChangeNotifier,
        view: View,
        toolsets: Toolsets,
    ) -> None:
        self._get_dependencies, self._notifier = get_dependencies, notifier
        self._view, self._toolsets = view, toolsets

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """A page of the view's tools."""
        tools = list_view_tools(self._specs, self._choose_view(context), self._toolsets)
        page, cursor = paginate(tools, lambda tool: tool.name, "tools/list", params)
        return types.ListToolsResult(tools=page, next_cursor=cursor)

    def get_input_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool's arguments. The SDK checks `Mcp-Param-*` headers with it on every call."""
        if name in AGENT_TOOLS:
            return AGENT_TOOLS[name].input_schema
        if (schema := get_search_tool_schema(name)) is not None:
            return schema
        spec = self._get_dependencies().registry.find_spec(name, get_current_owner())
        return add_argument(spec) if spec is not None else None

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> CallResult:
        """Executes a call. Failures are results with `is_error`, which a model can act on."""
        name, arguments = params.name, params.arguments or {}
        dependencies, view = self._get_dependencies(), self._view
        if not view.permits_tool(name):
            raise _make_unknown_tool_error(name)
        withheld = dependencies.registry.get_withheld_reason(
            str(arguments.get("name")) if get_search_tool_schema(name) is not None else name,
            get_current_owner(),
        )
        if withheld is not None:
            return make_error_result(withheld)
        call = ClientCall(dependencies.service, context, params, StepProgress(make_progress_sender(context)))
        if name == "agent_run":
            try:
                arguments = view.set_room(arguments)
            except BadRequestError as error:
                return make_error_result(error.message)
            if supports_tasks(context) and call.resumed_run_id is None:
                return await call_agent_run_as_task(dependencies.intake, arguments, call)
        if name in AGENT_TOOLS:
            return await call_agent_tool(dependencies.intake, AGENT_TOOLS[name], arguments, call)
        if get_search_tool_schema(name) is not None:
            return await call_search_tool(
                dependencies.intake,
                dependencies.registry,
                self._specs,
                name,
                arguments,
                call,
                self._choose_view(context),
                self._toolsets,
            )
        if dependencies.registry.is_known_to(get_current_owner(), name):
            return await call_registered_tool(
                dependencies.intake, dependencies.registry.get(name), arguments, call, view.room
            )
        raise _make_unknown_tool_error(name)

    async def list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """A page of the skills that a user may invoke, and of the prompts that features offer the caller."""
        own = self._skills.list_prompts()
        for source in self._list_prompt_sources():
            own = [*own, *await source.list_prompts(exclude={prompt.name for prompt in own})]
        page, cursor = paginate(own, lambda prompt: prompt.name, "prompts/list", params)
        return types.ListPromptsResult(prompts=page, next_cursor=cursor)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """A skill's instructions with the task filled in, or a prompt of a feature."""
        arguments = params.arguments or {}
        is_skill = params.name in {prompt.name for prompt in self._skills.list_prompts()}
        for source in self._list_prompt_sources():
            if source.comes_first or not is_skill:
                stored = await source.get_prompt(params.name, arguments)
                if stored is not None:
                    return stored
        return self._skills.get_prompt(params.name, arguments.get("task", ""))

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """A page of the newest runs' reports and the skills."""
        page, cursor = paginate(await self._resources.list(), lambda one: str(one.uri), "resources/list", params)
        return types.ListResourcesResult(resources=page, next_cursor=cursor)

    async def list_resource_templates(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The templates for the steps and the report of any run."""
        page, cursor = paginate(TEMPLATES, lambda one: one.uri_template, "resources/templates/list", params)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=cursor)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """A run's steps as JSON, its report as Markdown, or a file of a skill."""
        return await self._resources.read(context, str(params.uri))

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Era 2025: notifies this session when the resource changes."""
        await self._resources.require_exists(context, str(params.uri))
        SessionListener.for_session(self._notifier, context).add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Era 2025: ends a subscription. Unsubscribing twice is not an error."""
        SessionListener.for_session(self._notifier, context).remove(str(params.uri))
        return types.EmptyResult()

    async def handle_initialized(self, context: Context, _: types.NotificationParams) -> None:
        """Era 2025: starts notifications about changed tools for this session."""
        SessionListener.for_session(self._notifier, context)

    async def complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Suggestions for the argument of a template or prompt."""
        return await self._resources.complete(params)

    async def list_skills(self, _: Context, params: types.PaginatedRequestParams) -> JsonObject:
        """Handles `skills/list` of the skills extension."""
        return await self._skills.list_skills(params)

    async def get_skill(self, _: Context, params: SkillGetParams) -> JsonObject:
        """Handles `skills/get` of the skills extension."""
        return await self._skills.get_skill(params.uri)

    async def get_task(self, context: Context, params: TaskParams) -> JsonObject:
        """Handles `tasks/get` of the tasks extension."""
        state = await self._prepare_tasks(context, "tasks/get", params.task_id).get(params.task_id)
        if state is None:
            raise make_unknown_task_error(params.task_id)
        return state.to_wire()

    async def cancel_task(self, context: Context, params: TaskParams) -> JsonObject:
        """Handles `tasks/cancel` of the tasks extension: acknowledges at once; `tasks/get` shows the outcome."""
        if not await self._prepare_tasks(context, "tasks/cancel", params.task_id).cancel(params.task_id):
            raise make_unknown_task_error(params.task_id)
        return {}

    async def update_task(self, context: Context, params: TaskUpdateParams) -> JsonObject:
        """Handles `tasks/update` of the tasks extension."""
        tasks = self._prepare_tasks(context, "tasks/update", params.task_id)
        if not await tasks.update(params.task_id, params.input_responses):
            raise make_unknown_task_error(params.task_id)
        return {}

    def _list_prompt_sources(self) -> list[StoredPrompts]:
        """The sources of prompts in this view, those first that come before skills."""
        sources = sorted(self._get_dependencies().stored_prompts, key=lambda source: not source.comes_first)
        return [one for one in sources if self._view.skills is None or not one.comes_first]

    def _prepare_tasks(self, context: Context, method: str, task_id: str) -> RunTasks:
        check_task_request(context, method, task_id)
        return make_run_tasks(self._get_dependencies().intake, can_elicit=can_elicit(context))

    def _choose_view(self, context: Context) -> View:
        """The view with the toolsets that the request's address names; the door has checked them."""
        request = context.request
        query = request.query_params.get(QUERY_PARAMETER) if isinstance(request, Request) else None
        return self._view.choose_toolsets(query, self._toolsets)

    @property
    def _specs(self) -> list[ToolSpec]:
        """The registered tools that may be called: those allowed by the view, its room and the caller's key."""
        dependencies = self._get_dependencies()
        try:
            room = dependencies.service.rooms.get(self._view.room, get_current_owner())
        except RoomUnknownError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from error
        specs = dependencies.registry.list_room_specs(room, get_current_owner())
        principal = get_current_principal()
        return [spec for spec in specs if self._view.permits_tool(spec.name) and principal.may_call(spec.name)]

    @property
    def _skills(self) -> SkillViews:
        skills, allowed = self._get_dependencies().skills, self._view.skills
        return SkillViews(skills if allowed is None else SkillLibrary(skills.list_visible(allowed)))

    @property
    def _resources(self) -> Resources:
        return Resources(self._get_dependencies().service, self._skills)


def _make_unknown_tool_error(name: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"there is no tool named {shorten(name, 100)!r}; list the tools")
