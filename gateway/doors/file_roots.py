"""`/v1/admin/file-roots`: the folders that may be read. Only a person on this machine adds some: needs the scope
`admin` and a connection from this machine, to a gateway that nothing else reaches. No tool, MCP or A2A call does it.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from agent.core.errors import NotFoundError, ScopeError
from agent.core.models import LOCAL_OWNER, DeferredModel
from agent.core.readable_roots import AddedRoots
from agent.core.settings import Settings
from agent.storage.audit import AuditEvent
from gateway.access.authentication import can_others_call, is_loopback
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.added_roots import RootRefusedError, add_root, find_settings_obstacle, remove_root
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.render.error_responses import FieldError

router = APIRouter(tags=["file roots"], route_class=JsonRoute, dependencies=[require_scope("admin")])

FolderPath = Annotated[str, Field(min_length=1, max_length=4000, description="absolute, or beginning with ~")]
_COMMAND = "on the gateway's machine: stepgate file-roots add FOLDER"
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class FileRootItem(DeferredModel):
    """A folder that may be read."""

    path: str
    is_added: bool = Field(description="whether it can be removed here")


class FileRootReport(DeferredModel):
    """The folders that may be read."""

    data: list[FileRootItem]
    obstacle: str | None = Field(description="why this caller cannot add a folder, and who can; null if it can")


class NewFileRoot(StrictBody):
    """A folder of the gateway's machine."""

    path: FolderPath


@router.get("/v1/admin/file-roots", responses=ERRORS)
async def list_file_roots(http: Request, stepgate: Gateway) -> FileRootReport:
    """List the folders that may be read, and say whether one can be added from here."""
    return await _build_report(http, stepgate)


@router.post("/v1/admin/file-roots", status_code=201, responses=ERRORS)
async def add_file_root(body: NewFileRoot, http: Request, stepgate: Gateway, caller: CurrentCaller) -> FileRootReport:
    """Make a folder readable. Only from this machine; never a whole home folder, a hidden or a system folder."""
    _check_place(http, stepgate.settings)
    event = AuditEvent("file_root.add", body.path, owner=LOCAL_OWNER, by=caller.name)
    async with stepgate.audit.record_before(event):
        try:
            await asyncio.to_thread(add_root, stepgate.settings, body.path)
        except RootRefusedError as error:
            raise FieldError(error.message, "path") from error
    return await _build_report(http, stepgate)


@router.delete("/v1/admin/file-roots", responses=ERRORS)
async def remove_file_root(
    path: Annotated[str, Query(min_length=1, max_length=4000)],
    http: Request,
    stepgate: Gateway,
    caller: CurrentCaller,
) -> FileRootReport:
    """Remove a folder that was added. Documents that collections have read from it stay."""
    _check_place(http, stepgate.settings)
    event = AuditEvent("file_root.remove", path, owner=LOCAL_OWNER, by=caller.name)
    async with stepgate.audit.record_before(event):
        if not await asyncio.to_thread(remove_root, stepgate.settings, path):
            raise NotFoundError(f"{path[:200]!r} is not a folder that was added")
    return await _build_report(http, stepgate)


async def _build_report(http: Request, stepgate: Stepgate) -> FileRootReport:
    settings = stepgate.settings
    added = () if settings.file_roots else await asyncio.to_thread(AddedRoots(settings.added_roots_path).read)
    items = [FileRootItem(path=str(root), is_added=root in added) for root in settings.readable_roots]
    return FileRootReport(data=items, obstacle=find_settings_obstacle(settings) or _find_place_obstacle(http, settings))


def _check_place(http: Request, settings: Settings) -> None:
    if obstacle := _find_place_obstacle(http, settings):
        raise ScopeError(obstacle)


def _find_place_obstacle(http: Request, settings: Settings) -> str | None:
    """Why folders are not added over this connection."""
    if can_others_call(settings):
        return f"other machines reach this gateway, so folders are added only {_COMMAND}"
    is_here = http.client is None or is_loopback(http.client.host)
    if not is_here or any(name in http.headers for name in _FORWARDED):
        return f"the page is open on another machine, so folders are added only {_COMMAND}"
    return None
