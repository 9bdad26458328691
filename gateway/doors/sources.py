"""`/v1/sources`: where documents come from, named once and spoken of by id."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from agent.builder.sources import NamedSource
from agent.knowledge.models import ConnectorInput, SourceType
from gateway.auth import By, requires
from gateway.doors.agent import ERRORS
from gateway.doors.body import JsonRoute
from gateway.doors.wiring import Gateway

router = APIRouter(prefix="/v1/sources", tags=["sources"], route_class=JsonRoute, dependencies=[requires("ingest")])


class NewSource(BaseModel):
    """A source to be registered. `recursive` takes in what lies below, or the pages that are linked."""

    model_config = ConfigDict(extra="forbid")

    source_type: SourceType = "local"
    source_identifier: str = Field(
        min_length=1, max_length=4000, description="URL, path below AGENT_FILE_ROOTS, or Google Drive id"
    )
    credentials_id: str | None = Field(default=None, max_length=200, description="name of a stored credential")
    recursive: bool = True
    name: str = Field(default="", max_length=200, description="what to call it; its identifier when empty")


class SourceItem(BaseModel):
    """A registered source."""

    id: str
    name: str
    source_type: SourceType
    source_identifier: str
    credentials_id: str | None
    recursive: bool
    created_at: datetime


class SourceList(BaseModel):
    """Sources, newest first."""

    data: list[SourceItem]


@router.post("", status_code=201, responses=ERRORS)
async def add_source(body: NewSource, stepgate: Gateway, caller: By) -> SourceItem:
    """Register a source; one that is there already is returned as it is. 403 for a path outside of the folders that
    the operator allows."""
    request = ConnectorInput.model_validate(body.model_dump(exclude={"name"}))
    return _item(await stepgate.conversations.builder.sources.add(caller.owner, request, body.name))


@router.get("", responses=ERRORS)
async def list_sources(stepgate: Gateway, caller: By, limit: Annotated[int, Query(ge=1, le=1000)] = 200) -> SourceList:
    """The caller's sources."""
    found = await stepgate.conversations.builder.sources.list(caller.owner, limit=limit)
    return SourceList(data=[_item(one) for one in found])


@router.get("/{source_id}", responses=ERRORS)
async def get_source(source_id: str, stepgate: Gateway, caller: By) -> SourceItem:
    """One source."""
    return _item(await stepgate.conversations.builder.sources.get(source_id, caller.owner))


@router.delete("/{source_id}", status_code=204, responses=ERRORS)
async def remove_source(source_id: str, stepgate: Gateway, caller: By) -> None:
    """Forget a source. Conversations about it stay, without it; collections are not touched."""
    await stepgate.conversations.builder.sources.remove(source_id, caller.owner, by=caller.name)


def _item(source: NamedSource) -> SourceItem:
    return SourceItem(
        id=source.id,
        name=source.name,
        source_type=source.request.source_type,
        source_identifier=source.request.source_identifier,
        credentials_id=source.request.credentials_id,
        recursive=source.request.recursive,
        created_at=datetime.fromtimestamp(source.created, UTC),
    )
