"""`DELETE /v1/users/{owner}`: an owner with all that is theirs. For keys with the scope `admin`."""

from fastapi import APIRouter
from pydantic import BaseModel

from gateway.auth import By, requires
from gateway.doors.agent import ERRORS
from gateway.doors.wiring import Gateway

router = APIRouter(tags=["users"], dependencies=[requires("admin")])


class DeletedOwner(BaseModel):
    """Who is gone; `rows` counts what there was, by table."""

    owner: str
    rows: dict[str, int]


@router.delete("/v1/users/{owner}", responses=ERRORS)
async def delete_user(owner: str, stepgate: Gateway, caller: By) -> DeletedOwner:
    """Remove an owner's keys, runs, tasks, conversations, memories, documents, collections, sources and jobs. What is
    under way is cancelled; 409 when it does not stop in time. 404 when nothing is theirs."""
    return DeletedOwner(owner=owner, rows=dict(await stepgate.owners.delete(owner, by=caller.name)))
