"""What is older than AGENT_KEEP_DAYS is forgotten; what is in use stays; a kill in the middle leaves no halves."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.events import EventBody, EventDraft, GivenPlan, RunCreated, RunSucceeded, StepFinished, StepOutput
from agent.core.models import AgentRequest, JsonObject, Plan, Room
from agent.core.own_ids import OwnIds
from agent.runs.client_conversations import ClientConversations
from agent.runs.retention import RunRetention
from agent.storage.audit import StoredAuditLog
from agent.storage.journal import Journal
from agent.storage.run_deletion import delete_runs
from agent.storage.sql import Row, SqlClient, SqlStatement
from agent.storage.usage import DAY_SECONDS, UsageLedger
from gateway.bootstrap_database import build_statements
from gateway.configured_features import collect_tables, list_retentions
from gateway.feature_loader import load_features
from gateway.features.protocols.engine.task_store import TaskDocuments, TaskStore
from tests.contract.journal_stores import Clock
from tests.integration.test_cli import stepgate
from tests.support.mcp_client import until_async
from tests.support.postgres import fresh_database
from tests.support.processes import start

NOW = 1_800_000_000.0
KEEP_DAYS = 90
OLD, YOUNG = NOW - 91 * DAY_SECONDS, NOW - 89 * DAY_SECONDS
LEASE_S = 15.0
FEATURES = load_features("", with_installed=False)
ORPHANS = {
    "events": "SELECT count(*) FROM events WHERE run_id NOT IN (SELECT run_id FROM runs)",
    "turns": "SELECT count(*) FROM turns WHERE run_id LIKE ? AND run_id NOT IN (SELECT run_id FROM runs)",
    "references": "SELECT count(*) FROM blob_references WHERE run_id NOT IN (SELECT run_id FROM runs)",
    "blobs": "SELECT count(*) FROM blobs WHERE checksum NOT IN (SELECT checksum FROM blob_references)",
    "lost blobs": "SELECT count(*) FROM blob_references WHERE checksum NOT IN (SELECT checksum FROM blobs)",
    "task runs": "SELECT count(*) FROM task_runs WHERE run_id NOT IN (SELECT run_id FROM runs)",
}


@dataclass
class Store:
    """An open store whose time is moved by hand."""

    clock: Clock
    journal: Journal
    conversations: Any
    db: SqlClient
    settings: dict[str, str]

    async def run(
        self, run_id: str, at: float, *, conversation: str | None = None, blob: bytes = b"", ends: bool = True,
        given: GivenPlan | None = None,
    ) -> str:  # fmt: skip
        """Stores a run of that time."""
        self.clock.now = at
        request = AgentRequest(prompt="hello", conversation_id=conversation)
        body = RunCreated(request=request, room=Room(id="test"), owner="local", given=given)
        await self.journal.create_run(run_id, body, worker="w", lease_s=LEASE_S)
        bodies: list[EventBody] = []
        if blob:
            checksum = await self.journal.put_blob(blob, run_id=run_id)
            bodies.append(StepFinished(output=StepOutput(text="t", blob=checksum)))
        if ends:
            bodies.append(RunSucceeded())
        if bodies:
            await self.journal.append(run_id, 1, [EventDraft(body) for body in bodies])
        if conversation is not None:
            await self.conversations.add_exchange("local", conversation, run_id, "hello", "hi")
            await self.db.write("UPDATE turns SET at = ? WHERE run_id = ?", at, run_id)  # PostgreSQL has its own time
        self.clock.now = NOW
        return run_id

    @property
    def ledger(self) -> UsageLedger:
        """The ledger of usage."""
        return UsageLedger(self.db, self.clock)

    def retention(self, holder: str = "a") -> RunRetention:
        """The retention of one process."""
        return RunRetention(
            self.db,
            self.ledger,
            StoredAuditLog(self.db, self.clock),
            KEEP_DAYS,
            holder,
            collect_tables(FEATURES).of_runs,
            lambda: list_retentions(FEATURES),
            self.clock,
        )

    async def list_runs(self) -> set[str]:
        """The ids of the runs that are stored."""
        return {str(row[0]) for row in await self.db.read("SELECT run_id FROM runs")}

    async def count_orphans(self) -> dict[str, int]:
        """How many rows refer to nothing, by kind; none is left out if it is 0."""
        return {
            name: int((await self.db.read(query, *["run%"] * query.count("?")))[0][0])
            for name, query in ORPHANS.items()
        }


@contextlib.asynccontextmanager
async def open_at(tmp_path: Path, url: str | None) -> AsyncIterator[Store]:
    clock = Clock()
    clock.now = NOW
    opened: Any
    if url is None:
        from agent.storage.journal_sqlite import open_sqlite

        opened = await open_sqlite(tmp_path / "data" / "stepgate.db", clock)
    else:
        from agent.storage.journal_postgres import open_postgres

        opened = await open_postgres(url, clock)
    settings = {"AGENT_DATABASE_URL": url} if url else {}
    yield Store(clock, opened.journal, opened.conversations, build_statements(opened), settings)
    await opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with fresh_database() as url:
        yield url


@pytest.fixture
async def store(tmp_path: Path, database: str | None) -> AsyncIterator[Store]:
    async with open_at(tmp_path, database) as opened:
        yield opened


async def test_old_runs_go_with_all_of_theirs_and_what_is_in_use_stays(store: Store) -> None:
    shared, own = b"s" * 50, b"o" * 50
    await store.run("run_old", OLD, conversation="asleep", blob=own)
    await store.run("run_old_shared", OLD, blob=shared)
    await store.run("run_young", YOUNG, blob=shared)
    await store.run("run_parked", OLD, ends=False)
    await store.run("run_of_awake", OLD, conversation="awake")
    await store.run("run_awake", YOUNG, conversation="awake")
    await store.run("run_of_recipe", OLD)
    recipe = json.dumps({"from_run": "run_of_recipe", "trials": []})
    await store.db.write(
        "INSERT INTO recipes (owner, name, applied, created, updated) VALUES ('local', 'r', ?, 0, 0)", recipe
    )
    await store.run("run_forked", OLD)
    await store.run("run_fork", NOW, ends=False, given=GivenPlan(plan=Plan(goal="g", steps=()), from_run="run_forked"))
    for state, run_id, at in (
        ("delivered", "awake", OLD),
        ("failed", "gone", OLD),
        ("failed", "young", YOUNG),
        ("open", "parked", OLD),
    ):
        await store.db.write(
            "INSERT INTO webhook_deliveries (id, owner, run_id, url, state, next_attempt, last_error, created, "
            "updated) VALUES (?, 'local', ?, 'https://example.org', ?, 0, '', ?, ?)",
            f"msg_{run_id}", f"run_{run_id}", state, OLD, at,
        )  # fmt: skip
    retention = store.retention()
    foreseen = await retention.count_old()
    report = await retention.prune(by="test")
    assert report is not None
    assert (foreseen.runs, report.runs) == (2, 2)
    assert [one.features for one in (foreseen, report)] == [{"webhook deliveries": 2, "tasks": 0}] * 2
    assert await store.db.read("SELECT id FROM webhook_deliveries ORDER BY id") == [("msg_parked",), ("msg_young",)]
    assert await store.list_runs() == {
        "run_young", "run_parked", "run_of_awake", "run_awake", "run_of_recipe", "run_forked", "run_fork"
    }  # fmt: skip
    assert await store.conversations.list_turns("local", "asleep") == []
    assert len(await store.conversations.list_turns("local", "awake")) == 4
    blobs = await store.db.read("SELECT data FROM blobs")
    assert [bytes(data) for (data,) in blobs] == [shared]
    assert set((await store.count_orphans()).values()) == {0}
    ((detail,),) = await store.db.read("SELECT detail FROM audit WHERE action = 'run.prune'")
    assert json.loads(detail)["runs"] == 2
    again = await retention.prune(by="test")
    assert again is not None
    assert again.is_empty


@dataclass
class InterruptedClient:
    """A client that calls `interrupt` before the transaction that first deletes from the table."""

    db: SqlClient
    table: str
    interrupt: Callable[[], Awaitable[object]] | None

    async def read(self, statement: str, *values: object) -> list[Row]:
        return await self.db.read(statement, *values)

    async def write(self, statement: str, *values: object) -> list[Row]:
        return await self.db.write(statement, *values)

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        interrupt = self.interrupt
        if interrupt is not None and any(f"DELETE FROM {self.table} " in change.statement for change in changes):
            self.interrupt = None
            await interrupt()
        return await self.db.write_all(*changes)


async def test_what_begins_in_the_middle_of_a_pass_keeps_the_runs_that_it_needs(store: Store) -> None:
    for run_id, conversation in (("run_old", None), ("run_forked", None), ("run_in_recipe", None), ("run_said", "c")):
        await store.run(run_id, OLD, conversation=conversation)

    async def begin() -> None:
        given = GivenPlan(plan=Plan(goal="g", steps=()), from_run="run_forked")
        await store.run("run_fork", NOW, ends=False, given=given)
        await store.run("run_answer", NOW, conversation="c", ends=False)
        await store.db.write(
            "INSERT INTO recipes (owner, name, applied, created, updated) VALUES ('local', 'r', ?, ?, ?)",
            json.dumps({"from_run": "run_in_recipe", "trials": []}), NOW, NOW,
        )  # fmt: skip

    retention = replace(store.retention(), statements=InterruptedClient(store.db, "runs", begin))
    report = await retention.prune(by="test")
    assert report is not None
    assert report.runs == 1
    assert await store.list_runs() == {"run_forked", "run_in_recipe", "run_said", "run_fork", "run_answer"}
    assert len(await store.conversations.list_turns("local", "c")) == 4


async def test_a_conversation_that_goes_on_in_the_middle_of_a_pass_stays(store: Store, tmp_path: Path) -> None:
    talks = ClientConversations(store.db, store.clock, OwnIds(tmp_path / "own_ids.key"), store.conversations)
    store.clock.now = OLD
    said: list[JsonObject] = [{"type": "message", "role": "user", "content": "hello"}]
    busy = await talks.create("local", {}, said)
    store.clock.now = NOW
    client = InterruptedClient(store.db, "client_conversations", lambda: talks.add_items("local", busy.id, said))
    report = await replace(store.retention(), statements=client).prune(by="test")
    assert report is not None
    assert report.conversations == 0
    items, _ = await talks.list_items("local", busy.id, limit=10)
    assert len(items) == 2


async def test_tasks_and_conversations_of_clients_are_forgotten_whole(store: Store, tmp_path: Path) -> None:
    tasks, talks = (
        TaskStore(store.db, store.clock),
        ClientConversations(store.db, store.clock, OwnIds(tmp_path / "own_ids.key"), store.conversations),
    )
    store.clock.now = OLD
    done, never = await tasks.add("task_1", "local", "p", {}), await tasks.add("task_2", "local", "p", {})
    idle = await talks.create("local", {}, [{"type": "message", "role": "user", "content": "hello"}])
    busy = await talks.create("local", {}, [])
    store.clock.now = YOUNG
    await talks.add_items("local", busy.id, [{"type": "message", "role": "user", "content": "still here"}])
    fresh = await tasks.add("task_3", "local", "p", {})
    for task, run_id, at in ((done, "run_1", OLD), (fresh, "run_2", OLD), (fresh, "run_3", YOUNG)):
        await store.run(run_id, at)
        store.clock.now = at
        first = await tasks.start_run(task, run_id)
        assert first is not None
        await tasks.finish_run(first, TaskDocuments("completed", at, {}, None, {}))
    store.clock.now = NOW
    report = await store.retention().prune(by="test")
    assert report is not None
    assert (report.runs, report.features["tasks"], report.conversations) == (2, 1, 1)
    assert [await tasks.get(task.task_id, "local") is not None for task in (done, never, fresh)] == [False, False, True]
    assert [run.run_id for run in await tasks.list_runs("task_3", "local", limit=9)] == ["run_3"]
    with pytest.raises(NotFoundError):
        await talks.get("local", idle.id)
    assert len((await talks.list_items("local", busy.id, limit=9))[0]) == 1
    assert set((await store.count_orphans()).values()) == {0}


async def test_the_sums_of_usage_stay_when_the_rows_go(store: Store) -> None:
    for number, at in enumerate((OLD, OLD + 1, YOUNG, NOW - 5)):
        await store.run(f"run_{number}", at)
        await store.ledger.record(f"run_{number}")
        await store.db.write(
            "INSERT INTO model_usage (run_id, model, owner, key_id, room, status, at, day, model_calls, prompt_tokens, "
            "completion_tokens, cached_tokens, reasoning_tokens, cost_usd) "
            "VALUES (?, 'm', 'local', '', 'test', 'succeeded', ?, ?, 1, 10, 5, 0, 0, 0.5)",
            f"run_{number}", at, int(at // DAY_SECONDS),
        )  # fmt: skip
    before = [await store.ledger.summarize(by) for by in ((), ("day",), ("model", "room"), ("owner", "key"))]
    assert before[0][0].runs == 4
    assert [group.runs for group in before[2]] == [4, 4]
    assert await asyncio.gather(*(store.ledger.sum_up() for _ in range(3))) != [0, 0, 0]
    assert await store.ledger.sum_up() == 0
    assert [await store.ledger.summarize(by) for by in ((), ("day",), ("model", "room"), ("owner", "key"))] == before
    report = await store.retention().prune(by="test")
    assert report is not None
    assert report.usage_rows == 4, "two rows of each of two old runs"
    assert [await store.ledger.summarize(by) for by in ((), ("day",), ("model", "room"), ("owner", "key"))] == before
    (part,) = await store.ledger.summarize((), since=YOUNG - 0.5, until=NOW - 1)
    assert (part.runs, part.usage.cost_usd) == (2, 1.0), "days in part are read run by run"
    await store.ledger.mark_caught_up()
    await store.run("run_late", NOW - 5)
    assert await store.ledger.find_unrecorded() == ["run_late"]


async def test_one_process_of_a_fleet_prunes_at_a_time(store: Store) -> None:
    first, second = store.retention("a"), store.retention("b")
    assert await first.lease.take()
    assert await second.prune(by="test") is None
    store.clock.now += 3600  # the first has died
    assert await second.prune(by="test") is not None
    assert await second.lease.get_done() == store.clock.now


async def test_a_blob_that_is_stored_while_it_is_deleted_is_not_lost(store: Store) -> None:
    data = b"the same result"
    for number in range(20):
        await store.run(f"run_a{number}", OLD, blob=data)
        await store.run(f"run_b{number}", NOW, ends=False)
        done = await asyncio.gather(
            delete_runs(store.db, [f"run_a{number}"]),
            store.journal.put_blob(data, run_id=f"run_b{number}"),
            return_exceptions=True,
        )
        assert isinstance(done[1], str), done
        assert await store.journal.get_blob(done[1]) == data
        await delete_runs(store.db, [f"run_a{number}", f"run_b{number}"])
        assert await store.db.read("SELECT 1 FROM blobs") == []


async def test_a_kill_in_the_middle_leaves_whole_runs(tmp_path: Path, database: str | None) -> None:
    async with open_at(tmp_path, database) as store:
        for number in range(300):
            await store.run(f"run_{number:03}", OLD, conversation=f"c{number % 7}", blob=bytes([number % 9]) * 99)
        environment = {**store.settings, "AGENT_DATA_DIR": str(tmp_path / "data")}
        command = [sys.executable, "-m", "gateway.cli", "prune", "--days", "1"]
        child = start(command, environment=environment)
        try:

            async def is_pruning() -> bool:
                return len(await store.list_runs()) < 300

            await until_async(is_pruning)
        finally:
            child.kill()
        assert set((await store.count_orphans()).values()) == {0}
        await store.db.write("UPDATE housekeeping SET until = 0")
        code, output = await asyncio.to_thread(
            stepgate, tmp_path, "prune", "--days", "1", **({"database_url": database} if database else {})
        )
        assert code == 0, output
        assert await store.list_runs() == set()
        assert set((await store.count_orphans()).values()) == {0}


def test_the_command_counts_and_asks_for_days(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "prune")
    assert code != 0
    assert "AGENT_KEEP_DAYS" in output
    code, output = stepgate(tmp_path, "prune", "--dry-run", keep_days="30")
    assert (code, "0 runs" in output) == (0, True), output


async def test_items_of_a_conversation_are_paged_in_both_directions(store: Store, tmp_path: Path) -> None:
    talks = ClientConversations(store.db, store.clock, OwnIds(tmp_path / "own_ids.key"), store.conversations)
    made = await talks.create("local", {}, [{"type": "message", "role": "user", "content": f"{n}"} for n in range(5)])
    await store.run("run_1", NOW + 1, conversation=made.id)
    for newest_first in (False, True):
        whole, _ = await talks.list_items("local", made.id, limit=100, newest_first=newest_first)
        assert len(whole) == 7
        paged, after, more = list[JsonObject](), None, True
        while more:
            page, more = await talks.list_items("local", made.id, limit=3, newest_first=newest_first, after=after)
            paged, after = [*paged, *page], str(page[-1]["id"])
        assert paged == whole
    assert await talks.get_item("local", made.id, str(paged[0]["id"])) == paged[0]
    with pytest.raises(BadRequestError, match="after"):
        await talks.list_items("local", made.id, limit=3, after="msg_unknown")
