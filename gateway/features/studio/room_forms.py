"""The forms of a room: as it is sent, as tools show it, and as it is created, copied and edited.

A field of a room is defined in `Room` (`agent/core/models/room.py`). Its text, the route, the tools and the commands
take it from there; it is added here to each form that shows it by itself. What is asked for becomes a `RoomChange`
(`engine/room_changes.py`), which routes and tools check and make alike.
"""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent.core.models import DeferredModel, JsonObject, Room
from agent.tools import declare_roles
from agent.tools.stored_things import OUTSIDE_TEXT, Arguments, omit_outside_text
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.engine.field_values import read_field_text
from gateway.features.studio.engine.room_changes import RoomCopy, RoomCreation, RoomEdit
from gateway.features.studio.engine.room_store import RoomRevision, StoredRoom
from gateway.features.studio.engine.room_view import RoomOrigin, RoomView

CREATE_ROLES = declare_roles(name="content", description="content", room_id="id", fields="other")
"""The roles of `RoomCreateInput`."""
EDIT_ROLES = declare_roles(room_id="id", field="other", value="other", change="other", version="id")
"""The roles of `RoomEditInput`."""
COPY_ROLES = declare_roles(room_id="id", name="content", new_id="id")
"""The roles of `RoomCopyInput`."""


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


class RoomRevisionItem(DeferredModel):
    """A text that a room had. A deletion has none."""

    revision: int
    version: str = Field(description="the room's `version` while it had this text; empty for a deletion")
    stored_at: datetime
    yaml: str | None


class RoomLine(DeferredModel):
    """A room as it is listed. `error` says why its file is not served."""

    id: str
    name: str
    description: str
    origin: RoomOrigin
    from_outside: bool = False
    error: str = ""


class RoomOutput(DeferredModel):
    """A room with its YAML. `version` changes with every change of it."""

    id: str
    name: str
    origin: RoomOrigin
    version: str
    yaml: str
    from_outside: bool = Field(default=False, description="whether its texts may be of something that a model had read")
    error: str = ""


class RoomCreateBody(BaseModel):
    """A new room: its name, and any fields of a room, such as `system_prompt`, `tools` and `budgets`."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(default=None, description="unset: made from the name")
    name: str | None = None

    def to_change(self) -> RoomCreation:
        """The new room."""
        return RoomCreation(fields={"name": self.name, **(self.model_extra or {})}, room_id=self.id)


class RoomCreateInput(Arguments):
    """Arguments of `room_create`."""

    name: str = Field(default="", description="what people call the room; ask the user if it is unknown")
    description: str = Field(default="", description="what the room is for")
    room_id: str = Field(default="", description="its id; empty: made from the name")
    fields: JsonObject = Field(
        default={},
        description="further fields, such as system_prompt, persona, fast_model, tools, skills, suggestions, approval",
    )

    def to_change(self) -> RoomCreation:
        """The new room. Models send "" for what they leave out."""
        description: JsonObject = {"description": self.description} if self.description else {}
        return RoomCreation(fields={**self.fields, "name": self.name, **description}, room_id=self.room_id or None)


class RoomEditInput(Arguments):
    """Arguments of `room_edit`."""

    room_id: str = Field(max_length=200, description="the room's id or name")
    field: str = Field(
        max_length=200, description="the field to set, such as description, tools, skills or budgets.max_steps"
    )
    value: JsonValue = Field(description="its new value; null sets the default again")
    change: Literal["", "set", "add", "remove"] = Field(
        default="", description="for lists such as tools: add these entries, remove them, or set the whole list"
    )
    version: str = Field(default="", description="the version that was read; the edit fails if it has changed")

    def to_change(self) -> RoomEdit:
        """The edit, with the field nested as its name says."""
        *parents, last = self.field.split(".")
        value = read_field_text(self.field, self.value) if isinstance(self.value, str) else self.value
        fields: JsonObject = {last: value}
        for name in reversed(parents):
            fields = {name: fields}
        return RoomEdit(room_id=self.room_id, fields=fields, version=self.version or None)


class RoomCopyBody(StrictBody):
    """The copy's name and id. Unset: `NAME copy`, and an id made from the name."""

    id: str | None = None
    name: str | None = None

    def to_change(self, room_id: str) -> RoomCopy:
        """A copy of this room."""
        return RoomCopy(room_id=room_id, new_id=self.id, name=self.name)


class RoomCopyInput(Arguments):
    """Arguments of `room_copy`."""

    room_id: str = Field(max_length=200, description="the room to copy, a shipped one too")
    name: str = Field(default="", description="the copy's name; empty: that of the room and `copy`")
    new_id: str = Field(default="", description="the copy's id; empty: made from its name")

    def to_change(self) -> RoomCopy:
        """The copy. Models send "" for what they leave out."""
        return RoomCopy(room_id=self.room_id, new_id=self.new_id or None, name=self.name or None)


def to_item(view: RoomView) -> RoomItem:
    """A room in a list of a route or a command."""
    return RoomItem.model_validate({**_collect_fields(view), "error": view.error or None})


def to_detail(view: RoomView) -> RoomDetail:
    """A room with its text, for a route or a command."""
    room = None if view.room is None else view.room.model_dump(mode="json")
    fields = {**_collect_fields(view), "error": view.error or None, "yaml": view.text, "room": room}
    return RoomDetail.model_validate(fields)


def to_line(view: RoomView) -> RoomLine:
    """A room in a list of a tool. A name can hold as many words as a description; an error quotes the text."""
    line = omit_outside_text(RoomLine.model_validate({**_collect_fields(view), "error": view.error}))
    return (
        line.model_copy(update={"name": line.id, "error": line.error and OUTSIDE_TEXT}) if line.from_outside else line
    )


def to_output(view: RoomView) -> RoomOutput:
    """A room as tools show it."""
    return RoomOutput.model_validate({**_collect_fields(view), "error": view.error, "yaml": view.text})


def to_revision_item(revision: RoomRevision) -> RoomRevisionItem:
    """A text of a room, for a route or a command."""
    data = revision.data
    return RoomRevisionItem(
        revision=revision.revision,
        version="" if data is None else StoredRoom("", data, is_managed=True).version,
        stored_at=datetime.fromtimestamp(revision.at, UTC),
        yaml=None if data is None else data.decode("utf-8", "replace"),
    )


def format_room(room: RoomOutput) -> str:
    """Formats the id, what is wrong, and the YAML."""
    error = f"\nNot served as it is: {room.error}" if room.error else ""
    return f"Room {room.id} ({room.origin}, version {room.version or 'none'}){error}\n{room.yaml}".rstrip()


def _collect_fields(view: RoomView) -> dict[str, Any]:
    """The fields that forms pick from. A room whose text was never usable shows defaults, and belongs to nobody."""
    room = view.room if view.room is not None else Room(id="unusable", owner="")
    own = {"id": view.room_id, "name": view.title, "origin": view.origin, "version": view.version}
    return {**dict(room), **own}
