"""`/v1/chat/completions` and `/v1/models`: a real OpenAI endpoint; a room is a model."""

import contextlib
import json
from collections.abc import AsyncGenerator, Iterable
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.core.errors import AgentFailure
from agent.core.events import RunCreated, RunFailed, RunWaiting
from agent.core.models import AgentRequest, ChatMessage, JsonObject, Room
from gateway.auth import By, Stream, requires
from gateway.awaited import Awaited
from gateway.bootstrap import Stepgate
from gateway.doors.agent import STREAM
from gateway.doors.attendance import told_of_end, while_heard
from gateway.doors.beginning import begun_in_chat
from gateway.doors.body import JsonRoute
from gateway.doors.first_byte import fails_at_once
from gateway.doors.openwebui import as_asked, is_background, is_open_webui, stopped
from gateway.doors.wiring import Gateway
from gateway.errors import ClientGoneError, WireError
from gateway.idempotency import begun_once
from gateway.render.errors import OpenAIErrorBody, openai_error, to_json
from gateway.render.openai import OpenAIChunks, completion_body
from gateway.sse import frame

router = APIRouter(tags=["OpenAI"], route_class=JsonRoute, dependencies=[requires("chat")])

_PASSED = {
    "top_p", "presence_penalty", "frequency_penalty", "seed", "stop", "reasoning_effort", "parallel_tool_calls"
}  # fmt: skip
DONE = "data: [DONE]\n\n"


class WireModel(BaseModel):
    """What clients send: fields we know are checked, by their JSON types; others are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


class ImageUrl(WireModel):
    """An image by URL or data URL."""

    url: str = Field(max_length=20_000_000)


class ContentPart(WireModel):
    """A part of a message."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None


class WireMessage(WireModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[JsonObject] | None = None
    tool_call_id: str | None = None


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
    parallel_tool_calls: bool | None = None
    tools: list[JsonObject] | None = None
    tool_choice: Literal["none", "auto", "required"] | JsonObject | None = None
    response_format: JsonObject | None = None
    metadata: JsonObject | None = None
    user: str | None = None


class ModelCard(BaseModel):
    """A room as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "stepgate"
    name: str = ""
    description: str = ""


class ModelList(BaseModel):
    """Every room."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


_ERRORS: dict[int | str, dict[str, Any]] = {
    # Without the default FastAPI would promise a 422 in a shape of its own.
    status: {"model": OpenAIErrorBody, "description": "OpenAI's error object"}
    for status in (400, 404, 413, 415, 429, 500, 502, 503, 504, "default")
}


@router.get("/v1/models", responses=_ERRORS)
async def list_models(stepgate: Gateway) -> ModelList:
    """The rooms, each as a model."""
    return ModelList(data=[_card(room) for room in stepgate.rooms])


@router.get("/v1/models/{model}", responses=_ERRORS)
async def get_model(model: str, stepgate: Gateway) -> ModelCard:
    """One room."""
    return _card(stepgate.rooms.get(model))


@router.post("/v1/chat/completions", responses={**_ERRORS, **STREAM}, response_model=None)
async def chat_completions(
    body: ChatCompletionRequest,
    http: Request,
    stepgate: Gateway,
    caller: By,
    stream: Stream,
) -> Response:
    """Carry out the last user message; the messages before it are the context."""
    room = stepgate.rooms.get(body.model)
    refuse_unsupported(body, room, stepgate.rooms, has_model=stepgate.models.configured)
    request = as_asked(to_request(body, stepgate.settings.max_messages, http.headers.get("x-openwebui-chat-id")))
    hidden = is_background(request.prompt)
    with stream.taken(body.stream):
        run_id, heard = await begun_once(
            http, lambda new: begun_in_chat(stepgate, caller, request, hidden=hidden, run_id=new)
        )
        # A plain model has done nothing that a second try would do twice.
        http.state.run_started, http.state.run_id = room.planning or room.skill is not None, run_id
        if not body.stream:
            return Awaited(partial(_whole, stepgate, run_id, caller.owner, heard, hidden=hidden))
        rich = not hidden and is_open_webui(http.headers, body.tools or (), stepgate.settings.open_webui)
        include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        chunks = OpenAIChunks(run_id, body.model, include_usage=include_usage, rich=rich)
        await fails_at_once(stepgate.service, run_id, caller.owner, heard, shows_work=rich)
        frames = _stream(stepgate, run_id, caller.owner, chunks, heard)
        if rich and "idempotency-key" not in http.headers:
            frames = told_of_end(frames, partial(stopped, stepgate.service, run_id, caller.owner))
        return stream.response(frames, _failed, {"x-stepgate-run-id": run_id})


async def _whole(stepgate: Stepgate, run_id: str, owner: str, heard: int, http: Request, *, hidden: bool) -> Response:
    try:
        events = await while_heard(http, stepgate.service.finished(run_id, owner=owner, heard=heard))
    except ClientGoneError:
        if hidden:  # no list shows it: nobody would ever see what it comes to
            await stepgate.service.cancel(run_id, owner=owner, reason="the caller hung up")
        raise
    headers = {"x-stepgate-run-id": run_id}
    return Response(completion_body(events), media_type="application/json", headers=headers)


async def _stream(
    stepgate: Stepgate, run_id: str, owner: str, chunks: OpenAIChunks, heard: int
) -> AsyncGenerator[str, None]:
    """The frames of a run; what happened up to seq `heard` has been shown before. A failure after the 200 is a frame
    of its own, and the stream ends without [DONE]."""
    waiting = False
    async with contextlib.aclosing(stepgate.service.events(run_id, owner=owner, waits=False, heard=heard)) as events:
        async for event in events:
            if isinstance(event.body, RunFailed):
                for data in chunks.failed(event):
                    yield frame(data)
                yield _failed(event.body.failure)
                return
            for data in chunks.frames(event):
                if event.seq > heard or isinstance(event.body, RunCreated):
                    yield frame(data)
            if event.body.terminal:
                yield DONE
                return
            waiting = isinstance(event.body, RunWaiting)
    if waiting:
        for data in chunks.question():
            yield frame(data)
        yield DONE
        return
    for data in chunks.broken_off("The gateway is stopping; the run goes on"):
        yield frame(data)
    message = f"the gateway is stopping; the run goes on after its restart: GET /v1/runs/{run_id}"
    yield frame(json.dumps({"error": {"message": message, "type": "server_error", "param": None, "code": "err_busy"}}))


def _failed(failure: AgentFailure) -> str:
    return frame(to_json(openai_error(failure)))


def refuse_unsupported(body: ChatCompletionRequest, room: Room, rooms: Iterable[Room], *, has_model: bool) -> None:
    """Raise `WireError` for what this room would have to ignore, although the client counts on it."""
    if body.tool_choice not in (None, "none", "auto"):
        if room.planning:
            plain = ", ".join(repr(other.id) for other in rooms if not other.planning)
            message = f"tool_choice: the room {room.id!r} plans with its own tools; the client's reach the model in "
            raise WireError(message + f"{plain}.", "tool_choice", "unsupported_parameter")
        if not body.tools:
            raise WireError("tool_choice is only allowed when 'tools' are given.", "tool_choice", "invalid_value")
    if body.response_format is None or body.response_format.get("type") == "text":
        return
    kind = str(body.response_format.get("type"))[:40]
    if kind not in ("json_object", "json_schema"):
        message = f"response_format: {kind!r} is none of 'text', 'json_object' and 'json_schema'."
        raise WireError(message, "response_format.type", "invalid_value")
    if not has_model:
        message = f"response_format: {kind!r} takes a model, and none is configured (AGENT_MODEL_FAST)."
        raise WireError(message, "response_format", "unsupported_parameter")


def to_request(body: ChatCompletionRequest, max_messages: int, chat_id: str | None = None) -> AgentRequest:
    """The wire request as an `AgentRequest`. Raises `WireError` naming the parameter."""
    if body.n not in (None, 1):
        raise WireError("Only n=1 is supported: a run has one answer.", "n", "unsupported_parameter")
    if len(body.messages) > max_messages:
        told = f"At most {max_messages:,} messages are taken (AGENT_MAX_MESSAGES)."
        raise WireError(told, "messages", "array_above_max_length")
    last = next((i for i in reversed(range(len(body.messages))) if body.messages[i].role == "user"), None)
    if last is None:
        raise WireError("There is no user message; the last one is the request.", "messages", "invalid_value")
    messages = [_message(message, index) for index, message in enumerate(body.messages)]
    metadata = dict(body.metadata or {})
    if chat_id:
        metadata.setdefault("chat_id", chat_id[:200])
    asked = messages[last]
    if not asked.content.strip() and not asked.images and "tool_calls" not in metadata:
        raise WireError("The last user message is empty.", f"messages[{last}].content", "invalid_value")
    return AgentRequest(
        prompt=asked.content,
        images=asked.images,
        room=body.model,
        # What follows the last user message (a tool's result) belongs to the context as well.
        messages=tuple(messages[:last] + messages[last + 1 :]),
        metadata=metadata,
        client_tools=() if body.tool_choice == "none" else tuple(body.tools or ()),
        temperature=body.temperature,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        options=_options(body),
    )


def _options(body: ChatCompletionRequest) -> JsonObject:
    """The parameters that go to the model as they are."""
    sent = body.model_dump(include=_PASSED, exclude_none=True)
    if body.response_format is not None and body.response_format.get("type") != "text":
        sent["response_format"] = body.response_format
    if body.tools and body.tool_choice not in (None, "none", "auto"):
        sent["tool_choice"] = body.tool_choice
    return sent


def _message(message: WireMessage, index: int) -> ChatMessage:
    texts: list[str] = []
    images: list[str] = []
    if isinstance(message.content, str):
        texts.append(message.content)
    elif message.content is not None:
        for part_index, part in enumerate(message.content):
            _add_part(part, f"messages[{index}].content[{part_index}]", texts, images)
    elif message.role in ("user", "system", "developer"):
        raise WireError(
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
    )


def _add_part(part: ContentPart, where: str, texts: list[str], images: list[str]) -> None:
    if part.type in ("text", "input_text", "output_text", "refusal"):
        texts.append(part.text or "")
    elif part.type == "image_url" and part.image_url is not None:
        images.append(part.image_url.url)
    else:
        raise WireError(f"Content of type '{part.type}' is not supported.", f"{where}.type", "invalid_value")


def _card(room: Room) -> ModelCard:
    return ModelCard(id=room.id, name=room.name or room.id, description=room.description, owned_by=room.owner)
