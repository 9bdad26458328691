"""`Owners`: everything an owner has, removed at one place. There is no table of users: an owner is a name on rows."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent.builder.messages import MessageLog
from agent.core.audit import Act, AuditLog
from agent.core.errors import ConflictError, NotFoundError
from agent.core.memory import MemoryStore
from agent.core.models import LOCAL_OWNER
from agent.core.service import AgentService
from agent.core.statements import Change, Statements
from agent.knowledge.hold import CollectionHeldError
from agent.knowledge.library import Library

OWNED: Final = (
    "conversation_uncertainties", "agent_conversations", "sources", "task_runs", "tasks", "jobs", "ingestions",
    "collection_vectors", "documents", "collections", "chunk_sets", "vectors", "turns", "runs", "key_reservations",
    "api_keys",
)  # fmt: skip
"""The tables with an owner, those that refer to others first. What hangs on a row without one goes with it. Two
are none of them: `idempotency`, which knows senders, and `audit`: it says who did what, this deletion too, and nothing
in it is ever changed."""
PATIENCE_SECONDS = 20.0
"""How long runs and jobs of theirs may take to stop."""
LOOK_SECONDS = 0.1
_BLOB = re.compile(r'"(?:content_)?blob":\s*"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class Owners:
    """What deletes owners. `clock` gives UTC seconds since 1970, as the leases of runs are written with."""

    statements: Statements
    service: AgentService[Any]
    library: Library
    memory: MemoryStore
    messages: MessageLog
    audit: AuditLog
    key_seconds: float
    """How long a gateway takes a key for valid that is gone."""
    clock: Callable[[], float] = time.time
    patience_s: float = PATIENCE_SECONDS

    async def holdings(self, owner: str) -> dict[str, int]:
        """How many rows of each table are this owner's; tables without any are left out."""
        counts = {}
        for table in OWNED:
            ((count,),) = await self.statements.read(f"SELECT count(*) FROM {table} WHERE owner = ?", owner)  # noqa: S608
            counts[table] = int(count)
        return {table: count for table, count in counts.items() if count}

    async def delete(self, owner: str, *, by: str) -> Mapping[str, int]:
        """Remove an owner with all that is theirs, `by` whom is recorded; the rows there were, by table.

        Keys go first, then what is under way is stopped. Interrupted, it is done by calling it again. Messages that
        another process keeps in its memory expire there. Raises `NotFoundError` where nothing is this owner's,
        `ConflictError` when a run or job does not stop in time, `StoreError`."""
        found = await self.holdings(owner)
        if not found:
            raise NotFoundError(f"nothing belongs to an owner named {owner[:100]!r}; see `stepgate keys list`")
        act = Act("user.delete", owner, owner=owner, by=by, detail={**found})
        async with self.audit.recorded(act):
            await self._forget_keys(owner)
            await self.statements.write("DELETE FROM jobs WHERE owner = ?", owner)  # whoever does one lets go of it
            await self._stop_runs(owner)
            for collection in await self.library.collections(owner):
                await self._drop(owner, collection, by)
            await self.memory.forget(owner)
            rows = await self.statements.read("SELECT id FROM agent_conversations WHERE owner = ?", owner)
            for (conversation_id,) in rows:
                await self.messages.forget(conversation_id)
            blobs = await self._blobs(owner)
            await self.statements.write_all(
                *(Change(f"DELETE FROM {table} WHERE owner = ?", (owner,)) for table in OWNED)  # noqa: S608 - ours
            )
            await self._forget_blobs(blobs)
            await asyncio.to_thread(self.library.uploads.forget, owner)
            if late := await self.holdings(owner):
                raise ConflictError(f"something of {owner!r} was still being written ({told(late)}); do it again")
        return found

    async def _stop_runs(self, owner: str) -> None:
        """Cancel what is under way, and wait until nobody holds a run."""
        query = "SELECT run_id, lease_until FROM runs WHERE owner = ? AND NOT terminal"
        for run_id, _ in await self.statements.read(query, owner):
            try:
                await self.service.cancel(run_id, owner=owner, reason="the owner is being deleted")
            except ConflictError:  # it has ended meanwhile
                continue
        until = self.clock() + self.patience_s
        while held := [row for row in await self.statements.read(query, owner) if row[1] >= self.clock()]:
            if self.clock() >= until:
                raise ConflictError(f"{len(held)} runs of {owner!r} do not stop; try again in a minute")
            await asyncio.sleep(LOOK_SECONDS)

    async def _drop(self, owner: str, collection: str, by: str) -> None:
        until = self.clock() + self.patience_s
        while True:
            try:
                await self.library.drop(owner, collection, by=by)
            except CollectionHeldError:
                if self.clock() >= until:
                    raise
                await asyncio.sleep(LOOK_SECONDS)
            except NotFoundError:
                return
            else:
                return

    async def _forget_keys(self, owner: str) -> None:
        """Remove the owner's keys and, once no gateway takes them for valid any more, the answers kept for requests
        that came with them: see `gateway.idempotency.sender`."""
        senders = [key_id for (key_id,) in await self.statements.read("SELECT id FROM api_keys WHERE owner = ?", owner)]
        await self.statements.write("DELETE FROM api_keys WHERE owner = ?", owner)
        if senders:
            await asyncio.sleep(self.key_seconds)
        for sender in (*senders, *([owner] if owner == LOCAL_OWNER else [])):
            await self.statements.write("DELETE FROM idempotency WHERE owner LIKE ?", f"{sender}/%")

    async def _blobs(self, owner: str) -> set[str]:
        """The checksums of the long results in this owner's runs."""
        rows = await self.statements.read(
            "SELECT e.data FROM events e JOIN runs r ON r.run_id = e.run_id WHERE r.owner = ? AND e.data LIKE ?",
            owner, '%blob":%',
        )  # fmt: skip
        return {checksum for (data,) in rows for checksum in _BLOB.findall(data)}

    async def _forget_blobs(self, checksums: set[str]) -> None:
        """Remove results that no other owner's run has had too."""
        for checksum in sorted(checksums):
            await self.statements.write(
                "DELETE FROM blobs WHERE checksum = ? AND NOT EXISTS (SELECT 1 FROM events WHERE data LIKE ?)",
                checksum, f'%"{checksum}"%',
            )  # fmt: skip


def told(found: Mapping[str, int]) -> str:
    """What there was, for a person."""
    return ", ".join(f"{count:,} {table}" for table, count in sorted(found.items()))
