"""`POST /v1/ag-ui`: the Agent User Interaction Protocol (AG-UI), a projection of a run for front ends.

The body is the protocol's `RunAgentInput`. The thread is the conversation; `forwardedProps.room` chooses the room. The
client's `runId` names the turn: the same thread and `runId` sent again is the same run, replayed from its beginning or
after `Last-Event-ID`. `resume` answers the approvals that ended the turn before.
"""

import contextlib
import hashlib
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError

from agent.core.errors import BadRequestError, NotFoundError, TooLargeError
from agent.core.events import RunWaiting
from agent.core.failures import AgentFailure
from agent.core.json_walk import has_more_nodes
from agent.core.models import AgentRequest, ChatMessage, JsonObject
from agent.core.models.request import MAX_CONVERSATION_ID_CHARS
from agent.core.own_ids import OwnIds
from agent.core.run_reducer import fold
from agent.core.value_faults import describe_fault
from agent.policy.approval import find_waiting_run
from agent.runs.intake_requests import ChatRequest
from agent.runs.service import AcceptedRun, Decision
from gateway.access.authentication import Caller
from gateway.access.dependencies import CallerStream, CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS, STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import RUN_ID_HEADER
from gateway.doors.json_body import JsonRoute
from gateway.render.errors import RequestFormatError
from gateway.render.sse import format_frame

if TYPE_CHECKING:  # the package's models take 0.08 s to build, which gateways without such clients save
    from ag_ui.core import BaseEvent, RunAgentInput

    from gateway.features.protocols.render.ag_ui import AgUiEvents

router = APIRouter(tags=["ag-ui"], route_class=JsonRoute, dependencies=[require_scope("agent")])

MAX_VALUES: Final = 40_000
"""Values in the JSON of a body without its state, which may be any JSON. The package describes every fault of a list:
200,000 held up everybody else for a second.
"""
_DECISIONS: dict[str, Decision] = {"approve": "approve", "reject": "reject", "answer": "answer"}


@router.post("/v1/ag-ui", responses={**ERRORS, **STREAM})
async def run_ag_ui(
    body: dict[str, Any], http: Request, stepgate: Gateway, caller: CurrentCaller, stream: CallerStream
) -> Response:
    """Run an agent for an AG-UI client, and stream the protocol's events."""
    from ag_ui.encoder import EventEncoder  # noqa: PLC0415 - see above

    from gateway.features.protocols.render.ag_ui import AgUiEvents  # noqa: PLC0415

    sent = parse_input(body)
    after = _parse_last_event_id(http)
    request = to_agent_request(sent)
    with stream.hold_slot():
        ignored = _list_ignored(
            sent, stepgate, caller, request
        )  # first: an unknown room must not be told after an effect
        run = await _accept(http, stepgate, caller, sent, request, after)
        encoder = AgUiEvents(sent.thread_id, sent.run_id, protocol_version=sent.protocol_version)
        frames = _stream(stepgate, run, encoder, EventEncoder(), ignored, after)
        return stream.build_response(frames, _build_failure_frame, {RUN_ID_HEADER: run.run_id})


def parse_input(body: JsonObject) -> "RunAgentInput":
    """The body as the protocol's input. Raises `RequestFormatError` naming the field, and `TooLargeError`."""
    from ag_ui.core import RunAgentInput  # noqa: PLC0415 - see above

    if has_more_nodes({name: value for name, value in body.items() if name != "state"}, MAX_VALUES):
        raise TooLargeError(f"the body has more than {MAX_VALUES:,} JSON values; send a long list as text")
    try:
        sent = RunAgentInput.model_validate(body)
    except ValidationError as error:
        fault = error.errors()[0]
        # A union's errors name its members ("user", "function-..."), which are no fields.
        param = ".".join(str(part) for part in fault["loc"])
        raise RequestFormatError(f"{param}: {describe_fault(fault)}", param) from error
    for name, value in (("threadId", sent.thread_id), ("runId", sent.run_id)):
        if not value.strip() or len(value) > MAX_CONVERSATION_ID_CHARS:
            raise RequestFormatError(f"{name}: must have 1 to {MAX_CONVERSATION_ID_CHARS} characters.", name)
    return sent


def to_agent_request(sent: "RunAgentInput") -> AgentRequest:
    """The input as a request: its last user message is the prompt, the others are the history."""
    messages = [message for index, one in enumerate(sent.messages) for message in _to_chat_message(one, index)]
    last = next((index for index in reversed(range(len(messages))) if messages[index].role == "user"), None)
    if last is None and not sent.resume:
        raise RequestFormatError("messages: there is no user message; the last one is the request.", "messages")
    prompt = messages.pop(last) if last is not None else ChatMessage(role="user")
    if sent.context:
        context_lines = "\n".join(f"- {item.description}: {item.value}" for item in sent.context)
        # What the application shows may be anybody's text: the wrapper tells it from instructions.
        content = f"The application the user works with says:\n<context>\n{context_lines}\n</context>"
        messages.insert(0, ChatMessage(role="system", content=content))
        last = last + 1 if last is not None else None
    props: Any = sent.forwarded_props if isinstance(sent.forwarded_props, dict) else {}
    tools: list[JsonObject] = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters or {}},
        }
        for t in sent.tools or ()
    ]
    room = props.get("room")
    if room is not None and not isinstance(room, str):
        raise RequestFormatError("forwardedProps.room: must be the id of a room.", "forwardedProps.room")
    return AgentRequest(
        prompt=prompt.content,
        images=prompt.images,
        room=room,
        messages=tuple(messages),
        prompt_position=last,
        client_tools=tuple(tools),
    )


def _to_chat_message(message: Any, index: int) -> Iterator[ChatMessage]:
    """Yields the message as the engine knows it; nothing for activities and reasoning, which are for people only."""
    if message.role in ("activity", "reasoning"):
        return
    texts, images = [], []
    for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
        if part.type == "text":
            texts.append(part.text)
        elif part.type == "image" and part.source.type in ("data", "url"):
            source = part.source
            images.append(source.value if source.type == "url" else f"data:{source.mime_type};base64,{source.value}")
        else:
            where = f"messages.{index}.content.{number}"
            raise RequestFormatError(f"{where}: content of type '{part.type}' is not supported.", where)
    yield ChatMessage(
        role=message.role,
        content=message.content if isinstance(message.content, str) else "\n".join(texts),
        images=tuple(images),
        tool_calls=tuple(call.model_dump(include={"id", "type", "function"}) for call in _list_calls(message)),
        tool_call_id=getattr(message, "tool_call_id", None),
        name=getattr(message, "name", None),
    )


def _list_calls(message: Any) -> Iterable[Any]:
    return getattr(message, "tool_calls", None) or ()


async def _accept(
    http: Request, stepgate: Stepgate, caller: Caller, sent: "RunAgentInput", request: AgentRequest, after: int
) -> AcceptedRun:
    """The run of this turn: one that this `runId` began before, the one that `resume` answers, or a new one."""
    if sent.resume:
        return await _resume(stepgate, caller, sent)
    run_id = derive_run_id(stepgate.intake.own_ids, caller, sent.thread_id, sent.run_id)
    with contextlib.suppress(NotFoundError):
        row = await stepgate.service.get_run(run_id, owner=caller.owner)
        return AcceptedRun(row.run_id, caller.owner)
    if after:
        raise BadRequestError(f"Last-Event-ID: no run began as {sent.run_id!r} in this thread", param="runId")
    accepted = await stepgate.intake.accept(caller.principal, ChatRequest(request, sent.thread_id), run_id=run_id)
    http.state.run_started, http.state.run_id = True, accepted.run_id
    return accepted


def derive_run_id(own_ids: OwnIds, caller: Caller, thread_id: str, client_run_id: str) -> str:
    """The id of the run that a client's turn begins. The same turn sent twice is one run.

    Without a key, others can guess the client's two ids, and must not learn the run's from them.
    """
    owner = caller.owner
    if not caller.principal.is_identified:
        return f"run_{own_ids.derive(owner, thread_id, client_run_id)}"
    digest = hashlib.sha256(f"{owner}\x00{thread_id}\x00{client_run_id}".encode("utf-8", "surrogatepass"))
    return f"run_{digest.hexdigest()[:32]}"


async def _resume(stepgate: Stepgate, caller: Caller, sent: "RunAgentInput") -> AcceptedRun:
    """Submits the decisions and returns the run that goes on. The entries must answer everything that is open."""
    row = await find_waiting_run(stepgate.service, sent.thread_id, owner=caller.owner)
    if row is None:
        raise BadRequestError("resume: no run of this thread waits for a decision", param="resume")
    run_id = row.run_id
    caller.principal.require_approval_right()
    decisions = [(entry.interrupt_id, *_read_decision(entry, index)) for index, entry in enumerate(sent.resume or ())]
    state = fold(run_id, await stepgate.service.read_events(run_id, owner=caller.owner))
    answered = {approval for approval, *_ in decisions}
    if len(answered) < len(decisions):  # whichever came first would count, and a yes is sent first
        raise BadRequestError("resume: must answer every interrupt once", param="resume")
    open_ids = [request.approval_id for request in state.pending_approvals if request.approval_id not in answered]
    if open_ids:
        raise BadRequestError(f"resume: must answer every interrupt; missing: {', '.join(open_ids)}", param="resume")
    accepted: AcceptedRun | None = None
    for decision in _DECISIONS.values():
        ids = [approval for approval, chosen, _ in decisions if chosen == decision]
        if ids:
            reason = next((why for _, chosen, why in decisions if chosen == decision and why), "")
            submitted = await stepgate.service.submit_decision(
                run_id, decision, principal=caller.principal, reason=reason, approvals=ids
            )
            accepted = accepted or submitted
    assert accepted is not None
    return accepted


def _read_decision(entry: Any, index: int) -> tuple[Decision, str]:
    """The decision of one `resume` entry and its reason."""
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    reason = str(payload.get("reason") or "")[:2000]
    if entry.status == "cancelled":
        return "reject", reason
    chosen = _DECISIONS.get(str(payload.get("decision")))
    if chosen is None:
        param = f"resume.{index}.payload.decision"
        raise RequestFormatError(f"{param}: must be one of {', '.join(_DECISIONS)}.", param)
    return chosen, reason


def _list_ignored(sent: "RunAgentInput", stepgate: Stepgate, caller: Caller, request: AgentRequest) -> list[str]:
    """The inputs that have no effect: nothing is dropped silently."""
    room = stepgate.rooms.get(request.room, caller.owner)
    return ["tools"] if sent.tools and room.planning and not room.offers_client_tools else []


def _parse_last_event_id(http: Request) -> int:
    sent = http.headers.get("last-event-id", "0")
    if not sent.isdecimal() or len(sent) > 12:
        raise BadRequestError("Last-Event-ID: must be an id of this stream, a whole number", param="Last-Event-ID")
    return int(sent)


async def _stream(
    stepgate: Stepgate, run: AcceptedRun, events: "AgUiEvents", encoder: Any, ignored: list[str], after: int
) -> AsyncGenerator[str, None]:
    """Yields the frames of one turn. Each carries the seq of the run's event that it comes from as its id."""
    batches = _encode_turn(stepgate, run, events, ignored, after)
    async with contextlib.aclosing(batches):
        async for seq, batch in batches:
            for one in batch:
                data = encoder.encode(one).removeprefix("data: ").rstrip("\n")
                yield format_frame(data, event_id=seq or None)


async def _encode_turn(
    stepgate: Stepgate, run: AcceptedRun, events: "AgUiEvents", ignored: list[str], after: int
) -> AsyncGenerator[tuple[int, list["BaseEvent"]], None]:
    """Yields the AG-UI events of the turn with the seq they come from; 0 for those of the turn itself.

    What happened before this turn is encoded, so that the state is right, but not yielded. The same holds for what a
    client that reconnects has already read.
    """
    if not after:
        yield 0, [*events.start(ignored)]
    shown_seq = max(run.last_seq, after)
    waiting = False
    async with contextlib.aclosing(
        stepgate.service.follow_events(run.run_id, owner=run.owner, waits=False, seen_seq=run.last_seq)
    ) as followed:
        async for event in followed:
            batch = [*events.encode_event(event)]
            waiting = isinstance(event.body, RunWaiting)
            if event.seq > shown_seq:
                yield event.seq, batch
            elif waiting:
                events.end_earlier_turn()
            if event.body.terminal:
                return
    if waiting:
        yield 0, [*events.encode_question()]
    else:
        yield 0, [*events.encode_break("the gateway is stopping; the run continues after the restart", "ERR_BUSY")]


def _build_failure_frame(failure: AgentFailure) -> str:
    """The frame of a failure of the stream itself."""
    from ag_ui.core import RunErrorEvent  # noqa: PLC0415 - see above

    return format_frame(RunErrorEvent(message=failure.message, code=failure.error_code).model_dump_json(by_alias=True))
