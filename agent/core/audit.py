"""The audit record: who did what, when. The services that do these things write it; nobody changes it.

It is written *before* the act wherever that is possible: when it cannot be, the act is not done (`AuditLog.recorded`).
A crash in between leaves a record of something that did not happen, never something that happened without a record. An
act that then fails has a second record, with the outcome `failed`. Where the store can write act and record in one
transaction, there are both or none of them (`AuditLog.entry`). Where it is only known afterwards what was done
(`AuditLog.note`), a record that cannot be written is an error in the log, with all it would have held.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from agent.core.codec import storable
from agent.core.errors import AgentError, StoreError
from agent.core.models import LOCAL_OWNER, JsonObject
from agent.core.statements import Row, Statements

log = logging.getLogger(__name__)

Action = Literal[
    "key.create",
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
]
Outcome = Literal["done", "failed"]
TEXT_CHARS = 500
"""Characters of a target or a principal: names and ids, which others may have chosen."""
DETAIL_CHARS = 20_000
"""Characters of a detail as JSON; a longer one is left out, saying so."""
NEWEST = 2**62
"""No record has this id."""
INSERT = "INSERT INTO audit (at, owner, principal, action, target, outcome, detail) VALUES (?,?,?,?,?,?,?)"
"""How an `AuditLog.entry` is written."""
AuditValues = tuple[float, str, str, str, str, str, str]
_COLUMNS = "id, at, owner, principal, action, target, outcome, detail"


@dataclass(frozen=True, slots=True)
class Act:
    """What is done, as it is to be recorded. `owner` whose things it is about, `by` whom it is done: the owner, where
    nobody else is named. `target` names the thing; `detail` holds no secrets and no texts of users."""

    action: Action
    target: str
    owner: str = LOCAL_OWNER
    by: str | None = None
    detail: JsonObject = field(default_factory=dict)
    outcome: Outcome = "done"

    @property
    def principal(self) -> str:
        """Who does it."""
        return self.by or self.owner


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One record, as it is read back: an `Act` with its number and when it was recorded, in UTC seconds since 1970.
    `principal` comes with the id of their key where they had one."""

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
    async def record(self, act: Act) -> None:
        """Write one record. Raises `StoreError`: then the act is not to be done."""

    @abstractmethod
    def entry(self, act: Act) -> AuditValues | None:
        """The values of one record for `INSERT`, for those who write it together with the act; None where nothing is
        recorded."""

    async def note(self, act: Act) -> None:
        """Record what has been done already: a record that cannot be written goes to the log, as an error."""
        try:
            await self.record(act)
        except StoreError as error:
            log.exception(
                "NOT IN THE AUDIT RECORD: %s %s of %s by %s, %s, %s: %s",
                act.action, act.target, act.owner, act.principal, act.outcome, json.dumps(act.detail), error.message,
            )  # fmt: skip

    @asynccontextmanager
    async def recorded(self, act: Act) -> AsyncIterator[None]:
        """Record an act and then do it, in the body. One that fails is recorded once more, as `failed`.

        Raises `StoreError` before the body where the record cannot be written, and what the body raises."""
        await self.record(act)
        try:
            yield
        except Exception as error:
            why = error.code if isinstance(error, AgentError) else type(error).__name__
            await self.note(replace(act, detail={"error": why}, outcome="failed"))
            raise


class Unrecorded(AuditLog):
    """Keeps nothing: for parts of the gateway that are used by themselves."""

    async def record(self, act: Act) -> None:
        """Nothing."""

    def entry(self, act: Act) -> AuditValues | None:
        """None."""
        return None


UNRECORDED = Unrecorded()


class StoredAudit(AuditLog):
    """The record in the store, where triggers refuse to change or remove a row."""

    def __init__(self, statements: Statements, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def record(self, act: Act) -> None:
        """See `AuditLog.record`."""
        await self._statements.write(INSERT, *self.entry(act))

    def entry(self, act: Act) -> AuditValues:
        """See `AuditLog.entry`."""
        detail = json.dumps(act.detail)
        if len(detail) > DETAIL_CHARS:
            detail = json.dumps({"left_out": f"{len(detail):,} characters"})
        owner, principal, target = (storable(name)[:TEXT_CHARS] for name in (act.owner, act.principal, act.target))
        return self._clock(), owner, principal, act.action, target, act.outcome, detail

    async def list(
        self, *, since: float = 0.0, action: str = "", before: int = NEWEST, limit: int = 100
    ) -> list[AuditEntry]:
        """Records, newest first: since a time (UTC seconds), of an action (`key.revoke`) or all of a kind (`key`), and
        older than the record `before`. Raises `StoreError`."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM audit WHERE at >= ? AND id < ? "  # noqa: S608 - constants
            "AND (? = '' OR action = ? OR action LIKE ?) ORDER BY id DESC LIMIT ?",
            since, before, action, action, f"{action}.%", limit,
        )  # fmt: skip
        return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditEntry:
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
