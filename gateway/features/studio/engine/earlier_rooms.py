"""Marks the rooms that runs changed before rooms had a mark for texts from outside (`Room.from_outside`).

Their texts do not say who wrote them, but the audit record does: a revision of the feature's tables lists them once. A
room is left as it is if the logs of all its runs show that they had read nothing from outside.
"""

import asyncio
import logging
import re

from agent.core.errors import AgentError, NotFoundError
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.storage.journal import Journal
from agent.storage.sql import SqlClient
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.live_rooms import LiveRooms
from gateway.features.studio.engine.room_yaml import change_room

log = logging.getLogger(__name__)

_RUN_ID = re.compile(r"run (run_\w+)")


async def mark_earlier_rooms(statements: SqlClient, journal: Journal, live: LiveRooms) -> None:
    """Marks the listed rooms and removes them from the list. A room whose text cannot be read now, and a deleted one
    that can be restored, stay in it for the next start. What is stored afterwards has its mark if it needs one. Raises
    `StoreError`.
    """
    rows = await statements.read(
        "SELECT applied FROM feature_schema WHERE feature = 'studio' AND revision = 'rooms_of_runs'"
    )
    live.marked_since = float(rows[0][0]) if rows else live.marked_since
    marked = []
    for (room_id,) in await statements.read("SELECT room_id FROM rooms_of_runs"):
        if not await _is_clean(statements, journal, str(room_id)):
            try:
                await asyncio.to_thread(live.store.edit, str(room_id), _mark, lambda _: None, version=None)
                marked.append(str(room_id))
            except ValidationError:
                continue
            except NotFoundError:
                if await asyncio.to_thread(live.store.list_revisions, str(room_id)):
                    continue
        await statements.write("DELETE FROM rooms_of_runs WHERE room_id = ?", room_id)
    if marked:
        log.warning(
            "%d rooms were set by runs that may have read external text, and now have from_outside: true (%s). Read "
            "each with `stepgate rooms show ID`, then unset it with `stepgate rooms edit ID from_outside=false`",
            len(marked), ", ".join(sorted(marked)),
        )  # fmt: skip
        await live.refresh()


async def _is_clean(statements: SqlClient, journal: Journal, room_id: str) -> bool:
    """Whether every run that set the room's texts is stored, and had read nothing from outside."""
    rows = await statements.read(
        "SELECT DISTINCT principal FROM audit WHERE target = ? AND action IN ('room.create', 'room.edit')", room_id
    )
    run_ids = {name for (principal,) in rows for name in _RUN_ID.findall(str(principal))}
    for run_id in run_ids:
        try:
            events = await journal.read_events(run_id)
        except AgentError:  # damaged, or of a newer version
            return False
        if not events or _has_read_outside_text(fold(run_id, events)):
            return False
    return bool(run_ids)


def _has_read_outside_text(state: RunState) -> bool:
    attempts = state.list_attempts()
    recalled = state.retrieval
    marks = [
        *(plan.tainted for plan in state.plans),
        *(attempt.output.tainted for attempt in attempts if attempt.output is not None),
        *(call.result.tainted for attempt in attempts for call in attempt.calls if call.result is not None),
        *(item.tainted for item in (recalled.items if recalled is not None else ())),
        *(earlier.tainted for earlier in (recalled.earlier_results if recalled is not None else ())),
    ]
    return state.has_outside_text or any(marks)


def _mark(text: str) -> str:
    return change_room(text, {"from_outside": True})
