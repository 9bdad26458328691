"""`RoomChange`: a change of a room as data, so that it can wait for a person and be made afterwards."""

from typing import Literal, assert_never

from agent.core.models import FrozenModel, JsonObject
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_view import Editor, RoomView


class RoomCreation(FrozenModel):
    """A new room with these fields; its id is made from its name unless given."""

    kind: Literal["create"] = "create"
    fields: JsonObject
    room_id: str | None = None


class RoomEdit(FrozenModel):
    """Fields to set; None sets the default. `version` is what was read."""

    kind: Literal["edit"] = "edit"
    room_id: str
    fields: JsonObject
    version: str | None = None


class RoomCopy(FrozenModel):
    """A copy of `room_id`."""

    kind: Literal["copy"] = "copy"
    room_id: str
    new_id: str | None = None
    name: str | None = None


class RoomRestoration(FrozenModel):
    """An earlier text of a room, which it is to have again."""

    kind: Literal["restore"] = "restore"
    room_id: str
    revision: int
    version: str | None = None


RoomChange = RoomCreation | RoomEdit | RoomCopy | RoomRestoration


async def check_change(rooms: RoomEditor, change: RoomChange, editor: Editor) -> None:
    """Raises what `make_change` would raise now. Changes nothing."""
    match change:
        case RoomCreation():
            await rooms.check_create(change.fields, editor, change.room_id)
        case RoomEdit():
            await rooms.check_edit(change.room_id, change.fields, editor, version=change.version)
        case RoomCopy():
            await rooms.check_copy(change.room_id, editor, room_id=change.new_id, name=change.name)
        case RoomRestoration():
            await rooms.check_restore(change.room_id, change.revision, editor)
        case _:
            assert_never(change)


async def make_change(rooms: RoomEditor, change: RoomChange, editor: Editor) -> RoomView:
    """Makes the change and returns the room. Raises what the editor's methods raise."""
    match change:
        case RoomCreation():
            return await rooms.create_room(change.fields, editor, change.room_id)
        case RoomEdit():
            return await rooms.edit_room(change.room_id, change.fields, editor, version=change.version)
        case RoomCopy():
            return await rooms.copy_room(change.room_id, editor, room_id=change.new_id, name=change.name)
        case RoomRestoration():
            return await rooms.restore_room(change.room_id, change.revision, editor, version=change.version)
        case _:
            assert_never(change)
