"""`/v1/studio/requests`: a message to the studio. A projection of a run in a room with `routing: intents`."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from agent.core.errors import BadRequestError
from agent.core.events import ApprovalRequested, Event
from agent.core.models import (
    MAX_CONVERSATION_ID_CHARS,
    AgentRequest,
    DeferredModel,
    JsonObject,
    TaskPlan,
    TraceStep,
    UserIntent,
)
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.runs.response import build_response
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.engine.request_outcomes import (
    IntentOutcome,
    StudioError,
    StudioStatus,
    build_error,
    build_outcomes,
    derive_status,
    find_question,
    find_reason,
)

router = APIRouter(tags=["studio"], route_class=JsonRoute, dependencies=[require_scope("agent")])

STUDIO_ROOM = "studio"
NOT_INTERACTIVE = "false: no question is asked, the planner decides instead. A change still waits for its approval"


class StudioRequestBody(StrictBody):
    """A message to the studio. With a `conversation_id` the next message may answer a question, or say "undo that"."""

    message: str = Field(min_length=1)
    conversation_id: Annotated[str, Field(min_length=1, max_length=MAX_CONVERSATION_ID_CHARS)] | None = None
    room: str = Field(default=STUDIO_ROOM, description="a room with `routing: intents`")
    interactive: bool = Field(default=True, description=NOT_INTERACTIVE)
    metadata: JsonObject = Field(default_factory=dict, description="as at `/v1/agent`")


class StudioResponse(DeferredModel):
    """What the studio made of a message.

    `status` is `succeeded` only if all was done that the message asks for, `partial` if some was, `error` with `error`
    if nothing was, `cancelled` with a `reason` if a person refused it, `awaiting_input` with a `question`, and
    `awaiting_approval` with `approvals`, which `/v1/runs/{run_id}/approve`, `reject` and `reply` decide. `outcomes`
    says what became of each request of the message. `task_plan` is what was dispatched; without one, `reason` says why.
    """

    run_id: str
    conversation_id: str | None
    status: StudioStatus
    answer: str
    question: str
    intents: list[UserIntent]
    task_plan: TaskPlan | None
    reason: str
    error: StudioError | None
    outcomes: list[IntentOutcome]
    approvals: list[JsonObject]
    steps: list[TraceStep]
    usage: dict[str, Any]


@router.post("/v1/studio/requests", response_model=StudioResponse, responses=ERRORS)
async def request_studio(body: StudioRequestBody, http: Request, stepgate: Gateway, caller: CurrentCaller) -> Response:
    """Carry out a message, until its end or the first question. The run's id is in `x-stepgate-run-id`."""
    _check_room(stepgate, body.room, caller.owner)
    request = AgentRequest(
        prompt=body.message,
        room=body.room,
        conversation_id=body.conversation_id,
        interactive=body.interactive,
        metadata=body.metadata,
    )
    run = await accept_run(http, stepgate, caller, request)
    stopped = await cancel_on_disconnect(
        http, stepgate.service.wait_until_stopped(run.run_id, owner=run.owner, seen_seq=run.last_seq)
    )
    projection = _project(stopped.events, stopped.state)
    return Response(projection.model_dump_json(), media_type="application/json", headers={RUN_ID_HEADER: run.run_id})


@router.get("/v1/studio/requests/{run_id}", responses=ERRORS)
async def get_studio_request(run_id: str, stepgate: Gateway, caller: CurrentCaller) -> StudioResponse:
    """Return a message's run as it is now, ended or not."""
    events = await stepgate.service.read_events(run_id, owner=caller.owner)
    return _project(events, fold(run_id, events))


def _check_room(stepgate: Stepgate, room: str, owner: str) -> None:
    """Raises `RoomUnknownError`, and `BadRequestError` for a room without a router."""
    if stepgate.rooms.get(room, owner).routing != "intents":
        room_ids = ", ".join(one.id for one in stepgate.rooms.list_visible(owner) if one.routing == "intents") or "none"
        raise BadRequestError(
            f"the room {room!r} has no router (`routing: intents`); rooms that have one: {room_ids}", param="room"
        )


def _project(events: Sequence[Event], state: RunState) -> StudioResponse:
    response = build_response(events, state)
    read = state.classified
    outcomes = build_outcomes(state)
    status = derive_status(state, outcomes)
    waiting: list[ApprovalRequested] = [] if state.is_finished else list(state.pending_approvals)
    return StudioResponse(
        run_id=state.run_id,
        conversation_id=state.request.conversation_id,
        status=status,
        answer=response.response,
        question=find_question(state, outcomes, response.response) if status == "awaiting_input" else "",
        intents=list(read.intents) if read is not None else [],
        task_plan=read.task_plan if read is not None else None,
        reason=find_reason(state, status, outcomes),
        error=build_error(state, status, outcomes),
        outcomes=outcomes,
        approvals=[one.model_dump(mode="json") for one in waiting],
        steps=list(response.steps),
        usage=response.metadata["usage"],
    )
