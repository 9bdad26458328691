"""Chat completions as requests of the engine: the messages, the one that is the request, the options of the model."""

from collections.abc import Callable, Iterable, Sequence

from pydantic import JsonValue

from agent.core.models import MODEL_OPTIONS, PROVIDER_FIELDS, AgentRequest, ChatMessage, JsonObject, Room
from gateway.doors.openai_wire import ChatCompletionRequest, ContentPart, WireMessage, WireModel
from gateway.render.errors import RequestFormatError

_DEPENDENT_PARAMETERS = {"max_completion_tokens", "parallel_tool_calls", "response_format", "tool_choice"}
_PASSED_PARAMETERS = tuple(
    name for name in ChatCompletionRequest.model_fields if name in MODEL_OPTIONS - _DEPENDENT_PARAMETERS
)
"""Parameters that go to the model as they are; the others of `MODEL_OPTIONS` depend on further fields."""
_PROVIDER_FIELDS = tuple(name for name in WireMessage.model_fields if name in PROVIDER_FIELDS)


_THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking", "think"})
"""Parts of an answer that were not a part of its text: clients keep them beside it."""


def to_agent_request(
    body: ChatCompletionRequest,
    max_messages: int,
    chat_id: str | None = None,
    *,
    plain: bool = False,
    messages: Sequence[ChatMessage] | None = None,
) -> AgentRequest:
    """The wire request as an `AgentRequest`. Raises `RequestFormatError` naming the parameter.

    `plain` is for a room that passes the conversation to its model: then no message has to be the request. `messages`
    replaces those of the body.
    """
    if len(messages if messages is not None else body.messages) > max_messages:  # each takes its time
        message = f"At most {max_messages:,} messages are accepted."
        raise RequestFormatError(message, "messages", "array_above_max_length")
    if messages is None:
        newest = max((at for at, one in enumerate(body.messages) if one.role == "user"), default=0)
        messages = [to_chat_message(one, at, is_past=at < newest) for at, one in enumerate(body.messages)]
    last = _find_prompt(messages)
    if last is None and not plain:
        raise RequestFormatError("There is no user message; the last one is the request.", "messages", "invalid_value")
    if last is None or (plain and (messages[last].role != "user" or not messages[last].content.strip())):
        last = len(messages)  # OpenAI answers a conversation of instructions, and an empty message, too.
    metadata = dict(body.metadata or {})
    if chat_id:
        metadata.setdefault("chat_id", chat_id[:200])
    prompt = messages[last] if last < len(messages) else ChatMessage(role="user")
    if not prompt.content.strip() and not prompt.images and "tool_calls" not in metadata and not plain:
        raise RequestFormatError("The last user message is empty.", f"messages[{last}].content", "invalid_value")
    return AgentRequest(
        prompt=prompt.content,
        images=prompt.images,
        image_lines=prompt.image_lines,
        room=body.model,
        prompt_name=prompt.name,
        messages=(*messages[:last], *messages[last + 1 :]),
        prompt_position=last,  # Messages after the last user message, such as a tool's result, stay after it.
        metadata=metadata,
        # With "none", too, in a plain room: without the tools, a model's template cannot write their earlier calls.
        client_tools=() if body.tool_choice == "none" and not plain else tuple(body.tools or ()),
        parallel_client_calls=body.parallel_tool_calls is not False,
        temperature=body.temperature,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        options=_build_model_options(body, plain=plain),
    )


def _find_prompt(messages: Sequence[ChatMessage]) -> int | None:
    """The index of the message that is the request: the last of a user, else the last instructions."""
    for roles in (("user",), ("system", "developer")):
        for index in reversed(range(len(messages))):
            if messages[index].role in roles:
                return index
    return None


def _build_model_options(body: ChatCompletionRequest, *, plain: bool) -> JsonObject:
    """The parameters for the model that writes the answer."""
    sent = _get_fields(body, _PASSED_PARAMETERS)
    if body.max_completion_tokens is not None:  # Under the name that the caller chose: some models refuse the other.
        sent["max_completion_tokens"] = body.max_completion_tokens
    if body.response_format is not None and body.response_format.get("type") != "text":
        sent["response_format"] = body.response_format
    if body.tools and body.tool_choice not in ((None, "auto") if plain else (None, "none", "auto")):
        sent["tool_choice"] = body.tool_choice
    if body.tools and body.parallel_tool_calls is not None and plain:  # OpenAI refuses it without tools.
        sent["parallel_tool_calls"] = body.parallel_tool_calls
    return sent


def to_chat_message(message: WireMessage, index: int, *, is_past: bool = False) -> ChatMessage:
    """A message of the wire as a `ChatMessage`. Raises `RequestFormatError`; of a past turn, a part that cannot be read
    is named in its place, since clients send it with each later request."""
    texts: list[str] = []
    images: list[str] = []
    lines: list[int] = []
    if message.content is None and message.refusal is not None:
        texts.append(message.refusal)
    elif isinstance(message.content, str):
        texts.append(message.content)
    elif message.content == []:
        where = f"messages[{index}].content"
        raise RequestFormatError(f"Invalid '{where}': empty array. Expected at least 1 item.", where, "empty_array")
    elif message.content is not None:
        line_count = 0  # counted on: a message may have 100,000 parts
        for part_index, part in enumerate(message.content):
            if message.role == "assistant" and part.type in _THOUGHTS:
                continue
            where = f"messages[{index}].content[{part_index}]"
            _add_part(part, where, texts, images, is_past=is_past)
            if len(images) > len(lines):
                lines.append(line_count)
            else:
                line_count += texts[-1].count("\n") + 1
    elif message.role in ("user", "system", "developer"):
        raise RequestFormatError(
            f"Invalid type for 'messages[{index}].content': expected a string or an array, got null.",
            f"messages[{index}].content",
            "invalid_type",
        )
    return ChatMessage(
        role="tool" if message.role == "function" else message.role,
        content="\n".join(texts),
        images=tuple(images),
        image_lines=tuple(lines),
        tool_calls=tuple(message.tool_calls or ()),
        tool_call_id=message.tool_call_id,
        name=message.name,
        provider_fields=_get_fields(message, _PROVIDER_FIELDS),
    )


def _get_fields(given: WireModel, names: Sequence[str]) -> JsonObject:
    """Those of the fields, all of them JSON, that have a value."""
    return {name: value for name in names if (value := getattr(given, name)) is not None}


def _add_part(part: ContentPart, where: str, texts: list[str], images: list[str], *, is_past: bool) -> None:
    image = _find_image(part)
    if part.type in ("text", "input_text", "output_text", "refusal"):
        texts.append(part.text or part.refusal or "")
    elif image:
        images.append(image)
    elif is_past:
        texts.append(f"[{part.type[:40]}: not read]")
    else:
        raise RequestFormatError(f"Content of type '{part.type}' is not supported.", f"{where}.type", "invalid_value")


def _find_image(part: ContentPart) -> str:
    """The address of a picture, in OpenAI's forms and in Anthropic's; "" for other parts."""
    if part.type in ("image_url", "input_image") and part.image_url is not None:
        return part.image_url.url
    source = (part.model_extra or {}).get("source")
    if part.type != "image" or not isinstance(source, dict):
        return ""
    data, address = source.get("data"), source.get("url")
    if isinstance(data, str) and data:
        return f"data:{source.get('media_type') or 'image/png'};base64,{data}"
    return address if isinstance(address, str) else ""


_ANSWER_FIELDS = frozenset({"metadata", "annotations"})
"""Fields of our answers that clients send back within the conversation. They ask for nothing."""
_UNSET: tuple[JsonValue, ...] = (None, False, "", [], {}, "auto")
"""Values that ask for nothing, under any name."""
MAX_IGNORED_NAMES = 20
MAX_IGNORED_NAME_CHARS = 64


def refuse_unsupported(
    body: ChatCompletionRequest, room: Room, list_rooms: Callable[[], Iterable[Room]], *, has_model: bool
) -> None:
    """Raises `RequestFormatError` for a parameter that this room would have to ignore, although the sender would count
    on it.
    """
    _refuse_unsupported_anywhere(body)
    if body.web_search_options is not None and (room.planning or not has_model):
        message = "web_search_options: a search by the provider needs a configured model and a room that does not plan."
        raise RequestFormatError(message, "web_search_options", "unsupported_parameter")
    if body.tool_choice not in (None, "none", "auto"):
        if room.planning:
            plain = ", ".join(repr(other.id) for other in list_rooms() if not other.planning)
            remedy = f"the client's reach the model in {plain}" if plain else "leave it out, or send 'auto'"
            message = f"tool_choice: the room {room.id!r} plans with its own tools; {remedy}."
            raise RequestFormatError(message, "tool_choice", "unsupported_parameter")
        if not body.tools:
            raise RequestFormatError(
                "tool_choice is only allowed when 'tools' are given.", "tool_choice", "invalid_value"
            )
    if body.response_format is None or body.response_format.get("type") == "text":
        return
    kind = str(body.response_format.get("type"))[:40]
    if kind not in ("json_object", "json_schema"):
        message = f"response_format: {kind!r} is unknown; the types are 'text', 'json_object' and 'json_schema'."
        raise RequestFormatError(message, "response_format.type", "invalid_value")
    if not has_model:
        message = f"response_format: {kind!r} needs a model, and none is configured (AGENT_MODEL_FAST)."
        raise RequestFormatError(message, "response_format", "unsupported_parameter")


def _refuse_unsupported_anywhere(body: ChatCompletionRequest) -> None:
    """Raises `RequestFormatError` for a parameter that no room supports."""
    for name, requested, reason in (
        ("n", body.n not in (None, 1), "only n=1 is supported: a run has one answer"),
        ("logprobs", body.logprobs, "answers have no token probabilities"),
        ("top_logprobs", body.top_logprobs, "answers have no token probabilities"),
        ("functions", body.functions, "send 'tools' in place of 'functions'"),
        ("function_call", body.function_call not in (None, "none", "auto"), "send 'tool_choice' in its place"),
        ("modalities", set(body.modalities or ()) - {"text"}, "answers are text"),
        ("audio", body.audio, "answers are text"),
        ("moderation", body.moderation, "the room's guardrails check requests and answers (guard_input, guard_output)"),
    ):
        if requested:
            raise RequestFormatError(f"{name}: {reason}.", name, "unsupported_parameter")
    for index, message in enumerate(body.messages):
        if message.function_call:
            param = f"messages[{index}].function_call"
            raise RequestFormatError(f"{param}: send 'tool_calls' in its place.", param, "unsupported_parameter")
        if message.audio:
            param = f"messages[{index}].audio"
            raise RequestFormatError(f"{param}: send the text as 'content'.", param, "unsupported_parameter")


def list_ignored(body: ChatCompletionRequest) -> tuple[str, ...]:
    """The names of the fields that have a value and no effect, sorted; at most `MAX_IGNORED_NAMES` of them."""
    names = list_unknown_fields("", body)
    if body.stream_options is not None:
        names |= list_unknown_fields("stream_options.", body.stream_options)
    for message in body.messages:
        names |= list_unknown_fields("messages.", message)
        if isinstance(message.content, list):
            for part in message.content:
                names |= list_unknown_fields("messages.content.", part)
                if part.image_url is not None:
                    names |= list_unknown_fields("messages.content.image_url.", part.image_url)
    return tuple(sorted(names)[:MAX_IGNORED_NAMES])


def list_unknown_fields(prefix: str, given: WireModel) -> set[str]:
    """The names of an object's unknown fields that have a value."""
    unknown = given.model_extra
    if not unknown:
        return set()
    return {
        f"{prefix}{name[:MAX_IGNORED_NAME_CHARS]}"
        for name, value in unknown.items()
        if value not in _UNSET and not (isinstance(given, WireMessage) and name in _ANSWER_FIELDS)
    }
