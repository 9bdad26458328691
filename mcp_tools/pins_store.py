"""`PinStore`: the pins in the store, one row a server, shared by every process on the same data.

A row is changed only by who has read its newest revision; another process sees the new revision and reads it again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from agent.core.audit import Act, Action, AuditLog
from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.core.models import JsonObject
from agent.core.statements import Statements
from mcp_tools.pins import FIRST_USE, Definition, PinPolicy, ServerPins, first_pins

TRIES = 8
"""Times a change is made again because another process was quicker; each of them has made one of its own."""
NAMES_RECORDED = 100
"""Names of tools in one audit record."""


class PinsDamagedError(StoreError):
    """Raised for a row of pins that cannot be read. None of the server's tools is used then."""


@dataclass(frozen=True, slots=True)
class PinRow:
    """The pins of a server, and the revision that changes with them."""

    revision: int
    pins: ServerPins


@dataclass(frozen=True, slots=True)
class Pinning:
    """The pins, and what is done with a server that has none yet."""

    store: "PinStore"
    policy: PinPolicy


class PinStore:
    """The pins of all servers. Methods raise `StoreError`, and `PinsDamagedError` for a row that cannot be read."""

    def __init__(self, statements: Statements, clock: Callable[[], float], audit: AuditLog) -> None:
        self._statements = statements
        self._clock = clock
        self._audit = audit

    async def revision(self, server: str) -> int | None:
        """The revision of a server's pins; None where it has none."""
        rows = await self._statements.read("SELECT revision FROM mcp_pins WHERE server = ?", server)
        return int(rows[0][0]) if rows else None

    async def read(self, server: str) -> PinRow | None:
        """The pins of a server; None for one that was never seen."""
        rows = await self._statements.read("SELECT revision, pins FROM mcp_pins WHERE server = ?", server)
        if not rows:
            return None
        try:
            return PinRow(int(rows[0][0]), ServerPins.model_validate_json(rows[0][1]))
        except ValidationError as error:
            raise PinsDamagedError(
                f"the pins of the MCP server {server!r} cannot be read, so none of its tools is used; restore the "
                f"store, or review them all anew: `stepgate mcp-servers review {server} --reset`",
                agent_id=server,
            ) from error

    async def offer(self, server: str, offers: Mapping[str, Definition], policy: PinPolicy) -> PinRow:
        """The pins after the server has listed its tools. The first list of all is accepted by itself, unless the
        policy wants a review; later, what differs goes into quarantine, and is recorded once."""
        for _ in range(TRIES):
            row = await self.read(server)
            if row is None and not offers:  # it may not be ready yet: it has not been seen
                return PinRow(0, ServerPins())
            if row is None:
                pins = first_pins(offers, policy, self._clock())
                if await self._insert(server, pins):
                    if policy == "first_use":
                        await self._audit.note(Act("mcp.pin", server, by=FIRST_USE, detail=_digests(offers)))
                    await self._note_quarantine(server, ServerPins(), pins)
                    return PinRow(1, pins)
                continue
            pins = row.pins.offered(offers, self._clock())
            if pins is row.pins:
                return row
            if await self._update(server, row.revision, pins):
                await self._note_quarantine(server, row.pins, pins)
                return PinRow(row.revision + 1, pins)
        raise _contended(server)

    async def accept(self, server: str, name: str, *, by: str, digest: str = "") -> ServerPins:
        """Accept what a tool offers now. `NotFoundError` when nothing of it waits, `ConflictError` when it is not the
        one whose digest begins like this."""

        def accepted(pins: ServerPins) -> ServerPins:
            pin = pins.tools.get(name)
            if pin is not None and pin.offered is not None and not pin.offered.digest.startswith(digest):
                raise ConflictError(
                    f"{server}/{name} has changed since it was shown (it is {pin.offered.digest[:12]} now); look "
                    f"again: `stepgate mcp-servers review {server}`",
                    agent_id=server,
                )
            return pins.accept(name, by, self._clock())

        return await self._decide("mcp.accept", server, name, by, accepted)

    async def reject(self, server: str, name: str, *, by: str) -> ServerPins:
        """Take a tool out of use: what it offers, or what was accepted. `NotFoundError`."""
        return await self._decide("mcp.reject", server, name, by, lambda pins: pins.reject(name, by, self._clock()))

    async def reset(self, server: str, *, by: str) -> None:
        """Forget what was accepted of a server, readable or not: everything it offers is to be reviewed.
        `NotFoundError` for one that was never seen."""
        if await self.revision(server) is None:
            raise NotFoundError(f"the MCP server {server!r} has no pins")
        async with self._audit.recorded(Act("mcp.reset", server, by=by)):
            await self._statements.write(
                "UPDATE mcp_pins SET revision = revision + 1, pins = ?, at = ? WHERE server = ?",
                ServerPins().model_dump_json(), self._clock(), server,
            )  # fmt: skip

    async def _decide(
        self, action: Action, server: str, name: str, by: str, change: Callable[[ServerPins], ServerPins]
    ) -> ServerPins:
        """Change one pin by a person's word, which is recorded first."""
        row = await self.read(server)
        if row is None:
            raise NotFoundError(
                f"{server!r} was never seen; ask it for its tools: `stepgate mcp-servers test {server}`"
            )
        pins = change(row.pins)
        pin = row.pins.tools[name]
        detail: JsonObject = {
            "offered": pin.offered.digest if pin.offered else None,
            "accepted_before": pin.accepted.digest if pin.accepted else None,
        }
        async with self._audit.recorded(Act(action, f"{server}/{name}", by=by, detail=detail)):
            for _ in range(TRIES):
                if await self._update(server, row.revision, pins):
                    return pins
                newer = await self.read(server)
                if newer is None or newer.pins.tools.get(name) != pin:
                    raise ConflictError(f"{server}/{name} has changed at this very moment; look again", agent_id=server)
                row, pins = newer, change(newer.pins)
            raise _contended(server)

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

    async def _note_quarantine(self, server: str, before: ServerPins, after: ServerPins) -> None:
        """Record the tools that have just been put into quarantine, in one record: a server may offer hundreds."""
        new = [name for name in after.waiting if name not in before.waiting]
        if new:
            tools: JsonObject = {name: after.tools[name].why for name in new[:NAMES_RECORDED]}
            detail: JsonObject = {"count": len(new), "tools": tools}
            await self._audit.note(Act("mcp.quarantine", server, by="stepgate", detail=detail))


def _digests(offers: Mapping[str, Definition]) -> JsonObject:
    names = sorted(offers)[:NAMES_RECORDED]
    return {"count": len(offers), "tools": {name: offers[name].digest for name in names}}


def _contended(server: str) -> ConflictError:
    return ConflictError(f"the pins of {server!r} are being changed by another process; try again", agent_id=server)
