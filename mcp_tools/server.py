"""The MCP server: the agent and every registered tool as tools, skills as prompts, runs as resources.

One server object speaks both eras of the protocol, over streamable HTTP (`/mcp`) and stdio (`stepgate mcp`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core.errors import AgentError, NotFoundError, SkillUnknownError, ToolUnknownError
from agent.core.events import ToolReturned
from agent.core.models import AgentRequest
from agent.core.service import AgentService
from agent.core.trace import project, respond, shorten
from agent.execution.run import Run
from agent.skills import Skill, SkillLibrary
from agent.tools import ToolAnnotations, ToolRegistry, ToolSpec, flat_schema
from mcp_tools.agent_tools import AGENT_TOOLS, TEXT_CHARS, AgentTool, AgentTools, Progress, RunReport

INSTRUCTIONS = (
    "Stepgate is an agent gateway. agent_run carries out a whole task (research a web page, answer from files, "
    "compare documents, calculate, plan) and returns the answer with its steps; run_get and run_cancel follow a run. "
    "The other tools do one thing each: web_fetch reads a page, read_file, list_files and search_files read the "
    "user's files, calculator calculates, current_time tells the time."
)
INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """What the server offers."""

    service: AgentService[Run]
    registry: ToolRegistry
    skills: SkillLibrary


def build_server(served: Callable[[], Served]) -> Server[Any]:
    """The server; `served` is asked at each request, for a gateway may be wired after its routes."""
    handlers = _Handlers(served)
    return Server(
        "stepgate",
        version=version("stepgate"),
        title="Stepgate",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
    )


class _Handlers:
    """One method a request of the protocol."""

    def __init__(self, served: Callable[[], Served]) -> None:
        self._served = served

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """The agent's tools, then the registered ones in order of name: the same bytes every time."""
        own = [_agent_tool(tool) for tool in AGENT_TOOLS.values()]
        return types.ListToolsResult(tools=own + [_registered(spec) for spec in self._served().registry.specs()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Carry out a call. What goes wrong in it is a result with `is_error`, which a model can act on."""
        name, arguments = params.name, params.arguments or {}
        served = self._served()
        if name in AGENT_TOOLS:
            return await _call_agent_tool(served, AGENT_TOOLS[name], arguments, _progress(context))
        if name not in served.registry:
            raise MCPError(INVALID_PARAMS, f"there is no tool named {shorten(name, 100)!r}; list the tools")
        return await _call_registered(served, name, arguments)

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Every skill a person may call."""
        prompts = [
            types.Prompt(
                name=skill.name,
                description=shorten(skill.description, 1024),
                arguments=[
                    types.PromptArgument(name="task", description=skill.argument_hint or "what to do", required=False)
                ],
            )
            for skill in self._served().skills
            if skill.user_invocable
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """A skill's instructions, with the task filled in."""
        try:
            skill = self._served().skills.get(params.name)
        except SkillUnknownError as error:
            raise MCPError(INVALID_PARAMS, error.message) from error
        text = _prompt_text(skill, (params.arguments or {}).get("task", ""))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=shorten(skill.description, 1024), messages=[message])

    async def list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The reports of the newest runs."""
        rows = await self._served().service.list_runs(limit=20)
        resources = [
            types.Resource(uri=f"run://{row.run_id}/report", name=row.title or row.run_id, mime_type="text/markdown")
            for row in rows
        ]
        return types.ListResourcesResult(resources=resources)

    async def list_resource_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Any run, as its steps or as a report."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template="run://{run_id}/steps", name="steps of a run", mime_type="application/json"
                ),
                types.ResourceTemplate(
                    uri_template="run://{run_id}/report", name="report of a run", mime_type="text/markdown"
                ),
            ]
        )

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """A run's steps as JSON, or its report as Markdown."""
        uri = str(params.uri)
        run_id, _sep, view = uri.removeprefix("run://").partition("/")
        if not uri.startswith("run://") or view not in ("steps", "report"):
            raise MCPError(
                RESOURCE_NOT_FOUND, f"there is no resource {shorten(uri, 100)!r}; use run://ID/steps or /report"
            )
        try:
            events = await self._served().service.read(run_id)
        except NotFoundError as error:
            raise MCPError(RESOURCE_NOT_FOUND, error.message) from error
        if view == "steps":
            steps = [step.model_dump(mode="json") for step in project(events)]
            text, kind = json.dumps(steps, ensure_ascii=False), "application/json"
        else:
            response = respond(events)
            lines = [f"- {step.type}: {step.title} ({step.status})" for step in response.steps]
            text, kind = "\n".join([response.response, "", "## Steps", "", *lines]), "text/markdown"
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


async def _call_agent_tool(
    served: Served, tool: AgentTool, arguments: dict[str, Any], progress: Progress
) -> types.CallToolResult:
    try:
        parsed = tool.input_model.model_validate(arguments)
    except ValidationError as error:
        return _error(f"{tool.name}: {_fault(error)}")
    try:
        report = await tool.work(AgentTools(served.service), parsed, progress)
    except AgentError as error:
        return _error(error.message)
    text = report.response
    if report.status == "working":
        text = f"Still working. Call run_get with run_id {report.run_id} and wait_s to see the answer."
    return types.CallToolResult(content=[_text(text)], structured_content=report.model_dump(mode="json"))


async def _call_registered(served: Served, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """One tool, through the same gateway as every other call: as a run that is not listed."""
    request = AgentRequest(metadata={"tool_calls": [{"tool": name, "args": arguments}]})
    try:
        run_id = await served.service.start(request, hidden=True)
        events = await served.service.finished(run_id)
    except ToolUnknownError as error:
        raise MCPError(INVALID_PARAMS, error.message) from error
    except AgentError as error:
        return _error(error.message)
    returned = next((event.body for event in reversed(events) if isinstance(event.body, ToolReturned)), None)
    if returned is None:
        return _error(respond(events).response)
    if returned.error_code is not None:
        return _error(f"{returned.error} ({returned.error_code})")
    structured: object = returned.output if isinstance(returned.output, dict) else None
    if structured is None and returned.blob is not None:
        structured = await served.service.blob_value(returned.blob)
    return types.CallToolResult(content=[_text(returned.text)], structured_content=structured)


def _agent_tool(tool: AgentTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=flat_schema(RunReport),
        annotations=_annotations(tool.annotations),
    )


def _registered(spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=spec.input_schema,
        output_schema=spec.output_schema,
        annotations=_annotations(spec.annotations),
    )


def _annotations(hints: ToolAnnotations) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        read_only_hint=hints.read_only,
        destructive_hint=hints.destructive,
        idempotent_hint=hints.idempotent,
        open_world_hint=hints.open_world,
    )


def _progress(context: Context) -> Progress:
    async def tell(done: float, total: float | None, message: str) -> None:
        await context.session.report_progress(done, total, message)

    return tell


def _prompt_text(skill: Skill, task: str) -> str:
    instructions = skill.instructions(task)
    return f"{instructions}\n\nTask: {task}" if task and task not in instructions else instructions


def _text(text: str) -> types.TextContent:
    """Text a client can put into a context, cut where it is too long, saying how to go on."""
    if len(text) > TEXT_CHARS:
        cut = text.rfind("\n", TEXT_CHARS - 2_000, TEXT_CHARS)
        text = text[: cut if cut > 0 else TEXT_CHARS] + "\n[cut here; the whole is in the structured content]"
    return types.TextContent(type="text", text=text)


def _error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def _fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"]) or "arguments"
    return f"{where}: {fault['msg']}"
