"""`RoomEditor`: lists, creates, edits, copies and deletes rooms for the doors, the command line and the tools."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from agent.core.errors import AgentError, ConflictError, RoomUnknownError, ScopeError, StoreError
from agent.core.models import LOCAL_OWNER, Room
from agent.storage.audit import AuditAction, AuditEvent, AuditLog
from gateway.features.studio.engine.errors import ValidationError, VersionConflictError
from gateway.features.studio.engine.live_rooms import LiveRooms
from gateway.features.studio.engine.room_checks import (
    check_field_names,
    check_name,
    check_room_id,
    check_room_text,
    check_texts,
    make_room_id,
)
from gateway.features.studio.engine.room_privileges import (
    PrivilegesNeedApprovalError,
    check_privileges,
    format_copy_command,
    format_create_command,
    format_edit_command,
    format_restore_command,
    list_pairings,
)
from gateway.features.studio.engine.room_store import RoomRevision, StoredRoom, decode_room
from gateway.features.studio.engine.room_view import Editor, RoomView
from gateway.features.studio.engine.room_yaml import change_room, keep_mark, read_fields, read_owner, write_room

_FIXED = ("id", "owner")


class RoomEditor:
    """Changes the rooms of the store, and what the gateway serves with them. Changes are recorded for audits.

    Methods raise `StoreError`; those that change something raise `ValidationError`, `VersionConflictError`,
    `RoomUnknownError`, `ScopeError` for a room of another owner and `ConflictError` for one that may not be edited.
    """

    def __init__(self, live: LiveRooms, audit: AuditLog, find_place: Callable[[str], str | None]) -> None:
        """`find_place` is the address in a stored credential of this name, which may block."""
        self.live = live
        self._audit, self._find_place = audit, find_place

    async def list_rooms(self, editor: Editor) -> list[RoomView]:
        """The rooms that the editor sees, the default one first, then by id."""
        await self.live.refresh()
        views = await asyncio.to_thread(lambda: list(self._read_views()))
        default = self.live.rooms.default
        return sorted(
            (view for view in views if view.is_visible_to(editor)),
            key=lambda view: (view.room_id != default, view.room_id),
        )

    async def get_room(self, room_id: str, editor: Editor) -> RoomView:
        """One room. Raises `RoomUnknownError`."""
        views = {view.room_id: view for view in await self.list_rooms(editor)}
        if room_id in views:
            return views[room_id]
        message = f"there is no room named {room_id[:80]!r}; known rooms: {', '.join(views)}"
        raise RoomUnknownError(message, room=room_id[:80], stage="identifier")

    async def find_room_id(self, name: str, editor: Editor) -> str:
        """The id of the room with this id, else of the only one with this name, else `name` itself."""
        views = await self.list_rooms(editor)
        if any(view.room_id == name for view in views):
            return name
        named = [view.room_id for view in views if view.title.casefold() == name.strip().casefold()]
        return named[0] if len(named) == 1 else name

    async def create_room(self, fields: Mapping[str, Any], editor: Editor, room_id: str | None = None) -> RoomView:
        """Creates a managed room; its id is made from its name unless given."""
        room_id, content = self._build_new(fields, editor, room_id)
        command = format_create_command(room_id, content)
        return await self._store_new(room_id, write_room(content), editor, {"fields": [*content]}, command)

    async def check_create(self, fields: Mapping[str, Any], editor: Editor, room_id: str | None = None) -> None:
        """Raises what `create_room` would raise now. Changes nothing."""
        room_id, content = self._build_new(fields, editor, room_id)
        command = format_create_command(room_id, content)
        await asyncio.to_thread(self._rehearse_new, room_id, write_room(content), editor, command)

    def _build_new(self, fields: Mapping[str, Any], editor: Editor, room_id: str | None) -> tuple[str, dict[str, Any]]:
        """The id and the fields of a new room."""
        self._check_fields(fields, editor)
        name = check_name(fields.get("name"))
        room_id = make_room_id(name) if room_id is None else check_room_id(room_id)
        content = {
            "name": name,
            "description": f"The assistant {name}.",
            **{key: value for key, value in fields.items() if key != "name" and value is not None},
        }
        if editor.new_owner != LOCAL_OWNER:
            content["owner"] = editor.new_owner
        return room_id, editor.label(content)

    async def copy_room(self, source_id: str, editor: Editor, *, room_id: str | None, name: str | None) -> RoomView:
        """Copies a room, a shipped one too, with its comments. The copy belongs to the editor.

        MCP servers are left out where the editor may not connect any.
        """
        room_id, text, command = await self._build_copy(source_id, editor, room_id, name)
        return await self._store_new(room_id, text, editor, {"copy_of": source_id}, command)

    async def check_copy(self, source_id: str, editor: Editor, *, room_id: str | None, name: str | None) -> None:
        """Raises what `copy_room` would raise now. Changes nothing."""
        room_id, text, command = await self._build_copy(source_id, editor, room_id, name)
        await asyncio.to_thread(self._rehearse_new, room_id, text, editor, command)

    async def _build_copy(
        self, source_id: str, editor: Editor, room_id: str | None, name: str | None
    ) -> tuple[str, str, str]:
        """The id and the text of a copy, and the command line that makes it."""
        source = await self.get_room(source_id, editor)
        title = check_name(name if name is not None else f"{source.title} copy")
        room_id = make_room_id(title) if room_id is None else check_room_id(room_id)
        owner = None if editor.new_owner == LOCAL_OWNER else editor.new_owner
        changes = editor.label({"name": title, "id": None, "owner": owner})
        if not editor.may_connect:
            changes["mcp_servers"] = None
        text = await asyncio.to_thread(change_room, source.text, changes)
        return room_id, text, format_copy_command(source_id, room_id, title)

    async def edit_room(
        self,
        room_id: str,
        changes: Mapping[str, Any],
        editor: Editor,
        *,
        version: str | None,
        managed: bool | None = None,
    ) -> RoomView:
        """Sets fields of a room; None sets a field back to its default. `managed` changes who may edit it: only the
        operator may do that.
        """
        view = await self.get_room(room_id, editor)
        self._check_editable(view, editor, becomes_managed=bool(managed))
        change = self._build_edit(room_id, changes, editor)
        return await self._replace_text(view, change, editor, version, managed, [*changes])

    async def check_edit(
        self, room_id: str, changes: Mapping[str, Any], editor: Editor, *, version: str | None = None
    ) -> Room:
        """The room that `edit_room` would make now; raises what that would raise. Changes nothing."""
        view = await self.get_room(room_id, editor)
        self._check_editable(view, editor)
        await asyncio.to_thread(self._read_version, room_id, version)
        changed = await asyncio.to_thread(self._build_edit(room_id, changes, editor), view.text)
        return self._check(changed, room_id)

    def _build_edit(self, room_id: str, changes: Mapping[str, Any], editor: Editor) -> Callable[[str], str]:
        """The change of a room's text that sets fields."""
        if "name" in changes:
            changes = {**changes, "name": check_name(changes["name"])}
        self._check_fields(changes, editor)
        changes = editor.label(changes)
        command = format_edit_command(room_id, changes)
        return self._guard(room_id, lambda text: change_room(text, changes), editor, command)

    async def replace_room(
        self, room_id: str, text: str, editor: Editor, *, version: str | None, command: str = ""
    ) -> RoomView:
        """Replaces the whole text of a room. `command` is the command line that does so."""
        view = await self.get_room(room_id, editor)
        self._check_editable(view, editor)
        if view.room is not None and read_fields(text).get("owner", LOCAL_OWNER) != view.room.owner:
            raise ValidationError("owner: the owner of a room cannot be changed", "fields")
        command = command or f"stepgate rooms edit {room_id} --file FILE"
        change = self._guard(view.room_id, lambda _: text, editor, command)
        return await self._replace_text(view, change, editor, version, None, ["text"])

    async def list_revisions(self, room_id: str, editor: Editor) -> list[RoomRevision]:
        """The texts that a room had, newest first; also those of a deleted one.

        Raises `ConflictError` where none are kept, and `RoomUnknownError` for a room of another owner.
        """
        revisions = await asyncio.to_thread(self.live.store.list_revisions, room_id)
        if revisions is None:
            raise ConflictError(
                "rooms in files keep no versions: keep their folder in git, or set AGENT_ROOM_STORE=database",
                stage="versions",
            )
        own: list[RoomRevision] = []
        owner = ""
        for one in reversed(revisions):  # a deletion is its owner's whose text it ends
            owner = owner if one.data is None else read_owner(one.data)
            if editor.owner in (None, owner):
                own.insert(0, one)
        if not revisions or (own[:1] != list(revisions[:1])):
            await self.get_room(room_id, editor)  # raises unless the editor sees the room as it is now
        return own

    async def restore_room(self, room_id: str, revision: int, editor: Editor, *, version: str | None) -> RoomView:
        """Gives a room a text that it had; a deleted one is there again. Raises `ValidationError` without such a
        revision, and what `replace_room` and `create_room` raise.
        """
        text, command = await self._read_revision(room_id, revision, editor), format_restore_command(room_id, revision)
        if await asyncio.to_thread(self.live.store.read, room_id) is not None:
            return await self.replace_room(room_id, text, editor, version=version, command=command)
        return await self._store_new(room_id, text, editor, {"restored": revision}, command)

    async def check_restore(self, room_id: str, revision: int, editor: Editor) -> None:
        """Raises what `restore_room` would raise now, but for the version. Changes nothing."""
        text, command = await self._read_revision(room_id, revision, editor), format_restore_command(room_id, revision)
        stored = await asyncio.to_thread(self.live.store.read, room_id)
        if stored is None:
            await asyncio.to_thread(self._rehearse_new, room_id, text, editor, command)
            return
        self._check_editable(self._describe(stored), editor)
        before = stored.data.decode("utf-8", "replace")
        await asyncio.to_thread(self._guard(room_id, lambda _: text, editor, command), before)

    async def _read_revision(self, room_id: str, revision: int, editor: Editor) -> str:
        """A text that a room had. Raises `ValidationError` for an unknown number."""
        revisions = await self.list_revisions(room_id, editor)
        data = next((one.data for one in revisions if one.revision == revision), None)
        if data is None:
            revision_numbers = ", ".join(str(one.revision) for one in revisions if one.data is not None) or "none"
            raise ValidationError(
                f"the room {room_id!r} has no version {revision}; there are {revision_numbers}", "versions"
            )
        if all(one.at >= self.live.marked_since for one in revisions):  # each has its mark if it needs one
            return decode_room(data)
        return await asyncio.to_thread(keep_mark, decode_room(data), [one.data for one in revisions])

    async def delete_room(self, room_id: str, editor: Editor, *, version: str | None) -> None:
        """Deletes a room. Raises `ConflictError` for a room that settings name."""
        await self.check_delete(room_id, editor)  # the version is checked where a refusal is recorded
        event = _make_event("room.delete", room_id, editor)
        async with self._record_once(event, lambda: self._read_version(room_id, version)):
            await asyncio.to_thread(self.live.store.delete, room_id, version=version)
        await self.live.refresh()

    async def check_delete(self, room_id: str, editor: Editor, *, version: str | None = None) -> None:
        """Raises what `delete_room` would raise now. Changes nothing."""
        self._check_editable(await self.get_room(room_id, editor), editor)
        await asyncio.to_thread(self._read_version, room_id, version)
        if room_id in self.live.required and room_id not in self.live.shipped:
            raise ConflictError(f"settings name the room {room_id!r}; change them first", stage="check_config")

    def check_text(self, room_id: str, text: str) -> Room:
        """The room of a text that is not stored. Raises `ValidationError`."""
        return check_room_text(text, room_id, self.live.read, self.live.registries, renames=True)

    def _rehearse_new(self, room_id: str, text: str, editor: Editor, command: str) -> None:
        """Raises what keeps a new room from being stored."""
        if room_id in self._list_taken():
            raise ConflictError(f"there is a room {room_id!r} already; choose another id", stage="identifier")
        self._check_privileges(None, self._check(text, room_id), editor, command)

    def _guard(self, room_id: str, change: Callable[[str], str], editor: Editor, command: str) -> Callable[[str], str]:
        """The change of a room's text, which raises what `check_privileges` raises."""

        def apply(text: str) -> str:
            changed = change(text)
            after = self._check(changed, room_id)
            self._check_privileges(self._read_served(text, room_id), after, editor, command)
            return changed

        return apply

    def _check_privileges(self, before: Room | None, after: Room, editor: Editor, command: str) -> None:
        pairings = {pairing for room in self.live.rooms for pairing in list_pairings(room)}
        check_privileges(before, after, editor, command, find_place=self._find_place, known=pairings)

    def _read_served(self, text: str, room_id: str) -> Room | None:
        """The room that is served of a stored text; None if none is, so that it starts no programs."""
        try:
            return self._check(text, room_id)
        except ValidationError:  # then it is served as it last worked
            return self.live.get_stored(room_id)

    async def _store_new(
        self, room_id: str, text: str, editor: Editor, detail: Mapping[str, Any], command: str
    ) -> RoomView:
        event = _make_event("room.create", room_id, editor, detail)
        async with self._record_once(event, lambda: self._rehearse_new(room_id, text, editor, command)):
            await asyncio.to_thread(
                self.live.store.create, room_id, text.encode("utf-8"), lambda data: self._check_stored(data, room_id)
            )
        return await self._get_changed(room_id)

    async def _replace_text(
        self,
        view: RoomView,
        change: Callable[[str], str],
        editor: Editor,
        version: str | None,
        managed: bool | None,
        fields: list[str],
    ) -> RoomView:
        event = _make_event("room.edit", view.room_id, editor, {"fields": [name[:80] for name in fields[:50]]})

        def rehearse() -> None:
            change(self._read_version(view.room_id, version).decode("utf-8", "replace"))

        async with self._record_once(event, rehearse):
            await asyncio.to_thread(
                self.live.store.edit,
                view.room_id,
                change,
                lambda data: self._check_stored(data, view.room_id),
                version=version,
                managed=managed,
            )
        return await self._get_changed(view.room_id)

    @asynccontextmanager
    async def _record_once(self, event: AuditEvent, rehearse: Callable[[], object]) -> AsyncIterator[None]:
        """Records a change before the body makes it. `rehearse` writes nothing; what it refuses is recorded once, as
        failed.
        """
        try:
            await asyncio.to_thread(rehearse)
        except (StoreError, PrivilegesNeedApprovalError):  # the latter is no refusal: a person is asked
            raise
        except AgentError as error:
            await self._audit.record_afterwards(replace(event, detail={"error": error.code}, outcome="failed"))
            raise
        async with self._audit.record_before(event):
            yield

    def _read_version(self, room_id: str, version: str | None) -> bytes:
        """The stored text. Raises `VersionConflictError` if it is another version."""
        stored = self.live.store.read(room_id)
        if stored is not None and version not in (None, stored.version):
            raise VersionConflictError(f"the room {room_id!r}", stored.version)
        return b"" if stored is None else stored.data

    async def _get_changed(self, room_id: str) -> RoomView:
        return await self.get_room(room_id, Editor(None, ""))

    def _check(self, text: str, room_id: str) -> Room:
        return check_room_text(text, room_id, self.live.read, self.live.registries)

    def _check_stored(self, text: str, room_id: str) -> None:
        self._check(text, room_id)

    def _check_fields(self, fields: Mapping[str, Any], editor: Editor) -> None:
        for name in _FIXED:
            if name in fields:
                raise ValidationError(f"{name}: it cannot be set or changed; copy the room instead", "fields")
        if "mcp_servers" in fields and not editor.may_connect:
            raise ScopeError("mcp_servers: use mcp_server_add and mcp_server_remove, which ask a person")
        if fields.get("from_outside", True) is not True and not editor.may_connect:
            raise ValidationError("from_outside: only a person who has read the room's texts can unset it", "fields")
        check_field_names(fields)
        check_texts(fields)

    def _check_editable(self, view: RoomView, editor: Editor, *, becomes_managed: bool = False) -> None:
        if view.origin == "shipped":
            raise ConflictError(f"the room {view.room_id!r} is shipped and read only; copy it first", stage="managed")
        if editor.owner is not None and view.room is not None and view.room.owner != editor.owner:
            raise ScopeError(f"the room {view.room_id!r} belongs to {view.room.owner!r}; copy it", stage="managed")
        if view.origin == "file" and not (editor.owner is None and becomes_managed):
            raise ConflictError(
                f"the room {view.room_id!r} is not managed: edit its file, copy it, or let the operator allow it: "
                f"stepgate rooms edit {view.room_id} --managed",
                stage="managed",
            )

    def _list_taken(self) -> Collection[str]:
        return {*self.live.shipped, *(room.id for room in self.live.rooms)}

    def _read_views(self) -> Iterator[RoomView]:
        """Yields every room. A stored room hides the shipped one of its id."""
        hidden = set()
        for name in sorted(self.live.store.list_stamps() or ()):
            stored = self.live.store.read(name)
            if stored is not None:
                view = self._describe(stored)
                hidden.add(view.room_id)
                yield view
        for room_id, room in self.live.shipped.items():
            if room_id not in hidden:
                yield RoomView(room_id, "shipped", room, text=self.live.shipped_texts[room_id])

    def _describe(self, stored: StoredRoom) -> RoomView:
        room = self.live.get_stored(stored.room_id)
        # A room is addressed by the id it is served under. A file that people edit may set another than its name.
        room_id = room.id if room is not None and not stored.is_managed else stored.room_id
        return RoomView(
            room_id,
            "managed" if stored.is_managed else "file",
            room,
            stored.version,
            stored.data.decode("utf-8", "replace"),
            self.live.faults.get(stored.room_id, ""),
        )


def _make_event(
    action: AuditAction, room_id: str, editor: Editor, detail: Mapping[str, Any] | None = None
) -> AuditEvent:
    return AuditEvent(action, room_id, owner=editor.new_owner, by=editor.name, detail=dict(detail or {}))
