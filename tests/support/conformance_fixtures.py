"""What the official MCP conformance suite expects to find on a server, by the names the suite calls it.

Added to the real server by `conformance_extras.py`, and never outside of tests. Rounds of input (2026-07-28) are in
`conformance_rounds.py`."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import JsonValue

from mcp_tools.server.log_messages import log_to_client
from mcp_tools.server.sessions import Context
from tests.support.conformance_extras import CallTool, Extras, GetPrompt, PublishEvent
from tests.support.conformance_rounds import ROUND_PROMPTS, ROUND_TOOLS
from tests.support.conformance_schemas import DEFAULTS, ENUMS, SCHEMA, USER
from tests.support.conformance_tasks import FixtureTasks, task_tools

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
PAUSE_S = 0.05
Result = types.CallToolResult
Work = Callable[[Context, dict[str, Any]], Awaitable[Result]]


def conformance_fixtures(publish: PublishEvent) -> Extras:
    """Everything the scenarios name."""
    tasks = FixtureTasks()
    tools = (*_CONTENT, *_CONVERSATION, *ROUND_TOOLS, *_changes(publish), *task_tools(tasks))
    return Extras(
        tasks=tasks,
        tools={tool.name: (tool, call) for tool, call in tools},
        prompts={prompt.name: (prompt, get) for prompt, get in (*_PROMPTS, *ROUND_PROMPTS)},
        resources=(
            types.Resource(uri="test://static-text", name="static text", mime_type="text/plain"),
            types.Resource(uri="test://static-binary", name="static binary", mime_type="image/png"),
            types.Resource(uri="test://watched-resource", name="watched resource", mime_type="text/plain"),
        ),
        templates=(
            types.ResourceTemplate(
                uri_template="test://template/{id}/data", name="template", mime_type="application/json"
            ),
        ),
        read=_read,
    )


def text_result(text: str, *, is_error: bool = False) -> Result:
    """A tool result of one text."""
    return Result(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def _tool(
    name: str, description: str, work: Work, properties: dict[str, Any] | None = None, required: tuple[str, ...] = ()
) -> tuple[types.Tool, CallTool]:
    async def call(context: Context, params: types.CallToolRequestParams) -> Result:
        return await work(context, params.arguments or {})

    schema: dict[str, Any] = {"type": "object", "properties": properties or {}, "required": list(required)}
    return types.Tool(name=name, description=description, input_schema=schema), call


def _always(result: Result) -> Work:
    async def work(_: Context, __: dict[str, Any]) -> Result:
        return result

    return work


def _embedded(uri: str, kind: str, text: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(type="resource", resource=contents)


_IMAGE = types.ImageContent(type="image", data=PNG, mime_type="image/png")
_MIXED = [
    types.TextContent(type="text", text="Multiple content types test:"),
    _IMAGE,
    _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
]


async def _log(context: Context, _: dict[str, Any]) -> Result:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log_to_client(context, "info", message)
        await asyncio.sleep(PAUSE_S)
    return text_result("Tool with logging executed")


async def _progress(context: Context, _: dict[str, Any]) -> Result:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE_S)
    return text_result("Tool with progress executed")


async def _sample(context: Context, arguments: dict[str, Any]) -> Result:
    prompt = types.TextContent(type="text", text=str(arguments.get("prompt", "")))
    params = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=prompt)], max_tokens=100
    )
    reply = await context.session.send_request(
        types.CreateMessageRequest(params=params),
        types.CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=context.request_id),
    )
    said = reply.content.text if isinstance(reply.content, types.TextContent) else "no text"
    return text_result(f"LLM response: {said}")


def _elicit(schema: dict[str, Any], message: str, begin: str) -> Work:
    async def work(context: Context, arguments: dict[str, Any]) -> Result:
        asked = str(arguments.get("message", message))
        reply = await context.session.elicit_form(asked, schema, related_request_id=context.request_id)
        content = json.dumps(reply.content or {})
        return text_result(f"{begin}: action={reply.action}, content={content}")

    return work


async def _reconnect(context: Context, _: dict[str, Any]) -> Result:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
        await asyncio.sleep(2 * PAUSE_S)
    return text_result("Reconnection test completed")


async def _need_sampling(context: Context, _: dict[str, Any]) -> Result:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        data: dict[str, JsonValue] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", data)
    return text_result("sampling is there")


_CONTENT = (
    _tool("test_simple_text", "Returns text", _always(text_result("This is a simple text response for testing."))),
    _tool("test_image_content", "Returns an image", _always(Result(content=[_IMAGE]))),
    _tool(
        "test_audio_content",
        "Returns audio",
        _always(Result(content=[types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")])),
    ),
    _tool(
        "test_embedded_resource",
        "Returns a resource",
        _always(
            Result(
                content=[_embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
            )
        ),
    ),
    _tool("test_multiple_content_types", "Returns text, image, resource", _always(Result(content=list(_MIXED)))),
    _tool(
        "test_error_handling",
        "Fails",
        _always(text_result("This tool intentionally returns an error for testing", is_error=True)),
    ),
    (
        types.Tool(name="json_schema_2020_12_tool", description="Has a rich schema", input_schema=SCHEMA),
        _tool("", "", _always(text_result("ok")))[1],
    ),
    _tool(
        "test_header_parameter",
        "Takes a parameter that is mirrored into a header",
        _always(text_result("ok")),
        {"region": {"type": "string", "x-mcp-header": "Region"}},
    ),
)
_CONVERSATION = (
    _tool("test_tool_with_logging", "Logs three messages", _log),
    _tool("test_logging_tool", "Logs three messages", _log),
    _tool("test_tool_with_progress", "Tells its progress", _progress),
    _tool("test_sampling", "Asks the client's model", _sample, {"prompt": {"type": "string"}}, ("prompt",)),
    _tool(
        "test_elicitation",
        "Asks the user",
        _elicit(USER, "Who are you?", "User response"),
        {"message": {"type": "string"}},
        ("message",),
    ),
    _tool(
        "test_elicitation_sep1034_defaults",
        "Asks with defaults",
        _elicit(DEFAULTS, "Please check the defaults", "Elicitation completed"),
    ),
    _tool(
        "test_elicitation_sep1330_enums",
        "Asks with enums",
        _elicit(ENUMS, "Please choose", "Elicitation completed"),
    ),
    _tool("test_reconnection", "Closes its stream before it answers", _reconnect),
    _tool("test_missing_capability", "Needs sampling", _need_sampling),
)


def _changes(publish: PublishEvent) -> tuple[tuple[types.Tool, CallTool], ...]:
    def telling(event: ServerEvent) -> Work:
        async def work(_: Context, __: dict[str, Any]) -> Result:
            await publish(event)
            return text_result("changed")

        return work

    return (
        _tool("test_trigger_tool_change", "Says that the tools changed", telling(ToolsListChanged())),
        _tool("test_trigger_prompt_change", "Says that the prompts changed", telling(PromptsListChanged())),
    )


def _prompt(
    name: str, arguments: tuple[str, ...], contents: Callable[[dict[str, str]], list[types.ContentBlock]]
) -> tuple[types.Prompt, GetPrompt]:
    async def get(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        messages = [types.PromptMessage(role="user", content=block) for block in contents(params.arguments or {})]
        return types.GetPromptResult(messages=messages)

    listed = [types.PromptArgument(name=argument, description=argument, required=True) for argument in arguments]
    return types.Prompt(name=name, description=f"The suite's {name}", arguments=listed), get


def _text_block(text: str) -> types.ContentBlock:
    return types.TextContent(type="text", text=text)


_PROMPTS = (
    _prompt("test_simple_prompt", (), lambda _: [_text_block("This is a simple prompt for testing.")]),
    _prompt(
        "test_prompt_with_arguments",
        ("arg1", "arg2"),
        lambda a: [_text_block(f"Prompt with arguments: arg1='{a.get('arg1')}', arg2='{a.get('arg2')}'")],
    ),
    _prompt(
        "test_prompt_with_embedded_resource",
        ("resourceUri",),
        lambda a: [
            _embedded(a.get("resourceUri", "test://none"), "text/plain", "Embedded resource content for testing."),
            _text_block("Please process the embedded resource above."),
        ],
    ),
    _prompt("test_prompt_with_image", (), lambda _: [_IMAGE, _text_block("Please analyze the image above.")]),
)


def _read(uri: str) -> types.ReadResourceResult | None:
    contents: types.TextResourceContents | types.BlobResourceContents
    parts = uri.split("/")
    if uri == "test://static-text":
        text = "This is the content of the static text resource."
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    elif uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri == "test://watched-resource":
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text="Watched resource content.")
    elif uri.startswith("test://template/") and parts[-1] == "data" and len(parts) == 5:
        text = json.dumps({"id": parts[3], "templateTest": True, "data": f"Data for ID: {parts[3]}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    else:
        return None
    return types.ReadResourceResult(contents=[contents])
