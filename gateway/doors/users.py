"""`DELETE /v1/users/{owner}`: delete an owner and everything they own. Needs the scope `admin`."""

from fastapi import APIRouter

from agent.core.models import DeferredModel
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway

router = APIRouter(tags=["users"], route_class=DeferredRoute, dependencies=[require_scope("admin")])


class DeletedOwner(DeferredModel):
    """The deleted owner; `rows` counts the deleted rows by table."""

    owner: str
    rows: dict[str, int]


@router.delete("/v1/users/{owner:path}", responses=ERRORS)  # an owner's name may hold slashes
async def delete_user(owner: str, stepgate: Gateway, caller: CurrentCaller) -> DeletedOwner:
    """Delete an owner's keys, runs, tasks, conversations, memories, documents, collections, sources and jobs. Runs in
    progress are cancelled; 409 if they do not stop in time. 404 if the owner has nothing.
    """
    return DeletedOwner(owner=owner, rows=dict(await stepgate.owners.delete(owner, by=caller.name)))
