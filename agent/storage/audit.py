"""The audit record: who did what, and when. Services append to it; nobody changes it.

Where possible a record is written *before* the action (`AuditLog.record_before`). If the record cannot be written, the
action does not happen. After a crash the record may name an action that did not happen, but no action is unrecorded. An
action that fails gets a second record with the outcome `failed`. Where action and record share a transaction
(`AuditLog.to_row`), both are written or neither. Where the action is known only afterwards
(`AuditLog.record_afterwards`), a record that cannot be written goes to the log as an error, with its full content.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from agent.core.errors import AgentError, StoreError
from agent.core.models import LOCAL_OWNER, JsonObject
from agent.core.surrogates import to_storable_text
from agent.storage.sql import Row, SqlClient

log = logging.getLogger(__name__)

AuditAction = Literal[
    "key.create",
    "key.change",
    "key.revoke",
    "approval.approve",
    "approval.reject",
    "approval.answer",
    "mcp.pin",
    "mcp.quarantine",
    "mcp.accept",
    "mcp.reject",
    "mcp.reset",
    "memory.delete",
    "document.delete",
    "collection.delete",
    "source.delete",
    "conversation.apply",
    "conversation.abandon",
    "conversation.resolve",
    "user.delete",
    "run.read",
    "run.list",
    "run.delete",
    "run.prune",
    "room.create",
    "room.edit",
    "room.delete",
    "tool.apply",
    "tool.discard",
    "tool.restore",
    "tool.remove",
    "prompt.save",
    "prompt.remove",
    "queue.retry",
    "queue.discard",
    "model.save",
    "model.remove",
    "file_root.add",
    "file_root.remove",
]
AuditOutcome = Literal["done", "failed"]
MAX_NAME_CHARS = 500
"""Longest target or principal, in characters. Others may have chosen these names."""
MAX_DETAIL_CHARS = 20_000
"""Longest detail as JSON, in characters. A longer one is replaced by a note."""
MAX_ID = 2**62
"""Larger than the id of any record."""
INSERT_SQL = "INSERT INTO audit (at, owner, principal, action, target, outcome, detail) VALUES (?,?,?,?,?,?,?)"
"""Inserts an `AuditLog.to_row`."""
AuditRow = tuple[float, str, str, str, str, str, str]
_COLUMNS = "id, at, owner, principal, action, target, outcome, detail"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """An action to be recorded. `owner` owns what it concerns. `by` is who acts, the owner by default. `target` names
    the thing. `detail` contains no secrets and no user texts.
    """

    action: AuditAction
    target: str
    owner: str = LOCAL_OWNER
    by: str | None = None
    detail: JsonObject = field(default_factory=dict)
    outcome: AuditOutcome = "done"

    @property
    def principal(self) -> str:
        """Who acts."""
        return self.by or self.owner


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A stored record: an `AuditEvent` with its number and its time in UTC seconds since 1970. `principal` includes the
    id of the API key that was used.
    """

    id: int
    at: float
    owner: str
    principal: str
    action: str
    target: str
    outcome: str
    detail: JsonObject


class AuditLog(ABC):
    """Where services record what they do."""

    @abstractmethod
    async def record(self, act: AuditEvent) -> None:
        """Writes one record. Raises `StoreError`; the action must not happen then."""

    @abstractmethod
    def to_row(self, act: AuditEvent) -> AuditRow | None:
        """The values of a record for `INSERT_SQL`, to be written in the transaction of the action. None if
        nothing is recorded.
        """

    async def record_afterwards(self, act: AuditEvent) -> None:
        """Records an action that has already happened. Logs an error if the record cannot be written."""
        try:
            await self.record(act)
        except StoreError as error:
            log.exception(
                "NOT IN THE AUDIT RECORD: %s %s of %s by %s, %s, %s: %s",
                act.action, act.target, act.owner, act.principal, act.outcome, json.dumps(act.detail), error.message,
            )  # fmt: skip

    @asynccontextmanager
    async def record_before(self, act: AuditEvent) -> AsyncIterator[None]:
        """Writes the record, then runs the body. If the body raises, adds a record with the outcome `failed`.

        Raises `StoreError` before the body if the record cannot be written, and whatever the body raises.
        """
        await self.record(act)
        try:
            yield
        except Exception as error:
            why = error.code if isinstance(error, AgentError) else type(error).__name__
            await self.record_afterwards(replace(act, detail={"error": why}, outcome="failed"))
            raise


class NullAuditLog(AuditLog):
    """Records nothing. For parts of the gateway that are used on their own."""

    async def record(self, act: AuditEvent) -> None:
        """Does nothing."""

    def to_row(self, act: AuditEvent) -> AuditRow | None:
        """Always None."""
        return None


NO_AUDIT = NullAuditLog()


class StoredAuditLog(AuditLog):
    """The audit record in the database, where triggers refuse updates and deletions."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def record(self, act: AuditEvent) -> None:
        """See `AuditLog.record`."""
        await self._statements.write(INSERT_SQL, *self.to_row(act))

    def to_row(self, act: AuditEvent) -> AuditRow:
        """See `AuditLog.to_row`."""
        detail = json.dumps(act.detail)
        if len(detail) > MAX_DETAIL_CHARS:
            detail = json.dumps({"left_out": f"{len(detail):,} characters"})
        owner, principal, target = (
            to_storable_text(name)[:MAX_NAME_CHARS] for name in (act.owner, act.principal, act.target)
        )
        return self._clock(), owner, principal, act.action, target, act.outcome, detail

    async def list_entries(
        self, *, since: float = 0.0, action: str = "", before: int = MAX_ID, limit: int = 100
    ) -> list[AuditEntry]:
        """Records, newest first: since a time (UTC seconds), of one action (`key.revoke`) or of a group of
        actions (`key`), with ids below `before`. Raises `StoreError`.
        """
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM audit WHERE at >= ? AND id < ? "  # noqa: S608 - constants
            "AND (? = '' OR action = ? OR action LIKE ?) ORDER BY id DESC LIMIT ?",
            since, before, action, action, f"{action}.%", limit,
        )  # fmt: skip
        return [_parse_row(row) for row in rows]


def _parse_row(row: Row) -> AuditEntry:
    number, at, owner, principal, action, target, outcome, detail = row
    return AuditEntry(
        int(number),
        float(at),
        str(owner),
        str(principal),
        str(action),
        str(target),
        str(outcome),
        json.loads(detail),
    )
