"""`/api/v2/agent/conversations`: a pipeline is built by talking, and applied."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.builder.conversations import Sent
from agent.builder.from_log import answer_of
from agent.builder.messages import ConversationMessage, MessageRole
from agent.builder.records import Conversation, ConversationStatus, Doubt
from agent.core.errors import AgentError, StoreError
from agent.core.events import Event, RunWaiting
from agent.core.fold import fold
from agent.core.models import JsonObject, Usage
from agent.core.service import RunFailedError
from agent.core.subagents import Severity
from gateway.auth import By, requires
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.body import JsonRoute
from gateway.doors.wiring import Gateway
from gateway.errors import error_response
from gateway.render.conversation import Teller, changed_state, conversation_frame, doubt_object, error_object
from gateway.sse import sse_response

router = APIRouter(
    prefix="/api/v2/agent/conversations",
    tags=["conversations"],
    route_class=JsonRoute,
    dependencies=[requires("agent")],
)


class CreateConversation(BaseModel):
    """About which source."""

    model_config = ConfigDict(extra="forbid")

    source_id: str = Field(min_length=1, max_length=200, description="id of a source, see /v1/sources")


class SendMessage(BaseModel):
    """What the user says. `stream` decides between server-sent events and one JSON object; where it is not given, the
    Accept header does, and events are the default."""

    model_config = ConfigDict(extra="forbid")

    message: str
    stream: bool | None = None


class ApplyPipeline(BaseModel):
    """Where to. `force` overrides unresolved blocking uncertainties, which is recorded."""

    model_config = ConfigDict(extra="forbid")

    collection_name: str = Field(min_length=1, max_length=200)
    force: bool = False


class ResolveUncertainty(BaseModel):
    """How it was settled, and why."""

    model_config = ConfigDict(extra="forbid")

    resolved_by: str = Field(default="user_confirmed", min_length=1, max_length=50)
    note: str = Field(default="", max_length=2_000)


class ConversationItem(BaseModel):
    """A conversation in short."""

    id: str
    status: ConversationStatus
    source_id: str | None
    collection_id: str | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


class UsageTotals(BaseModel):
    """Tokens and money; the cost is null where no price is known."""

    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost_usd: float | None


class ConversationList(BaseModel):
    """Conversations, newest first; `next` is what to pass as `before` for older ones. `usage` is that of all of the
    caller's."""

    data: list[ConversationItem]
    next: str | None = None
    usage: UsageTotals


class UncertaintyItem(BaseModel):
    """Something doubtful."""

    id: str
    severity: Severity
    message: str
    context: JsonObject
    origin: str
    resolved: bool
    resolved_by: str | None = None
    resolver: str | None = None
    note: str | None = None
    resolved_at: datetime | None = None


class MessageItem(BaseModel):
    """Something that was said or done."""

    role: MessageRole
    content: str
    timestamp: datetime
    metadata: JsonObject


class ConversationDetail(ConversationItem):
    """A conversation with all that is known. `messages` are empty once they have expired; `messages_note` says why
    they cannot be had otherwise. `run_id` is the run that answers a message now."""

    current_pipeline: JsonObject | None
    source_analysis: JsonObject | None
    validation: JsonObject | None
    uncertainties: list[UncertaintyItem]
    messages: list[MessageItem]
    messages_note: str = ""
    summary: str | None
    usage: UsageTotals
    applied: JsonObject | None
    job_id: str | None
    run_id: str | None


class Applied(BaseModel):
    """What was begun; /v1/jobs/{job_id} tells how far it is."""

    collection_id: str
    collection_name: str
    status: str
    job_id: str | None


class Answered(BaseModel):
    """An answer as one object. `approvals` are the questions it ends with, where it waits for a person."""

    run_id: str
    status: str
    response: str
    approvals: list[str]
    current_pipeline: JsonObject | None
    uncertainties: list[UncertaintyItem]


@router.post("", status_code=201, responses=ERRORS)
async def create_conversation(body: CreateConversation, stepgate: Gateway, caller: By) -> ConversationItem:
    """Begin a conversation about a source."""
    return _item(await stepgate.conversations.create(body.source_id, owner=caller.owner))


@router.get("", responses=ERRORS)
async def list_conversations(
    stepgate: Gateway,
    caller: By,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    status: ConversationStatus | None = None,
    *,
    archived: bool = False,
) -> ConversationList:
    """List conversations."""
    conversations, store = stepgate.conversations, stepgate.conversations.builder.store
    await conversations.archive()
    last = await conversations.builder.get(before, caller.owner) if before is not None else None
    found = await store.newest(caller.owner, limit=limit, before=last, status=status, archived=archived)
    return ConversationList(
        data=[_item(one) for one in found],
        next=found[-1].id if len(found) == limit else None,
        usage=_usage(await store.usage(caller.owner)),
    )


@router.get("/{conversation_id}", responses=ERRORS)
async def get_conversation(conversation_id: str, stepgate: Gateway, caller: By) -> ConversationDetail:
    """A conversation: its state, pipeline, analysis, uncertainties, messages and summary."""
    conversation = await stepgate.conversations.get(conversation_id, owner=caller.owner)
    return await _detail(stepgate, conversation)


@router.post(
    "/{conversation_id}/messages",
    response_model=Answered,
    responses={200: {"content": {"text/event-stream": {}}}, **ERRORS},
)
async def send_message(
    conversation_id: str, body: SendMessage, http: Request, stepgate: Gateway, caller: By
) -> Response:
    """Say something. Events `{"type": "text" | "tool" | "subagent" | "uncertainty" | "pipeline" | "error"}` follow as
    they happen, and `{"type": "done"}` at the end. While a message is being answered, another one is a 409."""
    sent = await stepgate.conversations.send(
        conversation_id,
        body.message,
        owner=caller.owner,
        key=caller.key.id if caller.key else None,
        narrowed=caller.narrowed,
    )
    http.state.run_started = True
    headers = {"x-stepgate-run-id": sent.run_id}
    if _streams(body, http):
        return sse_response(_stream(stepgate, conversation_id, caller.owner, sent), headers)
    state = await stepgate.conversations.finished(conversation_id, sent, owner=caller.owner)
    if state.failure is not None:
        # A model that fails is the provider's fault to those who talk, however it fails.
        code = state.failure.error_code
        status = 502 if code.startswith("ERR_MODEL") and code != "ERR_MODEL_RATE_LIMIT" else None
        failed = RunFailedError(state.failure)
        return error_response(failed, http.url.path, run_started=True, status=status, headers=headers)
    conversation = await stepgate.conversations.get(conversation_id, owner=caller.owner)
    doubts = await stepgate.conversations.builder.store.doubts(conversation)
    answered = Answered(
        run_id=sent.run_id,
        status=state.completeness or state.status,
        response=answer_of(state),
        approvals=[asked.approval_id for asked in state.waiting] if not state.finished else [],
        current_pipeline=conversation.pipeline,
        uncertainties=[_doubt(one) for one in doubts],
    )
    return Response(answered.model_dump_json(), media_type="application/json", headers=headers)


@router.post("/{conversation_id}/apply", responses=ERRORS, dependencies=[requires("ingest")])
async def apply_pipeline(conversation_id: str, body: ApplyPipeline, stepgate: Gateway, caller: By) -> Applied:
    """Make the collection and start reading the source into it."""
    applied = await stepgate.conversations.apply(
        conversation_id, body.collection_name, force=body.force, owner=caller.owner
    )
    return Applied(
        collection_id=body.collection_name,
        collection_name=body.collection_name,
        status="indexing",
        job_id=applied.job_id,
    )


@router.post("/{conversation_id}/abandon", responses=ERRORS)
async def abandon_conversation(conversation_id: str, stepgate: Gateway, caller: By) -> ConversationItem:
    """End a conversation without applying anything."""
    return _item(await stepgate.conversations.abandon(conversation_id, owner=caller.owner))


@router.post("/{conversation_id}/uncertainties/{uncertainty_id}/resolve", responses=ERRORS)
async def resolve_uncertainty(
    conversation_id: str, uncertainty_id: str, body: ResolveUncertainty, stepgate: Gateway, caller: By
) -> UncertaintyItem:
    """Settle a doubt; who did it and how is kept."""
    conversation = await stepgate.conversations.get(conversation_id, owner=caller.owner)
    doubt = await stepgate.conversations.builder.resolve(
        conversation, uncertainty_id, how=body.resolved_by, by=caller.name, note=body.note
    )
    return _doubt(doubt)


def _streams(body: SendMessage, http: Request) -> bool:
    if body.stream is not None:
        return body.stream
    accepted = http.headers.get("accept", "")
    return "text/event-stream" in accepted or "application/json" not in accepted


async def _stream(stepgate: Stepgate, conversation_id: str, owner: str, sent: Sent) -> AsyncIterator[str]:
    """What happens while a message is answered; `done` is always last."""
    events: list[Event] = []
    told = _Told(stepgate, conversation_id, owner)
    try:
        following = stepgate.service.events(sent.run_id, owner=owner, waits=False, heard=sent.heard)
        async with contextlib.aclosing(following):
            async for event in following:
                events.append(event)
                if event.seq > sent.heard:
                    async for text in told.of(event):
                        yield text
        state = fold(sent.run_id, events)
        if events and isinstance(events[-1].body, RunWaiting):
            yield conversation_frame(told.teller.asked(state))
        # Nobody who has read `done` may find the answer missing from the conversation.
        await stepgate.conversations.get(conversation_id, owner=owner)
        status = state.completeness or state.status
    except AgentError as error:
        yield conversation_frame(error_object(error.failure()))
        status = "failed"
    yield conversation_frame({"type": "done", "run_id": sent.run_id, "status": status})


class _Told:
    """What was told of a conversation in one stream: each doubt once, a pipeline when it is another one."""

    def __init__(self, stepgate: Stepgate, conversation_id: str, owner: str) -> None:
        self.teller = Teller()
        self._stepgate = stepgate
        self._id = conversation_id
        self._owner = owner
        self._doubts: set[tuple[str, bool]] = set()
        self._pipeline: JsonObject | None = None

    async def of(self, event: Event) -> AsyncIterator[str]:
        """The frames of an event, and of what the conversation keeps since."""
        for body in self.teller.tell(event):
            yield conversation_frame(body)
        if not changed_state(event):
            return
        conversation = await self._stepgate.conversations.builder.get(self._id, self._owner)
        for doubt in await self._stepgate.conversations.builder.store.doubts(conversation):
            if (doubt.id, doubt.resolved) not in self._doubts:
                self._doubts.add((doubt.id, doubt.resolved))
                yield conversation_frame(doubt_object(doubt))
        if conversation.pipeline is not None and conversation.pipeline != self._pipeline:
            self._pipeline = conversation.pipeline
            yield conversation_frame({"type": "pipeline", "pipeline": conversation.pipeline})


async def _detail(stepgate: Stepgate, conversation: Conversation) -> ConversationDetail:
    note = ""
    try:
        messages = await stepgate.conversations.messages(conversation)
    except StoreError as error:  # the rest is in the store, and of use without them
        messages, note = [], error.message
    doubts = await stepgate.conversations.builder.store.doubts(conversation)
    return ConversationDetail(
        **_item(conversation).model_dump(),
        current_pipeline=conversation.pipeline,
        source_analysis=conversation.analysis,
        validation=conversation.validation,
        uncertainties=[_doubt(one) for one in doubts],
        messages=[_message(one) for one in messages],
        messages_note=note,
        summary=conversation.summary,
        usage=_usage(conversation.usage),
        applied=conversation.applied,
        job_id=conversation.job_id,
        run_id=conversation.run_id,
    )


def _item(conversation: Conversation) -> ConversationItem:
    return ConversationItem(
        id=conversation.id,
        status=conversation.status,
        source_id=conversation.source_id,
        collection_id=conversation.collection,
        created_at=_time(conversation.created),
        updated_at=_time(conversation.updated),
        archived_at=_time(conversation.archived) if conversation.archived is not None else None,
    )


def _doubt(doubt: Doubt) -> UncertaintyItem:
    return UncertaintyItem(
        id=doubt.id,
        severity=doubt.severity,
        message=doubt.message,
        context=doubt.context,
        origin=doubt.origin,
        resolved=doubt.resolved,
        resolved_by=doubt.resolved_by,
        resolver=doubt.resolver,
        note=doubt.note,
        resolved_at=_time(doubt.resolved_at) if doubt.resolved_at is not None else None,
    )


def _message(message: ConversationMessage) -> MessageItem:
    return MessageItem(
        role=message.role,
        content=message.content,
        timestamp=_time(message.timestamp),
        metadata=message.metadata,
    )


def _usage(usage: Usage) -> UsageTotals:
    return UsageTotals(
        model_calls=usage.model_calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        cost_usd=usage.cost_usd,
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
