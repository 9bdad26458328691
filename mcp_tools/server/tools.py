"""Tools over MCP: how they are listed, and how a call becomes a run and the run a tool result."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import JsonValue, ValidationError

from agent.core.errors import AgentError, ToolUnknownError
from agent.core.events import ToolReturned
from agent.core.models import AgentRequest, JsonObject
from agent.core.run_reducer import fold
from agent.core.value_faults import describe_first_fault
from agent.llm.schema_values import read_json_texts
from agent.runs.intake_requests import HiddenRequest
from agent.runs.response import build_response
from agent.runs.run_intake import RunIntake
from agent.tools import Tool, ToolAnnotations, ToolSpec, build_flat_schema
from agent.tools.flat_schema import ANY_VALUE
from mcp_tools.server.agent_tools import AGENT_TOOLS, AgentTool, AgentToolCall, RunReport
from mcp_tools.server.approval import get_open_question
from mcp_tools.server.call_conversations import add_argument, add_conversation, add_result, take_conversation
from mcp_tools.server.client_call import CallResult, ClientCall
from mcp_tools.server.content import convert_blocks, make_text_content
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.log_messages import log_to_client
from mcp_tools.server.progress import SendProgress, StepProgress, ToolCallRun
from mcp_tools.server.sessions import Context
from mcp_tools.server.tasks import INLINE_SECONDS, RunTasks


async def call_agent_tool(
    intake: RunIntake, tool: AgentTool, arguments: dict[str, Any], client_call: ClientCall, *, may_ask: bool = True
) -> CallResult:
    """Executes a call of one of the agent's own tools."""
    try:
        parsed = tool.input_model.model_validate(arguments)
    except ValidationError as error:
        return make_error_result(f"{tool.name}: {format_validation_error(error)}")
    tools = AgentToolCall(intake, client_call.steps, parsed.wait_s, client_call.ask_client)
    try:
        resumed = client_call.resumed_run_id if tool.may_ask_user else None
        if resumed:
            client_call.answer_open_request(resumed)
        run_id = resumed or await tool.start_call(tools, parsed)
        if resumed and await get_open_question(intake.service, resumed) is None:  # decided elsewhere since it was asked
            await tools.follow_or_cancel(resumed)
        while tool.may_ask_user and may_ask:
            question = await client_call.resolve_questions(run_id, partial(tools.follow_or_cancel, run_id))
            open_question = question or await client_call.ask_for_input(run_id)
            if isinstance(open_question, types.InputRequiredResult):
                return open_question
            if open_question is None:
                break
            run_id = await tools.answer(run_id, open_question, is_form=True)
        return make_run_result(await tools.build_report(run_id))
    except AgentError as error:
        return make_error_result(error.message)


async def call_agent_run_as_task(intake: RunIntake, arguments: JsonObject, client_call: ClientCall) -> CallResult:
    """Executes `agent_run` for a client with tasks: a run longer than `INLINE_SECONDS` becomes a task."""
    wait_seconds = arguments.get("wait_s", INLINE_SECONDS)
    moment = min(wait_seconds, INLINE_SECONDS) if isinstance(wait_seconds, int | float) else wait_seconds
    tool = AGENT_TOOLS["agent_run"]
    result = await call_agent_tool(intake, tool, {**arguments, "wait_s": moment}, client_call, may_ask=False)
    report = result.structured_content if isinstance(result, types.CallToolResult) else None
    pending_statuses = ("working", "awaiting_approval", "awaiting_input") if client_call.can_elicit else ("working",)
    if not isinstance(report, dict) or report["status"] not in pending_statuses:
        return result
    state = await make_run_tasks(intake, can_elicit=client_call.can_elicit).get(str(report["run_id"]))
    return result if state is None else state.to_created_result()


def make_run_tasks(intake: RunIntake, *, can_elicit: bool) -> RunTasks:
    """The gateway's runs as tasks. `can_elicit`: the client supports elicitation by form."""

    async def send_nothing(_: float, __: float | None, ___: str) -> None:
        """Sends nothing: no client follows a call that has ended."""

    async def build_result(run_id: str) -> types.CallToolResult:
        return make_run_result(await AgentToolCall(intake, StepProgress(send_nothing), 0).build_report(run_id))

    return RunTasks(intake, build_result, can_elicit=can_elicit)


def make_run_result(report: RunReport) -> types.CallToolResult:
    """A run as the result of a call."""
    text = report.response
    if report.status == "working":
        text = f"Still working. Call run_get with run_id {report.run_id} and wait_s to see the answer."
    content: list[types.ContentBlock] = [make_text_content(text)]
    if report.status == "awaiting_approval":
        ids = [str(one["approval_id"]) for one in report.approvals]
        content.append(types.TextContent(type="text", text=_format_respond_hint(report.run_id, ids)))
    if report.status == "awaiting_input":
        hint = f"The agent needs this from the user. Call run_respond with run_id {report.run_id} and their answer."
        content.append(types.TextContent(type="text", text=hint))
    return types.CallToolResult(content=content, structured_content=report.model_dump(mode="json"))


async def call_registered_tool(
    intake: RunIntake, tool: Tool, arguments: dict[str, Any], client_call: ClientCall, room: str | None = None
) -> CallResult:
    """Executes a call of a registered tool as a hidden run, through the same gateway as every other tool call."""
    try:
        run_id = client_call.resumed_run_id
        if run_id is None:
            read = read_json_texts(arguments, tool.spec.input_schema, tool.spec.input_schema)
            given = read if isinstance(read, dict) else arguments
            args, conversation = await take_conversation(intake, tool.spec, given, client_call.session_name)
            request = AgentRequest(
                metadata={"tool_calls": [{"tool": tool.spec.name, "args": args}]},
                room=room,
                conversation_id=conversation,
            )
            run_id = (await intake.accept(get_current_principal(), HiddenRequest(request))).run_id
        else:
            client_call.answer_open_request(run_id)
        call = ToolCallRun(intake.service, run_id, client_call.steps, tool)
        with intake.service.client_requests.connect(run_id, client_call.ask_client):
            await call.wait_until_finished()
            question = await client_call.resolve_questions(run_id, call.wait_until_finished)
        if question is not None:
            return question
        events = await intake.service.read_events(run_id, owner=get_current_owner())
    except ToolUnknownError as error:
        raise MCPError(types.INVALID_PARAMS, error.message) from error
    except AgentError as error:
        return make_error_result(error.message)
    returned = next((event.body for event in reversed(events) if isinstance(event.body, ToolReturned)), None)
    if returned is None:
        response = build_response(events)
        ids = [str(one["approval_id"]) for one in response.metadata.get("approvals", [])]
        hint = f"\n\n{_format_respond_hint(run_id, ids)}" if ids else ""
        return make_error_result(f"{response.response}{hint}")
    if returned.error_code is not None:
        return make_error_result(f"{returned.error} ({returned.error_code})")
    structured: object = returned.output if isinstance(returned.output, dict) else None
    text = returned.text
    if returned.blob is not None:  # the log has only the beginning of the text
        structured, text = await intake.service.get_blob_result(returned.blob)
    whole = structured is not None
    content: list[types.ContentBlock] = [make_text_content(text, whole=whole)]
    if returned.content_blob is not None:
        content = convert_blocks(
            await intake.service.get_blob_content(returned.content_blob), client_call.protocol_version, whole=whole
        )
    result = types.CallToolResult(content=content, structured_content=structured)
    return add_conversation(result, fold(run_id, events).request.conversation_id)


def _format_respond_hint(run_id: str, approval_ids: Sequence[str]) -> str:
    if not get_current_principal().may_approve:
        return f"Nothing is done yet: run {run_id} waits for somebody whose key has the scope 'approve'."
    named = json.dumps(list(approval_ids))
    return (
        f"Nothing is done yet. Ask the user, then call run_respond with run_id {run_id}, approvals {named} and their "
        "decision."
    )


def describe_agent_tool(tool: AgentTool) -> types.Tool:
    """One of the agent's tools as it is listed."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=build_flat_schema(RunReport),
        annotations=to_mcp_annotations(tool.annotations),
    )


def describe_registered_tool(spec: ToolSpec) -> types.Tool:
    """A registered tool as it is listed."""
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=_simplify_schema(add_argument(spec)),
        output_schema=add_result(spec),
        annotations=to_mcp_annotations(spec.annotations),
        _meta={**spec.meta} or None,
    )


def _simplify_schema(schema: JsonObject) -> JsonObject:
    """The schema without `anyOf`, over which some clients drop a tool: a nullable argument is not nullable,
    since one without a value can be left out, and an argument of any type lists the types.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _remove_alternatives(value) for name, value in properties.items()}}


def _remove_alternatives(value: JsonValue) -> JsonValue:
    forms = value.get("anyOf") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(forms, list) and forms == ANY_VALUE["anyOf"]:
        kinds: list[JsonValue] = [one["type"] for one in forms if isinstance(one, dict)]
        return {**{key: item for key, item in value.items() if key != "anyOf"}, "type": kinds}
    if not isinstance(value, dict) or not isinstance(forms, list) or len(forms) != 2 or {"type": "null"} not in forms:
        return value
    form = next((one for one in forms if one != {"type": "null"}), None)
    rest = {key: item for key, item in value.items() if key != "anyOf" and (key, item) != ("default", None)}
    return {**rest, **form} if isinstance(form, dict) else value


def to_mcp_annotations(hints: ToolAnnotations) -> types.ToolAnnotations:
    """Converts our annotations to MCP's hints."""
    return types.ToolAnnotations(
        read_only_hint=hints.read_only,
        destructive_hint=hints.destructive,
        idempotent_hint=hints.idempotent,
        open_world_hint=hints.open_world,
    )


def make_progress_sender(context: Context) -> SendProgress:
    """A function that sends progress and log messages to the client of this request if it wants them."""

    async def send(done: float, total: float | None, message: str) -> None:
        await context.session.report_progress(done, total, message)
        await log_to_client(context, "info", message)

    return send


def make_error_result(message: str) -> types.CallToolResult:
    """A result with an error message that a model can act on."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def format_validation_error(error: ValidationError) -> str:
    """The first problem of a validation in one line."""
    return describe_first_fault(error, "arguments")
