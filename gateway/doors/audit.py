"""`GET /v1/audit`: who did what, and when. Needs the scope `admin`: it covers all owners."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from agent.core.models import DeferredModel, JsonObject
from agent.core.record_item import RecordItem
from agent.storage.audit import MAX_ID
from gateway.access.dependencies import require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway

router = APIRouter(tags=["audit"], route_class=DeferredRoute, dependencies=[require_scope("admin")])


class AuditItem(RecordItem):
    """One record. `outcome` is `failed` if an act that was recorded before it was done has failed."""

    id: int
    at: datetime
    owner: str = Field(description="whose things it is about")
    principal: str = Field(description="who did it, with the id of their key")
    action: str
    target: str
    outcome: str
    detail: JsonObject


class AuditItems(DeferredModel):
    """Records, newest first; pass `next` as `before` for older ones."""

    data: list[AuditItem]
    next: int | None = None


@router.get("/v1/audit", responses=ERRORS)
async def list_audit(
    stepgate: Gateway,
    since: Annotated[AwareDatetime | None, Query(description="with its time zone")] = None,
    action: Annotated[str, Query(max_length=100, description="`key.revoke`, or `key` for all of the kind")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int, Query(ge=1, le=MAX_ID)] = MAX_ID,
) -> AuditItems:
    """List the audit record."""
    at = since.timestamp() if since is not None else 0.0
    entries = await stepgate.audit.list_entries(since=at, action=action, before=before, limit=limit)
    return AuditItems(data=AuditItem.from_records(entries), next=entries[-1].id if len(entries) == limit else None)
