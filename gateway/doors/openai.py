"""`/v1/chat/completions` and `/v1/models`: an OpenAI endpoint whose models are the rooms.

No parameter is dropped without a word. A parameter goes to the model that writes the answer (`MODEL_OPTIONS`), or the
request is refused because its sender would count on it (`refuse_unsupported`), or its name is in the answer's
`stepgate.runtime.ignored_parameters` (`list_ignored`).
"""

import contextlib
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent.core.errors import AgentFailure
from agent.core.events import RunCreated, RunFailed, RunWaiting
from agent.core.models import MODEL_OPTIONS, PROVIDER_FIELDS, AgentRequest, ChatMessage, JsonObject, Room
from agent.runs.run_intake import ChatRequest, HiddenRequest
from agent.runs.service import AcceptedRun
from gateway.auth.dependencies import CallerStream, CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.deferred_response import DeferredResponse
from gateway.doors.agent import STREAM
from gateway.doors.client_disconnect import cancel_on_disconnect, notify_on_disconnect
from gateway.doors.dependencies import Gateway
from gateway.doors.early_failure import raise_early_failure
from gateway.doors.json_body import JsonRoute
from gateway.doors.openwebui import (
    cancel_after_disconnect,
    is_background_prompt,
    is_open_webui,
    remove_client_additions,
)
from gateway.doors.run_intake import RUN_ID_HEADER, accept_run
from gateway.errors import ClientDisconnectedError, RequestFormatError
from gateway.render.errors import OpenAIErrorBody, openai_error, to_json
from gateway.render.openai import OpenAIChunks, completion_body
from gateway.sse import format_frame

router = APIRouter(tags=["OpenAI"], route_class=JsonRoute, dependencies=[require_scope("chat")])

_PASSED_PARAMETERS = set(
    MODEL_OPTIONS - {"max_completion_tokens", "parallel_tool_calls", "response_format", "tool_choice"}
)
"""Parameters that go to the model as they are; the others of `MODEL_OPTIONS` depend on further fields."""
_ANSWER_FIELDS = frozenset({"metadata", "annotations"})
"""Fields of our answers that clients send back within the conversation. They ask for nothing."""
_UNSET: tuple[JsonValue, ...] = (None, False, "", [], {}, "auto")
"""Values that ask for nothing, under any name."""
MAX_IGNORED_NAMES = 20
MAX_IGNORED_NAME_CHARS = 64
CHAT_ID_CHARS = 200
DONE_FRAME = "data: [DONE]\n\n"


class WireModel(BaseModel):
    """An object that clients send. Known fields are checked, by their JSON types; the others are kept for
    `list_ignored`.
    """

    model_config = ConfigDict(extra="allow", strict=True)


class ImageUrl(WireModel):
    """An image by URL or data URL."""

    url: str = Field(max_length=20_000_000)


class ContentPart(WireModel):
    """A part of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None


class WireMessage(WireModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[JsonObject] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: JsonValue = None
    reasoning: JsonValue = None
    reasoning_details: JsonValue = None
    extra_content: JsonValue = None
    function_call: JsonValue = None
    audio: JsonValue = None


class StreamOptions(WireModel):
    """Options of a stream."""

    include_usage: bool | None = False


class ChatCompletionRequest(WireModel):
    """The body of `POST /v1/chat/completions`."""

    model: str = Field(min_length=1)
    messages: list[WireMessage] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    seed: int | None = None
    stop: str | list[str] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    prediction: JsonObject | None = None
    web_search_options: JsonObject | None = None
    service_tier: str | None = None
    store: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: JsonObject | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    functions: list[JsonObject] | None = None
    function_call: str | JsonObject | None = None
    modalities: list[str] | None = None
    audio: JsonObject | None = None
    moderation: JsonObject | None = None
    parallel_tool_calls: bool | None = None
    tools: list[JsonObject] | None = None
    tool_choice: Literal["none", "auto", "required"] | JsonObject | None = None
    response_format: JsonObject | None = None
    metadata: JsonObject | None = None
    user: str | None = None


class ModelCard(BaseModel):
    """A room, in the form of an OpenAI model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "stepgate"
    name: str = ""
    description: str = ""


class ModelList(BaseModel):
    """All rooms."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


OPENAI_ERRORS: dict[int | str, dict[str, Any]] = {
    # Without "default" FastAPI would document a 422 in its own shape.
    status: {"model": OpenAIErrorBody, "description": "OpenAI's error object"}
    for status in (400, 404, 413, 415, 429, 500, 502, 503, 504, "default")
}


@router.get("/v1/models", responses=OPENAI_ERRORS)
async def list_models(stepgate: Gateway, caller: CurrentCaller) -> ModelList:
    """List the rooms, each as a model."""
    return ModelList(data=[_to_model_card(room) for room in stepgate.rooms.list_visible(caller.owner)])


@router.get("/v1/models/{model}", responses=OPENAI_ERRORS)
async def get_model(model: str, stepgate: Gateway, caller: CurrentCaller) -> ModelCard:
    """Return one room."""
    return _to_model_card(stepgate.rooms.get(model, caller.owner))


@router.post("/v1/chat/completions", responses={**OPENAI_ERRORS, **STREAM}, response_model=None)
async def chat_completions(
    body: ChatCompletionRequest,
    http: Request,
    stepgate: Gateway,
    caller: CurrentCaller,
    stream: CallerStream,
) -> Response:
    """Execute the last user message; the messages before it are the context."""
    room = stepgate.rooms.get(body.model, caller.owner)
    refuse_unsupported(body, room, stepgate.rooms.list_visible(caller.owner), has_model=stepgate.models.is_configured)
    is_plain = not room.planning and room.skill is None
    header_id = http.headers.get("x-openwebui-chat-id")
    request = remove_client_additions(to_agent_request(body, stepgate.settings.max_messages, header_id, plain=is_plain))
    is_background = is_background_prompt(request.prompt)
    chat_id = request.metadata.get("chat_id")
    known_id = chat_id[:CHAT_ID_CHARS] if isinstance(chat_id, str) and chat_id else None
    accepted = HiddenRequest(request) if is_background else ChatRequest(request, known_id)
    ignored = list_ignored(body)
    with stream.hold_slot(body.stream):
        # A room that neither plans nor runs a skill has no side effects.
        run = await accept_run(http, stepgate, caller, accepted, is_repeatable=is_plain)
        if not body.stream:
            return DeferredResponse(partial(_respond, stepgate, run, is_background=is_background, ignored=ignored))
        rich = not is_background and is_open_webui(http.headers, body.tools or (), stepgate.settings.open_webui)
        include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        chunks = OpenAIChunks(run.run_id, body.model, include_usage=include_usage, rich=rich, ignored=ignored)
        await raise_early_failure(stepgate.service, run, shows_work=rich)
        frames = _stream_chunks(stepgate, run, chunks)
        if rich and "idempotency-key" not in http.headers:
            frames = notify_on_disconnect(frames, partial(cancel_after_disconnect, stepgate.service, run))
        return stream.build_response(frames, _error_frame, {RUN_ID_HEADER: run.run_id})


async def _respond(
    stepgate: Stepgate, run: AcceptedRun, http: Request, *, is_background: bool, ignored: Sequence[str]
) -> Response:
    try:
        events = await cancel_on_disconnect(
            http, stepgate.service.wait_for_events(run.run_id, owner=run.owner, seen_seq=run.last_seq)
        )
    except ClientDisconnectedError:
        if is_background:  # No list shows this run, so nobody would see its result.
            await stepgate.service.cancel_run(run.run_id, owner=run.owner, reason="the caller disconnected")
        raise
    data = completion_body(events, ignored)
    return Response(data, media_type="application/json", headers={RUN_ID_HEADER: run.run_id})


async def _stream_chunks(stepgate: Stepgate, run: AcceptedRun, chunks: OpenAIChunks) -> AsyncGenerator[str, None]:
    """Yields the frames of a run. What happened up to `run.last_seq` has been shown before. A failure after the 200 is
    a frame of its own, and the stream ends without [DONE].
    """
    waiting = False
    async with contextlib.aclosing(
        stepgate.service.follow_events(run.run_id, owner=run.owner, waits=False, seen_seq=run.last_seq)
    ) as events:
        async for event in events:
            if isinstance(event.body, RunFailed):
                for data in chunks.encode_failure(event):
                    yield format_frame(data)
                yield _error_frame(event.body.failure)
                return
            for data in chunks.encode_event(event):
                if event.seq > run.last_seq or isinstance(event.body, RunCreated):
                    yield format_frame(data)
            if event.body.terminal:
                yield DONE_FRAME
                return
            waiting = isinstance(event.body, RunWaiting)
    if waiting:
        for data in chunks.encode_question():
            yield format_frame(data)
        yield DONE_FRAME
        return
    for data in chunks.encode_break("The gateway is stopping; the run continues"):
        yield format_frame(data)
    message = f"the gateway is stopping; the run continues after the restart: GET /v1/runs/{run.run_id}"
    yield format_frame(
        json.dumps({"error": {"message": message, "type": "server_error", "param": None, "code": "err_busy"}})
    )


def _error_frame(failure: AgentFailure) -> str:
    return format_frame(to_json(openai_error(failure)))


def refuse_unsupported(body: ChatCompletionRequest, room: Room, rooms: Iterable[Room], *, has_model: bool) -> None:
    """Raises `RequestFormatError` for a parameter that this room would have to ignore, although the sender would count
    on it.
    """
    _refuse_unsupported_anywhere(body)
    if body.web_search_options is not None and (room.planning or not has_model):
        message = "web_search_options: a search by the provider needs a configured model and a room that does not plan."
        raise RequestFormatError(message, "web_search_options", "unsupported_parameter")
    if body.tool_choice not in (None, "none", "auto"):
        if room.planning:
            plain = ", ".join(repr(other.id) for other in rooms if not other.planning)
            message = f"tool_choice: the room {room.id!r} plans with its own tools; the client's reach the model in "
            raise RequestFormatError(message + f"{plain}.", "tool_choice", "unsupported_parameter")
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
    """Returns the names of the fields that have a value and no effect, sorted; at most `MAX_IGNORED_NAMES` of them."""
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
    """Returns the names of an object's unknown fields that have a value."""
    unknown = given.model_extra
    if not unknown:
        return set()
    return {
        f"{prefix}{name[:MAX_IGNORED_NAME_CHARS]}"
        for name, value in unknown.items()
        if value not in _UNSET and not (isinstance(given, WireMessage) and name in _ANSWER_FIELDS)
    }


def to_agent_request(
    body: ChatCompletionRequest,
    max_messages: int,
    chat_id: str | None = None,
    *,
    plain: bool = False,
    messages: Sequence[ChatMessage] | None = None,
) -> AgentRequest:
    """Returns the wire request as an `AgentRequest`. Raises `RequestFormatError` naming the parameter.

    `plain` is for a room that passes the conversation to its model: then no message has to be the request. `messages`
    replaces those of the body.
    """
    if messages is None:
        messages = [to_chat_message(message, index) for index, message in enumerate(body.messages)]
    if len(messages) > max_messages:
        message = f"At most {max_messages:,} messages are accepted (AGENT_MAX_MESSAGES)."
        raise RequestFormatError(message, "messages", "array_above_max_length")
    last = _prompt_of(messages)
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
        room=body.model,
        prompt_name=prompt.name,
        messages=(*messages[:last], *messages[last + 1 :]),
        prompt_position=last,  # Messages after the last user message, such as a tool's result, stay after it.
        metadata=metadata,
        client_tools=() if body.tool_choice == "none" else tuple(body.tools or ()),
        temperature=body.temperature,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        options=_model_options(body, plain=plain),
    )


def _prompt_of(messages: Sequence[ChatMessage]) -> int | None:
    """Returns the index of the message that is the request: the last of a user, else the last instructions."""
    for roles in (("user",), ("system", "developer")):
        for index in reversed(range(len(messages))):
            if messages[index].role in roles:
                return index
    return None


def _model_options(body: ChatCompletionRequest, *, plain: bool) -> JsonObject:
    """Returns the parameters for the model that writes the answer."""
    sent = body.model_dump(include=_PASSED_PARAMETERS, exclude_none=True)
    if body.max_completion_tokens is not None:  # Under the name that the caller chose: some models refuse the other.
        sent["max_completion_tokens"] = body.max_completion_tokens
    if body.response_format is not None and body.response_format.get("type") != "text":
        sent["response_format"] = body.response_format
    if body.tools and body.tool_choice not in (None, "none", "auto"):
        sent["tool_choice"] = body.tool_choice
    if body.tools and body.parallel_tool_calls is not None and plain:  # OpenAI refuses it without tools.
        sent["parallel_tool_calls"] = body.parallel_tool_calls
    return sent


def to_chat_message(message: WireMessage, index: int) -> ChatMessage:
    """Returns a message of the wire as a `ChatMessage`. Raises `RequestFormatError`."""
    texts: list[str] = []
    images: list[str] = []
    if message.content is None and message.refusal is not None:
        texts.append(message.refusal)
    elif isinstance(message.content, str):
        texts.append(message.content)
    elif message.content == []:
        where = f"messages[{index}].content"
        raise RequestFormatError(f"Invalid '{where}': empty array. Expected at least 1 item.", where, "empty_array")
    elif message.content is not None:
        for part_index, part in enumerate(message.content):
            _add_part(part, f"messages[{index}].content[{part_index}]", texts, images)
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
        tool_calls=tuple(message.tool_calls or ()),
        tool_call_id=message.tool_call_id,
        name=message.name,
        provider_fields=message.model_dump(include=set(PROVIDER_FIELDS), exclude_none=True),
    )


def _add_part(part: ContentPart, where: str, texts: list[str], images: list[str]) -> None:
    if part.type in ("text", "input_text", "output_text", "refusal"):
        texts.append(part.text or part.refusal or "")
    elif part.type == "image_url" and part.image_url is not None:
        images.append(part.image_url.url)
    else:
        raise RequestFormatError(f"Content of type '{part.type}' is not supported.", f"{where}.type", "invalid_value")


def _to_model_card(room: Room) -> ModelCard:
    return ModelCard(id=room.id, name=room.name or room.id, description=room.description, owned_by=room.owner)
