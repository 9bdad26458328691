"""`PinStore`: stores tool pins, one row for each server, shared by all processes on the same data.

Updates are optimistic: a writer must have read the newest revision, else it reads again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.core.models import JsonObject
from agent.storage.audit import AuditAction, AuditEvent, AuditLog
from agent.storage.sql import SqlClient
from mcp_tools.client.tool_pins import FIRST_USE, PinPolicy, ServerPins, ToolDefinition, make_first_pins

MAX_TRIES = 8
"""Attempts to change a row; each failure means that another process has changed it."""
MAX_AUDITED_NAMES = 100
"""The most tool names in one audit record."""


class PinsDamagedError(StoreError):
    """Raised for an unreadable row of pins. None of the server's tools is used then."""


@dataclass(frozen=True, slots=True)
class PinRow:
    """The pins of a server and their revision."""

    revision: int
    pins: ServerPins


@dataclass(frozen=True, slots=True)
class PinSettings:
    """The store of pins, and the policy for a server without pins."""

    store: "PinStore"
    policy: PinPolicy


class PinStore:
    """The pins of all servers. Methods raise `StoreError`, and `PinsDamagedError` for an unreadable row."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float], audit: AuditLog) -> None:
        self._statements = statements
        self._clock = clock
        self._audit = audit

    async def get_revision(self, server: str) -> int | None:
        """The revision of a server's pins; None if it has none."""
        rows = await self._statements.read("SELECT revision FROM mcp_pins WHERE server = ?", server)
        return int(rows[0][0]) if rows else None

    async def read(self, server: str) -> PinRow | None:
        """The pins of a server; None if it was never seen."""
        rows = await self._statements.read("SELECT revision, pins FROM mcp_pins WHERE server = ?", server)
        if not rows:
            return None
        try:
            return PinRow(int(rows[0][0]), ServerPins.model_validate_json(rows[0][1]))
        except ValidationError as error:
            raise PinsDamagedError(
                f"the pins of the MCP server {server!r} cannot be read, so none of its tools is used; restore the "
                f"store, or review all of them again: `stepgate mcp-servers review {server} --reset`",
                agent_id=server,
            ) from error

    async def record_offers(self, server: str, offers: Mapping[str, ToolDefinition], policy: PinPolicy) -> PinRow:
        """The pins after the server has listed its tools.

        The first list is accepted automatically, unless the policy requires a review. Later changes are quarantined and
        audited once.
        """
        for _ in range(MAX_TRIES):
            row = await self.read(server)
            if row is None and not offers:  # it may not be ready yet, so it does not count as seen
                return PinRow(0, ServerPins())
            if row is None:
                pins = make_first_pins(offers, policy, self._clock())
                if await self._insert(server, pins):
                    if policy == "first_use":
                        await self._audit.record_afterwards(
                            AuditEvent("mcp.pin", server, by=FIRST_USE, detail=_summarize_digests(offers))
                        )
                    await self._audit_quarantine(server, ServerPins(), pins)
                    return PinRow(1, pins)
                continue
            pins = row.pins.with_offers(offers, self._clock())
            if pins is row.pins:
                return row
            if await self._update(server, row.revision, pins):
                await self._audit_quarantine(server, row.pins, pins)
                return PinRow(row.revision + 1, pins)
        raise _make_contention_error(server)

    async def accept(self, server: str, name: str, *, by: str, digest: str = "") -> ServerPins:
        """Accepts what a tool offers now.

        Raises `NotFoundError` if nothing waits, and `ConflictError` if the offer's digest does not start with `digest`.
        """

        def accepted(pins: ServerPins) -> ServerPins:
            pin = pins.tools.get(name)
            if pin is not None and pin.offered is not None and not pin.offered.digest.startswith(digest):
                raise ConflictError(
                    f"{server}/{name} has changed since it was shown (it is {pin.offered.digest[:12]} now); look "
                    f"again: `stepgate mcp-servers review {server}`",
                    agent_id=server,
                )
            return pins.accept(name, by, self._clock())

        return await self._change_pin("mcp.accept", server, name, by, accepted)

    async def reject(self, server: str, name: str, *, by: str) -> ServerPins:
        """Puts a tool out of use. Raises `NotFoundError`."""
        return await self._change_pin("mcp.reject", server, name, by, lambda pins: pins.reject(name, by, self._clock()))

    async def reset(self, server: str, *, by: str) -> None:
        """Deletes all decisions about a server, so that everything it offers must be reviewed. Raises
        `NotFoundError`."""
        if await self.get_revision(server) is None:
            raise NotFoundError(f"the MCP server {server!r} has no pins")
        async with self._audit.record_before(AuditEvent("mcp.reset", server, by=by)):
            await self._statements.write(
                "UPDATE mcp_pins SET revision = revision + 1, pins = ?, at = ? WHERE server = ?",
                ServerPins().model_dump_json(), self._clock(), server,
            )  # fmt: skip

    async def _change_pin(
        self, action: AuditAction, server: str, name: str, by: str, change: Callable[[ServerPins], ServerPins]
    ) -> ServerPins:
        """Changes one pin by a person's decision, which is audited first."""
        row = await self.read(server)
        if row is None:
            raise NotFoundError(f"{server!r} was never connected; list its tools: `stepgate mcp-servers test {server}`")
        pins = change(row.pins)
        pin = row.pins.tools[name]
        detail: JsonObject = {
            "offered": pin.offered.digest if pin.offered else None,
            "accepted_before": pin.accepted.digest if pin.accepted else None,
        }
        async with self._audit.record_before(AuditEvent(action, f"{server}/{name}", by=by, detail=detail)):
            for _ in range(MAX_TRIES):
                if await self._update(server, row.revision, pins):
                    return pins
                newer = await self.read(server)
                if newer is None or newer.pins.tools.get(name) != pin:
                    raise ConflictError(f"{server}/{name} has just changed; review it again", agent_id=server)
                row, pins = newer, change(newer.pins)
            raise _make_contention_error(server)

    async def _insert(self, server: str, pins: ServerPins) -> bool:
        rows = await self._statements.write(
            "INSERT INTO mcp_pins (server, revision, pins, at) VALUES (?, 1, ?, ?) "
            "ON CONFLICT (server) DO NOTHING RETURNING revision",
            server, pins.model_dump_json(), self._clock(),
        )  # fmt: skip
        return bool(rows)

    async def _update(self, server: str, revision: int, pins: ServerPins) -> bool:
        rows = await self._statements.write(
            "UPDATE mcp_pins SET revision = ?, pins = ?, at = ? WHERE server = ? AND revision = ? RETURNING revision",
            revision + 1, pins.model_dump_json(), self._clock(), server, revision,
        )  # fmt: skip
        return bool(rows)

    async def _audit_quarantine(self, server: str, before: ServerPins, after: ServerPins) -> None:
        """Audits newly quarantined tools in one record: a server may offer hundreds."""
        new = [name for name in after.quarantined if name not in before.quarantined]
        if new:
            tools: JsonObject = {name: after.tools[name].reason for name in new[:MAX_AUDITED_NAMES]}
            detail: JsonObject = {"count": len(new), "tools": tools}
            await self._audit.record_afterwards(AuditEvent("mcp.quarantine", server, by="stepgate", detail=detail))


def _summarize_digests(offers: Mapping[str, ToolDefinition]) -> JsonObject:
    names = sorted(offers)[:MAX_AUDITED_NAMES]
    return {"count": len(offers), "tools": {name: offers[name].digest for name in names}}


def _make_contention_error(server: str) -> ConflictError:
    return ConflictError(f"the pins of {server!r} are being changed by another process; try again", agent_id=server)
