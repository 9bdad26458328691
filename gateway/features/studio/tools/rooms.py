"""`rooms_list`, `room_show`, `room_create`, `room_edit`, `room_copy`, `room_delete`: rooms for plans and MCP clients.

Only callers who administer may call them: see `AuthorizeEditor`.
"""

import json
from collections.abc import Awaitable, Callable
from typing import ClassVar

from pydantic import Field, JsonValue, ValidationError

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel, JsonObject, Room
from agent.policy.guardrails.plain_text import format_literal
from agent.tools import READ_ONLY, PlanHints, Tool, ToolContext, declare_roles
from agent.tools.stored_things import CHANGES, DESTROYS, Arguments, StoredThingList, StoredThingTool, refuse_as_input
from agent.tools.tool import In, Out
from gateway.features.studio.engine.field_values import allows_all, change_list, holds_list, read_field_text
from gateway.features.studio.engine.room_changes import check_change, make_change
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_view import Editor, RoomView
from gateway.features.studio.room_forms import (
    COPY_ROLES,
    CREATE_ROLES,
    EDIT_ROLES,
    RoomCopyInput,
    RoomCreateInput,
    RoomEditInput,
    RoomLine,
    RoomOutput,
    format_room,
    to_line,
    to_output,
)

AuthorizeEditor = Callable[[ToolContext], Awaitable[Editor]]
"""On whose behalf a call edits rooms. Raises `ToolDeniedError` for callers who may not."""

PREVIEW_CHARS = 2_000
"""Characters of a value in a question."""
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

    async def replace_names(self, args: JsonObject, context: ToolContext) -> JsonObject:
        """Takes a room's name for its id: who makes a room and uses it in one message does not know the id yet."""
        return await replace_room_name(args, self._editor, await self._authorize(context))


async def replace_room_name(args: JsonObject, editor: RoomEditor, caller: Editor) -> JsonObject:
    """The arguments with the room's id where `room_id` is its name."""
    name = args.get("room_id")
    return {**args, "room_id": await editor.find_room_id(name, caller)} if isinstance(name, str) and name else args


class RoomsListInput(Arguments):
    """Arguments of `rooms_list`: none."""


class RoomsListOutput(DeferredModel):
    """The rooms, the default one first."""

    rooms: list[RoomLine]


class RoomsListTool(StoredThingList, RoomTool[RoomsListInput, RoomsListOutput]):
    name = "rooms_list"
    description = "List the rooms of this gateway: id, name, description, and whether they can be edited."
    annotations = READ_ONLY

    async def run(self, args: RoomsListInput, context: ToolContext) -> RoomsListOutput:
        views = await self._editor.list_rooms(await self._authorize(context))
        return RoomsListOutput(rooms=[to_line(view) for view in views])

    def format_text(self, output: RoomsListOutput) -> str:
        return "\n".join(
            f"- {room.id} ({room.origin}): {room.name}{f', {room.description}' if room.description else ''}"
            for room in output.rooms
        )


class RoomShowInput(Arguments):
    """Arguments of `room_show`."""

    room_id: str = Field(max_length=200, description="the room's id or name")


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


class RoomCreateTool(_RoomTextTool, RoomTool[RoomCreateInput, RoomOutput]):
    name = "room_create"
    description = "Create a room (an assistant with a name, a prompt, tools and skills of its own)."
    annotations = CHANGES
    argument_roles = CREATE_ROLES
    hints = PlanHints(user_inputs=("name",))
    keywords = (*_KEYWORDS, "create", "make", "new")

    async def replace_names(self, args: JsonObject, context: ToolContext) -> JsonObject:
        """Unchanged: `room_id` is the new room's."""
        return args

    async def check(self, args: RoomCreateInput, context: ToolContext) -> None:
        await check_change(self._editor, args.to_change(), await self._authorize(context))

    async def run(self, args: RoomCreateInput, context: ToolContext) -> RoomOutput:
        """Creates it, owned by the caller."""
        return to_output(await make_change(self._editor, args.to_change(), await self._authorize(context)))


class RoomEditOutput(RoomOutput):
    """The room after an edit. `before` is the field's value before it, so that it can be set again."""

    field: str
    before: JsonValue


class RoomEditTool(RoomTool[RoomEditInput, RoomEditOutput]):
    name = "room_edit"
    description = (
        "Set one field of a managed room, or add entries to a list such as tools, or remove them (change). An unknown "
        "field or value is refused with the allowed ones."
    )
    annotations = CHANGES
    argument_roles = EDIT_ROLES
    keywords = (*_KEYWORDS, "edit", "change", "set", "add", "remove")

    async def replace_names(self, args: JsonObject, context: ToolContext) -> JsonObject:
        """With the room's id, and with the whole list that entries make which are added or removed.

        Raises `ToolInputError` where names are written for a list that has others, and nothing says what becomes of
        those: what a person wants to add would take their place.
        """
        args = await super().replace_names(args, context)
        try:
            edit = RoomEditInput.model_validate(args)
        except ValidationError:
            return args  # the call names what is wrong
        is_bare = isinstance(edit.value, str) and not edit.value.lstrip().startswith("[")
        if edit.change == "set" or not (edit.change or is_bare):
            return args
        if not holds_list(edit.field):
            if edit.change:
                raise ToolInputError(f"change: {edit.field[:80]} is not a list, so its value can only be set")
            return args
        view = await self._editor.get_room(edit.room_id, await self._authorize(context))
        before = _read_field(view.room, edit.field)
        entries = before if isinstance(before, list) else self._list_allowed(view, edit)
        value = read_field_text(edit.field, edit.value) if isinstance(edit.value, str) else edit.value
        if edit.change:
            value = change_list(entries, value, edit.change)
            if value == entries:
                has = "has" if edit.change == "add" else "does not have"
                raise ToolInputError(f"{edit.field} of the room {edit.room_id} {has} this already", stage="unchanged")
        elif isinstance(value, list) and (lost := [one for one in entries if one not in value]):
            names = json.dumps(lost, ensure_ascii=False)
            raise ToolInputError(
                f"{edit.field} of the room has {names} too: set `change` to `add` to keep them, to `remove` to take "
                "only the named ones out, or to `set` to replace the list"
            )
        return {**args, "value": value, "change": "set"}

    def _list_allowed(self, view: RoomView, edit: RoomEditInput) -> list[JsonValue]:
        """The entries of a list that is not set. Of one that then allows all, those that it allows now: adding or
        removing an entry changes nothing about the others. Raises `ToolInputError` where nobody can list them.
        """
        if not allows_all(edit.field) or not edit.change or view.room is None:
            return []
        allowed = self._editor.live.registries.list_allowed(edit.field, view.room)
        if allowed is None:
            raise ToolInputError(
                f"{edit.field} of the room is not set, so it allows all: set `change` to `set` and name all entries "
                "that it is to have"
            )
        return [*allowed]

    async def preview(self, args: JsonObject, context: ToolContext) -> str:
        """The field before and after, and which entries of a list go."""
        with refuse_as_input():
            args = await self.replace_names(args, context)
            edit = RoomEditInput.model_validate(args)
            view = await self._editor.get_room(edit.room_id, await self._authorize(context))
        before = _read_field(view.room, edit.field)
        after = read_field_text(edit.field, edit.value) if isinstance(edit.value, str) else edit.value
        lines = [f"Before: {_format_entries(edit.field, before)}", f"After: {_format_entries(edit.field, after)}"]
        remaining = after if isinstance(after, list) else []
        if isinstance(before, list) and (lost := [one for one in before if one not in remaining]):
            lines.append(f"Removed: {_format_value(lost)}")
        return "  \n".join(lines)

    async def check(self, args: RoomEditInput, context: ToolContext) -> None:
        """Raises `ToolInputError` also for an edit after which the field is as before: it would count as done."""
        editor, edit = await self._authorize(context), args.to_change()
        before = await self._editor.get_room(args.room_id, editor)
        after = await self._editor.check_edit(args.room_id, edit.fields, editor, version=edit.version)
        value = _read_field(before.room, args.field)
        if before.room is not None and value == _read_field(after, args.field):
            entries = _format_entries(args.field, value)
            raise ToolInputError(f"{args.field} of the room {args.room_id} is {entries} already", stage="unchanged")

    async def run(self, args: RoomEditInput, context: ToolContext) -> RoomEditOutput:
        """Sets the field; everything else of the text stays."""
        await self.check(args, context)
        editor = await self._authorize(context)
        before = _read_field((await self._editor.get_room(args.room_id, editor)).room, args.field)
        edited = await make_change(self._editor, args.to_change(), editor)
        return RoomEditOutput(**to_output(edited).model_dump(), field=args.field, before=before)

    def format_text(self, output: RoomEditOutput) -> str:
        """The room, and the value that the field had before."""
        before = json.dumps(output.before, ensure_ascii=False)
        return f"{format_room(output)}\n\nBefore, {output.field} was {before}."


class RoomCopyOutput(RoomOutput):
    """The copy. MCP servers are connected only after a person has allowed each."""

    servers_left_out: list[str] = Field(default=[])


class RoomCopyTool(RoomTool[RoomCopyInput, RoomCopyOutput]):
    name = "room_copy"
    description = "Copy a room, a shipped one too. The copy can be edited. MCP servers are not copied: mcp_server_add."
    annotations = CHANGES
    argument_roles = COPY_ROLES
    keywords = (*_KEYWORDS, "copy", "duplicate")

    async def check(self, args: RoomCopyInput, context: ToolContext) -> None:
        await check_change(self._editor, args.to_change(), await self._authorize(context))

    async def run(self, args: RoomCopyInput, context: ToolContext) -> RoomCopyOutput:
        """Copies it, owned by the caller."""
        editor = await self._authorize(context)
        source = await self._editor.get_room(args.room_id, editor)
        copied = await make_change(self._editor, args.to_change(), editor)
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

    room_id: str = Field(max_length=200, description="the room's id or name")
    version: str = Field(default="", description="the version that was read; the room stays if it has changed")


class RoomDeleteOutput(DeferredModel):
    """The id of the deleted room, and its YAML, from which it can be made again."""

    deleted: str
    yaml: str
    from_outside: bool = False


class RoomDeleteTool(RoomTool[RoomDeleteInput, RoomDeleteOutput]):
    name = "room_delete"
    description = "Delete a managed room. Its earlier runs stay."
    annotations = DESTROYS
    argument_roles = declare_roles(room_id="id", version="id")
    keywords = (*_KEYWORDS, "delete", "remove")

    async def check(self, args: RoomDeleteInput, context: ToolContext) -> None:
        await self._editor.check_delete(args.room_id, await self._authorize(context), version=args.version or None)

    async def run(self, args: RoomDeleteInput, context: ToolContext) -> RoomDeleteOutput:
        editor = await self._authorize(context)
        view = await self._editor.get_room(args.room_id, editor)
        await self._editor.delete_room(args.room_id, editor, version=args.version or None)
        return RoomDeleteOutput(deleted=args.room_id, yaml=view.text, from_outside=to_output(view).from_outside)

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


def _format_value(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return format_literal(text if len(text) <= PREVIEW_CHARS else f"{text[:PREVIEW_CHARS]}...")


def _format_entries(field: str, value: JsonValue) -> str:
    """A value of a field; of a list in words if it allows all or nothing."""
    if not allows_all(field) or value not in (None, []):
        return f"{_format_value(value)}{' (the default)' if value is None else ''}"
    return f"all {field} (no list)" if value is None else f"no {field} (an empty list)"


def _read_field(room: Room | None, field: str) -> JsonValue:
    """The value of a field, such as `budgets.max_steps`; None if the room has none of this name."""
    value: JsonValue = room.model_dump(mode="json") if room is not None else None
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
