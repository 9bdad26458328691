"""`POST /query`: a message in, the tailored answer and its plan out; a thin projection of a run, by other names."""

from time import monotonic
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.core.fold import RunState, StepStatus, fold
from agent.core.models import AgentRequest, JsonObject, TailorOutput
from agent.core.response import respond
from agent.knowledge.tailor import Persona
from gateway.auth import By, requires
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.attendance import while_heard
from gateway.doors.beginning import begun
from gateway.doors.body import JsonRoute
from gateway.doors.wiring import Gateway
from gateway.idempotency import begun_once

router = APIRouter(tags=["agent"], route_class=JsonRoute, dependencies=[requires("agent")])

KNOWLEDGE_ROOM = "knowledge"

_STATUS: dict[StepStatus, Literal["pending", "in_progress", "completed", "failed"]] = {
    "pending": "pending",
    "running": "in_progress",
    "executed": "in_progress",
    "retry": "in_progress",
    "succeeded": "completed",
    "replan": "failed",
    "aborted": "failed",
    "unknown": "failed",
}
Name = Annotated[str, Field(min_length=1, max_length=90)]


class OrchestratorInput(BaseModel):
    """A message of a user in a session. A session belongs to its user: another user's of the same name is another.

    Without a `room`, the room of documents answers."""

    model_config = ConfigDict(extra="forbid")

    user_message: str = Field(min_length=1, description="the request")
    session_id: Name
    user_id: Name
    room: str | None = None
    persona: Persona | None = None
    formatting_instructions: str | None = Field(default=None, max_length=1_000)
    collection: str | None = Field(default=None, max_length=200, description="where to look; unset: everywhere")


class PlanStepView(BaseModel):
    """A step of the plan, numbered from 1."""

    step_id: int
    description: str
    tool_call: str
    status: Literal["pending", "in_progress", "completed", "failed"]


class OrchestratorOutput(BaseModel):
    """The answer, the plan that led to it, and how long it took, in milliseconds."""

    final_response: TailorOutput
    execution_plan: list[PlanStepView]
    processing_time_total_ms: float


@router.post("/query", response_model=OrchestratorOutput, responses=ERRORS)
async def query(body: OrchestratorInput, http: Request, stepgate: Gateway, caller: By) -> Response:
    """Carry out a message as a run, or tell it to the session's run that waits for an answer; the run's id is in
    `x-stepgate-run-id`."""
    started = monotonic()
    request = _request(stepgate, body)
    run_id, heard = await begun_once(http, lambda new: begun(stepgate, caller, request, run_id=new))
    http.state.run_started, http.state.run_id = True, run_id
    events = await while_heard(http, stepgate.service.finished(run_id, owner=caller.owner, heard=heard))
    state = fold(run_id, events)
    output = OrchestratorOutput(
        final_response=_response(state, respond(events).response),
        execution_plan=plan_view(state),
        processing_time_total_ms=round((monotonic() - started) * 1000, 1),
    )
    headers = {"x-stepgate-run-id": run_id}
    return Response(output.model_dump_json(), media_type="application/json", headers=headers)


def _request(stepgate: Stepgate, body: OrchestratorInput) -> AgentRequest:
    metadata: JsonObject = {"user_id": body.user_id, "session_id": body.session_id}
    told: JsonObject = body.model_dump(include={"persona", "formatting_instructions", "collection"}, exclude_none=True)
    there = {room.id for room in stepgate.rooms}
    return AgentRequest(
        prompt=body.user_message,
        conversation_id=f"{body.user_id}/{body.session_id}",
        room=body.room or (KNOWLEDGE_ROOM if KNOWLEDGE_ROOM in there else None),
        metadata=metadata | told,
    )


def _response(state: RunState, text: str) -> TailorOutput:
    """The tailored answer; that of a run that was not tailored without evidence, and so without confidence."""
    answer = state.answer
    if answer is None:
        return TailorOutput(content=text)
    if answer.tailored is not None:
        return answer.tailored
    evidence = tuple(one.evidence for one in answer.citations if one.evidence is not None)
    return TailorOutput(content=answer.text, citations=evidence)


def plan_view(state: RunState) -> list[PlanStepView]:
    """The plan in force, with where each step stands."""
    return [
        PlanStepView(
            step_id=number,
            description=step.intent or step.title,
            tool_call=step.tool,
            status=_STATUS[state.step(step.id).status],
        )
        for number, step in enumerate(state.plan.steps if state.plan else (), start=1)
    ]
