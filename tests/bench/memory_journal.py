"""`MemoryJournal`: the journal as lists in this process. It keeps the contract's order and ownership, and nothing else:
no text is checked, nothing is encoded, and it all dies with the process."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace

from agent.core.errors import NotFoundError
from agent.core.events import Event, EventDraft, RunCreated
from agent.core.models import ENDED_STATUSES, RunStatus
from agent.storage.audit import AuditRow
from agent.storage.journal import Claim, RunAppend, RunRow, Signal, SignalKind
from agent.storage.journal_rows import (
    build_append_error,
    build_run_not_found_error,
    check_terminal_last,
    derive_status,
    make_title,
)


class MemoryJournal:
    """Implements `Journal`, for measuring what durability costs."""

    def __init__(self) -> None:
        self._rows: dict[str, RunRow] = {}
        self._events: dict[str, list[Event]] = {}
        self._blobs: dict[str, bytes] = {}

    async def create_run(self, run_id: str, body: RunCreated, *, worker: str, lease_s: float) -> Claim:
        """See `Journal.create_run`."""
        now = time.time()
        event = Event(run_id, 1, 1, now, body)
        title = make_title(body.request.prompt)
        conversation = body.request.conversation_id
        self._rows[run_id] = RunRow(
            run_id, body.owner, body.room.id, "queued", body.hidden, title, conversation, 1, 1, now, now, worker
        )
        self._events[run_id] = [event]
        return Claim(run_id, 1, (event,))

    async def claim(self, run_id: str, *, worker: str, lease_s: float) -> Claim | None:
        """Nothing outlives its owner here."""
        return None

    async def list_claimable_runs(self, *, dead_workers: Sequence[str] = (), limit: int = 100) -> list[str]:
        """Nothing outlives its owner here."""
        return []

    async def list_workers(self) -> list[str]:
        """Nobody else."""
        return []

    async def renew_leases(self, worker: str, run_ids: Sequence[str], *, lease_s: float) -> None:
        """There are no leases."""

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """See `Journal.append`."""
        check_terminal_last(run_id, drafts)
        row = self._rows.get(run_id)
        if row is None:
            raise build_run_not_found_error(run_id)
        if row.epoch != epoch or row.status in ENDED_STATUSES:
            raise build_append_error(run_id, epoch, (row.epoch, True, row.worker))
        now = time.time()
        events = tuple(
            Event(run_id, row.last_seq + number, epoch, now, draft.body, draft.step_id, draft.attempt)
            for number, draft in enumerate(drafts, start=1)
        )
        self._events[run_id].extend(events)
        status, _ = derive_status(events)
        self._rows[run_id] = replace(
            row, last_seq=row.last_seq + len(events), updated_at=now, status=status or row.status
        )
        return events

    def append_now(self, *appends: RunAppend) -> list[tuple[Event, ...]] | None:
        """See `Journal.append_now`."""
        return None

    async def release(self, run_id: str, epoch: int) -> None:
        """There are no leases."""

    async def read_events(self, run_id: str, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """See `Journal.read`."""
        return [event for event in self._events.get(run_id, ()) if event.seq > after][:limit]

    async def get_run(self, run_id: str, *, owner: str | None) -> RunRow:
        """See `Journal.get`."""
        row = self._rows.get(run_id)
        if row is None or owner not in (None, row.owner):
            raise build_run_not_found_error(run_id)
        return row

    async def list_runs(
        self,
        *,
        owner: str | None,
        limit: int = 50,
        before: str | None = None,
        status: RunStatus | None = None,
        include_hidden: bool = False,
    ) -> list[RunRow]:
        """The newest runs; `before` and `include_hidden` are not looked at."""
        rows = [row for row in self._rows.values() if owner in (None, row.owner) and status in (None, row.status)]
        return rows[: -limit - 1 : -1]

    async def find_conversation_ends(self, conversation_id: str, *, owner: str) -> tuple[RunRow, RunRow] | None:
        """The oldest and the newest run of a conversation."""
        rows = [row for row in self._rows.values() if (row.owner, row.conversation_id) == (owner, conversation_id)]
        return (rows[0], rows[-1]) if rows else None

    async def send_signal(
        self, run_id: str, kind: SignalKind, payload: dict[str, object], *, record: AuditRow | None = None
    ) -> None:
        """Nobody is waiting."""

    async def read_signals(self, run_id: str, *, after: int = 0) -> list[Signal]:
        """None."""
        return []

    async def put_blob(self, data: bytes, *, run_id: str) -> str:
        """See `Journal.put_blob`."""
        checksum = hashlib.sha256(data).hexdigest()
        self._blobs[checksum] = data
        return checksum

    async def get_blob(self, checksum: str) -> bytes:
        """See `Journal.get_blob`."""
        if checksum not in self._blobs:
            raise NotFoundError(f"there is no blob {checksum}", agent_id="journal")
        return self._blobs[checksum]

    async def wait_for_events(self, run_id: str, *, after: int, timeout_s: float) -> None:
        """Return after a moment: callers read again."""
        await asyncio.sleep(min(timeout_s, 0.05))

    async def check_writable(self) -> None:
        """It can be written."""

    async def close(self) -> None:
        """Nothing to finish."""
