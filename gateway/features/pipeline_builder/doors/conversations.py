"""`/api/v2/agent/conversations`: build a document pipeline in a conversation, and apply it."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from agent.core.errors import AgentError, BadRequestError, StoreError
from agent.core.events import Event, RunWaiting
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from agent.policy.approval import format_approval_question
from agent.runs.run_failed import RunFailedError
from agent.runs.service import AcceptedRun
from gateway.access.dependencies import CallerStream, CurrentCaller, require_scope, require_tool
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS, STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.features.pipeline_builder.doors.conversation_models import (
    ApplyPipelineRequest,
    ApplyResponse,
    ConversationDetailResponse,
    ConversationList,
    ConversationResponse,
    CreateConversationRequest,
    MessageAnswer,
    MessageResponse,
    ResolveUncertainty,
    SendMessageRequest,
    UncertaintyResponse,
    UsageTotals,
)
from gateway.features.pipeline_builder.engine.conversations import MessageRequest
from gateway.features.pipeline_builder.engine.messages import MAX_MESSAGES
from gateway.features.pipeline_builder.engine.records import Conversation, ConversationStatus
from gateway.features.pipeline_builder.engine.run_messages import find_answer
from gateway.features.pipeline_builder.parts import get_conversations
from gateway.features.pipeline_builder.render.conversation import (
    ConversationEncoder,
    build_conversation_frame,
    build_error_object,
    build_uncertainty_object,
    may_change_state,
)
from gateway.render.error_responses import build_error_response

router = APIRouter(
    prefix="/api/v2/agent/conversations",
    tags=["conversations"],
    route_class=JsonRoute,
    dependencies=[require_scope("agent")],
)

MODEL_STATUSES = {"ERR_MODEL_NOT_CONFIGURED": 400, "ERR_MODEL_RATE_LIMIT": 429}
"""For users of a conversation, every other failure of a model is an upstream error."""
MESSAGES_EXPIRED = (
    "The messages have expired: they are stored for a limited time, and no longer than the process or the Redis "
    "server that holds them (with AGENT_REDIS_URL they outlive the gateway). Nothing else is lost: the source "
    "analysis, the pipeline, the uncertainties and the summary are here, and the conversation continues from them."
)
EARLIER_MESSAGES_EXPIRED = (
    f"Earlier messages have expired: the last {MAX_MESSAGES} are stored, and no longer than the process or the Redis "
    "server that holds them (with AGENT_REDIS_URL they outlive the gateway). Their results are in the summary, the "
    "source analysis and the pipeline."
)


@router.post("", status_code=201, responses=ERRORS)
async def create_conversation(
    body: CreateConversationRequest, stepgate: Gateway, caller: CurrentCaller
) -> ConversationResponse:
    """Start a conversation about a source, or from another conversation's pipeline to make another collection
    with it.
    """
    made = await get_conversations(stepgate).create(
        body.source_id, owner=caller.owner, copied_from=body.from_conversation
    )
    return ConversationResponse.model_validate(made)


@router.get("", responses=ERRORS)
async def list_conversations(
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    status: ConversationStatus | None = None,
    *,
    archived: bool = False,
) -> ConversationList:
    """List conversations."""
    conversations, store = get_conversations(stepgate), get_conversations(stepgate).builder.store
    last = await conversations.builder.get(before, caller.owner) if before is not None else None
    newest = await conversations.list_newest(caller.owner, limit=limit, before=last, status=status, archived=archived)
    return ConversationList(
        data=ConversationResponse.from_records(newest),
        next=newest[-1].id if len(newest) == limit else None,
        usage=UsageTotals.model_validate(await store.sum_usage(caller.owner)),
    )


@router.get("/{conversation_id}", responses=ERRORS)
async def get_conversation(
    conversation_id: str, stepgate: Gateway, caller: CurrentCaller
) -> ConversationDetailResponse:
    """Return a conversation: state, pipeline, analysis, uncertainties, messages and summary."""
    conversation = await get_conversations(stepgate).get(conversation_id, owner=caller.owner)
    return await _build_detail(stepgate, conversation)


@router.post(
    "/{conversation_id}/messages",
    response_model=MessageAnswer,
    responses={**ERRORS, **STREAM},
)
async def send_message(
    conversation_id: str,
    body: SendMessageRequest,
    http: Request,
    stepgate: Gateway,
    caller: CurrentCaller,
    stream: CallerStream,
) -> Response:
    """Send a message. Streams events `{"type": "text" | "tool" | "subagent" | "uncertainty" | "pipeline" | "error"}` as
    they happen, and `{"type": "done"}` at the end. While a message is being answered, another one gets a 409.
    """
    with stream.hold_slot(_wants_stream(body, http)):
        displayed = tuple(body.approvals) if body.approvals is not None else None
        message = MessageRequest(conversation_id, body.message, displayed)
        sent = await accept_run(http, stepgate, caller, message)
        headers = {RUN_ID_HEADER: sent.run_id}
        if _wants_stream(body, http):
            return stream.build_response(_stream_answer(stepgate, conversation_id, sent), _build_error_frame, headers)
    state = await cancel_on_disconnect(
        http, get_conversations(stepgate).wait_for_run(conversation_id, sent, owner=caller.owner)
    )
    if state.failure is not None:
        code = state.failure.error_code
        status = MODEL_STATUSES.get(code, 502) if code.startswith("ERR_MODEL") else None
        failed = RunFailedError(state.failure)
        return build_error_response(failed, http.url.path, run_started=True, status=status, headers=headers)
    conversation = await get_conversations(stepgate).get(conversation_id, owner=caller.owner)
    uncertainties = await get_conversations(stepgate).builder.store.list_uncertainties(conversation)
    answered = MessageAnswer(
        run_id=sent.run_id,
        status=state.completeness or state.status,
        response=find_answer(state),
        approvals=[request.approval_id for request in state.pending_approvals] if not state.is_finished else [],
        current_pipeline=conversation.pipeline,
        uncertainties=UncertaintyResponse.from_records(uncertainties),
    )
    return Response(answered.model_dump_json(), media_type="application/json", headers=headers)


@router.post(
    "/{conversation_id}/apply", responses=ERRORS, dependencies=[require_scope("ingest"), require_tool("apply_pipeline")]
)
async def apply_pipeline(
    conversation_id: str, body: ApplyPipelineRequest, stepgate: Gateway, caller: CurrentCaller
) -> ApplyResponse:
    """Create the collection and start reading the source into it."""
    try:
        applied = await get_conversations(stepgate).apply(
            conversation_id, body.collection_name, force=body.force, owner=caller.owner, by=caller.name
        )
    except BadRequestError as error:
        if error.details.get("param") == "collection":  # the name that this door uses
            error.details["param"] = "collection_name"
        raise
    return ApplyResponse(
        collection_id=body.collection_name,
        collection_name=body.collection_name,
        status="indexing",
        job_id=applied.job_id,
    )


@router.post("/{conversation_id}/abandon", responses=ERRORS)
async def abandon_conversation(conversation_id: str, stepgate: Gateway, caller: CurrentCaller) -> ConversationResponse:
    """End a conversation without applying anything."""
    return ConversationResponse.model_validate(
        await get_conversations(stepgate).abandon(conversation_id, owner=caller.owner, by=caller.name)
    )


@router.post("/{conversation_id}/uncertainties/{uncertainty_id}/resolve", responses=ERRORS)
async def resolve_uncertainty(
    conversation_id: str, uncertainty_id: str, body: ResolveUncertainty, stepgate: Gateway, caller: CurrentCaller
) -> UncertaintyResponse:
    """Resolve an uncertainty; stores who did it and how."""
    conversation = await get_conversations(stepgate).get(conversation_id, owner=caller.owner)
    uncertainty = await get_conversations(stepgate).builder.resolve_uncertainty(
        conversation, uncertainty_id, how=body.resolved_by, by=caller.name, note=body.note
    )
    return UncertaintyResponse.model_validate(uncertainty)


def _wants_stream(body: SendMessageRequest, http: Request) -> bool:
    if body.stream is not None:
        return body.stream
    accepted = http.headers.get("accept", "")
    return "text/event-stream" in accepted or "application/json" not in accepted


async def _stream_answer(stepgate: Stepgate, conversation_id: str, sent: AcceptedRun) -> AsyncGenerator[str, None]:
    """Yields what happens while a message is answered; `done` always comes last."""
    events: list[Event] = []
    frames = _ConversationFrames(stepgate, conversation_id, sent.owner)
    try:
        following = stepgate.service.follow_events(sent.run_id, owner=sent.owner, waits=False, seen_seq=sent.last_seq)
        async with contextlib.aclosing(following):
            async for event in following:
                events.append(event)
                if event.seq > sent.last_seq:
                    async for text in frames.build_frames(event):
                        yield text
        state = fold(sent.run_id, events)
        if events and isinstance(events[-1].body, RunWaiting):
            yield build_conversation_frame(frames.encoder.encode_question(state))
        # A client that has read `done` must find the answer in the conversation.
        await get_conversations(stepgate).get(conversation_id, owner=sent.owner)
        status = state.completeness or state.status
    except AgentError as error:
        yield build_conversation_frame(build_error_object(error.to_failure()))
        status = "failed"
    yield build_conversation_frame({"type": "done", "run_id": sent.run_id, "status": status})


def _build_error_frame(failure: AgentFailure) -> str:
    return build_conversation_frame(build_error_object(failure))


class _ConversationFrames:
    """The frames of one stream: each uncertainty once, a pipeline when it differs from the last one sent."""

    def __init__(self, stepgate: Stepgate, conversation_id: str, owner: str) -> None:
        self.encoder = ConversationEncoder()
        self._stepgate = stepgate
        self._id = conversation_id
        self._owner = owner
        self._uncertainties: set[tuple[str, bool]] = set()
        self._pipeline: JsonObject | None = None

    async def build_frames(self, event: Event) -> AsyncIterator[str]:
        """Yields the frames of an event, then those of what the conversation has stored since."""
        for body in self.encoder.encode(event):
            yield build_conversation_frame(body)
        if not may_change_state(event):
            return
        conversation = await get_conversations(self._stepgate).builder.get(self._id, self._owner)
        for uncertainty in await get_conversations(self._stepgate).builder.store.list_uncertainties(conversation):
            if (uncertainty.id, uncertainty.resolved) not in self._uncertainties:
                self._uncertainties.add((uncertainty.id, uncertainty.resolved))
                yield build_conversation_frame(build_uncertainty_object(uncertainty))
        if conversation.pipeline is not None and conversation.pipeline != self._pipeline:
            self._pipeline = conversation.pipeline
            yield build_conversation_frame({"type": "pipeline", "pipeline": conversation.pipeline})


async def _build_detail(stepgate: Stepgate, conversation: Conversation) -> ConversationDetailResponse:
    try:
        messages = await get_conversations(stepgate).list_messages(conversation)
    except StoreError as error:  # the rest is in the store and useful without them
        messages, note = [], error.message
    else:
        answers = sum(one.role == "assistant" for one in messages)
        missing = EARLIER_MESSAGES_EXPIRED if messages else MESSAGES_EXPIRED
        note = missing if answers < conversation.turns or (conversation.run_id and not messages) else ""
    uncertainties = await get_conversations(stepgate).builder.store.list_uncertainties(conversation)
    waiting = await get_conversations(stepgate).get_waiting_state(conversation)
    return ConversationDetailResponse(
        **ConversationResponse.model_validate(conversation).model_dump(),
        current_pipeline=conversation.pipeline,
        source_analysis=conversation.analysis,
        validation=conversation.validation,
        uncertainties=UncertaintyResponse.from_records(uncertainties),
        messages=MessageResponse.from_records(messages),
        messages_note=note,
        question=format_approval_question(waiting) if waiting is not None else "",
        approvals=[request.approval_id for request in waiting.pending_approvals] if waiting is not None else [],
        summary=conversation.summary,
        usage=UsageTotals.model_validate(conversation.usage),
        applied=conversation.applied,
        job_id=conversation.job_id,
        run_id=conversation.run_id,
    )
