"""`OwnerDeletion`: deletes everything of an owner. There is no table of users: an owner is a name in rows."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import LOCAL_OWNER
from agent.storage.audit import AuditEvent, AuditLog
from agent.storage.feature_tables import NO_TABLES, FeatureTables
from agent.storage.run_deletion import BATCH, delete_runs
from agent.storage.sql import SqlClient, SqlStatement
from agent.storage.usage import UsageLedger

OWNED_TABLES: Final = (
    "vectors", "turns", "answer_digests", "runs", "key_reservations", "api_keys", "model_usage", "usage_days",
    "client_items", "client_conversations",
)  # fmt: skip
"""The tables of the kernel with an owner, referring tables first. Rows without an owner are deleted by cascade. Two
tables are not listed: `idempotency` is keyed by sender, and `audit` is append-only and records this deletion too."""
STOP_TIMEOUT_SECONDS = 20.0
"""How long the owner's runs and jobs may take to stop."""
POLL_SECONDS = 0.1


class RunCanceller(Protocol):
    """Cancels runs. `agent.runs.service.AgentService` implements it."""

    async def cancel_run(self, run_id: str, *, owner: str = ..., reason: str = ...) -> None:
        """Raises `ConflictError` for a run that has ended."""
        ...


class OwnedStore(Protocol):
    """A feature's data of owners outside of its tables: files, indexes, messages."""

    async def remove_owner(self, owner: str, *, by: str) -> None:
        """Removes everything of an owner; `by` is recorded. Called before the rows of the tables are deleted."""
        ...


class OwnedMemory(Protocol):
    """The memories of owners. `agent.run_context.memory.MemoryStore` implements it."""

    async def delete_all(self, owner: str) -> int:
        """Removes every memory of an owner."""
        ...


@dataclass(frozen=True, slots=True)
class OwnerDeletion:
    """Deletes owners. `clock` gives UTC seconds since 1970, like the leases of runs."""

    statements: SqlClient
    service: RunCanceller
    memory: OwnedMemory
    audit: AuditLog
    usage: UsageLedger
    key_cache_seconds: float
    """How long a gateway caches a key that was deleted."""
    stores: Sequence[OwnedStore] = ()
    """Those of features."""
    features_off: tuple[str, ...] = ()
    """Features that keep things of owners, or may, and are not in use: without them an owner cannot be deleted
    completely."""
    tables: FeatureTables = NO_TABLES
    """Those of features."""
    clock: Callable[[], float] = time.time
    stop_timeout_s: float = STOP_TIMEOUT_SECONDS

    async def count_rows(self, owner: str) -> dict[str, int]:
        """Counts the rows that each table has of this owner, without tables that have none."""
        counts = {}
        for table in (*self.tables.owned, *OWNED_TABLES):
            ((count,),) = await self.statements.read(f"SELECT count(*) FROM {table} WHERE owner = ?", owner)  # noqa: S608
            counts[table] = int(count)
        return {table: count for table, count in counts.items() if count}

    async def delete(self, owner: str, *, by: str) -> Mapping[str, int]:
        """Deletes an owner with everything it owns and returns the row counts by table; `by` is recorded.

        Deletes keys first, then stops what is running. If interrupted, call it again. Messages in another process's
        memory expire there. Raises `NotFoundError` if the owner has nothing, `ConflictError` if a run or job does not
        stop in time or a feature is off that may keep things of the owner, `StoreError`.
        """
        row_counts = await self.count_rows(owner)
        if not row_counts:
            raise NotFoundError(f"nothing belongs to an owner named {owner[:100]!r}; see `stepgate keys list`")
        if self.features_off:
            names = ", ".join(map(repr, self.features_off))
            raise ConflictError(
                f"an owner is deleted completely or not at all, and the features {names} are off or cannot be "
                "imported; switch them on (AGENT_FEATURES) or repair what `stepgate doctor` names, then delete it"
            )
        act = AuditEvent("user.delete", owner, owner=owner, by=by, detail={**row_counts})
        async with self.audit.record_before(act):
            await self._delete_keys(owner)
            for table in self.tables.work:
                await self.statements.write(f"DELETE FROM {table} WHERE owner = ?", owner)  # noqa: S608 - names of ours
            await self._stop_runs(owner)
            await self.memory.delete_all(owner)
            for store in self.stores:
                await store.remove_owner(owner, by=by)
            await self._delete_runs(owner)
            await self.statements.write_all(
                *(
                    SqlStatement(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608 - names of ours
                    for table in (*self.tables.owned, *OWNED_TABLES)
                )
            )
            if late := await self.count_rows(owner):
                raise ConflictError(
                    f"data of {owner!r} was written during the deletion ({format_counts(late)}); delete the owner again"
                )
        return row_counts

    async def delete_run(self, run_id: str, *, owner: str, by: str) -> None:
        """Deletes an ended run with its log, its turns, its blobs, the answers kept for repeated requests, and
        what features keep with it; `by` is recorded.

        Raises `NotFoundError`, `ConflictError` while the run is unfinished, `StoreError`.
        """
        rows = await self.statements.read("SELECT terminal FROM runs WHERE run_id = ? AND owner = ?", run_id, owner)
        if not rows:
            raise NotFoundError(f"there is no run {run_id[:100]!r}")
        if not rows[0][0]:
            raise ConflictError(f"run {run_id!r} is not finished; cancel it before it is deleted")
        async with self.audit.record_before(AuditEvent("run.delete", run_id, owner=owner, by=by)):
            await self.usage.record(run_id)  # the ledger outlives the run; it is recorded a moment after its end
            # The key of the request stays: with a new run, a repetition would carry it out once more.
            answers = SqlStatement(
                "UPDATE idempotency SET status = -1, body = '' WHERE status >= 0 AND headers LIKE ?", (f'%"{run_id}"%',)
            )
            await delete_runs(self.statements, [run_id], tables=self.tables.of_runs, further=[answers])

    async def _stop_runs(self, owner: str) -> None:
        """Cancels unfinished runs and waits until no worker holds one."""
        query = "SELECT run_id, lease_until FROM runs WHERE owner = ? AND NOT terminal"
        for run_id, _ in await self.statements.read(query, owner):
            try:
                await self.service.cancel_run(run_id, owner=owner, reason="the owner is being deleted")
            except ConflictError:  # it has ended meanwhile
                continue
        until = self.clock() + self.stop_timeout_s
        while running := [row for row in await self.statements.read(query, owner) if row[1] >= self.clock()]:
            if self.clock() >= until:
                raise ConflictError(f"{len(running)} runs of {owner!r} have not stopped yet; try again in a minute")
            await asyncio.sleep(POLL_SECONDS)

    async def _delete_keys(self, owner: str) -> None:
        """Deletes the owner's keys. After every gateway's cache of keys has expired, deletes the answers stored for
        requests with them: see `gateway/access/idempotency.py`.
        """
        senders = [key_id for (key_id,) in await self.statements.read("SELECT id FROM api_keys WHERE owner = ?", owner)]
        await self.statements.write("DELETE FROM api_keys WHERE owner = ?", owner)
        if senders:
            await asyncio.sleep(self.key_cache_seconds)
        for sender in (*senders, *([owner] if owner == LOCAL_OWNER else [])):
            await self.statements.write("DELETE FROM idempotency WHERE owner LIKE ?", f"{sender}/%")

    async def _delete_runs(self, owner: str) -> None:
        """Deletes the owner's runs some at a time, so that other work does not wait for all of them."""
        query = "SELECT run_id FROM runs WHERE owner = ? LIMIT ?"
        while rows := await self.statements.read(query, owner, BATCH):
            await delete_runs(self.statements, [str(run_id) for (run_id,) in rows], tables=self.tables.of_runs)


def format_counts(found: Mapping[str, int]) -> str:
    """Formats the row counts for people."""
    return ", ".join(f"{count:,} {table}" for table, count in sorted(found.items()))
