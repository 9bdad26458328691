"""The versions of generated tools on both databases, and what a kill between any two statements leaves."""

import asyncio
import signal
import sys
import time
from pathlib import Path

import pytest

from agent.core.errors import ConflictError, NotFoundError
from agent.core.principal import LOCAL
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqlClient, SqliteClient
from gateway.features.studio.engine.errors import VersionConflictError
from gateway.features.studio.engine.generated_tools import version_store
from gateway.features.studio.engine.generated_tools.models import Manifest
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore
from mcp_tools.builtin.calculator import CalculatorTool
from tests.integration.test_keys import statements as statements  # noqa: PLC0414 - a fixture
from tests.support.processes import start
from tests.support.tool_crash_worker import NAME, build_service, prepare
from tests.support.tool_scripts import CODE, make_version

OPERATIONS = {
    "stage": [(1, "applied", False), (2, "applied", True), (3, "staged", False), (4, "staged", False)],
    "apply": [(1, "applied", False), (2, "applied", False), (3, "applied", True)],
    "restore": [(1, "applied", True), (2, "applied", False), (3, "staged", False)],
    "discard": [(1, "applied", False), (2, "applied", True), (3, "discarded", False)],
    "remove": [],
}
"""What each operation leaves: version, state, whether it is in use."""
BEFORE = [(1, "applied", False), (2, "applied", True), (3, "staged", False)]


async def read_state(db: SqlClient) -> list[tuple[int, str, bool]]:
    try:
        versions = await ToolVersionStore(db, time.time).list_versions("local", NAME)
    except NotFoundError:
        return []
    return sorted((one.version, one.state, one.is_active) for one in versions)


async def test_versions_are_numbered_and_applied_once(statements: SqlClient) -> None:
    store = ToolVersionStore(statements, time.time)
    made = await asyncio.gather(
        *(store.add(make_version(code=f"{CODE}# {number}\n", parent=None)) for number in range(4)),
        return_exceptions=True,
    )
    numbers = sorted(one.version for one in made if not isinstance(one, BaseException))
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(isinstance(one, ConflictError) for one in made if isinstance(one, BaseException))
    child = await store.add(make_version(parent=1))
    newest = (await store.list_versions("local", NAME))[0]
    assert (newest.version, newest.parent, newest.code, newest.tests) == (child.version, 1, CODE, child.tests)
    with pytest.raises(VersionConflictError):
        await store.activate(child, by="local", sha256="0")
    done = await asyncio.gather(
        *(store.activate(child, by="local", sha256=child.sha256) for _ in range(4)), return_exceptions=True
    )
    assert [one for one in done if one is None] == [None]
    assert [one.version for one in await store.list_active()] == [child.version]
    other = await store.add(make_version(owner="anna"))
    assert other.version == 1, "another owner's tool"
    with pytest.raises(ConflictError):
        await store.activate(other, by="anna", sha256=other.sha256)
    assert [one.owner for one in await store.list_active()] == ["local"], "the name is taken"
    assert (await store.list_versions("anna", NAME))[0].state == "staged", "nothing is half done"
    assert await store.remove("local", NAME) == len(numbers) + 1
    assert await store.read_stamp() == ()


async def test_a_version_from_outside_is_a_persons_once_they_have_applied_it(statements: SqlClient) -> None:
    store = ToolVersionStore(statements, time.time)
    for is_earlier in (False, True):  # a release without the mark stored nothing of it
        made = await store.add(make_version(name=f"tool_{is_earlier}", run_id="run_1", from_outside=True))
        if is_earlier:
            await statements.write("UPDATE tool_versions SET review = ?", make_version().review.model_dump_json())
        assert (await store.list_versions("local", made.name))[0].from_outside
        await store.activate(made, by="local", sha256=made.sha256)
        assert not (await store.list_versions("local", made.name))[0].from_outside


async def test_of_two_owners_who_take_a_name_together_one_gets_it(
    statements: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On PostgreSQL both see the name free.
    monkeypatch.setattr(version_store, "_IS_FREE", "CAST(? AS TEXT) <> CAST(? AS TEXT)")
    store = ToolVersionStore(statements, time.time)
    first, second = [await store.add(make_version(owner=owner, code=f"{CODE}# {owner}\n")) for owner in ("ann", "bob")]
    await store.activate(first, by="ann", sha256=first.sha256)
    with pytest.raises(ConflictError):
        await store.activate(second, by="bob", sha256=second.sha256)
    assert await store.read_stamp() == ((NAME, "ann", 1, first.sha256),)
    assert [one.state for one in await store.list_versions("bob", NAME)] == ["staged"]


@pytest.mark.row("S002-39")
@pytest.mark.parametrize("operation", list(OPERATIONS))
async def test_a_kill_leaves_the_state_before_or_after(tmp_path: Path, operation: str) -> None:
    killed = 0
    for lives in range(10):
        folder = tmp_path / str(lives)
        folder.mkdir()
        store = await open_sqlite(folder / "stepgate.db")
        await prepare(SqliteClient(store.database))
        assert await read_state(SqliteClient(store.database)) == BEFORE
        await store.close()
        said = await run_worker(folder, operation, lives)
        store = await open_sqlite(folder / "stepgate.db")
        db = SqliteClient(store.database)
        state = await read_state(db)
        service = build_service(db)
        await service.refresh()
        assert service.faults == {}
        await service.aclose()
        if said == "done":
            assert state == OPERATIONS[operation]
            await store.close()
            break
        killed += 1
        assert state in (BEFORE, OPERATIONS[operation])
        active = [number for number, _, is_active in state if is_active]
        assert [one.version for one in await ToolVersionStore(db, time.time).list_active()] == active
        if state == BEFORE and operation == "apply":
            assert (await build_service(db).apply(LOCAL, NAME)).is_active, "it can be repeated"
        await store.close()
    assert killed >= 2, "it was killed before and after its writes"


async def run_worker(folder: Path, operation: str, lives: int) -> str:
    """What the worker printed; empty if it was killed."""
    command = [sys.executable, "-m", "tests.support.tool_crash_worker", str(folder), operation, str(lives)]
    process = await asyncio.to_thread(start, command)
    assert await asyncio.to_thread(process.wait) in (0, -signal.SIGKILL), process.output
    return "\n".join(process.output)


async def test_a_tool_is_offered_once_the_tool_that_it_calls_appears(statements: SqlClient) -> None:
    """A called tool of an MCP server is registered when that connects, which is later."""
    service = build_service(statements)
    manifest = Manifest(tools=("calculator",))
    staged = await ToolVersionStore(statements, time.time).add(make_version(manifest=manifest))
    await ToolVersionStore(statements, time.time).activate(staged, by="local", sha256=staged.sha256)
    registry = service._registry
    await service.refresh()
    assert (NAME in registry, list(service.faults)) == (False, [NAME])
    registry.replace("builtin", [CalculatorTool()])
    await service.refresh()
    assert (registry.get(NAME).spec.requires_approval, service.faults) == (False, {})

    class Asking(CalculatorTool):
        requires_approval = True

    registry.replace("builtin", [Asking()])
    await service.refresh()
    assert registry.get(NAME).spec.requires_approval, "its caller asks as it does"
