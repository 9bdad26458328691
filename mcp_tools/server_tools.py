"""Tools over MCP: how ours are listed, and how a call becomes a run and its result a tool result."""

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core.errors import AgentError, ToolUnknownError
from agent.core.events import ToolReturned
from agent.core.models import AgentRequest, JsonObject
from agent.core.response import respond
from agent.core.service import AgentService
from agent.execution.run import Run
from agent.tools import ToolAnnotations, ToolSpec, flat_schema
from mcp_tools.agent_tools import AGENT_TOOLS, TEXT_CHARS, AgentTool, AgentTools, Progress, RunReport
from mcp_tools.server_extras import CallResult
from mcp_tools.server_logging import log_to_client
from mcp_tools.server_sessions import Context
from mcp_tools.server_tasks import MOMENT_SECONDS, RunTasks


async def call_agent_tool(
    service: AgentService[Run], tool: AgentTool, arguments: dict[str, Any], progress: Progress
) -> types.CallToolResult:
    """One of the agent's own tools."""
    try:
        parsed = tool.input_model.model_validate(arguments)
    except ValidationError as error:
        return failed(f"{tool.name}: {fault_of(error)}")
    try:
        report = await tool.work(AgentTools(service), parsed, progress)
    except AgentError as error:
        return failed(error.message)
    text = report.response
    if report.status == "working":
        text = f"Still working. Call run_get with run_id {report.run_id} and wait_s to see the answer."
    return types.CallToolResult(content=[shown(text)], structured_content=report.model_dump(mode="json"))


async def start_as_task(service: AgentService[Run], arguments: JsonObject, progress: Progress) -> CallResult:
    """`agent_run` for a client that takes tasks: what is not done in a moment becomes one."""
    asked = arguments.get("wait_s", MOMENT_SECONDS)
    moment = min(asked, MOMENT_SECONDS) if isinstance(asked, int | float) else asked
    result = await call_agent_tool(service, AGENT_TOOLS["agent_run"], {**arguments, "wait_s": moment}, progress)
    report = result.structured_content
    if not isinstance(report, dict) or report["status"] != "working":
        return result
    state = await run_tasks(service).get(str(report["run_id"]))
    return result if state is None else state.created()


def run_tasks(service: AgentService[Run]) -> RunTasks:
    """The runs of this gateway as tasks, each with the result that its call would have had."""

    async def silent(_: float, __: float | None, ___: str) -> None:
        """Nobody follows a call that has ended."""

    async def result_of(run_id: str) -> types.CallToolResult:
        return await call_agent_tool(service, AGENT_TOOLS["run_get"], {"run_id": run_id}, silent)

    return RunTasks(service, result_of)


async def call_registered(service: AgentService[Run], name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    """One tool, through the same gateway as every other call: as a run that is not listed."""
    request = AgentRequest(metadata={"tool_calls": [{"tool": name, "args": arguments}]})
    try:
        run_id = await service.start(request, hidden=True)
        events = await service.finished(run_id)
    except ToolUnknownError as error:
        raise MCPError(types.INVALID_PARAMS, error.message) from error
    except AgentError as error:
        return failed(error.message)
    returned = next((event.body for event in reversed(events) if isinstance(event.body, ToolReturned)), None)
    if returned is None:
        return failed(respond(events).response)
    if returned.error_code is not None:
        return failed(f"{returned.error} ({returned.error_code})")
    structured: object = returned.output if isinstance(returned.output, dict) else None
    if structured is None and returned.blob is not None:
        structured = await service.blob_value(returned.blob)
    return types.CallToolResult(content=[shown(returned.text)], structured_content=structured)


def agent_tool(tool: AgentTool) -> types.Tool:
    """One of the agent's own tools, as it is listed."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=flat_schema(RunReport),
        annotations=annotations_of(tool.annotations),
    )


def registered_tool(spec: ToolSpec) -> types.Tool:
    """A tool of the registry, as it is listed."""
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=spec.input_schema,
        output_schema=spec.output_schema,
        annotations=annotations_of(spec.annotations),
    )


def annotations_of(hints: ToolAnnotations) -> types.ToolAnnotations:
    """Our annotations as MCP's hints."""
    return types.ToolAnnotations(
        read_only_hint=hints.read_only,
        destructive_hint=hints.destructive,
        idempotent_hint=hints.idempotent,
        open_world_hint=hints.open_world,
    )


def progress_of(context: Context) -> Progress:
    """Tells the client of this request what is being done, as progress and as log messages, where it asked for them."""

    async def tell(done: float, total: float | None, message: str) -> None:
        await context.session.report_progress(done, total, message)
        await log_to_client(context, "info", message)

    return tell


def shown(text: str) -> types.TextContent:
    """Text a client can put into a context, cut where it is too long, saying how to go on."""
    if len(text) > TEXT_CHARS:
        cut = text.rfind("\n", TEXT_CHARS - 2_000, TEXT_CHARS)
        text = text[: cut if cut > 0 else TEXT_CHARS] + "\n[cut here; the whole is in the structured content]"
    return types.TextContent(type="text", text=text)


def failed(message: str) -> types.CallToolResult:
    """A result that says what went wrong, for a model to act on."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def fault_of(error: ValidationError) -> str:
    """The first fault of a validation, in one line."""
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"]) or "arguments"
    return f"{where}: {fault['msg']}"
