"""`POST /query`: a user's message in a session. Returns the tailored answer and its plan, under this protocol's
names.
"""

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import AgentRequest, DeferredModel, JsonObject, TailorOutput, TraceStep
from agent.core.run_state import RunState
from agent.runs.response import build_response
from agent.runs.sessions import build_session_name
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.features.documents.engine.grounded_answers import Persona
from gateway.render.plan_view import PlanStepView, build_plan_view

router = APIRouter(tags=["agent"], route_class=JsonRoute, dependencies=[require_scope("agent")])

KNOWLEDGE_ROOM = "knowledge"

Name = Annotated[str, Field(min_length=1, max_length=90)]


class OrchestratorInput(BaseModel):
    """A user's message in a session. Sessions belong to users: the same name of another user is another session.

    Without `room`, the documents room answers.
    """

    model_config = ConfigDict(extra="forbid")

    user_message: str = Field(min_length=1, description="the request")
    session_id: Name
    user_id: Name
    room: str | None = None
    persona: Persona | None = None
    formatting_instructions: str | None = Field(default=None, max_length=1_000)
    collection: str | None = Field(default=None, max_length=200, description="where to look; unset: everywhere")


class AgentMetadata(DeferredModel):
    """An agent that took part in the answer: when it first did, and the model it used last (`rules` without one)."""

    agent_id: str
    timestamp: datetime
    model_version: str


class OrchestratorOutput(DeferredModel):
    """The answer, the plan behind it, the duration in milliseconds, the agents in the order in which they took part,
    and the trace (`steps` at other endpoints).
    """

    final_response: TailorOutput
    execution_plan: list[PlanStepView]
    processing_time_total_ms: float
    agents: list[AgentMetadata]
    trace: list[TraceStep]


@router.post("/query", response_model=OrchestratorOutput, responses=ERRORS)
async def run_query(body: OrchestratorInput, http: Request, stepgate: Gateway, caller: CurrentCaller) -> Response:
    """Execute a message as a run, or pass it to the session's run that waits for an answer. The run's id is in
    `x-stepgate-run-id`.
    """
    started = monotonic()
    request = _to_agent_request(stepgate, body)
    run = await accept_run(http, stepgate, caller, request)
    stopped = await cancel_on_disconnect(
        http, stepgate.service.wait_until_stopped(run.run_id, owner=run.owner, seen_seq=run.last_seq)
    )
    response = build_response(stopped.events, stopped.state)
    output = OrchestratorOutput(
        final_response=_build_tailor_output(stopped.state, response.response),
        execution_plan=build_plan_view(stopped.state),
        processing_time_total_ms=round((monotonic() - started) * 1000, 1),
        agents=_list_agents(response.steps),
        trace=list(response.steps),
    )
    headers = {RUN_ID_HEADER: run.run_id}
    return Response(output.model_dump_json(), media_type="application/json", headers=headers)


def _to_agent_request(stepgate: Stepgate, body: OrchestratorInput) -> AgentRequest:
    metadata: JsonObject = {"user_id": body.user_id, "session_id": body.session_id}
    options: JsonObject = body.model_dump(
        include={"persona", "formatting_instructions", "collection"}, exclude_none=True
    )
    known_rooms = {room.id for room in stepgate.rooms}
    return AgentRequest(
        prompt=body.user_message,
        conversation_id=build_session_name(body.user_id, body.session_id),
        room=body.room or (KNOWLEDGE_ROOM if KNOWLEDGE_ROOM in known_rooms else None),
        metadata=metadata | options,
    )


def _build_tailor_output(state: RunState, text: str) -> TailorOutput:
    """The tailored answer. An answer that was not tailored has no passages as evidence: its confidence is 1 if
    it was calculated, else 0.
    """
    answer = state.answer
    if answer is None:
        return TailorOutput(content=text)
    if answer.tailored is not None:
        return answer.tailored
    evidence = tuple(one.evidence for one in answer.citations if one.evidence is not None)
    return TailorOutput(content=answer.text, citations=evidence, confidence_score=1.0 if _is_calculated(state) else 0.0)


def _is_calculated(state: RunState) -> bool:
    """Whether a complete answer rests on results of tools alone, none of which read anything from outside.

    The run is complete only if these results contain every figure of the answer.
    """
    steps = state.plan_steps
    outputs = [state.get_step(step.id).output for step in steps if step.action == "tool"]
    others = [step for step in steps if step.action not in ("tool", "completion")]
    calculated = [one for one in outputs if one is not None and not one.tainted and one.effective == "rules"]
    return bool(outputs) and calculated == outputs and not others and state.completeness == "complete"


def _list_agents(steps: Sequence[TraceStep]) -> list[AgentMetadata]:
    first: dict[str, TraceStep] = {}
    models: dict[str, str] = {}
    for step in steps:
        first.setdefault(step.agent_id, step)
        if step.model is not None:
            models[step.agent_id] = step.model
    return [
        AgentMetadata(agent_id=name, timestamp=step.started_at, model_version=models.get(name, "rules"))
        for name, step in first.items()
    ]
