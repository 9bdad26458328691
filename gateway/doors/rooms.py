"""`/v1/rooms`: rooms as data. Needs the scope `admin`; a key sees and edits the rooms of its owner."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import DeferredModel, JsonObject
from agent.studio.room_editor import Editor, RoomOrigin, RoomView
from agent.studio.room_store import RoomRevision, StoredRoom
from gateway.auth.authentication import Caller
from gateway.auth.dependencies import CurrentCaller, require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute, StrictBody
from gateway.errors import RequestFormatError

router = APIRouter(tags=["rooms"], route_class=JsonRoute, dependencies=[require_scope("admin")])

_VERSION = "the version that was read; 409 if the room has changed since"


class RoomItem(DeferredModel):
    """A room. `error` says why its file is not served as it is; then it is served as it last worked."""

    id: str
    name: str
    description: str
    origin: RoomOrigin = Field(description="`shipped` is read only, `file` is edited by people, `managed` here too")
    owner: str = Field(description="who may use it; `local` shares it with all")
    suggestions: list[str]
    version: str = Field(description="changes with every change of the file; empty for a shipped room")
    error: str | None


class RoomDetail(RoomItem):
    """A room with its file and all of its fields as they are served now, defaults included."""

    yaml: str
    room: JsonObject | None


class RoomItems(DeferredModel):
    """The rooms, the default one first."""

    data: list[RoomItem]


class RoomCreateBody(BaseModel):
    """A new room: its name, and any fields of a room, such as `system_prompt`, `tools` and `budgets`."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(default=None, description="unset: made from the name")
    name: str | None = None


class RoomEditBody(BaseModel):
    """Fields to set; null sets the default. Maps are merged field by field (RFC 7396)."""

    model_config = ConfigDict(extra="allow")

    version: str | None = Field(default=None, description=f"required: {_VERSION}")


class RoomCopyBody(StrictBody):
    """The copy's name and id. Unset: `NAME copy`, and an id made from the name."""

    id: str | None = None
    name: str | None = None


class RoomRevisionItem(DeferredModel):
    """A text that a room had. A deletion has none."""

    revision: int
    version: str = Field(description="the room's `version` while it had this text; empty for a deletion")
    stored_at: datetime
    yaml: str | None


class RoomRevisionItems(DeferredModel):
    """The texts of a room, newest first."""

    data: list[RoomRevisionItem]


class RoomRestoreBody(StrictBody):
    """Which text the room is to have again."""

    revision: int = Field(ge=1)
    version: str | None = Field(default=None, max_length=100, description=_VERSION)


@router.get("/v1/rooms", responses=ERRORS)
async def list_rooms(stepgate: Gateway, caller: CurrentCaller) -> RoomItems:
    """List the rooms."""
    views = await stepgate.room_editor.list_rooms(to_editor(caller))
    return RoomItems(data=[RoomItem(**_describe(view)) for view in views])


@router.post("/v1/rooms", status_code=201, responses=ERRORS)
async def create_room(body: RoomCreateBody, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Create a managed room; 409 if its id exists."""
    fields = {"name": body.name, **(body.model_extra or {})}
    return to_detail(await stepgate.room_editor.create_room(fields, to_editor(caller), body.id))


@router.get("/v1/rooms/{room_id}", responses=ERRORS)
async def get_room(room_id: str, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Return a room; 404 if the caller sees none of this id."""
    return to_detail(await stepgate.room_editor.get_room(room_id, to_editor(caller)))


@router.patch("/v1/rooms/{room_id}", responses=ERRORS)
async def edit_room(room_id: str, body: RoomEditBody, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Change fields of a managed room. Comments and style of its file stay; 409 if it was changed since it was
    read.
    """
    if body.version is None:
        raise RequestFormatError("version: send the `version` of the room that you have read.", "version")
    changes = body.model_extra or {}
    return to_detail(await stepgate.room_editor.edit_room(room_id, changes, to_editor(caller), version=body.version))


@router.delete("/v1/rooms/{room_id}", status_code=204, responses=ERRORS)
async def delete_room(
    room_id: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    version: Annotated[str | None, Query(max_length=100, description=_VERSION)] = None,
) -> None:
    """Delete a managed room. Its runs stay."""
    await stepgate.room_editor.delete_room(room_id, to_editor(caller), version=version)


@router.get("/v1/rooms/{room_id}/versions", responses=ERRORS)
async def list_room_versions(room_id: str, stepgate: Gateway, caller: CurrentCaller) -> RoomRevisionItems:
    """List the texts that a room had, newest first; of a deleted one too. 409 where rooms are files."""
    found = await stepgate.room_editor.list_revisions(room_id, to_editor(caller))
    return RoomRevisionItems(data=[to_revision_item(one) for one in found])


@router.post("/v1/rooms/{room_id}/restore", responses=ERRORS)
async def restore_room(room_id: str, body: RoomRestoreBody, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Give a room a text that it had. A deleted room is there again."""
    editor = to_editor(caller)
    return to_detail(await stepgate.room_editor.restore_room(room_id, body.revision, editor, version=body.version))


@router.post("/v1/rooms/{room_id}/copy", status_code=201, responses=ERRORS)
async def copy_room(room_id: str, body: RoomCopyBody, stepgate: Gateway, caller: CurrentCaller) -> RoomDetail:
    """Copy a room, a shipped one too. The copy is managed."""
    editor = to_editor(caller)
    return to_detail(await stepgate.room_editor.copy_room(room_id, editor, room_id=body.id, name=body.name))


def to_editor(caller: Caller) -> Editor:
    """Returns on whose behalf a caller edits rooms."""
    return Editor(caller.owner, caller.name)


def to_revision_item(one: RoomRevision) -> RoomRevisionItem:
    """Returns a text of a room as it is shown."""
    version = "" if one.data is None else StoredRoom("", one.data, is_managed=True).version
    yaml = None if one.data is None else one.data.decode("utf-8", "replace")
    return RoomRevisionItem(
        revision=one.revision, version=version, stored_at=datetime.fromtimestamp(one.at, UTC), yaml=yaml
    )


def to_detail(view: RoomView) -> RoomDetail:
    """Returns a room as it is shown."""
    room = None if view.room is None else view.room.model_dump(mode="json")
    return RoomDetail(**_describe(view), yaml=view.text, room=room)


def _describe(view: RoomView) -> dict[str, Any]:
    return {**view.describe(), "suggestions": list(view.room.suggestions) if view.room is not None else []}
