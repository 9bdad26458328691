"""`/v1/runs`: earlier runs, their events from any point on, cancellation, and approval."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response
from pydantic import AwareDatetime, Field, JsonValue

from agent.core.content_blocks import get_artifact_type, read_artifact
from agent.core.errors import BadRequestError, NotFoundError
from agent.core.events import Event, ModelReturned, RunClaimed, ToolReturned
from agent.core.models import (
    ENDED_STATUSES,
    AgentResponse,
    DeferredModel,
    JsonObject,
    Plan,
    PlanStep,
    RunStatus,
    StepOutcome,
)
from agent.core.record_item import RecordItem
from agent.core.run_reducer import fold
from agent.runs.decisions import require_approval_ids
from agent.runs.forks import ForkRequest, RepeatedEffects
from agent.runs.response import build_response
from agent.runs.run_search import RunFilter
from agent.runs.service import Decision
from gateway.access.dependencies import CallerStream, CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS, STREAM
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import accept_run
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.doors.visible_runs import check_listed_owner, get_visible_run
from gateway.render.answer_view import AnswerFrames
from gateway.render.native import build_event_frame, build_failure_frame

router = APIRouter(tags=["runs"], route_class=JsonRoute, dependencies=[require_scope("agent")])

_ENDED = ("succeeded", "partial")
"""The statuses of runs that have come to their end by themselves."""
decisions = APIRouter(tags=["runs"], route_class=JsonRoute, dependencies=[require_scope("approve")])
"""The routes by which people decide. Who may list what waits may decide on it, also with a key that starts no runs
here: one of a chat."""

MAX_SEQ: Final = 2**53
"""Larger than any seq, and exact in every JSON client and in SQLite."""


class RunSummary(RecordItem):
    """A run as lists show it."""

    id: str = Field(validation_alias="run_id")
    status: RunStatus
    room: str
    owner: str
    title: str
    conversation_id: str | None
    created_at: datetime
    updated_at: datetime
    last_seq: int
    total_tokens: int | None = Field(default=None, description="only in lists, for an ended run that called a model")
    did_nothing: bool = Field(default=False, description="whether it ended without a call of a tool or a model")
    cost_usd: float | None = Field(default=None, description="in lists, where the prices of its models are known")


class RunList(DeferredModel):
    """Runs, newest first; pass `next` as `before` for older ones."""

    data: list[RunSummary]
    next: str | None = None


class RunVerdict(DeferredModel):
    """The supervisor's verdict on one attempt."""

    step_id: str
    attempt: int
    verdict: StepOutcome


class ModelCallItem(DeferredModel):
    """A call of a model. `ended_at` and `duration` (seconds) place it in time; `step_id` is null outside of steps."""

    step_id: str | None
    purpose: str
    model: str
    ended_at: datetime
    duration: float
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    error_code: str | None


class RunDetail(RunSummary):
    """A run with its plan, the verdicts on its steps, and its response so far."""

    prompt: str = Field(description="the words of the request; `title` is their beginning")
    plan: Plan | None
    estimated_tools: list[str] = Field(default=[], description="tools and skills the plan means to use")
    steps: list[PlanStep]
    verdicts: list[RunVerdict]
    response: AgentResponse
    model_calls: list[ModelCallItem] = Field(default=[], description="calls of models, in order")
    claimed_at: datetime | None = Field(default=None, description="when a worker first started it")
    forked_from: str | None = Field(default=None, description="the run whose plan this one was started with")


class EventList(DeferredModel):
    """Events in order of seq."""

    data: list[JsonObject]


@router.get("/v1/runs", responses=ERRORS)
async def list_runs(
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
    status: RunStatus | None = None,
    query: Annotated[
        str, Query(max_length=200, description="words of the request (its first 20,000 characters), or the run's id")
    ] = "",
    room: Annotated[str, Query(max_length=200)] = "",
    model: Annotated[str, Query(max_length=500, description="a model that it has asked")] = "",
    since: Annotated[AwareDatetime | None, Query(description="with its time zone")] = None,
    until: Annotated[AwareDatetime | None, Query(description="with its time zone")] = None,
    min_cost_usd: Annotated[float | None, Query(ge=0, description="the least known cost of its models")] = None,
    owner: Annotated[
        str | None, Query(max_length=200, description="needs a key with the scope `admin`; `*`: all owners")
    ] = None,
) -> RunList:
    """List the caller's runs; with a key of the scope `admin` also those of another owner, or of all."""
    whose = None if owner == "*" else owner or caller.owner
    await check_listed_owner(stepgate, caller, whose)
    begin, end = (at.timestamp() if at is not None else None for at in (since, until))
    wanted = RunFilter(before, status, query, room, model, begin, end, min_cost_usd)
    if wanted.is_plain and whose == caller.owner:
        rows = await stepgate.service.list_runs(owner=caller.owner, limit=limit, before=before, status=status)
    else:
        rows = await stepgate.run_search.list_runs(whose, wanted, limit)
    data = RunSummary.from_records(rows)
    costs = await stepgate.run_search.sum_costs([row.run_id for row in rows])
    idle = await stepgate.run_search.find_idle([row.run_id for row in rows if row.status in _ENDED])
    for item in data:
        item.did_nothing = item.id in idle
        if (cost := costs.get(item.id)) is not None:
            item.total_tokens, item.cost_usd = cost.tokens, cost.usd
    return RunList(data=data, next=rows[-1].run_id if len(rows) == limit else None)


@router.get("/v1/runs/{run_id}", responses=ERRORS)
async def get_run(run_id: str, stepgate: Gateway, caller: CurrentCaller) -> RunDetail:
    """Return a run, finished or not. Only its owner reads it, and a key with the scope `admin`."""
    row = await get_visible_run(stepgate, caller, run_id, "run")
    events = await stepgate.service.read_events(run_id, owner=row.owner)
    state = fold(run_id, events)
    verdicts = [
        RunVerdict(step_id=step_id, attempt=attempt.number, verdict=attempt.verdict)
        for step_id, step in state.steps.items()
        for attempt in step.attempts
        if attempt.verdict is not None
    ]
    summary = RunSummary.model_validate(row)
    if row.status in _ENDED:
        summary.did_nothing = bool(await stepgate.run_search.find_idle([run_id]))
    return RunDetail(
        **summary.model_dump(),
        prompt=state.request.prompt,
        plan=state.plan,
        estimated_tools=list(state.plan.list_tools()) if state.plan else [],
        steps=list(state.plan_steps),
        verdicts=verdicts,
        response=build_response(events),
        model_calls=_list_model_calls(events),
        claimed_at=next((event.timestamp for event in events if isinstance(event.body, RunClaimed)), None),
        forked_from=state.given.from_run if state.given is not None else None,
    )


@router.get(
    "/v1/runs/{run_id}/events",
    responses={**ERRORS, **STREAM, 204: {"description": "There are no further events"}},
    response_model=EventList,
)
async def get_run_events(
    run_id: str,
    http: Request,
    stepgate: Gateway,
    caller: CurrentCaller,
    stream: CallerStream,
    after: Annotated[int | None, Query(ge=0, le=MAX_SEQ)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
    render: Annotated[Literal["html"] | None, Query(description="send the answer's view in place of events")] = None,
) -> Response:
    """Return the events after `Last-Event-ID` (or `after`), replayed and then live; as one list for
    `Accept: application/json`. With `render=html`: `view` (all that is known, as JSON), `blocks` of the answer as HTML,
    and `progress` in words.

    204 for a streaming client that has already seen the end: it makes an `EventSource` stop reconnecting.
    """
    row = await get_visible_run(stepgate, caller, run_id, "events")
    position = min(parse_position(after, last_event_id), row.last_seq)
    if "application/json" in http.headers.get("accept", ""):
        events = await stepgate.service.read_events(run_id, owner=row.owner, after=position)
        body = EventList(data=[event.to_public_json() for event in events])
        return Response(body.model_dump_json(), media_type="application/json")
    if row.status in ENDED_STATUSES and position == row.last_seq:
        return Response(status_code=204)
    with stream.hold_slot():
        if render == "html":
            events_so_far = stepgate.service.follow_events(run_id, owner=row.owner)
            frames = AnswerFrames(run_id, position, row.last_seq).stream(events_so_far)
            return stream.build_response(frames, build_failure_frame)
        return stream.build_response(_stream_events(stepgate, run_id, row.owner, position), build_failure_frame)


@router.get(
    "/v1/runs/{run_id}/artifacts/{name:path}",
    responses={**ERRORS, 200: {"description": "The file", "content": {"application/octet-stream": {}}}},
    response_class=Response,
)
async def get_artifact(run_id: str, name: str, stepgate: Gateway, caller: CurrentCaller) -> Response:
    """Return a file that a tool of the run has made, such as a chart, as the run is read. Of several with one name, the
    newest.
    """
    row = await get_visible_run(stepgate, caller, run_id, "artifact")
    events = await stepgate.service.read_events(run_id, owner=row.owner)
    for event in reversed(events):
        if isinstance(event.body, ToolReturned) and event.body.content_blob is not None:
            content = read_artifact(await stepgate.service.get_blob_content(event.body.content_blob), name)
            if content is not None:
                return _build_artifact_response(name, content)
    raise NotFoundError(f"run {run_id!r} has no artifact {name[:200]!r}")


@router.post("/v1/runs/{run_id}/cancel", status_code=202, responses=ERRORS)
async def cancel_run(run_id: str, stepgate: Gateway, caller: CurrentCaller) -> RunSummary:
    """Cancel a run; what is known by then is its answer."""
    await stepgate.service.cancel_run(run_id, owner=caller.owner)
    return RunSummary.model_validate(await stepgate.service.get_run(run_id, owner=caller.owner))


_APPROVALS = "required: the ids of what is decided, as the run's `approvals` or `GET /v1/approvals` name them"


class ApprovalBody(StrictBody):
    """An approval. `plan` replaces the plan that was shown."""

    approvals: list[str] = Field(default=[], max_length=100, description=_APPROVALS)
    plan: JsonObject | None = None


class RejectionBody(StrictBody):
    """A rejection with its reason."""

    reason: str = Field(default="", max_length=4_000)
    approvals: list[str] = Field(default=[], max_length=100, description=_APPROVALS)


class ReplyBody(StrictBody):
    """A reply other than yes or no: a change, or a question."""

    text: str = Field(min_length=1, max_length=20_000)
    approvals: list[str] = Field(default=[], max_length=100, description=_APPROVALS)


@decisions.post("/v1/runs/{run_id}/approve", status_code=202, responses=ERRORS)
async def approve_run(run_id: str, body: ApprovalBody, stepgate: Gateway, caller: CurrentCaller) -> RunSummary:
    """Approve what the run waits for, as shown or as edited; the run continues at once."""
    return await _submit_decision(stepgate, caller, run_id, "approve", body.approvals, plan=body.plan)


@decisions.post("/v1/runs/{run_id}/reject", status_code=202, responses=ERRORS)
async def reject_run(run_id: str, body: RejectionBody, stepgate: Gateway, caller: CurrentCaller) -> RunSummary:
    """Reject what the run waits for. A rejected plan ends the run; a rejected call is reported to the agent."""
    return await _submit_decision(stepgate, caller, run_id, "reject", body.approvals, reason=body.reason)


@decisions.post("/v1/runs/{run_id}/reply", status_code=202, responses=ERRORS)
async def reply_to_run(run_id: str, body: ReplyBody, stepgate: Gateway, caller: CurrentCaller) -> RunSummary:
    """Ask for a change; the run makes a new plan and asks again."""
    return await _submit_decision(stepgate, caller, run_id, "answer", body.approvals, reason=body.text)


class ForkBody(StrictBody):
    """A fork: the step to begin from, and at most one edit: a whole plan, arguments of the step, or its result."""

    step: str | None = Field(default=None, max_length=100, description="repeated, with every step that depends on it")
    plan: JsonObject | None = Field(default=None, description="replaces the plan; unchanged steps keep their results")
    args: JsonObject | None = Field(default=None, description="arguments of the step to set")
    output: JsonValue = Field(default=None, description="the result of the step, which is then not executed")
    effects: RepeatedEffects = Field(
        default="refuse",
        description="for steps that changed something and would be repeated: `refuse` the fork, `keep` their "
        "results, or `ask` a person first",
    )


@router.post("/v1/runs/{run_id}/fork", status_code=202, responses=ERRORS)
async def fork_run(run_id: str, body: ForkBody, http: Request, stepgate: Gateway, caller: CurrentCaller) -> RunSummary:
    """Start a new run from a step of an ended one. Finished work that the edit leaves alone is taken over."""
    has_output = "output" in body.model_fields_set
    if has_output and body.step is None:
        raise BadRequestError("output belongs to a step: name it", param="step")
    outputs = {body.step: body.output} if has_output and body.step is not None else None
    fork = ForkRequest(run_id, body.step, body.plan, body.args, outputs, body.effects)
    accepted = await accept_run(http, stepgate, caller, fork)
    return RunSummary.model_validate(await stepgate.service.get_run(accepted.run_id, owner=caller.owner))


async def _submit_decision(
    stepgate: Stepgate,
    caller: CurrentCaller,
    run_id: str,
    decision: Decision,
    approvals: list[str],
    *,
    reason: str = "",
    plan: JsonObject | None = None,
) -> RunSummary:
    """Submits the caller's decision. Returns the run after it has resumed."""
    await stepgate.service.get_run(run_id, owner=caller.owner)  # first: an unknown run is a 404 whatever is named
    require_approval_ids(approvals, run_id)
    decided = await stepgate.service.submit_decision(
        run_id, decision, principal=caller.principal, reason=reason, approvals=approvals, plan=plan
    )
    return RunSummary.model_validate(await stepgate.service.wait_until_resumed(decided))


def _list_model_calls(events: list[Event]) -> list[ModelCallItem]:
    return [
        ModelCallItem(
            step_id=event.step_id,
            purpose=event.body.purpose,
            model=event.body.model,
            ended_at=datetime.fromtimestamp(event.at, UTC),
            duration=event.body.duration,
            prompt_tokens=event.body.usage.prompt_tokens,
            completion_tokens=event.body.usage.completion_tokens,
            cost_usd=event.body.usage.cost_usd,
            error_code=event.body.error_code,
        )
        for event in events
        if isinstance(event.body, ModelReturned)
    ]


async def _stream_events(stepgate: Stepgate, run_id: str, owner: str, after: int) -> AsyncGenerator[str, None]:
    async with contextlib.aclosing(stepgate.service.follow_events(run_id, owner=owner, after=after)) as events:
        async for event in events:
            yield build_event_frame(event)


def _build_artifact_response(name: str, content: bytes) -> Response:
    """The file. Untrusted: only pictures are shown by browsers, everything else is downloaded."""
    media_type = get_artifact_type(name)
    disposition = "inline" if media_type.startswith("image/") else "attachment"
    headers = {
        "content-disposition": f"{disposition}; filename*=UTF-8''{quote(PurePosixPath(name).name)}",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
    }
    return Response(content, media_type=media_type, headers=headers)


def parse_position(after: int | None, last_event_id: str | None) -> int:
    """The seq after which a stream begins. Raises `BadRequestError` for a header that is none."""
    if last_event_id is None or not last_event_id.strip():
        return after or 0
    seq = last_event_id.strip()
    # Only ASCII digits, and few of them: `int` accepts other digits too, and refuses very long numbers.
    if not (seq.isascii() and seq.isdigit() and len(seq) <= len(str(MAX_SEQ)) and int(seq) <= MAX_SEQ):
        quoted_id = ascii(last_event_id[:40])
        raise BadRequestError(f"Last-Event-ID must be the seq of an event, not {quoted_id}", param="last-event-id")
    return int(seq)
