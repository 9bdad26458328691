"""Tools over MCP: how ours are listed, and how a call becomes a run and its result a tool result."""

from functools import partial
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import JsonValue, ValidationError

from agent.core.errors import AgentError, ToolUnknownError
from agent.core.events import ToolReturned
from agent.core.models import AgentRequest, JsonObject
from agent.core.response import respond
from agent.core.service import AgentService
from agent.execution.run import Run
from agent.tools import Tool, ToolAnnotations, ToolSpec, flat_schema
from mcp_tools.agent_tools import AGENT_TOOLS, AgentTool, AgentTools, RunReport
from mcp_tools.server_approval import Person, open_question
from mcp_tools.server_attendance import AttendedCall, Progress, Steps
from mcp_tools.server_content import content_of, shown
from mcp_tools.server_extras import CallResult
from mcp_tools.server_logging import log_to_client
from mcp_tools.server_sessions import Context
from mcp_tools.server_tasks import MOMENT_SECONDS, RunTasks


async def call_agent_tool(
    service: AgentService[Run], tool: AgentTool, arguments: dict[str, Any], person: Person, *, may_ask: bool = True
) -> CallResult:
    """One of the agent's own tools."""
    try:
        parsed = tool.input_model.model_validate(arguments)
    except ValidationError as error:
        return failed(f"{tool.name}: {fault_of(error)}")
    tools = AgentTools(service, person.steps, parsed.wait_s)
    try:
        resumed = person.resumed if tool.asks else None
        run_id = resumed or await tool.work(tools, parsed)
        if resumed and await open_question(service, resumed) is None:  # decided elsewhere since it was asked
            await tools.carry_on(resumed)
        if tool.asks and may_ask:
            question = await person.settle(run_id, partial(tools.carry_on, run_id))
            if question is not None:
                return question
        return result_of(await tools.report(run_id))
    except AgentError as error:
        return failed(error.message)


async def start_as_task(service: AgentService[Run], arguments: JsonObject, person: Person) -> CallResult:
    """`agent_run` for a client that takes tasks: what is not done in a moment becomes one."""
    asked = arguments.get("wait_s", MOMENT_SECONDS)
    moment = min(asked, MOMENT_SECONDS) if isinstance(asked, int | float) else asked
    tool = AGENT_TOOLS["agent_run"]
    result = await call_agent_tool(service, tool, {**arguments, "wait_s": moment}, person, may_ask=False)
    report = result.structured_content if isinstance(result, types.CallToolResult) else None
    becomes = ("working", "awaiting_approval") if person.can_be_asked else ("working",)
    if not isinstance(report, dict) or report["status"] not in becomes:
        return result
    state = await run_tasks(service, asks=person.can_be_asked).get(str(report["run_id"]))
    return result if state is None else state.created()


def run_tasks(service: AgentService[Run], *, asks: bool) -> RunTasks:
    """The runs of this gateway as tasks, each with the result that its call would have had; `asks`: the client takes
    questions in a form."""

    async def silent(_: float, __: float | None, ___: str) -> None:
        """Nobody follows a call that has ended."""

    async def result(run_id: str) -> types.CallToolResult:
        return result_of(await AgentTools(service, Steps(silent), 0).report(run_id))

    return RunTasks(service, result, asks=asks)


def result_of(report: RunReport) -> types.CallToolResult:
    """A run as the result of a call."""
    text = report.response
    if report.status == "working":
        text = f"Still working. Call run_get with run_id {report.run_id} and wait_s to see the answer."
    content: list[types.ContentBlock] = [shown(text)]
    if report.status == "awaiting_approval":
        content.append(types.TextContent(type="text", text=_how_to_respond(report.run_id)))
    return types.CallToolResult(content=content, structured_content=report.model_dump(mode="json"))


async def call_registered(
    service: AgentService[Run], tool: Tool, arguments: dict[str, Any], person: Person, room: str | None = None
) -> CallResult:
    """One tool, through the same gateway as every other call: as a run that is not listed."""
    name = tool.spec.name
    request = AgentRequest(metadata={"tool_calls": [{"tool": name, "args": arguments}]}, room=room)
    try:
        run_id = person.resumed or await service.start(request, hidden=True)
        call = AttendedCall(service, run_id, person.steps, tool)
        await call.finished()
        question = await person.settle(run_id, call.finished)
        if question is not None:
            return question
        events = await service.read(run_id)
    except ToolUnknownError as error:
        raise MCPError(types.INVALID_PARAMS, error.message) from error
    except AgentError as error:
        return failed(error.message)
    returned = next((event.body for event in reversed(events) if isinstance(event.body, ToolReturned)), None)
    if returned is None:
        response = respond(events)
        waits = response.metadata["status"] == "awaiting_approval"
        return failed(f"{response.response}\n\n{_how_to_respond(run_id)}" if waits else response.response)
    ignored = [f"Ignored, for {name} does not know them: {', '.join(returned.dropped)}."] if returned.dropped else []
    if returned.error_code is not None:
        return failed("\n".join([f"{returned.error} ({returned.error_code})", *ignored]))
    structured: object = returned.output if isinstance(returned.output, dict) else None
    text = returned.text
    if returned.blob is not None:  # the log has only the beginning of the text
        structured, text = await service.blob_result(returned.blob)
    whole = structured is not None
    content: list[types.ContentBlock] = [shown(text, whole=whole)]
    if returned.content_blob is not None:
        content = content_of(await service.blob_content(returned.content_blob), person.revision, whole=whole)
    content += [shown(text) for text in ignored]
    return types.CallToolResult(content=content, structured_content=structured)


def _how_to_respond(run_id: str) -> str:
    return f"Nothing of it is done yet. Ask the user, then call run_respond with run_id {run_id} and what they decided."


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
        input_schema=_plain(spec.input_schema),
        output_schema=spec.output_schema,
        annotations=annotations_of(spec.annotations),
    )


def _plain(schema: JsonObject) -> JsonObject:
    """Arguments that may be null listed as what they are otherwise: some clients lose a tool over an `anyOf`, and
    whoever has no value leaves the argument out."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _without_null(value) for name, value in properties.items()}}


def _without_null(value: JsonValue) -> JsonValue:
    forms = value.get("anyOf") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(forms, list) or len(forms) != 2 or {"type": "null"} not in forms:
        return value
    form = next((one for one in forms if one != {"type": "null"}), None)
    rest = {key: held for key, held in value.items() if key != "anyOf" and (key, held) != ("default", None)}
    return {**rest, **form} if isinstance(form, dict) else value


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


def failed(message: str) -> types.CallToolResult:
    """A result that says what went wrong, for a model to act on."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def fault_of(error: ValidationError) -> str:
    """The first fault of a validation, in one line."""
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"]) or "arguments"
    return f"{where}: {fault['msg'].removeprefix('Value error, ')}"
