"""Marks the rooms that runs changed before rooms had a mark for texts from outside (`Room.from_outside`).

Their texts do not say who wrote them, but the audit record does: a revision of the feature's tables lists them once.
"""

import asyncio
from contextlib import suppress

from agent.core.errors import NotFoundError
from agent.storage.sql import SqlClient
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.live_rooms import LiveRooms
from gateway.features.studio.engine.room_yaml import change_room


async def mark_earlier_rooms(statements: SqlClient, live: LiveRooms) -> None:
    """Marks the listed rooms, and empties the list. Raises `StoreError`."""
    rows = await statements.read("SELECT room_id FROM rooms_of_runs")
    for (room_id,) in rows:
        # A deleted room needs no mark, and a text that cannot be read is first mended by a person.
        with suppress(NotFoundError, ValidationError):
            await asyncio.to_thread(live.store.edit, str(room_id), _mark, lambda _: None, version=None)
        await statements.write("DELETE FROM rooms_of_runs WHERE room_id = ?", room_id)
    if rows:
        await live.refresh()


def _mark(text: str) -> str:
    return change_room(text, {"from_outside": True})
