"""`RunRetention`: forgets what is older than `AGENT_KEEP_DAYS`, in small batches beside the work of the gateway.

What is forgotten: ended runs with their logs, turns and blobs; conversations of clients; the ledger's rows of single
runs; what features declare (`agent/storage/feature_tables.py` `FeatureRetention`).

What stays: unfinished runs, also parked ones; the runs of a conversation in which something happened since; runs that
an unfinished fork reads or that a feature needs; the sums of usage by day; the audit record; memories, documents and
everything else that an owner has saved.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.core.errors import AgentError, StoreError
from agent.storage.audit import AuditEvent, AuditLog
from agent.storage.feature_tables import FeatureRetention
from agent.storage.leases import HousekeepingLease
from agent.storage.run_deletion import BATCH, SqlCondition, delete_runs
from agent.storage.sql import PAGE, SqlClient, SqlStatement, UnchangedError, iter_pages
from agent.storage.usage import DAY_SECONDS, UsageLedger

log = logging.getLogger(__name__)

PASS_EVERY_SECONDS: Final = 6 * 3600.0
CHECK_EVERY_SECONDS: Final = 60.0
LEASE_SECONDS: Final = 600.0
"""Longer than clocks of machines differ, and than a batch takes."""
BUSY_SHARE: Final = 0.5
"""The share of the time in which a pass works; in the rest others use the store alone."""
LEASE_NAME: Final = "retention"

_CONVERSATION_TABLES: Final = (
    ("runs", "updated_at >= ? OR NOT terminal"),
    ("turns", "at >= ?"),
    ("client_items", "at >= ?"),
)
"""What makes a conversation one that is in use."""
_NAMED_IN_NEW_FORK: Final = (
    "SELECT 1 FROM runs AS fork JOIN events AS e ON e.run_id = fork.run_id AND e.seq = 1 "
    "WHERE NOT fork.terminal AND fork.created_at >= ? AND e.data LIKE ? || runs.run_id || ?"
)
Conversation = tuple[str, str]
"""The owner and the id."""


@dataclass(slots=True)
class PruneReport:
    """How many rows were deleted, or would be."""

    runs: int = 0
    conversations: int = 0
    usage_rows: int = 0
    features: dict[str, int] = field(default_factory=dict)
    """The rows of features by what they are called, without those that go with their runs; `count_old` counts these
    too if they are old themselves."""

    def add(self, name: str, count: int) -> None:
        """Adds rows of a feature; those without a name are not counted."""
        if name:
            self.features[name] = self.features.get(name, 0) + count

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to forget."""
        return not (self.runs or self.conversations or self.usage_rows or any(self.features.values()))

    def __str__(self) -> str:
        counts = {
            "runs": self.runs,
            "conversations": self.conversations,
            **self.features,
            "usage rows": self.usage_rows,
        }
        return ", ".join(f"{count:,} {name}" for name, count in counts.items())


@dataclass(frozen=True, slots=True)
class RunRetention:
    """Forgets what is older than `keep_days`; 0 keeps everything. `clock` gives UTC seconds since 1970."""

    statements: SqlClient
    ledger: UsageLedger
    audit: AuditLog
    keep_days: float
    holder: str
    """The name of this process, for the lease."""
    run_tables: tuple[str, ...] = ()
    """The tables of features whose rows are deleted with their run."""
    list_features: Callable[[], Sequence[FeatureRetention]] = field(default=lambda: ())
    """What features have to do with age. Called for each pass; raises `ConfigError` if it is not known."""
    clock: Callable[[], float] = time.time
    count_pruned: Callable[[int], None] = field(default=lambda _: None)
    """Counts deleted runs, for the metrics."""

    @property
    def cutoff(self) -> float:
        """The time before which things are forgotten, in UTC seconds since 1970."""
        return self.clock() - self.keep_days * DAY_SECONDS

    async def run(self) -> None:
        """Prunes when it is due, until cancelled. One gateway of a fleet does it at a time."""
        if not self.keep_days:
            return
        while True:
            await asyncio.sleep(CHECK_EVERY_SECONDS)
            try:
                if await self.lease.get_done() + PASS_EVERY_SECONDS <= self.clock():
                    report = await self.prune(by="AGENT_KEEP_DAYS")
                    if report is not None and not report.is_empty:
                        log.info("older than %g days and deleted: %s", self.keep_days, report)
            except AgentError as error:  # the next check continues
                log.warning("old runs cannot be deleted now: %s", error.message)

    @property
    def lease(self) -> HousekeepingLease:
        """The fleet's lease on a pass."""
        return HousekeepingLease(
            self.statements, LEASE_NAME, holder=self.holder, seconds=LEASE_SECONDS, clock=self.clock
        )

    async def prune(self, *, by: str) -> PruneReport | None:
        """Forgets everything that is old enough; `by` is recorded. Returns None if another process is doing it.

        Interrupted at any moment, it leaves no run half deleted; the next pass continues. Raises `StoreError`, and
        `ConfigError` if it is not known what features need.
        """
        if not self.keep_days:
            return PruneReport()
        features = self.list_features()
        if not await self.lease.take():
            return None
        report, cutoff, done = PruneReport(), self.cutoff, None
        try:
            await self._prune(report, cutoff, features)
            done = self.clock()
        finally:
            with contextlib.suppress(StoreError):
                await self.lease.release(done=done)
            if not report.is_empty:
                counts = {"runs": report.runs, "conversations": report.conversations, **report.features}
                act = AuditEvent("run.prune", "runs", by=by, detail={"before": cutoff, **counts})
                await self.audit.record_afterwards(act)
        return report

    async def count_old(self) -> PruneReport:
        """Counts what a pass would delete now. Rows of features that go with runs of theirs are not counted."""
        report, cutoff = PruneReport(), self.cutoff
        if self.keep_days:
            features = self.list_features()
            async for runs in self._list_old_runs(cutoff, features):
                report.runs += len(runs)
            for aging in (aging for feature in features for aging in feature.aging if aging.name):
                counts = [rows.count async for rows in aging.list_old(self.statements, cutoff)]
                report.add(aging.name, sum(counts))
            async for conversations in self._list_old_conversations(cutoff, will_lose_runs=True):
                report.conversations += len(conversations)
            ((count,),) = await self.statements.read("SELECT count(*) FROM model_usage WHERE at < ?", cutoff)
            report.usage_rows = int(count)
        return report

    async def _prune(self, report: PruneReport, cutoff: float, features: Sequence[FeatureRetention]) -> None:
        condition = _build_unneeded_condition(self.clock() - LEASE_SECONDS, cutoff, features)
        deleters = [one.delete_with_runs for one in features if one.delete_with_runs is not None]
        async for run_ids in self._list_old_runs(cutoff, features):
            for batch in (run_ids[start : start + BATCH] for start in range(0, len(run_ids), BATCH)):
                async with self._pace():
                    further = [one for delete in deleters for one in await delete(self.statements, batch, cutoff)]
                    count = await delete_runs(
                        self.statements, batch, tables=self.run_tables, condition=condition, further=further
                    )
                report.runs += count
                self.count_pruned(count)
        for aging in (aging for feature in features for aging in feature.aging):
            report.add(aging.name, 0)
            async for rows in aging.list_old(self.statements, cutoff):
                async with self._pace():
                    (count,) = await self.statements.write_all(rows.deletion)
                report.add(aging.name, count)
        async for conversations in self._list_old_conversations(cutoff):
            for conversation in conversations:
                async with self._pace():
                    report.conversations += await self._delete_conversation(conversation, cutoff)
        count = 1
        while count:
            async with self._pace():
                count = await self.ledger.delete_before(cutoff, limit=PAGE)
            report.usage_rows += count

    @contextlib.asynccontextmanager
    async def _pace(self) -> AsyncIterator[None]:
        """Renews the lease, and pauses after the block for as long as `BUSY_SHARE` asks."""
        await self.lease.take()
        started = time.monotonic()
        yield
        took = time.monotonic() - started
        await asyncio.sleep(took / BUSY_SHARE - took)

    async def _list_old_runs(self, cutoff: float, features: Sequence[FeatureRetention]) -> AsyncIterator[list[str]]:
        """Yields the runs that may be deleted, oldest end first."""
        needed, in_use = await self._list_needed_runs(features), dict[Conversation, bool]()
        at, last = -1.0, ""
        while True:
            rows = await self.statements.read(
                "SELECT run_id, updated_at, owner, conversation_id FROM runs WHERE terminal AND updated_at < ? "
                "AND updated_at >= ? AND (updated_at > ? OR run_id > ?) ORDER BY updated_at, run_id LIMIT ?",
                cutoff, at, at, last, PAGE,
            )  # fmt: skip
            if not rows:
                return
            last, at = str(rows[-1][0]), float(rows[-1][1])
            await self._look_up(in_use, {(row[2], row[3]) for row in rows if row[3] is not None}, cutoff)
            old = [str(row[0]) for row in rows if row[0] not in needed and not in_use.get((row[2], row[3]), False)]
            if old:
                yield old

    async def _look_up(self, in_use: dict[Conversation, bool], asked: Iterable[Conversation], cutoff: float) -> None:
        """Adds to `in_use` which of these conversations are."""
        unknown = sorted(conversation for conversation in asked if conversation not in in_use)
        in_use |= dict.fromkeys(unknown, False)
        if unknown:
            marks, values = ",".join(["(?,?)"] * len(unknown)), [part for one in unknown for part in one]
            for table, condition in _CONVERSATION_TABLES:
                rows = await self.statements.read(
                    f"SELECT DISTINCT owner, conversation_id FROM {table} "  # noqa: S608 - constants
                    f"WHERE (owner, conversation_id) IN (VALUES {marks}) AND ({condition})",
                    *values, cutoff,
                )  # fmt: skip
                in_use |= {(str(owner), str(name)): True for owner, name in rows}

    async def _list_needed_runs(self, features: Sequence[FeatureRetention]) -> set[str]:
        """The runs that features need, and those that unfinished forks read."""
        listers = [one.list_needed_runs for one in features if one.list_needed_runs is not None]
        needed = {run_id for list_needed in listers for run_id in await list_needed(self.statements)}
        rows = await self.statements.read(
            "SELECT e.data FROM runs r JOIN events e ON e.run_id = r.run_id AND e.seq = 1 "
            "WHERE NOT r.terminal AND e.data LIKE ?",
            '%"from_run":"%',
        )
        given = [json.loads(data).get("given") for (data,) in rows]
        return needed | {str(plan["from_run"]) for plan in given if plan}

    async def _list_old_conversations(
        self, cutoff: float, *, will_lose_runs: bool = False
    ) -> AsyncIterator[list[Conversation]]:
        """Yields the conversations of clients in which nothing happened since and that have no runs. With
        `will_lose_runs`, also those that have only runs which may be deleted.
        """
        async for rows in iter_pages(
            self.statements,
            "SELECT id, owner, created, EXISTS (SELECT 1 FROM runs r WHERE r.owner = c.owner "
            "AND r.conversation_id = c.id) FROM client_conversations c WHERE id > ? ORDER BY id LIMIT ?",
        ):
            expired = [(str(row[1]), str(row[0])) for row in rows if row[2] < cutoff and (will_lose_runs or not row[3])]
            in_use: dict[Conversation, bool] = {}
            await self._look_up(in_use, expired, cutoff)
            old = [conversation for conversation in expired if not in_use[conversation]]
            if old:
                yield old

    async def _delete_conversation(self, conversation: Conversation, cutoff: float) -> bool:
        """Deletes a conversation. Returns False if something has happened in it since it was found."""
        unused = _build_unused_condition("client_conversations.id", "client_conversations.owner", cutoff)
        query = f"DELETE FROM client_conversations WHERE owner = ? AND id = ? AND {unused.text}"  # noqa: S608 - constants
        try:
            await self.statements.write_all(
                SqlStatement(query, (*conversation, *unused.values), must_change=True),
                SqlStatement("DELETE FROM client_items WHERE owner = ? AND conversation_id = ?", conversation),
                SqlStatement("DELETE FROM turns WHERE owner = ? AND conversation_id = ?", conversation),
            )
        except UnchangedError:
            return False
        return True


def _build_unused_condition(conversation_id: str, owner: str, cutoff: float) -> SqlCondition:
    """The condition that a conversation, which these columns name, is not in use."""
    parts = [
        f"NOT EXISTS (SELECT 1 FROM {table} AS other WHERE other.owner = {owner} "  # noqa: S608 - constants
        f"AND other.conversation_id = {conversation_id} AND ({condition}))"
        for table, condition in _CONVERSATION_TABLES
    ]
    return SqlCondition(" AND ".join(parts), (cutoff,) * len(parts))


def _build_unneeded_condition(since: float, cutoff: float, features: Sequence[FeatureRetention]) -> SqlCondition:
    """The condition that a run is not needed by what has begun since a pass looked: work in its conversation, a fork,
    a row of a feature. It is part of the deletion, because a pass takes hours.
    """
    unused = _build_unused_condition("runs.conversation_id", "runs.owner", cutoff)
    forked = SqlCondition(f"EXISTS ({_NAMED_IN_NEW_FORK})", (since, '%"from_run":"', '"%'))
    needs = [forked, *(one.build_need_condition(since) for one in features if one.build_need_condition is not None)]
    return SqlCondition(
        " AND ".join([unused.text, *(f"NOT ({need.text})" for need in needs)]),
        (*unused.values, *(value for need in needs for value in need.values)),
    )
