"""`/v1/conversations` as chats: their list, the messages of their branches, and new messages.

A message of a user begins a run; its answer is the run's. Both have the run's id in theirs. Each message has a
`parent`, the message it follows, and a conversation a `head`, the last message of the branch that goes on. A new
message follows the head, or the `parent` that it names, which begins another branch.
"""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.events import Event, RunCreated
from agent.core.models import ENDED_STATUSES, AgentRequest, JsonObject
from agent.runs.conversation_list import TOP, ListPosition
from agent.runs.conversation_search import MAX_QUERY_CHARS, MessageMatch
from agent.runs.conversation_tree import Branches
from agent.runs.decisions import withdraw_questions
from agent.runs.intake_requests import QuestionAwareRequest
from agent.runs.sessions import build_unknown_conversation_error
from agent.storage.conversation_path import ROOT
from gateway.access.authentication import Caller
from gateway.access.dependencies import CallerStream, CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import accept_run
from gateway.doors.json_body import JsonRoute
from gateway.doors.message_forms import (
    ConversationEntries,
    ConversationEntry,
    ConversationMatch,
    Message,
    MessageList,
    NewHead,
    NewMessage,
    SentMessage,
)
from gateway.doors.openai import OPENAI_ERRORS
from gateway.doors.runs import parse_position
from gateway.render.answer_view import AnswerFrames, build_view
from gateway.render.chat_markdown import format_chat
from gateway.render.native import build_failure_frame

router = APIRouter(
    prefix="/v1/conversations", tags=["conversations"], route_class=JsonRoute, dependencies=[require_scope("chat")]
)

MAX_EXCHANGES: Final = 100
"""Most exchanges of one page of messages."""
RenderMode = Literal["html"]


@router.get("", responses=OPENAI_ERRORS)
async def list_conversations(
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the page before")] = None,
    query: Annotated[
        str,
        Query(max_length=MAX_QUERY_CHARS, description='words of titles and messages; `"a phrase"` is one of them'),
    ] = "",
) -> ConversationEntries:
    """List conversations that were made here, the most recently used first."""
    begin = ListPosition.parse(before) if before else TOP
    newest = await stepgate.conversation_list.list_newest(caller.owner, limit=limit, before=begin, query=query)
    data = [
        ConversationEntry(
            id=one.id,
            title=one.title,
            room=one.room,
            status=one.status,
            open_runs=one.open_runs,
            created_at=datetime.fromtimestamp(one.created_at, UTC),
            updated_at=datetime.fromtimestamp(one.updated_at, UTC),
            match=None if one.match is None else _build_match(one.match),
        )
        for one in newest
    ]
    return ConversationEntries(data=data, next=newest[-1].position.format() if len(newest) == limit else None)


@router.get("/{conversation_id}/messages", responses=OPENAI_ERRORS)
async def list_messages(
    conversation_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=0, le=MAX_EXCHANGES, description="most exchanges; 0: only the head")] = 30,
    before: Annotated[str | None, Query(max_length=250, description="only messages before this one")] = None,
    render: RenderMode | None = None,
) -> MessageList:
    """Return the messages of the branch that the conversation is at."""
    branches = await stepgate.intake.tree.read_branches(caller.owner, conversation_id)
    metadata = await stepgate.client_conversations.get_metadata(caller.owner, conversation_id)
    collection = metadata.get("collection")
    if branches.head is None:
        await stepgate.client_conversations.get(caller.owner, conversation_id)  # 404 for an unknown one
        return MessageList(data=[], head=None, room="", title="", collection=collection)
    line = [one.run_id for one in branches.list_line()]
    end = line.index(_parse_run_id(before)) if before is not None and _parse_run_id(before) in line else len(line)
    excerpt = line[max(0, end - limit) : end]
    messages: list[Message] = []
    model = None
    for run_id in excerpt:
        events = await stepgate.service.read_events(run_id, owner=caller.owner)
        messages += await asyncio.to_thread(_build_messages, events, branches, html=render == "html")
        model = _get_request(events).chosen_model
    first = await stepgate.service.get_run(line[0], owner=caller.owner)
    last = await stepgate.service.get_run(line[-1], owner=caller.owner)
    return MessageList(
        data=messages,
        head=_answer_id(branches.head),
        room=last.room,
        model=model,
        title=metadata.get("title") or first.title,
        collection=collection,
        previous=messages[0].id if messages and excerpt[0] != line[0] else None,
    )


@router.post("/{conversation_id}/messages", status_code=202, responses=OPENAI_ERRORS)
async def send_message(
    conversation_id: str, body: NewMessage, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> SentMessage:
    """Send a message. Answers at once; the answer is written whether anybody follows it or not."""
    request = await _build_request(stepgate, caller, conversation_id, body)
    message = request if body.approvals is None else QuestionAwareRequest(request, tuple(body.approvals))
    accepted = await accept_run(http, stepgate, caller, message)
    if body.withdraw and request.parent is not None:
        await withdraw_questions(stepgate.service, stepgate.intake.tree, request, accepted)
    row = await stepgate.service.get_run(accepted.run_id, owner=caller.owner)
    branches = await stepgate.intake.tree.read_branches(caller.owner, conversation_id)
    exchange = branches.exchanges.get(row.run_id)
    return SentMessage(
        run_id=row.run_id,
        user_message=_question_id(row.run_id),
        answer=_answer_id(row.run_id),
        parent=_answer_id(exchange.parent) if exchange is not None and exchange.parent is not None else None,
        status=row.status,
    )


@router.get(
    "/{conversation_id}/messages/{message_id}/events",
    responses={**OPENAI_ERRORS, **STREAM, 204: {"description": "There are no further events"}},
    response_model=None,
)
async def follow_message(
    conversation_id: str,
    message_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    stream: CallerStream,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Follow an answer while it is written: `view`, `blocks` of HTML and `progress`, as `GET /v1/runs/ID/events` sends
    them with `render=html`.
    """
    row = await _get_run_of(stepgate, caller, conversation_id, message_id)
    position = min(parse_position(None, last_event_id), row.last_seq)
    if row.status in ENDED_STATUSES and position == row.last_seq:
        return Response(status_code=204)
    with stream.hold_slot():
        events = stepgate.service.follow_events(row.run_id, owner=caller.owner)
        frames = AnswerFrames(row.run_id, position, row.last_seq).stream(events)
        return stream.build_response(frames, build_failure_frame)


@router.post("/{conversation_id}/messages/{message_id}/stop", status_code=202, responses=OPENAI_ERRORS)
async def stop_message(
    conversation_id: str, message_id: str, stepgate: Gateway, caller: CurrentCaller
) -> dict[str, str]:
    """Stop an answer. What was written by then stays, marked as stopped."""
    row = await _get_run_of(stepgate, caller, conversation_id, message_id)
    await stepgate.service.cancel_run(row.run_id, owner=caller.owner)
    return {"run_id": row.run_id}


@router.put("/{conversation_id}/head", status_code=204, responses=OPENAI_ERRORS)
async def set_head(conversation_id: str, body: NewHead, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Choose the branch that the conversation is at."""
    run_id = _parse_run_id(body.message)
    branches = await stepgate.intake.tree.read_branches(caller.owner, conversation_id)
    if not body.exact and run_id in branches.exchanges:
        run_id = branches.find_leaf(run_id)
    await stepgate.intake.tree.set_head(caller.owner, conversation_id, run_id)


@router.get(
    "/{conversation_id}/export",
    responses={**OPENAI_ERRORS, 200: {"content": {"text/markdown": {}, "application/json": {}}}},
    response_model=None,
)
async def export_conversation(
    conversation_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    form: Annotated[Literal["markdown", "json"], Query(alias="format")] = "markdown",
) -> Response:
    """Return the branch that the conversation is at, as Markdown, or all branches as JSON."""
    branches = await stepgate.intake.tree.read_branches(caller.owner, conversation_id)
    if branches.head is None:
        raise build_unknown_conversation_error(conversation_id)
    wanted = branches.list_line() if form == "markdown" else list(branches.exchanges.values())
    messages: list[Message] = []
    for one in wanted:
        events = await stepgate.service.read_events(one.run_id, owner=caller.owner)
        messages += await asyncio.to_thread(_build_messages, events, branches)
    first = await stepgate.service.get_run(wanted[0].run_id, owner=caller.owner)
    metadata = await stepgate.client_conversations.get_metadata(caller.owner, conversation_id)
    title = metadata.get("title") or first.title
    if form == "json":
        listed = MessageList(data=messages, head=_answer_id(branches.head), room=first.room, title=title)
        return Response(listed.model_dump_json(indent=2), media_type="application/json")
    text = format_chat(title, [(one.role, one.content, one.view or {}) for one in messages])
    return Response(text, media_type="text/markdown; charset=utf-8")


def _build_match(match: MessageMatch) -> ConversationMatch:
    message_id = _question_id(match.run_id) if match.role == "user" else _answer_id(match.run_id)
    return ConversationMatch(message=message_id, excerpt=match.excerpt)


async def _build_request(stepgate: Stepgate, caller: Caller, conversation_id: str, body: NewMessage) -> AgentRequest:
    """The request of a message. Raises `BadRequestError` for a message without words, or an unknown parent."""
    content, images, parent = body.content, list(body.images), body.parent
    if content is None:
        if parent is None or not parent.endswith("-user"):
            raise BadRequestError("content: send text, or set `parent` to the question to answer again")
        again = _parse_run_id(parent)
        branches = await stepgate.intake.tree.read_branches(caller.owner, conversation_id)
        if again not in branches.exchanges:
            raise NotFoundError(f"conversation {conversation_id[:100]!r} has no message {parent[:100]!r}")
        events = await stepgate.service.read_events(again, owner=caller.owner)
        earlier_request = _get_request(events)
        content, images, parent = (
            earlier_request.prompt,
            list(earlier_request.images),
            branches.exchanges[again].parent or ROOT,
        )
    elif parent is not None and parent != ROOT:
        parent = _parse_run_id(parent)
    if not content.strip() and not images:
        raise BadRequestError("content: the message is empty", param="content")
    noted = (await stepgate.client_conversations.get(caller.owner, conversation_id)).metadata  # 404 for a deleted one
    limits: JsonObject = {"collection": noted["collection"]} if noted.get("collection") else {}
    return AgentRequest(
        prompt=content,
        images=tuple(images),
        conversation_id=conversation_id,
        parent=parent,
        room=body.room,
        metadata=limits | body.metadata,
    )


async def _get_run_of(stepgate: Stepgate, caller: Caller, conversation_id: str, message_id: str) -> Any:
    """The row of a message's run. Raises `NotFoundError` for a message of another conversation."""
    row = await stepgate.service.get_run(_parse_run_id(message_id), owner=caller.owner)
    if row.conversation_id != conversation_id:
        raise NotFoundError(f"conversation {conversation_id[:100]!r} has no message {message_id[:100]!r}")
    return row


def _build_messages(events: list[Event], branches: Branches, *, html: bool = False) -> list[Message]:
    """The question and the answer of a run."""
    if not events:
        return []
    created, request = events[0], _get_request(events)
    run_id = created.run_id
    parent = branches.exchanges[run_id].parent if run_id in branches.exchanges else None
    siblings = branches.list_siblings(run_id) if run_id in branches.exchanges else [run_id]
    view = build_view(events, html=html)
    question = Message(
        id=_question_id(run_id),
        role="user",
        parent=_answer_id(parent) if parent else None,
        run_id=run_id,
        content=request.prompt,
        images=list(request.images),
        created_at=datetime.fromtimestamp(created.at, UTC),
        siblings=[_question_id(one) for one in siblings],
    )
    answer = Message(
        id=_answer_id(run_id),
        role="assistant",
        parent=question.id,
        run_id=run_id,
        content=str(view["text"]),
        created_at=datetime.fromtimestamp(events[-1].at, UTC),
        siblings=[_answer_id(run_id)],
        status=view["status"],
        view=view,
    )
    return [question, answer]


def _get_request(events: list[Event]) -> AgentRequest:
    body = events[0].body if events else None
    assert isinstance(body, RunCreated), "a log begins with the request"
    return body.request


def _question_id(run_id: str) -> str:
    return f"msg_{run_id}-user"


def _answer_id(run_id: str) -> str:
    return f"msg_{run_id}-assistant"


def _parse_run_id(message_id: str) -> str:
    """The run of a message; a run's own id is one too."""
    return message_id.removeprefix("msg_").removesuffix("-user").removesuffix("-assistant")
