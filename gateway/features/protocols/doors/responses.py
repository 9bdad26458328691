"""`/v1/responses`: OpenAI's Responses API. A response is a view of a run; the journal stores nothing else for it.

`previous_response_id` names a run of the same owner; its messages and its answer precede the input. What a run waits
for is an `mcp_approval_request`; the decision continues the run, as a response of its own.
"""

import contextlib
import json
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic_core import to_json

from agent.core.errors import ConflictError, NotFoundError
from agent.core.events import RunWaiting
from agent.core.failures import AgentFailure
from agent.core.models import ENDED_STATUSES, ChatMessage, JsonObject
from agent.core.models.words import read_stored_role
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.run_context.token_estimates import estimate_input_tokens
from agent.runs.intake_requests import ApprovalReplies, ApprovalText, ChatRequest
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.dependencies import CallerStream, CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.early_failure import raise_early_failure
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.item_pages import ItemPage, cut_page
from gateway.doors.json_body import OpenAIRoute
from gateway.doors.openai import OPENAI_ERRORS
from gateway.features.protocols.doors.response_input import read_approval_replies
from gateway.features.protocols.doors.response_requests import (
    ResponsesRequest,
    build_wire_request,
    refuse_unsupported_response,
    to_run_request,
)
from gateway.features.protocols.doors.stored_responses import StoredResponse, load_response, resolve_references
from gateway.features.protocols.render.responses import ResponseProjection, cut_frames
from gateway.render.deferred_response import DeferredResponse
from gateway.render.errors import RequestFormatError, build_openai_error
from gateway.render.sse import format_frame

router = APIRouter(tags=["OpenAI"], route_class=OpenAIRoute, dependencies=[require_scope("chat")])

MAX_NUMBER = 2**53


@router.post("/v1/responses", responses={**OPENAI_ERRORS, **STREAM}, response_model=None)
async def create_response(
    body: ResponsesRequest, http: Request, stepgate: Gateway, caller: CurrentCaller, stream: CallerStream
) -> Response:
    """Execute a request, or decide on what an earlier response waits for."""
    room = stepgate.rooms.get(body.model, caller.owner)
    refuse_unsupported_response(body)
    with stream.hold_slot(body.stream):
        request = await _build_request(body, stepgate, caller)
        is_plain = not room.planning and room.skill is None and isinstance(request, ChatRequest)
        try:
            run = await accept_run(http, stepgate, caller, request, is_repeatable=is_plain, webhook=body.webhook)
        except ConflictError as error:
            if isinstance(request, ChatRequest):
                raise
            raise build_approval_decided_error() from error  # not a 409, which SDKs repeat
        start = await _find_start(stepgate, run) if not isinstance(request, ChatRequest) or run.last_seq else 0
        headers = {RUN_ID_HEADER: run.run_id}
        if body.stream:
            await raise_early_failure(stepgate.service, run, shows_work=not is_plain)
            frames = _stream_frames(stepgate, run.run_id, run.owner, start, after=-1)
            return stream.build_response(frames, _build_error_frame, headers)
    if body.background:
        events = await stepgate.service.read_events(run.run_id, owner=run.owner)
        return _to_response(StoredResponse(run.run_id, start, events), headers)
    return DeferredResponse(partial(_respond, stepgate, run, start))


@router.post("/v1/responses/input_tokens", responses=OPENAI_ERRORS)
async def count_input_tokens(body: ResponsesRequest, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Estimate the tokens of a request from its characters, with the conversation before it. Nothing is executed."""
    refuse_unsupported_response(body)
    request = await _build_request(body, stepgate, caller)
    if not isinstance(request, ChatRequest):
        message = "input: a decision on an approval is not sent to a model."
        raise RequestFormatError(message, "input", "invalid_value")
    return {"object": "response.input_tokens", "input_tokens": estimate_input_tokens(request.request)}


@router.get("/v1/responses/{response_id}", responses={**OPENAI_ERRORS, **STREAM}, response_model=None)
async def get_response(
    response_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    events: CallerStream,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None,
) -> Response:
    """Return a response as far as it is, or stream it from any event on."""
    response = await load_response(stepgate, caller, response_id)
    if not stream:
        if starting_after is not None:
            message = "starting_after: only a stream (stream=true) can start after an event."
            raise RequestFormatError(message, "starting_after", "invalid_value")
        return _to_response(response)
    with events.hold_slot():
        after = -1 if starting_after is None else starting_after
        frames = _stream_frames(stepgate, response.run_id, caller.owner, response.start, after=after)
        return events.build_response(frames, _build_error_frame, {RUN_ID_HEADER: response.run_id})


@router.delete("/v1/responses/{response_id}", responses=OPENAI_ERRORS)
async def delete_response(response_id: str, stepgate: Gateway, caller: CurrentCaller) -> dict[str, Any]:
    """Delete a finished response with its run: the log, the trace and the answer."""
    response = await load_response(stepgate, caller, response_id)
    try:
        await stepgate.owners.delete_run(response.run_id, owner=caller.owner, by=caller.principal.name)
    except ConflictError as error:
        raise RequestFormatError(error.message, "response_id", "response_in_progress") from error
    return {"id": response_id, "object": "response", "deleted": True}


@router.post("/v1/responses/{response_id}/cancel", responses=OPENAI_ERRORS, response_model=None)
async def cancel_response(response_id: str, http: Request, stepgate: Gateway, caller: CurrentCaller) -> Response:
    """Cancel a response; returns it with what is known by then. A cancelled one may be cancelled again."""
    response = await load_response(stepgate, caller, response_id)
    row = await stepgate.service.get_run(response.run_id, owner=caller.owner)
    if row.status in ENDED_STATUSES and row.status != "cancelled":
        message = f"Cannot cancel a response that has ended ({row.status})."
        raise RequestFormatError(message, "response_id", "invalid_value")
    if row.status != "cancelled":
        with contextlib.suppress(ConflictError):  # it has ended meanwhile: the response says how
            await stepgate.service.cancel_run(response.run_id, owner=caller.owner)

    async def respond(request: Request) -> Response:
        ended = stepgate.service.wait_until_end(response.run_id, owner=caller.owner)
        await cancel_on_disconnect(request, ended)
        return _to_response(await load_response(stepgate, caller, response_id))

    return DeferredResponse(respond)


@router.get("/v1/responses/{response_id}/input_items", responses=OPENAI_ERRORS)
async def get_input_items(response_id: str, stepgate: Gateway, caller: CurrentCaller, page: ItemPage) -> dict[str, Any]:
    """List the input items of this response's own request, newest first unless `order` is `asc`."""
    response = await load_response(stepgate, caller, response_id)
    return cut_page(response.input_items, page)


async def _build_request(
    body: ResponsesRequest, stepgate: Stepgate, caller: Caller
) -> ChatRequest | ApprovalReplies | ApprovalText:
    """The request as the intake takes it: a decision on a waiting run, or a new run."""
    items, tainted = await resolve_references(stepgate, caller, body.list_input_items())
    previous = await _load_previous(stepgate, caller, body)
    replies = read_approval_replies(items)
    if replies is not None:
        return await _check_replies(stepgate, caller, body, replies, previous)
    history: list[ChatMessage] = []
    room = stepgate.rooms.get(body.model, caller.owner)
    keeps_history = stepgate.intake.keeps_conversations(room)
    conversation_id = body.conversation_id
    if previous is not None:
        state = fold(previous.run_id, previous.events)
        if state.status == "awaiting_approval":
            return _read_approval_text(body, items, state, previous.list_asked_approvals())
        if not state.is_finished:
            message = f"Previous response with id '{body.previous_response_id}' is still in progress."
            raise RequestFormatError(message, "previous_response_id", "response_in_progress")
        history, tainted = _list_messages(state), tainted or previous.is_tainted
        conversation_id = previous.conversation_id
    elif conversation_id is not None and not keeps_history:
        turns = await stepgate.sessions.list_turns(caller.owner, [conversation_id])
        history = [ChatMessage(role=read_stored_role(turn.role), content=turn.text) for turn in turns]
        tainted = tainted or await stepgate.sessions.is_tainted(caller.owner, conversation_id)
    request = to_run_request(
        body,
        items,
        history,
        room,
        partial(stepgate.rooms.list_visible, caller.owner),
        has_model=stepgate.models.is_configured,
        max_messages=stepgate.settings.max_messages,
    )
    if keeps_history:  # its conversations hold their own messages
        conversation_id = conversation_id or f"conv_{secrets.token_hex(16)}"
        if len(items) == 1 and not body.instructions:
            request = request.model_copy(update={"messages": None, "prompt_position": None})
    follows = previous.run_id if previous is not None else None
    return ChatRequest(
        request, conversation_id, build_wire_request(body, conversation_id), tainted=tainted, follows=follows
    )


async def _load_previous(stepgate: Stepgate, caller: Caller, body: ResponsesRequest) -> StoredResponse | None:
    if body.previous_response_id is None:
        return None
    try:
        return await load_response(stepgate, caller, body.previous_response_id)
    except NotFoundError as error:
        message = f"Previous response with id '{body.previous_response_id[:100]}' not found."
        raise RequestFormatError(message, "previous_response_id", "previous_response_not_found") from error


async def _check_replies(
    stepgate: Stepgate,
    caller: Caller,
    body: ResponsesRequest,
    replies: tuple[str, dict[str, tuple[bool, str]]],
    previous: StoredResponse | None,
) -> ApprovalReplies:
    """Decisions that fit what their run waits for. Raises `RequestFormatError`."""
    run_id, decisions = replies
    unknown = RequestFormatError("input: there is no such approval request.", "input", "invalid_value")
    if previous is not None and previous.run_id != run_id:
        message = "input: the approval request belongs to another response than previous_response_id."
        raise RequestFormatError(message, "input", "invalid_value")
    try:
        events = await stepgate.service.read_events(run_id, owner=caller.owner)
    except NotFoundError as error:
        raise unknown from error
    state = fold(run_id, events)
    if any(approval_id not in {request.approval_id for request in state.approvals} for approval_id in decisions):
        raise unknown
    open_ids = {request.approval_id for request in state.pending_approvals}
    if state.is_finished or not open_ids.issuperset(decisions):
        raise build_approval_decided_error()
    model = state.request.name_room(state.room.id)
    if body.model != model:
        message = f"model: the response that waits is of the model '{model}'."
        raise RequestFormatError(message, "model", "invalid_value")
    return ApprovalReplies(run_id, decisions)


def build_approval_decided_error() -> RequestFormatError:
    """The error for a decision that comes too late."""
    return RequestFormatError("input: the approval request is decided already.", "input", "approval_decided")


def _read_approval_text(
    body: ResponsesRequest, items: Sequence[JsonObject], state: RunState, asked: Sequence[str]
) -> ApprovalText:
    """The user's words on what the previous response has `asked`. What its run asked later has a response of its
    own.
    """
    content = items[-1].get("content") if items[-1].get("role") == "user" else None
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    model = state.request.name_room(state.room.id)
    if len(items) != 1 or not isinstance(content, str) or not content.strip() or body.model != model:
        message = (
            f"input: the response '{body.previous_response_id}' of the model '{model}' waits for approval; "
            "send an mcp_approval_response, or one message with the decision."
        )
        raise RequestFormatError(message, "input", "approval_required")
    still_open = tuple(one.approval_id for one in state.list_open_approvals(time.time()) if one.approval_id in asked)
    if not still_open:
        raise build_approval_decided_error()
    return ApprovalText(state.run_id, content, still_open)


def _list_messages(state: RunState) -> list[ChatMessage]:
    """The conversation of an ended run, with its answer and without its instructions."""
    request = state.request
    messages = list(request.messages or ())
    if request.prompt or request.images:
        position = len(messages) if request.prompt_position is None else request.prompt_position
        prompt = ChatMessage(
            role="user",
            content=request.prompt,
            images=request.images,
            image_lines=request.image_lines,
            name=request.prompt_name,
        )
        messages.insert(position, prompt)
    parameters = state.created.wire_request.get("parameters") if state.created else None
    if isinstance(parameters, dict) and parameters.get("instructions"):
        messages = messages[1:]
    if state.answer is not None:
        answer = state.answer
        messages.append(
            ChatMessage(
                role="assistant",
                content=answer.text,
                tool_calls=answer.tool_calls,
                provider_fields=answer.provider_fields,
            )
        )
    return messages


async def _find_start(stepgate: Stepgate, run: AcceptedRun) -> int:
    """The seq of the wait that the decision has ended."""
    events = await stepgate.service.read_events(run.run_id, owner=run.owner)
    waits = [e.seq for e in events if isinstance(e.body, RunWaiting) and e.seq <= run.last_seq]
    return waits[-1] if waits else 0


async def _respond(stepgate: Stepgate, run: AcceptedRun, start: int, http: Request) -> Response:
    waiting = stepgate.service.wait_until_stopped(run.run_id, owner=run.owner, seen_seq=run.last_seq)
    stopped = await cancel_on_disconnect(http, waiting)
    return _to_response(StoredResponse(run.run_id, start, stopped.events), {RUN_ID_HEADER: run.run_id})


def _to_response(found: StoredResponse, headers: dict[str, str] | None = None) -> Response:
    data = to_json(found.project().build())
    return Response(data, media_type="application/json", headers=headers or {RUN_ID_HEADER: found.run_id})


async def _stream_frames(
    stepgate: Stepgate, run_id: str, owner: str, start: int, *, after: int
) -> AsyncGenerator[str, None]:
    """Yields the frames of a response after the sequence number `after`."""
    projection = ResponseProjection(run_id, start)
    async with contextlib.aclosing(
        stepgate.service.follow_events(run_id, owner=owner, waits=False, seen_seq=start)
    ) as events:
        async for event in events:
            for frame in cut_frames(projection.encode_event(event), after):
                yield _format(frame)
            if projection.is_finished:
                return
    if projection.is_waiting:
        for frame in cut_frames(projection.finish_waiting(), after):
            yield _format(frame)
        return
    message = f"the gateway is stopping; the run continues after the restart: GET /v1/responses/{projection.id}"
    yield _format(
        {"type": "error", "code": "err_busy", "message": message, "param": None, "sequence_number": after + 1}
    )


def _format(frame: JsonObject) -> str:
    return format_frame(json.dumps(frame, ensure_ascii=False), event=str(frame["type"]))


def _build_error_frame(failure: AgentFailure) -> str:
    error = build_openai_error(failure, input_name="input").error
    return _format({
        "type": "error", "code": error.code, "message": error.message, "param": error.param, "sequence_number": 0,
    })  # fmt: skip
