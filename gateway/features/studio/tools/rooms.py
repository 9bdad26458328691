"""`rooms_list`, `room_show`, `room_create`, `room_edit`, `room_copy`, `room_delete`: rooms for plans and MCP clients.

Only callers who administer may call them: see `AuthorizeEditor`.
"""

import json
from collections.abc import Awaitable, Callable
from typing import ClassVar

from pydantic import Field, JsonValue

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.tools import READ_ONLY, Tool, ToolContext, declare_roles
from agent.tools.tool import In, Out
from gateway.features.studio.engine.field_values import read_field_text
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_view import Editor, RoomOrigin, RoomView
from gateway.features.studio.tools.stored_things import CHANGES, DESTROYS, Arguments, StoredThingTool

AuthorizeEditor = Callable[[ToolContext], Awaitable[Editor]]
"""On whose behalf a call edits rooms. Raises `ToolDeniedError` for callers who may not."""

_KEYWORDS: tuple[str, ...] = ("room", "rooms", "assistant", "studio")


class RoomTool(StoredThingTool[In, Out]):
    """The base class. Only callers who administer may call these tools."""

    keywords: ClassVar[tuple[str, ...]] = _KEYWORDS

    def __init__(self, editor: RoomEditor, authorize: AuthorizeEditor) -> None:
        super().__init__()
        self._editor, self._authorize = editor, authorize

    async def check(self, args: In, context: ToolContext) -> None:
        """Raises `ToolDeniedError` for callers who may not edit rooms."""
        await self._authorize(context)


class RoomsListInput(Arguments):
    """Arguments of `rooms_list`: none."""


class RoomLine(DeferredModel):
    """A room as it is listed. `error` says why its file is not served."""

    id: str
    name: str
    description: str
    origin: RoomOrigin
    error: str = ""


class RoomsListOutput(DeferredModel):
    """The rooms, the default one first."""

    rooms: list[RoomLine]


class RoomsListTool(RoomTool[RoomsListInput, RoomsListOutput]):
    name = "rooms_list"
    description = "List the rooms of this gateway: id, name, description, and whether they can be edited."
    annotations = READ_ONLY

    async def run(self, args: RoomsListInput, context: ToolContext) -> RoomsListOutput:
        views = await self._editor.list_rooms(await self._authorize(context))
        return RoomsListOutput(rooms=[_to_line(view) for view in views])

    def format_text(self, output: RoomsListOutput) -> str:
        return "\n".join(
            f"- {room.id} ({room.origin}): {room.name}{f', {room.description}' if room.description else ''}"
            for room in output.rooms
        )


class RoomShowInput(Arguments):
    """Arguments of `room_show`."""

    room_id: str = Field(max_length=200, description="the room's id")


class RoomOutput(DeferredModel):
    """A room with its YAML. `version` changes with every change of it."""

    id: str
    name: str
    origin: RoomOrigin
    version: str
    yaml: str
    error: str = ""


class _RoomTextTool:
    """Shows rooms to people and models as their YAML."""

    def format_text(self, output: RoomOutput) -> str:
        """The id, what is wrong, and the YAML."""
        return format_room(output)


class RoomShowTool(_RoomTextTool, RoomTool[RoomShowInput, RoomOutput]):
    name = "room_show"
    description = "Show one room: its fields as YAML, its version, and what is wrong with its file."
    annotations = READ_ONLY

    async def run(self, args: RoomShowInput, context: ToolContext) -> RoomOutput:
        return to_output(await self._editor.get_room(args.room_id, await self._authorize(context)))


class RoomCreateInput(Arguments):
    """Arguments of `room_create`."""

    name: str = Field(default="", description="what people call the room; ask the user if it is unknown")
    description: str = Field(default="", description="what the room is for")
    room_id: str = Field(default="", description="its id; empty: made from the name")
    fields: JsonObject = Field(
        default_factory=dict,
        description="further fields, such as system_prompt, persona, fast_model, tools, skills, suggestions, approval",
    )


class RoomCreateTool(_RoomTextTool, RoomTool[RoomCreateInput, RoomOutput]):
    name = "room_create"
    description = "Create a room (an assistant with a name, a prompt, tools and skills of its own)."
    annotations = CHANGES
    argument_roles = declare_roles(name="content", description="content", room_id="id", fields="other")
    keywords = (*_KEYWORDS, "create", "make", "new")

    async def check(self, args: RoomCreateInput, context: ToolContext) -> None:
        editor = await self._authorize(context)
        await self._editor.check_create(_list_fields(args), editor, args.room_id or None)

    async def run(self, args: RoomCreateInput, context: ToolContext) -> RoomOutput:
        """Creates it, owned by the caller."""
        editor = await self._authorize(context)
        return to_output(await self._editor.create_room(_list_fields(args), editor, args.room_id or None))


def _list_fields(args: RoomCreateInput) -> JsonObject:
    """The fields of the new room."""
    return {**args.fields, "name": args.name, **({"description": args.description} if args.description else {})}


class RoomEditInput(Arguments):
    """Arguments of `room_edit`."""

    room_id: str = Field(max_length=200, description="the room's id")
    field: str = Field(max_length=200, description="the field to set, such as description or budgets.max_steps")
    value: JsonValue = Field(default=None, description="its new value; null sets the default again")
    version: str = Field(default="", description="the version that was read; the edit fails if it has changed")


class RoomEditOutput(RoomOutput):
    """The room after an edit. `before` is the field's value before it, so that it can be set again."""

    field: str
    before: JsonValue


class RoomEditTool(RoomTool[RoomEditInput, RoomEditOutput]):
    name = "room_edit"
    description = "Set one field of a managed room. An unknown field or value is refused with the allowed ones."
    annotations = CHANGES
    argument_roles = declare_roles(room_id="id", field="other", value="other", version="id")
    keywords = (*_KEYWORDS, "edit", "change", "set", "add")

    async def check(self, args: RoomEditInput, context: ToolContext) -> None:
        editor = await self._authorize(context)
        await self._editor.check_edit(args.room_id, _list_changes(args), editor)

    async def run(self, args: RoomEditInput, context: ToolContext) -> RoomEditOutput:
        """Sets the field; everything else of the text stays."""
        changes = _list_changes(args)
        editor = await self._authorize(context)
        before = _read_field(await self._editor.get_room(args.room_id, editor), args.field)
        edited = await self._editor.edit_room(args.room_id, changes, editor, version=args.version or None)
        return RoomEditOutput(**to_output(edited).model_dump(), field=args.field, before=before)

    def format_text(self, output: RoomEditOutput) -> str:
        """The room, and the value that the field had before."""
        before = json.dumps(output.before, ensure_ascii=False)
        return f"{format_room(output)}\n\nBefore, {output.field} was {before}."


def _list_changes(args: RoomEditInput) -> JsonObject:
    """The fields to change, nested as `field` names them."""
    changes: JsonValue = read_field_text(args.field, args.value) if isinstance(args.value, str) else args.value
    for name in reversed(args.field.split(".")):
        changes = {name: changes}
    if not isinstance(changes, dict):
        raise ToolInputError("name a field")
    return changes


class RoomCopyInput(Arguments):
    """Arguments of `room_copy`."""

    room_id: str = Field(max_length=200, description="the room to copy, a shipped one too")
    name: str = Field(default="", description="the copy's name; empty: that of the room and `copy`")
    new_id: str = Field(default="", description="the copy's id; empty: made from its name")


class RoomCopyOutput(RoomOutput):
    """The copy. MCP servers are connected only after a person has allowed each."""

    servers_left_out: list[str] = Field(default=[])


class RoomCopyTool(RoomTool[RoomCopyInput, RoomCopyOutput]):
    name = "room_copy"
    description = "Copy a room, a shipped one too. The copy can be edited. MCP servers are not copied: mcp_server_add."
    annotations = CHANGES
    argument_roles = declare_roles(room_id="id", name="content", new_id="id")
    keywords = (*_KEYWORDS, "copy", "duplicate")

    async def check(self, args: RoomCopyInput, context: ToolContext) -> None:
        editor = await self._authorize(context)
        await self._editor.check_copy(args.room_id, editor, room_id=args.new_id or None, name=args.name or None)

    async def run(self, args: RoomCopyInput, context: ToolContext) -> RoomCopyOutput:
        """Copies it, owned by the caller."""
        editor = await self._authorize(context)
        source = await self._editor.get_room(args.room_id, editor)
        copied = await self._editor.copy_room(args.room_id, editor, room_id=args.new_id or None, name=args.name or None)
        servers = source.room.mcp_servers if source.room is not None else ()
        copied_servers = copied.room.mcp_servers if copied.room is not None else ()
        left_out = [name for name in servers if name not in copied_servers]
        return RoomCopyOutput(**to_output(copied).model_dump(), servers_left_out=left_out)

    def format_text(self, output: RoomCopyOutput) -> str:
        """The copy, and which MCP servers it lacks."""
        names = ", ".join(output.servers_left_out)
        lack = f"\n\nNot copied: the MCP servers {names}. mcp_server_add connects them, once a person has allowed it."
        return f"{format_room(output)}{lack if names else ''}"


class RoomDeleteInput(Arguments):
    """Arguments of `room_delete`."""

    room_id: str = Field(max_length=200, description="the room's id")
    version: str = Field(default="", description="the version that was read; the room stays if it has changed")


class RoomDeleteOutput(DeferredModel):
    """The id of the deleted room, and its YAML, from which it can be made again."""

    deleted: str
    yaml: str


class RoomDeleteTool(RoomTool[RoomDeleteInput, RoomDeleteOutput]):
    name = "room_delete"
    description = "Delete a managed room. Its earlier runs stay."
    annotations = DESTROYS
    argument_roles = declare_roles(room_id="id", version="id")
    keywords = (*_KEYWORDS, "delete", "remove")

    async def check(self, args: RoomDeleteInput, context: ToolContext) -> None:
        await self._editor.check_delete(args.room_id, await self._authorize(context))

    async def run(self, args: RoomDeleteInput, context: ToolContext) -> RoomDeleteOutput:
        editor = await self._authorize(context)
        view = await self._editor.get_room(args.room_id, editor)
        await self._editor.delete_room(args.room_id, editor, version=args.version or None)
        return RoomDeleteOutput(deleted=args.room_id, yaml=view.text)

    def format_text(self, output: RoomDeleteOutput) -> str:
        return f"Deleted the room {output.deleted}. It was:\n\n```yaml\n{output.yaml.strip()}\n```"


def make_room_tools(editor: RoomEditor, authorize: AuthorizeEditor) -> tuple[Tool, ...]:
    """The tools over the rooms of this gateway."""
    return (
        RoomsListTool(editor, authorize),
        RoomShowTool(editor, authorize),
        RoomCreateTool(editor, authorize),
        RoomEditTool(editor, authorize),
        RoomCopyTool(editor, authorize),
        RoomDeleteTool(editor, authorize),
    )


def format_room(room: RoomOutput) -> str:
    """The id, what is wrong, and the YAML."""
    error = f"\nNot served as it is: {room.error}" if room.error else ""
    return f"Room {room.id} ({room.origin}, version {room.version or 'none'}){error}\n{room.yaml}".rstrip()


def _read_field(view: RoomView, field: str) -> JsonValue:
    """The value of a field, such as `budgets.max_steps`; None if the room has none of this name."""
    value: JsonValue = view.room.model_dump(mode="json") if view.room is not None else None
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _to_line(view: RoomView) -> RoomLine:
    room = view.room
    return RoomLine(
        id=view.room_id,
        name=(room.name if room is not None else "") or view.room_id,
        description=room.description if room is not None else "",
        origin=view.origin,
        error=view.error,
    )


def to_output(view: RoomView) -> RoomOutput:
    """A room as tools show it."""
    return RoomOutput(
        id=view.room_id,
        name=_to_line(view).name,
        origin=view.origin,
        version=view.version,
        yaml=view.text,
        error=view.error,
    )
