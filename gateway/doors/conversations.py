"""`/api/v2/agent/conversations`: a pipeline is built by talking, and applied."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from agent.builder.conversations import Sent
from agent.builder.from_log import answer_of
from agent.builder.messages import KEPT
from agent.builder.records import Conversation, ConversationStatus
from agent.core.errors import AgentError, AgentFailure, BadRequestError, StoreError
from agent.core.events import Event, RunWaiting
from agent.core.fold import fold
from agent.core.models import JsonObject
from agent.core.service import RunFailedError
from gateway.auth import By, Stream, requires
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS, STREAM
from gateway.doors.attendance import while_heard
from gateway.doors.body import JsonRoute
from gateway.doors.conversation_shapes import (
    Answered,
    Applied,
    ApplyPipeline,
    ConversationDetail,
    ConversationItem,
    ConversationList,
    CreateConversation,
    ResolveUncertainty,
    SendMessage,
    UncertaintyItem,
    doubt_item,
    item_of,
    message_item,
    usage_of,
)
from gateway.doors.wiring import Gateway
from gateway.errors import error_response
from gateway.render.conversation import Teller, changed_state, conversation_frame, doubt_object, error_object

router = APIRouter(
    prefix="/api/v2/agent/conversations",
    tags=["conversations"],
    route_class=JsonRoute,
    dependencies=[requires("agent")],
)

EXPIRED = (
    "The messages are gone: they are kept for a while after the last one, and no longer than the process or the Redis "
    "server that holds them (AGENT_REDIS_URL lets them outlive the gateway). Nothing else is lost: the source "
    "analysis, the pipeline, the uncertainties and the summary are here, and the conversation goes on from them."
)
EARLIER = (
    f"Earlier messages are gone: the last {KEPT} are kept, and no longer than the process or the Redis server that "
    "holds them (AGENT_REDIS_URL lets them outlive the gateway). What they came to is in the summary, the source "
    "analysis and the pipeline."
)


@router.post("", status_code=201, responses=ERRORS)
async def create_conversation(body: CreateConversation, stepgate: Gateway, caller: By) -> ConversationItem:
    """Begin a conversation about a source; or from another one's pipeline, to make another collection of it."""
    made = await stepgate.conversations.create(body.source_id, owner=caller.owner, begun_from=body.from_conversation)
    return item_of(made)


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
        data=[item_of(one) for one in found],
        next=found[-1].id if len(found) == limit else None,
        usage=usage_of(await store.usage(caller.owner)),
    )


@router.get("/{conversation_id}", responses=ERRORS)
async def get_conversation(conversation_id: str, stepgate: Gateway, caller: By) -> ConversationDetail:
    """A conversation: its state, pipeline, analysis, uncertainties, messages and summary."""
    conversation = await stepgate.conversations.get(conversation_id, owner=caller.owner)
    return await _detail(stepgate, conversation)


@router.post(
    "/{conversation_id}/messages",
    response_model=Answered,
    responses={**ERRORS, **STREAM},
)
async def send_message(
    conversation_id: str, body: SendMessage, http: Request, stepgate: Gateway, caller: By, stream: Stream
) -> Response:
    """Say something. Events `{"type": "text" | "tool" | "subagent" | "uncertainty" | "pipeline" | "error"}` follow as
    they happen, and `{"type": "done"}` at the end. While a message is being answered, another one is a 409."""
    with stream.taken(_streams(body, http)):
        sent = await stepgate.conversations.send(
            conversation_id,
            body.message,
            principal=caller.principal,
            may_approve=caller.key is None or caller.key.allows("approve"),
        )
        http.state.run_started = True
        headers = {"x-stepgate-run-id": sent.run_id}
        if _streams(body, http):
            return stream.response(_stream(stepgate, conversation_id, caller.owner, sent), _failed, headers)
    state = await while_heard(http, stepgate.conversations.finished(conversation_id, sent, owner=caller.owner))
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
        uncertainties=[doubt_item(one) for one in doubts],
    )
    return Response(answered.model_dump_json(), media_type="application/json", headers=headers)


@router.post("/{conversation_id}/apply", responses=ERRORS, dependencies=[requires("ingest")])
async def apply_pipeline(conversation_id: str, body: ApplyPipeline, stepgate: Gateway, caller: By) -> Applied:
    """Make the collection and start reading the source into it."""
    try:
        applied = await stepgate.conversations.apply(
            conversation_id, body.collection_name, force=body.force, owner=caller.owner, by=caller.name
        )
    except BadRequestError as error:
        if error.details.get("param") == "collection":  # as other doors call it
            error.details["param"] = "collection_name"
        raise
    return Applied(
        collection_id=body.collection_name,
        collection_name=body.collection_name,
        status="indexing",
        job_id=applied.job_id,
    )


@router.post("/{conversation_id}/abandon", responses=ERRORS)
async def abandon_conversation(conversation_id: str, stepgate: Gateway, caller: By) -> ConversationItem:
    """End a conversation without applying anything."""
    return item_of(await stepgate.conversations.abandon(conversation_id, owner=caller.owner, by=caller.name))


@router.post("/{conversation_id}/uncertainties/{uncertainty_id}/resolve", responses=ERRORS)
async def resolve_uncertainty(
    conversation_id: str, uncertainty_id: str, body: ResolveUncertainty, stepgate: Gateway, caller: By
) -> UncertaintyItem:
    """Settle a doubt; who did it and how is kept."""
    conversation = await stepgate.conversations.get(conversation_id, owner=caller.owner)
    doubt = await stepgate.conversations.builder.resolve(
        conversation, uncertainty_id, how=body.resolved_by, by=caller.name, note=body.note
    )
    return doubt_item(doubt)


def _streams(body: SendMessage, http: Request) -> bool:
    if body.stream is not None:
        return body.stream
    accepted = http.headers.get("accept", "")
    return "text/event-stream" in accepted or "application/json" not in accepted


async def _stream(stepgate: Stepgate, conversation_id: str, owner: str, sent: Sent) -> AsyncGenerator[str, None]:
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


def _failed(failure: AgentFailure) -> str:
    return conversation_frame(error_object(failure))


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
    try:
        messages = await stepgate.conversations.messages(conversation)
    except StoreError as error:  # the rest is in the store, and of use without them
        messages, note = [], error.message
    else:
        answers = sum(one.role == "assistant" for one in messages)
        missing = EARLIER if messages else EXPIRED
        note = missing if answers < conversation.turns or (conversation.run_id and not messages) else ""
    doubts = await stepgate.conversations.builder.store.doubts(conversation)
    return ConversationDetail(
        **item_of(conversation).model_dump(),
        current_pipeline=conversation.pipeline,
        source_analysis=conversation.analysis,
        validation=conversation.validation,
        uncertainties=[doubt_item(one) for one in doubts],
        messages=[message_item(one) for one in messages],
        messages_note=note,
        question=await stepgate.conversations.question(conversation),
        summary=conversation.summary,
        usage=usage_of(conversation.usage),
        applied=conversation.applied,
        job_id=conversation.job_id,
        run_id=conversation.run_id,
    )
