"""`GET /v1/approvals`: what waits for a person's decision. A decision names these ids."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from agent.core.events import ApprovalItem
from agent.core.models import DeferredModel
from agent.policy.approval import OpenApproval, format_question, list_open_approvals
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.doors.visible_runs import record_read_approvals

router = APIRouter(tags=["runs"], route_class=DeferredRoute, dependencies=[require_scope("approve")])


class OpenApprovalItem(DeferredModel):
    """An approval request that nobody has decided on."""

    id: str = Field(description="names it in a decision and is used once; 128 random bits")
    run_id: str
    room: str
    owner: str = Field(description="whose run asks")
    title: str = Field(description="the request of the run, shortened")
    question: str = Field(description="what a person is shown, as Markdown")
    reason: str
    items: list[ApprovalItem] = Field(description="the calls that are approved or rejected")
    call_id: str | None = Field(description="the one call that waits; null for a plan as a whole")
    asked_at: datetime
    expires_at: datetime


class OpenApprovals(DeferredModel):
    """What waits for a decision, newest first, of the newest 200 runs that wait."""

    data: list[OpenApprovalItem]


@router.get("/v1/approvals", responses=ERRORS)
async def list_approvals(
    stepgate: Gateway,
    caller: CurrentCaller,
    owner: Annotated[
        str | None, Query(max_length=200, description="needs a key with the scope `admin`; `*`: all owners")
    ] = None,
) -> OpenApprovals:
    """List what waits for a decision: at `/v1/runs/{run_id}/approve`, `reject` and `reply`, with its id.

    A key with the scope `admin` lists what other owners' runs ask too; their owners decide.
    """
    whose = None if owner == "*" else owner or caller.owner
    caller.require_readable(whose)
    waiting = await list_open_approvals(stepgate.service, whose)
    await record_read_approvals(stepgate, caller, waiting)
    return OpenApprovals(data=[to_item(one) for one in waiting])


def to_item(one: OpenApproval) -> OpenApprovalItem:
    """An open approval request as it is shown. Its ids have fields of their own, so that the question names none."""
    return OpenApprovalItem(
        id=one.request.approval_id,
        run_id=one.run.run_id,
        room=one.run.room,
        owner=one.run.owner,
        title=one.run.title,
        question=format_question((one.request,), one.run.run_id, names_ids=False),
        reason=one.request.reason,
        items=list(one.request.items),
        call_id=one.request.call_id,
        asked_at=datetime.fromtimestamp(one.asked_at, UTC),
        expires_at=datetime.fromtimestamp(one.request.expires_at, UTC),
    )
