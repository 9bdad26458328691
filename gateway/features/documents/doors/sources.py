"""`/v1/sources`: named sources of documents, referred to by id."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import DeferredModel
from agent.core.record_item import RecordItem
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.asked_calls import WaitingCall
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.features.documents.doors.source_credentials import ask_about_credential
from gateway.features.documents.engine.ingest.folder_list import list_folders
from gateway.features.documents.engine.ingest.source_store import NamedSource
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType
from gateway.features.documents.parts import get_documents

router = APIRouter(
    prefix="/v1/sources", tags=["sources"], route_class=JsonRoute, dependencies=[require_scope("ingest")]
)


class NewSource(BaseModel):
    """A source to register. `recursive` includes subfolders or linked pages."""

    model_config = ConfigDict(extra="forbid")

    source_type: SourceType = "local"
    source_identifier: str = Field(
        min_length=1, max_length=4000, description="URL, path below AGENT_FILE_ROOTS, or Google Drive id"
    )
    credentials_id: str | None = Field(default=None, max_length=200, description="name of a stored credential")
    recursive: bool = True
    max_depth: int | None = Field(default=None, ge=0, le=100, description="links away from the start of a web site")
    max_pages: int | None = Field(default=None, ge=1, le=1_000_000, description="pages of a web site that are read")
    name: str = Field(default="", max_length=200, description="what to call it; its identifier when empty")


class SourceItem(RecordItem):
    """A registered source."""

    id: str
    name: str
    source_type: SourceType
    source_identifier: str
    credentials_id: str | None
    recursive: bool
    max_depth: int | None = None
    max_pages: int | None = None
    created_at: datetime


class FolderItem(RecordItem):
    """A folder with its absolute path."""

    name: str
    path: str


class FolderItems(RecordItem):
    """The folders in `path`; without one, the file roots."""

    path: str | None
    parent: str | None = Field(description="null at a root")
    folders: list[FolderItem] = Field(description="by name, without hidden ones and links")
    files: int = Field(description="in the folder itself")
    is_cut: bool = Field(description="whether there is more than is listed")


class SourceList(DeferredModel):
    """Sources, newest first."""

    data: list[SourceItem]


@router.post(
    "",
    status_code=201,
    response_model=SourceItem,
    responses={
        **ERRORS,
        202: {"model": WaitingCall, "description": "A person must approve where its credential is sent"},
    },
    dependencies=[require_tool("ingest")],
)
async def add_source(body: NewSource, http: Request, stepgate: Gateway, caller: CurrentCaller) -> SourceItem | Response:
    """Register a source; an existing one is returned as it is. 403 for a path outside the folders that the operator
    allows, and for a credential that was never sent to its address: with the scope `admin` a person is asked (202).
    """
    get_documents(stepgate).library.check_source_type(body.source_type)
    request = ConnectorInput.model_validate(body.model_dump(exclude={"name"}))
    if (waiting := await ask_about_credential(http, stepgate, caller, request, body.name)) is not None:
        return waiting
    return _to_source_item(await get_documents(stepgate).sources.add(caller.owner, request, body.name))


@router.get("", responses=ERRORS)
async def list_sources(
    stepgate: Gateway, caller: CurrentCaller, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> SourceList:
    """List the caller's sources."""
    sources = await get_documents(stepgate).sources.list(caller.owner, limit=limit)
    return SourceList(data=[_to_source_item(one) for one in sources])


@router.get("/folders", responses=ERRORS, dependencies=[require_tool("list_files")])
async def get_folders(
    stepgate: Gateway,
    path: Annotated[str | None, Query(min_length=1, max_length=4000, description="unset: the file roots")] = None,
) -> FolderItems:
    """List the folders in a folder that may be read. 403 for a path outside the folders that the operator allows."""
    folders = await asyncio.to_thread(list_folders, path, stepgate.settings.readable_roots)
    return FolderItems.model_validate(folders)


@router.get("/{source_id}", responses=ERRORS)
async def get_source(source_id: str, stepgate: Gateway, caller: CurrentCaller) -> SourceItem:
    """Return one source."""
    return _to_source_item(await get_documents(stepgate).sources.get(source_id, caller.owner))


@router.delete("/{source_id}", status_code=204, responses=ERRORS)
async def remove_source(source_id: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Delete a source. Its conversations stay, without it; collections are not changed."""
    await get_documents(stepgate).sources.remove(source_id, caller.owner, by=caller.name)


def _to_source_item(source: NamedSource) -> SourceItem:
    return SourceItem.model_validate({
        **source.request.model_dump(), "id": source.id, "name": source.name, "created_at": source.created
    })  # fmt: skip
