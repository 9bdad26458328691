"""`/v1/runs`: what was asked before, what became of it, its events from any point on, and a way to stop it."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from agent.core.errors import BadRequestError
from agent.core.fold import fold
from agent.core.journal import RunRow
from agent.core.models import AgentResponse, JsonObject, Plan, PlanStep, RunStatus, StepOutcome
from agent.core.response import respond
from agent.core.service import Decision
from gateway.auth import By, Stream, requires
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS, STREAM
from gateway.doors.body import KNOWN_ONLY, JsonRoute, refuse_unknown
from gateway.doors.wiring import Gateway
from gateway.render.native import event_frame, failure_frame

router = APIRouter(tags=["runs"], route_class=JsonRoute, dependencies=[requires("agent")])

MAX_SEQ: Final = 2**53
"""No run has as many events, and every JSON client and SQLite can hold the number."""
_FINISHED: Final = ("succeeded", "failed", "cancelled")


class RunSummary(BaseModel):
    """A run as lists show it."""

    id: str
    status: RunStatus
    room: str
    title: str
    conversation_id: str | None
    created_at: datetime
    updated_at: datetime
    last_seq: int


class RunList(BaseModel):
    """Runs, newest first; `next` is what to pass as `before` for older ones."""

    data: list[RunSummary]
    next: str | None = None


class RunVerdict(BaseModel):
    """The supervisor's word on one attempt."""

    step_id: str
    attempt: int
    verdict: StepOutcome


class RunDetail(RunSummary):
    """A run with its plan, the verdicts on its steps, and its response so far."""

    plan: Plan | None
    estimated_tools: list[str] = Field(default=[], description="tools and skills the plan means to use")
    steps: list[PlanStep]
    verdicts: list[RunVerdict]
    response: AgentResponse


class EventList(BaseModel):
    """Events in order of seq."""

    data: list[JsonObject]


@router.get("/v1/runs", responses=ERRORS)
async def list_runs(
    stepgate: Gateway,
    caller: By,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    status: RunStatus | None = None,
) -> RunList:
    """List runs."""
    rows = await stepgate.service.list_runs(owner=caller.owner, limit=limit, before=before, status=status)
    return RunList(data=[_summary(row) for row in rows], next=rows[-1].run_id if len(rows) == limit else None)


@router.get("/v1/runs/{run_id}", responses=ERRORS)
async def get_run(run_id: str, stepgate: Gateway, caller: By) -> RunDetail:
    """One run, finished or not."""
    row = await stepgate.service.get(run_id, owner=caller.owner)
    events = await stepgate.service.read(run_id, owner=caller.owner)
    state = fold(run_id, events)
    verdicts = [
        RunVerdict(step_id=step_id, attempt=attempt.number, verdict=attempt.verdict)
        for step_id, step in state.steps.items()
        for attempt in step.attempts
        if attempt.verdict is not None
    ]
    return RunDetail(
        **_summary(row).model_dump(),
        plan=state.plan,
        estimated_tools=list(state.plan.tools()) if state.plan else [],
        steps=list(state.plan.steps) if state.plan else [],
        verdicts=verdicts,
        response=respond(events),
    )


@router.get(
    "/v1/runs/{run_id}/events",
    responses={**ERRORS, **STREAM, 204: {"description": "The end was seen already"}},
    response_model=EventList,
)
async def run_events(
    run_id: str,
    http: Request,
    stepgate: Gateway,
    caller: By,
    stream: Stream,
    after: Annotated[int | None, Query(ge=0, le=MAX_SEQ)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """The events after `Last-Event-ID` (or `after`), replayed and live; one list for `Accept: application/json`.

    204 to a stream's client that has seen the end already: it tells an `EventSource` to stop reconnecting."""
    row = await stepgate.service.get(run_id, owner=caller.owner)
    position = min(_position(after, last_event_id), row.last_seq)
    if "application/json" in http.headers.get("accept", ""):
        events = await stepgate.service.read(run_id, owner=caller.owner, after=position)
        body = EventList(data=[event.wire() for event in events])
        return Response(body.model_dump_json(), media_type="application/json")
    if row.status in _FINISHED and position == row.last_seq:
        return Response(status_code=204)
    with stream.taken():
        return stream.response(_follow(stepgate, run_id, caller.owner, position), failure_frame)


@router.post("/v1/runs/{run_id}/cancel", status_code=202, responses=ERRORS)
async def cancel_run(run_id: str, stepgate: Gateway, caller: By) -> RunSummary:
    """Stop a run; what is known by then stands in its answer."""
    await stepgate.service.cancel(run_id, owner=caller.owner)
    return _summary(await stepgate.service.get(run_id, owner=caller.owner))


class ApprovalBody(BaseModel):
    """Yes. `plan` replaces the plan that was shown; `approvals` names what is approved, else all that is open."""

    model_config = KNOWN_ONLY
    approvals: list[str] = Field(default=[], max_length=100)
    plan: JsonObject | None = None


class RejectionBody(BaseModel):
    """No, and why."""

    model_config = KNOWN_ONLY
    reason: str = Field(default="", max_length=4_000)
    approvals: list[str] = Field(default=[], max_length=100)


class ReplyBody(BaseModel):
    """Neither yes nor no: what should be different, or a question."""

    model_config = KNOWN_ONLY
    text: str = Field(min_length=1, max_length=20_000)
    approvals: list[str] = Field(default=[], max_length=100)


@router.post("/v1/runs/{run_id}/approve", status_code=202, responses=ERRORS, dependencies=[requires("approve")])
async def approve_run(run_id: str, body: ApprovalBody, http: Request, stepgate: Gateway, caller: By) -> RunSummary:
    """Allow what the run waits with, as shown or as edited; it goes on at once."""
    refuse_unknown(await http.json(), ApprovalBody)
    return await _decided(stepgate, caller, run_id, "approve", body.approvals, plan=body.plan)


@router.post("/v1/runs/{run_id}/reject", status_code=202, responses=ERRORS, dependencies=[requires("approve")])
async def reject_run(run_id: str, body: RejectionBody, http: Request, stepgate: Gateway, caller: By) -> RunSummary:
    """Refuse what the run waits with: a plan ends the run; a single call is told to the agent."""
    refuse_unknown(await http.json(), RejectionBody)
    return await _decided(stepgate, caller, run_id, "reject", body.approvals, reason=body.reason)


@router.post("/v1/runs/{run_id}/reply", status_code=202, responses=ERRORS, dependencies=[requires("approve")])
async def reply_to_run(run_id: str, body: ReplyBody, http: Request, stepgate: Gateway, caller: By) -> RunSummary:
    """Say what should be different; a new plan is made of it, and asked about again."""
    refuse_unknown(await http.json(), ReplyBody)
    return await _decided(stepgate, caller, run_id, "answer", body.approvals, reason=body.text)


async def _decided(
    stepgate: Stepgate,
    caller: By,
    run_id: str,
    decision: Decision,
    approvals: list[str],
    *,
    reason: str = "",
    plan: JsonObject | None = None,
) -> RunSummary:
    """Give the caller's word to the run; the run as it goes on."""
    heard = await stepgate.service.decide(
        run_id, decision, owner=caller.owner, by=caller.name, reason=reason, approvals=approvals, plan=plan
    )
    return _summary(await stepgate.service.taken_up(run_id, heard, owner=caller.owner))


async def _follow(stepgate: Stepgate, run_id: str, owner: str, after: int) -> AsyncGenerator[str, None]:
    async with contextlib.aclosing(stepgate.service.events(run_id, owner=owner, after=after)) as events:
        async for event in events:
            yield event_frame(event)


def _position(after: int | None, last_event_id: str | None) -> int:
    if last_event_id is None or not last_event_id.strip():
        return after or 0
    seq = last_event_id.strip()
    # Only ASCII digits, and few of them: `int` knows more digits than HTTP does, and refuses very long numbers.
    if not (seq.isascii() and seq.isdigit() and len(seq) <= len(str(MAX_SEQ)) and int(seq) <= MAX_SEQ):
        shown = ascii(last_event_id[:40])
        raise BadRequestError(f"Last-Event-ID must be the seq of an event, not {shown}", param="last-event-id")
    return int(seq)


def _summary(row: RunRow) -> RunSummary:
    return RunSummary(
        id=row.run_id,
        status=row.status,
        room=row.room,
        title=row.title,
        conversation_id=row.conversation_id,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
        updated_at=datetime.fromtimestamp(row.updated_at, UTC),
        last_seq=row.last_seq,
    )
