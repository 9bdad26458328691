"""Requests of `POST /v1/responses`: what they may contain, and what they are as a chat completion.

Nothing is dropped without a word: a parameter is used, or refused by name, or named in the answer as one without
effect. The rules for parameters that chat completions have too are those of `gateway.doors.openai_messages`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue

from agent.core.models import AgentRequest, ChatMessage, JsonObject, Room, Webhook
from agent.core.models.request import MAX_TOOLS_IN_BODY
from agent.core.models.words import BOUNDED
from gateway.doors.openai_messages import (
    MAX_IGNORED_NAMES,
    list_unknown_fields,
    refuse_unsupported,
    to_agent_request,
    to_chat_message,
)
from gateway.doors.openai_wire import ChatCompletionRequest, WireModel
from gateway.features.protocols.doors.response_input import convert_input, list_records
from gateway.features.protocols.render.response_items import CUSTOM_INPUT, SERVER_LABEL
from gateway.render.errors import RequestFormatError

MAX_CONVERSATION_CHARS: Final = 200
MAX_ITEMS: Final = 8_000
"""Items of an input, each of which takes its time: calls, thoughts and messages apart."""
_ECHOED: Final = (
    "background", "instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store",
    "temperature", "text", "tool_choice", "tools", "top_p", "truncation", "user",
)  # fmt: skip
"""Parameters that a response repeats."""
_HOSTED: Final = (
    "code_interpreter", "computer", "computer_use_preview", "file_search", "image_generation", "local_shell",
    "namespace", "shell", "tool_search", "web_search", "web_search_preview",
)  # fmt: skip
"""Tools that OpenAI runs itself, or that a client runs in a way of its own. Clients offer them by default."""
_SAME_NAME: Final = (
    "model", "temperature", "top_p", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "safety_identifier", "service_tier", "user",
)  # fmt: skip
"""Parameters that chat completions have under the same name."""


class TextOptions(WireModel):
    """The form of the answer."""

    format: JsonObject | None = None
    verbosity: str | None = None


class ReasoningOptions(WireModel):
    """How much the model thinks, and what of it is shown."""

    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None


class ResponseStreamOptions(WireModel):
    """Options of a stream."""

    include_obfuscation: bool | None = None


class ConversationName(WireModel):
    """A conversation by its id."""

    id: str = Field(min_length=1, max_length=MAX_CONVERSATION_CHARS)


class ResponsesRequest(WireModel):
    """The body of `POST /v1/responses`."""

    model: str = Field(min_length=1)
    input: str | list[JsonValue] | None = None
    instructions: str | None = None
    stream: bool | None = False
    stream_options: ResponseStreamOptions | None = None
    store: bool | None = None
    background: bool | None = False
    webhook: Webhook | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationName | None = None
    metadata: JsonObject | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    tools: list[JsonObject] | None = Field(default=None, max_length=MAX_TOOLS_IN_BODY)
    tool_choice: Literal["none", "auto", "required"] | JsonObject | None = None
    parallel_tool_calls: bool | None = None
    include: Annotated[list[str], BOUNDED] | None = None
    truncation: str | None = None
    top_logprobs: int | None = None
    max_tool_calls: int | None = None
    prompt: JsonObject | None = None
    context_management: Annotated[list[JsonObject], BOUNDED] | None = None
    moderation: JsonObject | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: JsonObject | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    user: str | None = None

    @property
    def conversation_id(self) -> str | None:
        """The id of the named conversation."""
        named = self.conversation
        return named.id if isinstance(named, ConversationName) else named

    def list_input_items(self) -> list[JsonObject]:
        """The input as items; a text is one message of the user. Raises `RequestFormatError`."""
        if isinstance(self.input, str):
            return [{"type": "message", "role": "user", "content": self.input}]
        if len(self.input or ()) > MAX_ITEMS:
            raise RequestFormatError(f"At most {MAX_ITEMS:,} items are accepted.", "input", "array_above_max_length")
        for index, item in enumerate(self.input or ()):
            if not isinstance(item, dict):
                raise RequestFormatError(f"input[{index}]: expected an object.", f"input[{index}]", "invalid_type")
        return [item for item in self.input or () if isinstance(item, dict)]


def refuse_unsupported_response(body: ResponsesRequest) -> None:
    """Raises `RequestFormatError` for a parameter that no room supports, and for those that exclude each other."""
    wants_logprobs = any(name.endswith("logprobs") for name in body.include or ())
    for name, requested, reason in (
        ("top_logprobs", body.top_logprobs, "answers have no token probabilities"),
        ("include", wants_logprobs, "answers have no token probabilities"),
        ("max_tool_calls", body.max_tool_calls is not None, "the room's budgets limit the steps of a run"),
        ("prompt", body.prompt, "there are no stored prompts; send 'instructions' and 'input'"),
        ("context_management", body.context_management, "a conversation is not compacted"),
        ("moderation", body.moderation, "the room's guardrails check requests and answers"),
        ("truncation", body.truncation not in (None, "disabled"), "send a shorter input; nothing is left out of it"),
    ):
        if requested:
            raise RequestFormatError(f"{name}: {reason}.", name, "unsupported_parameter")
    if body.background and body.store is False:
        raise RequestFormatError("background: a response that is not stored cannot be fetched.", "background")
    if body.webhook is not None and not body.background:
        raise RequestFormatError("webhook: set 'background' to true as well.", "webhook", "invalid_value")
    if body.previous_response_id is not None and body.conversation is not None:
        message = "previous_response_id: a request continues a response or a conversation, not both."
        raise RequestFormatError(message, "previous_response_id", "mutually_exclusive_parameters")
    if isinstance(body.conversation, str) and not 0 < len(body.conversation) <= MAX_CONVERSATION_CHARS:
        message = f"conversation: an id has 1 to {MAX_CONVERSATION_CHARS} characters."
        raise RequestFormatError(message, "conversation", "invalid_value")
    if body.input is None:
        raise RequestFormatError("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    if not body.input:
        raise RequestFormatError("input: it is empty; send a text or at least one item.", "input", "invalid_value")


def to_run_request(
    body: ResponsesRequest,
    input_items: Sequence[JsonObject],
    history: Sequence[ChatMessage],
    room: Room,
    list_rooms: Callable[[], Iterable[Room]],
    *,
    has_model: bool,
    max_messages: int,
) -> AgentRequest:
    """The request for a run that answers `history` and the input items. Raises `RequestFormatError`."""
    items = convert_input(input_items)
    tools, own = _split_tools(body.tools or ())
    chat = ChatCompletionRequest.model_validate({
        **{name: getattr(body, name) for name in _SAME_NAME},
        "messages": [{"role": "user", "content": "-"}],
        "max_tokens": body.max_output_tokens,
        "metadata": {**(body.metadata or {}), **own},
        "reasoning_effort": body.reasoning.effort if body.reasoning else None,
        "verbosity": body.text.verbosity if body.text else None,
        "response_format": _to_response_format(body.text),
        "tools": tools or None,
        "tool_choice": _to_tool_choice(body.tool_choice),
    })  # fmt: skip
    try:
        refuse_unsupported(chat, room, list_rooms, has_model=has_model)
        messages = [to_chat_message(item, index) for index, item in enumerate(items)]
        if body.instructions:
            messages = [ChatMessage(role="developer", content=body.instructions), *history, *messages]
        else:
            messages = [*history, *messages]
        plain = not room.planning and room.skill is None
        return to_agent_request(chat, max_messages, plain=plain, messages=messages)
    except RequestFormatError as error:
        raise _rename_parameter(error) from error


def build_wire_request(body: ResponsesRequest, conversation_id: str | None) -> JsonObject:
    """The fields that are stored to show the response: repeated parameters, input items, names without effect."""
    sent = body.model_dump(mode="json", include=set(_ECHOED), exclude_none=True)
    sent["metadata"] = {name: text for name, text in (body.metadata or {}).items() if isinstance(text, str)}
    sent |= {"store": body.store is not False, "background": bool(body.background), "truncation": "disabled"}
    sent.setdefault("text", {"format": {"type": "text"}})
    sent["tools"] = [{"strict": None, "parameters": None, **tool} for tool in body.tools or ()]
    return {
        "parameters": sent,
        "input": [*body.list_input_items()],
        "previous_response_id": body.previous_response_id,
        "conversation": {"id": conversation_id} if conversation_id else None,
        "ignored": [*list_ignored_parameters(body)],
    }


def list_ignored_parameters(body: ResponsesRequest) -> tuple[str, ...]:
    """The names of what has a value and no effect, sorted; at most `MAX_IGNORED_NAMES`."""
    names = list_unknown_fields("", body)
    for prefix, part in (
        ("text.", body.text),
        ("reasoning.", body.reasoning),
        ("stream_options.", body.stream_options),
    ):
        names |= list_unknown_fields(prefix, part) if part is not None else set()
    names |= {f"include.{name[:64]}" for name in body.include or ()}
    items = [item for item in body.input if isinstance(item, dict)] if isinstance(body.input, list) else []
    names |= {f"input.{kind}" for kind in list_records(items)}
    names |= {f"tools.{kind}" for kind in (str(tool.get("type")) for tool in body.tools or ()) if kind in _HOSTED}
    return tuple(sorted(names)[:MAX_IGNORED_NAMES])


def _split_tools(tools: Sequence[JsonObject]) -> tuple[list[JsonValue], JsonObject]:
    """The client's functions in the form of chat completions, and the metadata for the gateway's own tools.

    An `mcp` tool with the label `stepgate` stands for the gateway's own tools. Tools that a provider runs itself are
    left out beside functions; alone they are refused, because the request counts on them.
    """
    functions: list[JsonValue] = []
    own: JsonObject = {}
    has_functions = any(tool.get("type") in ("function", "custom") for tool in tools)
    for index, tool in enumerate(tools):
        kind, where = tool.get("type"), f"tools[{index}]"
        if kind == "function":
            functions.append({"type": "function", "function": _get_function(tool, where)})
        elif kind == "custom":
            functions.append({"type": "function", "function": _build_custom_function(tool, where)})
        elif kind in _HOSTED and has_functions:  # part of a client's default list; the answer names them as ignored
            continue
        elif kind == "mcp" and tool.get("server_label") == SERVER_LABEL:
            own |= _list_own_tool_settings(tool, where)
        elif kind == "mcp":
            message = f"{where}: the operator configures MCP servers; their tools are those of '{SERVER_LABEL}'."
            raise RequestFormatError(message, f"{where}.server_label", "unsupported_parameter")
        else:
            message = f"{where}: tools of type {str(kind)[:40]!r} are not supported; send functions."
            raise RequestFormatError(message, f"{where}.type", "unsupported_parameter")
    return functions, own


def _get_function(tool: Mapping[str, JsonValue], where: str) -> JsonObject:
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        raise RequestFormatError(
            f"Missing required parameter: '{where}.name'.", f"{where}.name", "missing_required_parameter"
        )
    known_fields = ("name", "description", "parameters", "strict")
    return {name: tool[name] for name in known_fields if tool.get(name) is not None}


def _build_custom_function(tool: Mapping[str, JsonValue], where: str) -> JsonObject:
    """A custom tool, which takes a text in a form of its own, as a function with one argument."""
    function = _get_function(tool, where)
    form = tool.get("format")
    written: JsonObject = {
        "type": "string",
        "description": f"the text, in this form: {json.dumps(form)}" if form else "the text",
    }
    parameters: JsonObject = {"type": "object", "properties": {CUSTOM_INPUT: written}, "required": [CUSTOM_INPUT]}
    return {**function, "parameters": parameters}


def _list_own_tool_settings(tool: Mapping[str, JsonValue], where: str) -> JsonObject:
    for name in ("server_url", "connector_id", "authorization", "headers", "tunnel_id"):
        if tool.get(name):
            message = f"{where}.{name}: '{SERVER_LABEL}' is this gateway itself; leave it out."
            raise RequestFormatError(message, f"{where}.{name}", "unsupported_parameter")
    settings: JsonObject = {}
    allowed, approval = tool.get("allowed_tools"), tool.get("require_approval")
    if allowed is not None:
        if not isinstance(allowed, list):
            message = f"{where}.allowed_tools: send a list of names."
            raise RequestFormatError(message, f"{where}.allowed_tools", "unsupported_parameter")
        settings["tools"] = allowed
    if approval == "always":
        settings["approve_plan"] = True
    elif approval not in (None, "never"):
        message = f"{where}.require_approval: send 'always' or 'never'."
        raise RequestFormatError(message, f"{where}.require_approval", "unsupported_parameter")
    return settings


def _to_response_format(text: TextOptions | None) -> JsonObject | None:
    """`text.format` in the form of chat completions, where a schema is one level deeper."""
    form = text.format if text is not None else None
    if form is None or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {key: value for key, value in form.items() if key != "type"}}


def _to_tool_choice(choice: Any) -> Any:
    """The choice of a function in the form of chat completions."""
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") != "function" or not isinstance(choice.get("name"), str):
        message = "tool_choice: send 'none', 'auto', 'required', or a function by its name."
        raise RequestFormatError(message, "tool_choice", "unsupported_parameter")
    return {"type": "function", "function": {"name": choice["name"]}}


def _rename_parameter(error: RequestFormatError) -> RequestFormatError:
    """An error about a chat completion as one about a response."""
    param = str(error.to_failure().details.get("param") or "")
    names = {"messages": "input", "response_format": "text.format", "max_tokens": "max_output_tokens"}
    head = next((name for name in names if param.startswith(name)), None)
    if head is None:
        return error
    message = error.message.replace("last user message", "last message of the user in 'input'")
    return RequestFormatError(
        message.replace(head, names[head]), names[head] + param.removeprefix(head), error.openai_code
    )
