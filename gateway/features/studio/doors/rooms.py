"""`/v1/rooms`: rooms as data. Needs the scope `rooms`; a key sees and edits the rooms of its owner.

A change that starts programs, or sends a stored credential to a new address, waits for a person
(`tools/room_programs.py`), or is refused.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import DeferredModel, JsonObject
from gateway.access.authentication import Caller
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.asked_calls import WaitingCall, ask_person
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.engine.room_changes import (
    RoomChange,
    RoomEdit,
    RoomRestoration,
    make_change,
)
from gateway.features.studio.engine.room_privileges import PrivilegesNeedApprovalError
from gateway.features.studio.engine.room_view import Editor
from gateway.features.studio.parts import get_studio
from gateway.features.studio.room_forms import (
    RoomCopyBody,
    RoomCreateBody,
    RoomDetail,
    RoomItem,
    RoomRevisionItem,
    to_detail,
    to_item,
    to_revision_item,
)
from gateway.features.studio.tools import ROOM_PROGRAMS_TOOL, WITHHELD_CHANGE
from gateway.render.errors import RequestFormatError

router = APIRouter(tags=["rooms"], route_class=JsonRoute, dependencies=[require_scope("rooms")])

_VERSION = "the version that was read; 409 if the room has changed since"


class RoomItems(DeferredModel):
    """The rooms, the default one first."""

    data: list[RoomItem]


class RoomEditBody(BaseModel):
    """Fields to set; null sets the default. Maps are merged field by field (RFC 7396)."""

    model_config = ConfigDict(extra="allow")

    version: str | None = Field(default=None, description=f"required: {_VERSION}")


class RoomRevisionItems(DeferredModel):
    """The texts of a room, newest first."""

    data: list[RoomRevisionItem]


class RoomRestoreBody(StrictBody):
    """Which text the room is to have again."""

    revision: int = Field(ge=1)
    version: str | None = Field(default=None, max_length=100, description=_VERSION)


_CHANGE_ERRORS: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    202: {"model": WaitingCall, "description": "A person must allow what the room's servers would do"},
}


@router.get("/v1/rooms", responses=ERRORS, dependencies=[require_tool("rooms_list")])
async def list_rooms(stepgate: Gateway, caller: CurrentCaller) -> RoomItems:
    """List the rooms."""
    views = await get_studio(stepgate).room_editor.list_rooms(to_editor(stepgate, caller))
    return RoomItems(data=[to_item(view) for view in views])


@router.post(
    "/v1/rooms",
    status_code=201,
    response_model=RoomDetail,
    responses=_CHANGE_ERRORS,
    dependencies=[require_tool("room_create")],
)
async def create_room(body: RoomCreateBody, http: Request, stepgate: Gateway, caller: CurrentCaller) -> Response:
    """Create a managed room; 409 if its id exists."""
    return await change_or_ask(http, stepgate, caller, body.to_change(), status=201)


@router.get("/v1/rooms/{room_id}", responses=ERRORS, dependencies=[require_tool("room_show")])
async def get_room(room_id: str, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Return a room; 404 if the caller sees none of this id."""
    return to_detail(await get_studio(stepgate).room_editor.get_room(room_id, to_editor(stepgate, caller)))


@router.patch(
    "/v1/rooms/{room_id}", response_model=RoomDetail, responses=_CHANGE_ERRORS, dependencies=[require_tool("room_edit")]
)
async def edit_room(
    room_id: str, body: RoomEditBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> Response:
    """Change fields of a managed room. Comments and style of its file stay; 409 if it was changed since it was
    read.
    """
    if body.version is None:
        raise RequestFormatError("version: send the `version` of the room that you have read.", "version")
    change = RoomEdit(room_id=room_id, fields=body.model_extra or {}, version=body.version)
    return await change_or_ask(http, stepgate, caller, change)


@router.delete("/v1/rooms/{room_id}", status_code=204, responses=ERRORS, dependencies=[require_tool("room_delete")])
async def delete_room(
    room_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    version: Annotated[str | None, Query(max_length=100, description=_VERSION)] = None,
) -> None:
    """Delete a managed room. Its runs stay."""
    await get_studio(stepgate).room_editor.delete_room(room_id, to_editor(stepgate, caller), version=version)


@router.get("/v1/rooms/{room_id}/versions", responses=ERRORS, dependencies=[require_tool("room_show")])
async def list_room_versions(room_id: str, stepgate: Gateway, caller: CurrentCaller) -> RoomRevisionItems:
    """List the earlier texts of a room, also of a deleted one, newest first. 409 where rooms are files."""
    revisions = await get_studio(stepgate).room_editor.list_revisions(room_id, to_editor(stepgate, caller))
    return RoomRevisionItems(data=[to_revision_item(one) for one in revisions])


@router.post(
    "/v1/rooms/{room_id}/restore",
    response_model=RoomDetail,
    responses=_CHANGE_ERRORS,
    dependencies=[require_tool("room_edit")],
)
async def restore_room(
    room_id: str, body: RoomRestoreBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> Response:
    """Restore an earlier text of a room, even of a deleted one."""
    change = RoomRestoration(room_id=room_id, revision=body.revision, version=body.version)
    return await change_or_ask(http, stepgate, caller, change)


@router.post(
    "/v1/rooms/{room_id}/copy",
    status_code=201,
    response_model=RoomDetail,
    responses=_CHANGE_ERRORS,
    dependencies=[require_tool("room_copy")],
)
async def copy_room(
    room_id: str, body: RoomCopyBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> Response:
    """Copy a room, including a shipped one. The copy is managed."""
    return await change_or_ask(http, stepgate, caller, body.to_change(room_id), status=201)


async def change_or_ask(
    http: Request, stepgate: Stepgate, caller: Caller, change: RoomChange, *, status: int = 200
) -> Response:
    """Makes the change and returns the room; where a person must allow what its servers would do, asks, and returns 202
    with the question.
    """
    try:
        view = await make_change(get_studio(stepgate).room_editor, change, to_editor(stepgate, caller))
    except PrivilegesNeedApprovalError as needed:
        room_id = change.room_id or (str(change.fields.get("name")) if change.kind == "create" else "")
        args: JsonObject = {"room_id": room_id, "servers": [*needed.privileges.servers]}
        # The change holds the values of environment variables, which nobody is shown.
        withheld: JsonObject = {WITHHELD_CHANGE: change.model_dump(mode="json")}
        return await ask_person(http, stepgate, caller, ROOM_PROGRAMS_TOOL, args, withheld)
    return Response(to_detail(view).model_dump_json(), status, media_type="application/json")


def to_editor(stepgate: Stepgate, caller: Caller) -> Editor:
    """On whose behalf a caller edits rooms. This door requires the scope `rooms` of keys; rooms that start programs, or
    send a credential to a new address, require `admin`, and connecting a server its tool, if the key lists tools.
    """
    is_admin = caller.has_scope("admin")
    may_ask = is_admin and (caller.key is not None or stepgate.settings.allow_programs)
    return Editor(
        caller.owner,
        caller.name,
        may_connect=caller.principal.may_call("mcp_server_add"),
        programs="ask" if may_ask else "refused",
        pairings="ask" if is_admin else "refused",
    )
