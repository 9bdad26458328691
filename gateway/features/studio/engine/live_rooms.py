"""`LiveRooms`: keeps the rooms of a running gateway equal to their store, also after changes by hand."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from math import inf

from agent.core.bounded_yaml import YamlError
from agent.core.errors import AgentError
from agent.core.models import Room
from agent.core.throttled_log import ThrottledLog
from agent.runs.rooms import Rooms
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.room_checks import ReadRoom, RoomRegistries, check_room_text
from gateway.features.studio.engine.room_store import RoomStore, StoredRoom

log = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
"""How often the store is compared: a change by hand is served within this time."""
_SETTLED_NS = 2_000_000_000
"""A file that is younger is read even if its stamp is unchanged: two writes may have the same time."""


class LiveRooms:
    """The shipped rooms and those of the store. A stored room replaces a shipped one of the same id.

    A stored room that cannot be used is kept as it last worked, and `faults` says why, by id.
    """

    def __init__(
        self,
        rooms: Rooms,
        shipped: Sequence[Room],
        shipped_texts: Mapping[str, str],
        store: RoomStore,
        read: ReadRoom,
        registries: RoomRegistries,
        *,
        required: Collection[str] = (),
        after_change: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`after_change` is awaited whenever the rooms have changed, before `refresh` returns."""
        self.rooms = rooms
        self.shipped: Mapping[str, Room] = {room.id: room for room in shipped}
        self.shipped_texts = shipped_texts
        """The YAML of each shipped room, with its comments."""
        self.store = store
        self.read = read
        self.registries = registries
        self.required = frozenset({rooms.default, *required})
        """Rooms that settings name. They are kept if their file is removed."""
        self.marked_since = inf
        """When texts from outside began to be marked here, in UTC seconds since 1970; infinite while unknown."""
        self._after_change = after_change
        self.faults: dict[str, str] = {}
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._versions: dict[str, str] = {}
        self._stored: dict[str, Room] = {}
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Adopts the store as it is at the start. A room that can be read is served even if it names something
        unknown: there is no better one.
        """
        await self.refresh(adopts_faulty=True)

    async def watch(self) -> None:
        """Takes up changes until it is cancelled."""
        problem = ThrottledLog(log, "the rooms cannot be read")
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            with problem.guard():
                await self.refresh()

    async def refresh(self, *, adopts_faulty: bool = False) -> None:
        """Takes up what has changed in the store since the last time. Raises `StoreError`."""
        async with self._lock:
            is_changed = await asyncio.to_thread(self._read_changes, adopts_faulty)
            if is_changed:
                stored = [self._stored[room_id] for room_id in sorted(self._stored)]
                self.rooms.replace({**self.shipped, **{room.id: room for room in stored}}.values())
        if is_changed and self._after_change is not None:
            await self._after_change()

    def _read_changes(self, adopts_faulty: bool) -> bool:
        """Whether any room has changed."""
        stamps = self.store.list_stamps()
        if stamps is None:  # as long as the store is gone, what was served is served
            return False
        recent = time.time_ns() - _SETTLED_NS
        changed = False
        for room_id, stamp in stamps.items():
            if self._stamps.get(room_id) == stamp and max(stamp[-2:]) < recent:
                continue
            stored = self.store.read(room_id)
            if stored is not None and self._versions.get(room_id) != stored.version:
                self._versions[room_id] = stored.version
                changed |= self._take_up(stored, adopts_faulty)
        for room_id in [name for name in self._versions if name not in stamps]:
            del self._versions[room_id]
            changed |= self._remove(room_id)
        self._stamps = dict(stamps)
        return changed

    def _take_up(self, stored: StoredRoom, adopts_faulty: bool) -> bool:
        room_id = stored.room_id
        room: Room | None
        try:
            room = self.parse(stored)
        except AgentError as error:
            self._report_fault(room_id, error.message)
            room = self._read_leniently(stored) if adopts_faulty else None
            if room is None:
                return False
        else:
            if self.faults.pop(room_id, None) is not None:
                log.warning("the room %s can be used again", room_id)
        earlier = self._stored.get(room_id)
        if earlier is not None and earlier.id != room.id and self._must_stay(earlier):
            self._report_fault(room_id, f"id: settings name the room {earlier.id!r}; it cannot become {room.id!r}")
            return False
        self._stored[room_id] = room
        return earlier != room

    def parse(self, stored: StoredRoom) -> Room:
        """The room of a stored text. Raises `ValidationError`."""
        try:
            text = stored.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValidationError(f"the file is not UTF-8: {error}", "yaml_parse") from error
        return check_room_text(text, stored.room_id, self.read, self.registries, renames=not stored.is_managed)

    def _read_leniently(self, stored: StoredRoom) -> Room | None:
        try:
            return self.read(stored.data.decode("utf-8"), stored.room_id)
        except (YamlError, ValueError):  # pydantic's error and a failed decoding are ValueErrors
            return None

    def _remove(self, room_id: str) -> bool:
        room = self._stored.get(room_id)
        if room is not None and self._must_stay(room):
            self._report_fault(room_id, "the file is gone, but settings name the room: it is served until the restart")
            return False
        self.faults.pop(room_id, None)
        return self._stored.pop(room_id, None) is not None

    def _must_stay(self, room: Room) -> bool:
        """Whether settings name the room, and no shipped one takes its place."""
        return room.id in self.required and room.id not in self.shipped

    def _report_fault(self, room_id: str, message: str) -> None:
        if self.faults.get(room_id) != message:
            still_served = "; it is served as it was before" if room_id in self._stored else ""
            log.error("the room %s cannot be used%s: %s", room_id, still_served, message)
        self.faults[room_id] = message

    def get_stored(self, name: str) -> Room | None:
        """The room that is served for the stored text of this name, None if the text was never usable."""
        return self._stored.get(name)
