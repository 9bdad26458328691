"""`POST /v1/completions`: OpenAI's older completions, for clients without chat, in rooms that do not plan."""

import contextlib
import json
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field, JsonValue
from pydantic_core import to_json

from agent.core.events import AnswerDelta, AnswerFinished, AnswerStarted, Event, RunCreated, RunFailed
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject, Room
from agent.core.models.words import BOUNDED
from agent.runs.intake_requests import ChatRequest
from agent.runs.response import build_response
from agent.runs.service import AcceptedRun
from gateway.access.dependencies import CallerStream, CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.early_failure import raise_early_failure
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.json_body import OpenAIRoute
from gateway.doors.openai import DONE_FRAME, OPENAI_ERRORS
from gateway.doors.openai_messages import list_unknown_fields, to_agent_request
from gateway.doors.openai_wire import ChatCompletionRequest, LogitBias, StreamOptions, WireModel
from gateway.render.deferred_response import DeferredResponse
from gateway.render.errors import RequestFormatError, build_openai_error
from gateway.render.errors import to_json as error_to_json
from gateway.render.openai import RESTARTED_NOTE, build_trace, build_usage_body
from gateway.render.sse import format_frame

router = APIRouter(tags=["OpenAI"], route_class=OpenAIRoute, dependencies=[require_scope("chat")])


class CompletionRequest(WireModel):
    """The body of `POST /v1/completions`."""

    model: str = Field(min_length=1)
    prompt: JsonValue = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: LogitBias = None
    seed: int | None = None
    stop: str | Annotated[list[str], BOUNDED] | None = None
    user: str | None = None
    n: int | None = None
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | None = None
    suffix: str | None = None


@router.post("/v1/completions", responses={**OPENAI_ERRORS, **STREAM}, response_model=None)
async def create_completion(
    body: CompletionRequest, http: Request, stepgate: Gateway, caller: CurrentCaller, stream: CallerStream
) -> Response:
    """Answer a prompt with the model of a room that does not plan."""
    room = stepgate.rooms.get(body.model, caller.owner)
    _refuse_unsupported(
        body, room, [other.id for other in stepgate.rooms.list_visible(caller.owner) if _is_plain(other)]
    )
    fields = body.model_dump(
        include=set(CompletionRequest.model_fields) & set(ChatCompletionRequest.model_fields), exclude_none=True
    )
    message = {"role": "user", "content": _read_prompt(body.prompt)}
    chat = ChatCompletionRequest.model_validate({**fields, "messages": [message]})
    request = to_agent_request(chat, stepgate.settings.max_messages, plain=True)
    ignored = sorted(list_unknown_fields("", body))
    with stream.hold_slot(body.stream):
        run = await accept_run(http, stepgate, caller, ChatRequest(request), is_repeatable=True)
        if not body.stream:
            return DeferredResponse(partial(_respond, stepgate, run, ignored))
        await raise_early_failure(stepgate.service, run)
        usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        frames = _stream_frames(stepgate, run, ignored, include_usage=usage)
        return stream.build_response(frames, _build_error_frame, {RUN_ID_HEADER: run.run_id})


def _is_plain(room: Room) -> bool:
    return not room.planning and room.skill is None


def _refuse_unsupported(body: CompletionRequest, room: Room, plain: list[str]) -> None:
    """Raises `RequestFormatError` for a room that plans, and for parameters that no room supports."""
    if not _is_plain(room):
        message = f"model: the room {room.id!r} plans; completions are answered by {', '.join(plain) or 'no room'}, "
        message += "and /v1/chat/completions by all rooms."
        raise RequestFormatError(message, "model", "unsupported_parameter")
    for name, requested, reason in (
        ("n", body.n not in (None, 1), "only n=1 is supported: a run has one answer"),
        ("best_of", body.best_of not in (None, 1), "only best_of=1 is supported: a run has one answer"),
        ("echo", body.echo, "the prompt is not repeated"),
        ("logprobs", body.logprobs is not None, "answers have no token probabilities"),
        ("suffix", body.suffix, "text is not inserted before a suffix"),
    ):
        if requested:
            raise RequestFormatError(f"{name}: {reason}.", name, "unsupported_parameter")


def _read_prompt(given: JsonValue) -> str:
    """The prompt. Raises `RequestFormatError` for tokens and for several prompts."""
    if given is None:
        raise RequestFormatError("Missing required parameter: 'prompt'.", "prompt", "missing_required_parameter")
    prompts = given if isinstance(given, list) else [given]
    if any(isinstance(prompt, int | list) for prompt in prompts):
        message = "prompt: tokens are not accepted, since each model has its own; send text."
        raise RequestFormatError(message, "prompt", "unsupported_parameter")
    if len(prompts) > 1:
        message = "prompt: one prompt is answered by one request."
        raise RequestFormatError(message, "prompt", "unsupported_parameter")
    if not prompts or not isinstance(prompts[0], str):
        raise RequestFormatError("prompt: expected a string.", "prompt", "invalid_type")
    if not prompts[0].strip():
        raise RequestFormatError("prompt: the text is empty.", "prompt", "invalid_value")
    return prompts[0]


class CompletionChunks:
    """Encodes the events of a run as the chunks of a streamed completion."""

    def __init__(self, run_id: str, ignored: list[str], *, include_usage: bool) -> None:
        self._base: JsonObject = {"id": f"cmpl-{run_id}", "object": "text_completion", "created": 0, "model": ""}
        self._ignored = ignored
        self._include_usage = include_usage
        self._events: list[Event] = []
        self._sent = ""

    def encode_event(self, event: Event) -> Iterator[JsonObject]:
        """Yields the chunks that the event adds."""
        self._events.append(event)
        match event.body:
            case RunCreated(request=request, room=room):
                self._base |= {"created": int(event.at), "model": request.name_room(room.id)}
            case AnswerStarted(restarted=True) if self._sent:
                yield self._chunk(RESTARTED_NOTE)
                self._sent = ""
            case AnswerDelta(kind=kind, text=text) if kind != "reasoning":
                self._sent += text
                yield self._chunk(text)
            case AnswerFinished(text=text):
                if not text.startswith(self._sent):
                    yield self._chunk(RESTARTED_NOTE)
                    self._sent = ""
                if rest := text[len(self._sent) :]:
                    yield self._chunk(rest)
            case body if body.terminal:
                yield from self._end()
            case _:
                return

    def build_body(self) -> JsonObject:
        """The whole completion."""
        response = build_response(self._events)
        body = self._chunk(response.response, self._finish_reason())
        return {**body, "usage": build_usage_body(response.metadata["usage"]), "stepgate": self._build_trace()}

    def _end(self) -> Iterator[JsonObject]:
        yield {**self._chunk("", self._finish_reason()), "stepgate": self._build_trace()}
        if self._include_usage:
            usage = build_usage_body(build_response(self._events).metadata["usage"])
            yield {**self._base, "choices": [], "usage": usage}

    def _build_trace(self) -> dict[str, Any]:
        trace_data = build_response(self._events).model_dump(mode="json", include={"steps", "metadata"})
        return build_trace(trace_data["steps"], trace_data["metadata"], self._ignored)

    def _finish_reason(self) -> str:
        answer = next((e.body for e in reversed(self._events) if isinstance(e.body, AnswerFinished)), None)
        return answer.finish_reason if answer is not None and answer.finish_reason != "tool_calls" else "stop"

    def _chunk(self, text: str, finish: str | None = None) -> JsonObject:
        choice: JsonObject = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {**self._base, "choices": [choice]}


async def _respond(stepgate: Stepgate, run: AcceptedRun, ignored: list[str], http: Request) -> Response:
    stopped = await cancel_on_disconnect(http, stepgate.service.wait_until_stopped(run.run_id, owner=run.owner))
    chunks = CompletionChunks(run.run_id, ignored, include_usage=True)
    for event in stopped.events:
        for _ in chunks.encode_event(event):
            pass
    headers = {RUN_ID_HEADER: run.run_id}
    return Response(to_json(chunks.build_body()), media_type="application/json", headers=headers)


async def _stream_frames(
    stepgate: Stepgate, run: AcceptedRun, ignored: list[str], *, include_usage: bool
) -> AsyncGenerator[str, None]:
    chunks = CompletionChunks(run.run_id, ignored, include_usage=include_usage)
    async with contextlib.aclosing(stepgate.service.follow_events(run.run_id, owner=run.owner, waits=False)) as events:
        async for event in events:
            if isinstance(event.body, RunFailed):
                yield _build_error_frame(event.body.failure)
                return
            for chunk in chunks.encode_event(event):
                yield format_frame(json.dumps(chunk, ensure_ascii=False))
            if event.body.terminal:
                yield DONE_FRAME
                return
    message = f"the gateway is stopping; the run continues after the restart: GET /v1/runs/{run.run_id}"
    error = {"message": message, "type": "server_error", "param": None, "code": "err_busy"}
    yield format_frame(json.dumps({"error": error}))


def _build_error_frame(failure: AgentFailure) -> str:
    return format_frame(error_to_json(build_openai_error(failure, input_name="prompt")))
