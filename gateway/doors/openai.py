"""`/v1/chat/completions` and `/v1/models`: an OpenAI endpoint whose models are the rooms.

No parameter is dropped without a word. A parameter goes to the model that writes the answer, or the request is refused
because its sender would count on it, or its name is in the answer's `stepgate.runtime.ignored_parameters`: see
`openai_messages`. What clients may send is in `openai_wire`.
"""

import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from agent.core.events import RunCreated, RunFailed, RunWaiting
from agent.core.failures import AgentFailure
from agent.core.models import MODEL_MARK, DeferredModel
from agent.runs.intake_requests import ChatRequest, HiddenRequest
from agent.runs.service import AcceptedRun
from gateway.access.dependencies import CurrentCaller, get_caller, get_event_stream, get_gateway, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.early_failure import raise_early_failure
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect, notify_on_disconnect
from gateway.doors.json_body import OpenAIRoute
from gateway.doors.openai_messages import list_ignored, refuse_unsupported, to_agent_request
from gateway.doors.openai_wire import ChatCompletionRequest
from gateway.doors.openwebui import (
    cancel_after_disconnect,
    is_background_prompt,
    is_open_webui,
    remove_client_additions,
)
from gateway.render.deferred_response import DeferredResponse
from gateway.render.error_responses import ClientDisconnectedError
from gateway.render.errors import OpenAIErrorBody, build_openai_error, to_json
from gateway.render.openai import OpenAIChunks, build_completion_body
from gateway.render.sse import format_frame

router = APIRouter(tags=["OpenAI"], route_class=OpenAIRoute, dependencies=[require_scope("chat")])

CHAT_ID_CHARS = 200
DONE_FRAME = "data: [DONE]\n\n"


class ModelCard(DeferredModel):
    """A room in the form of an OpenAI model, or a room with one of the models that may be chosen in it."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "stepgate"
    name: str = ""
    description: str = ""
    suggestions: list[str] = Field(default=[], description="requests that a client may offer as a start")
    room: str = Field(default="", description="the room's id")
    model: str | None = Field(
        default=None, description="the model chosen by this id, `room@model`; null: the room's own"
    )
    vision: bool = Field(default=False, description="whether pictures are sent to the model")


class ModelList(DeferredModel):
    """All rooms, then each with the models that may be chosen in it, where there is a choice."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


OPENAI_ERRORS: dict[int | str, dict[str, Any]] = {
    # Without "default" FastAPI would document a 422 in its own shape.
    status: {"model": OpenAIErrorBody, "description": "OpenAI's error object"}
    for status in (400, 404, 413, 415, 429, 500, 502, 503, 504, "default")
}


# Before the other routes: a request is matched with each one until its own.
@router.post("/v1/chat/completions", responses={**OPENAI_ERRORS, **STREAM}, response_model=None)
async def chat_completions(body: ChatCompletionRequest, http: Request) -> Response:
    """Execute the last user message; the messages before it are the context."""
    stepgate: Stepgate = get_gateway(http)
    caller = await get_caller(http)
    room = stepgate.rooms.get(body.model, caller.owner)
    list_rooms = partial(stepgate.rooms.list_visible, caller.owner)
    refuse_unsupported(body, room, list_rooms, has_model=stepgate.models.is_configured)
    is_plain = not room.planning and room.skill is None
    header_id = http.headers.get("x-openwebui-chat-id")
    request = remove_client_additions(to_agent_request(body, stepgate.settings.max_messages, header_id, plain=is_plain))
    is_background = is_background_prompt(request.prompt)
    chat_id = request.metadata.get("chat_id")
    known_id = chat_id[:CHAT_ID_CHARS] if isinstance(chat_id, str) and chat_id else None
    accepted = HiddenRequest(request) if is_background else ChatRequest(request, known_id)
    ignored = list_ignored(body)
    # A room that neither plans nor runs a skill has no side effects.
    accept = partial(accept_run, http, stepgate, caller, accepted, is_repeatable=is_plain)
    if not body.stream:
        return DeferredResponse(
            partial(_respond, stepgate, await accept(), is_background=is_background, ignored=ignored)
        )
    stream = await get_event_stream(http)
    with stream.hold_slot():
        run = await accept()
        rich = not is_background and is_open_webui(http.headers, body.tools or (), stepgate.settings.open_webui)
        include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        chunks = OpenAIChunks(run.run_id, body.model, include_usage=include_usage, rich=rich, ignored=ignored)
        await raise_early_failure(stepgate.service, run, shows_work=rich)
        frames = _stream_chunks(stepgate, run, chunks)
        if rich and "idempotency-key" not in http.headers:
            frames = notify_on_disconnect(frames, partial(cancel_after_disconnect, stepgate.service, run))
        return stream.build_response(frames, _build_error_frame, {RUN_ID_HEADER: run.run_id})


@router.get("/v1/models/", include_in_schema=False)
@router.get("/v1/models", responses=OPENAI_ERRORS)
async def list_models(stepgate: Gateway, caller: CurrentCaller) -> ModelList:
    """List the rooms, each as a model, and as `room@model` with every model that may be chosen in it."""
    rooms = stepgate.rooms.list_visible(caller.owner)
    names = [room.id for room in rooms]
    names += [f"{room.id}{MODEL_MARK}{model}" for room in rooms for model in stepgate.rooms.list_choices(room)]
    return ModelList(data=[_build_model_card(stepgate, name, caller.owner) for name in names])


# A model's name may hold slashes.
@router.get("/v1/models/{model:path}", responses=OPENAI_ERRORS)
async def get_model(model: str, stepgate: Gateway, caller: CurrentCaller) -> ModelCard:
    """Return one room, or one room with a model."""
    return _build_model_card(stepgate, model, caller.owner)


async def _respond(
    stepgate: Stepgate, run: AcceptedRun, http: Request, *, is_background: bool, ignored: Sequence[str]
) -> Response:
    try:
        stopped = await cancel_on_disconnect(
            http, stepgate.service.wait_until_stopped(run.run_id, owner=run.owner, seen_seq=run.last_seq)
        )
    except ClientDisconnectedError:
        if is_background:  # No list shows this run, so nobody would see its result.
            await stepgate.service.cancel_run(run.run_id, owner=run.owner, reason="the caller disconnected")
        raise
    data = build_completion_body(stopped.events, stopped.state, ignored)
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
                yield _build_error_frame(event.body.failure)
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


def _build_error_frame(failure: AgentFailure) -> str:
    return format_frame(to_json(build_openai_error(failure)))


def _build_model_card(stepgate: Stepgate, model_id: str, owner: str | None) -> ModelCard:
    room, model = stepgate.rooms.get(model_id, owner), model_id.partition(MODEL_MARK)[2] or None
    name = room.name or room.id
    return ModelCard(
        id=room.id if model is None else f"{room.id}{MODEL_MARK}{model}",
        name=name if model is None else f"{name} ({model})",
        description=room.description,
        owned_by=room.owner,
        suggestions=list(room.suggestions) if model is None else [],
        room=room.id,
        model=model,
        vision=stepgate.models.sees_pictures(room),
    )
