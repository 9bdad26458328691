"""The contract of the audit record and the tool pins: ordered, shared by processes, never changed."""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.storage.api_keys import KeyStore
from agent.storage.audit import AuditEvent, StoredAuditLog
from agent.storage.sql import Row, SqlClient, SqlStatement
from mcp_tools.client.tool_pin_store import PinsDamagedError, PinStore
from mcp_tools.client.tool_pins import ServerPins, ToolDefinition
from tests.contract.journal_stores import Clock

Pair = tuple[SqlClient, SqlClient]
"""Two connections to the same database, as two processes have them."""


class ReadOnlyClient:
    """A client that refuses writes to the audit table and passes on everything else."""

    def __init__(self, statements: SqlClient) -> None:
        self._statements = statements

    async def read(self, statement: str, *values: object) -> list[Row]:
        return await self._statements.read(statement, *values)

    async def write(self, statement: str, *values: object) -> list[Row]:
        if "INTO audit" in statement:
            raise StoreError("the disk is full")
        return await self._statements.write(statement, *values)

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        return await self._statements.write_all(*changes)


def make_definitions(*names: str, text: str = "d") -> dict[str, ToolDefinition]:
    return {name: ToolDefinition.from_parts({"name": name, "description": text}) for name in names}


class AuditContract:
    """Subclasses provide `statements` and `clock`."""

    async def test_what_is_recorded_is_listed_newest_first(self, statements: Pair, clock: Clock) -> None:
        one, other = (StoredAuditLog(each, clock) for each in statements)
        await one.record(AuditEvent("key.create", "k1", owner="anna", by="root", detail={"name": "x \ud800\x00"}))
        clock.now += 10
        await one.record_afterwards(AuditEvent("memory.delete", "m\ud800\x00" + "x" * 900, owner="bob"))
        found = await other.list_entries()
        assert [entry.action for entry in found] == ["memory.delete", "key.create"]
        assert (found[1].principal, found[1].owner, found[1].outcome) == ("root", "anna", "done")
        assert found[1].detail == {"name": "x \ud800\x00"}
        assert found[0].principal == "bob"
        assert len(found[0].target) == 500
        assert [entry.target for entry in await other.list_entries(action="key")] == ["k1"]
        assert await other.list_entries(action="key.revoke") == []
        assert [entry.id for entry in await other.list_entries(since=clock.now - 1)] == [found[0].id]
        assert [entry.id for entry in await other.list_entries(before=found[0].id)] == [found[1].id]
        assert len(await other.list_entries(limit=1)) == 1

    async def test_a_record_is_neither_changed_nor_removed(self, statements: Pair, clock: Clock) -> None:
        audit = StoredAuditLog(statements[0], clock)
        await audit.record(AuditEvent("key.create", "k1"))
        for statement in ("UPDATE audit SET principal = 'nobody'", "DELETE FROM audit"):
            with pytest.raises(StoreError):
                await statements[1].write(statement)
        assert [entry.principal for entry in await audit.list_entries()] == ["local"]

    async def test_an_act_that_cannot_be_recorded_is_not_done(self, statements: Pair, clock: Clock) -> None:
        keys = KeyStore(statements[0], clock)
        key, _ = await keys.create("anna", "kept", ["chat"])
        mute = KeyStore(statements[0], clock, StoredAuditLog(ReadOnlyClient(statements[0]), clock))
        with pytest.raises(StoreError):
            await mute.create("anna", "another", ["chat"])
        with pytest.raises(StoreError):
            await mute.revoke(key.id)
        assert [(one.name, one.revoked_at) for one in await keys.list_keys()] == [("kept", None)]

    async def test_what_is_done_already_is_in_the_log_at_least(
        self, statements: Pair, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.ERROR):
            mute = StoredAuditLog(ReadOnlyClient(statements[0]), clock)
            await mute.record_afterwards(AuditEvent("memory.delete", "mem_7", owner="anna", by="bob"))
        assert "NOT IN THE AUDIT RECORD: memory.delete mem_7 of anna by bob" in caplog.text

    async def test_an_act_that_fails_is_recorded_as_failed(self, statements: Pair, clock: Clock) -> None:
        audit = StoredAuditLog(statements[0], clock)
        with pytest.raises(ConflictError):
            async with audit.record_before(AuditEvent("collection.delete", "work", owner="anna")):
                raise ConflictError("somebody writes")
        found: Sequence[tuple[str, object]] = [
            (one.outcome, one.detail.get("error")) for one in await audit.list_entries()
        ]
        assert found == [("failed", "ERR_CONFLICT"), ("done", None)]

    async def test_pins_are_shared_and_decided_once(self, statements: Pair, clock: Clock) -> None:
        audit = StoredAuditLog(statements[0], clock)
        one, other = (PinStore(each, clock, audit) for each in statements)
        assert (await one.record_offers("srv", {}, "first_use")).revision == 0
        await asyncio.gather(
            *(each.record_offers("srv", make_definitions("a", "b"), "first_use") for each in (one, other, one, other))
        )
        row = await one.record_offers("srv", make_definitions("a", text="other"), "first_use")
        assert (row.revision, row.pins.quarantined) == (2, ("a",))
        await other.record_offers("srv", make_definitions("a", text="other"), "first_use")
        with pytest.raises(ConflictError, match="has changed since"):
            await other.accept("srv", "a", by="me", digest="0000")
        await other.accept("srv", "a", by="me", digest=make_definitions("a", text="other")["a"].digest[:12])
        assert (await one.get_revision("srv")) == 3
        read = await one.read("srv")
        assert read is not None
        assert read.pins.allows("a", make_definitions("a", text="other")["a"])
        await one.reject("srv", "b", by="me")
        for wrong in (one.accept("srv", "none", by="me"), one.accept("none", "a", by="me"), one.reset("none", by="me")):
            with pytest.raises(NotFoundError):
                await wrong
        actions = [entry.action for entry in await audit.list_entries(action="mcp")]
        assert actions == ["mcp.reject", "mcp.accept", "mcp.quarantine", "mcp.pin"]

    async def test_pins_that_cannot_be_read_close_the_server_until_they_are_reset(
        self, statements: Pair, clock: Clock
    ) -> None:
        store = PinStore(statements[0], clock, StoredAuditLog(statements[0], clock))
        await store.record_offers("srv", make_definitions("a"), "first_use")
        good = (await statements[0].read("SELECT pins FROM mcp_pins"))[0][0]
        for bad in ("", "{", '{"tools": 7}', good.replace('\\"d\\"', '\\"e\\"'), "null"):
            await statements[0].write("UPDATE mcp_pins SET pins = ?", bad)
            for reading in (store.read("srv"), store.record_offers("srv", make_definitions("a"), "first_use")):
                with pytest.raises(PinsDamagedError, match="--reset"):
                    await reading
        assert (await statements[0].read("SELECT pins FROM mcp_pins"))[0][0] == "null", "nothing was written over it"
        await store.reset("srv", by="me")
        row = await store.record_offers("srv", make_definitions("a"), "first_use")
        assert row.pins.quarantined == ("a",), "what was once pinned is not trusted on first use again"
        assert ServerPins().quarantined == ()
