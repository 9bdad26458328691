"""The queue in PostgreSQL: its tables, the order of its jobs, and what its sweep finds."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from procrastinate.manager import JobManager
from procrastinate.worker import Worker

from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.core.models import JsonObject
from agent.runs.dispatch import MAX_ATTEMPTS, RUN_JOB, DeadJobError, Job, PostponeJobError
from agent.runs.run_worker import ServiceLimits
from agent.storage.audit import NO_AUDIT
from agent.storage.journal_postgres import PostgresStore, open_postgres
from agent.storage.sql import PostgresClient
from gateway.features.fleet.bootstrap_queue import _SharedRuns
from gateway.features.fleet.engine import lane_worker, queue
from gateway.features.fleet.engine.queue import QueueDispatcher, QueueOptions
from gateway.features.fleet.engine.queue_run_worker import QueueRunWorker
from gateway.features.fleet.engine.queue_schema import apply_queue_schema, list_migrations
from gateway.features.fleet.engine.queue_state import QueueState
from gateway.features.fleet.engine.queue_sweep import QueueSweeper
from tests.contract.journal_stores import make_end, make_run_created
from tests.support.postgres import database_with_tables

LEASE_S = 0.4


async def make_tables(url: str) -> None:
    """Makes the queue's tables, as three processes may at once."""
    store = await open_postgres(url)
    await asyncio.gather(*(apply_queue_schema(store.database) for _ in range(3)))
    await store.close()


@pytest.fixture
def queue_url() -> Iterator[str]:
    with database_with_tables(make_tables) as address:
        yield address


@pytest.fixture
async def store(queue_url: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(queue_url)
    yield store
    await store.close()


def dispatcher_of(store: PostgresStore, digest: str = "d", **options: object) -> QueueDispatcher:
    options = {"name": "w", "digest": digest, "roots": (), "lanes": ("runs",), "lease_s": LEASE_S} | options
    dispatcher = QueueDispatcher(store.database, QueueOptions(**options))  # type: ignore[arg-type]
    store.journal.jobs = dispatcher.runs
    return dispatcher


def sweeper_of(
    store: PostgresStore, dispatcher: QueueDispatcher, counts: Counter[str], *, dead: str = "", adopt_s: float = 0.0
) -> QueueSweeper:
    return QueueSweeper(
        dispatcher,
        store.database,
        is_dead=lambda worker: worker == dead,
        count=lambda event: counts.update([event]),
        adopt_s=adopt_s,
    )


class SlowExecutor:
    """Executes runs that go on until they are cancelled."""

    def open_run(self, claim: Any) -> Any:
        return SimpleNamespace(run_id=claim.run_id, epoch=claim.epoch, events=claim.events, state=SimpleNamespace())

    async def execute_run(self, run: Any) -> None:
        run.state.is_finished = True
        await asyncio.Event().wait()


def run_worker_of(store: PostgresStore, dispatcher: QueueDispatcher, counts: Counter[str]) -> QueueRunWorker[Any]:
    executor: Any = SlowExecutor()
    runs = _SharedRuns(dispatcher, lambda event: counts.update([event]))
    return QueueRunWorker(
        store.journal, executor, worker=dispatcher.options.name, limits=ServiceLimits(lease_s=LEASE_S), queue=runs
    )


async def refuse_once(store: PostgresStore, change: str) -> None:
    """Has the database refuse the first such change, as in `INSERT ON queue_workers`."""
    for statement in (
        "CREATE SEQUENCE changes",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('changes') = 1 THEN "
        "RAISE 'refused' USING ERRCODE = '40P01'; END IF; RETURN COALESCE(NEW, OLD); END $$",
        f"CREATE TRIGGER refuse BEFORE {change} FOR EACH ROW EXECUTE FUNCTION refuse()",
    ):
        await PostgresClient(store.database).write(statement)


async def read_waiting(store: PostgresStore) -> list[str]:
    """The queues of the waiting jobs, in the order in which they are taken."""
    rows = await PostgresClient(store.database).read(
        "SELECT queue_name FROM procrastinate_jobs WHERE status = 'todo' ORDER BY priority DESC, id"
    )
    return [str(row[0]) for row in rows]


async def listens(store: PostgresStore, dispatcher: QueueDispatcher) -> None:
    """Returns once the dispatcher's lane hears of new jobs."""
    statement = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%' AND query LIKE ?"
    while not (await PostgresClient(store.database).read(statement, f"%{dispatcher.get_run_queue('runs')}%"))[0][0]:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def has_open_jobs(state: QueueState) -> bool:
    return any(depth.waiting or depth.running for depth in await state.list_depths())


def test_migrations_of_later_versions_are_found_in_order(tmp_path: Path) -> None:
    for name in ("03.09.00_01_pre_a.sql", "03.11.00_50_post_c.sql", "03.11.00_01_pre_b.sql", "03.10.00_01_pre_x.sql"):
        (tmp_path / name).touch()
    names = [path.name for path in list_migrations(tmp_path, after="3.10.2")]
    assert names == ["03.11.00_01_pre_b.sql", "03.11.00_50_post_c.sql"]


async def test_owners_take_turns_and_an_urgent_lane_stands_before_the_others(store: PostgresStore) -> None:
    dispatcher, owners = dispatcher_of(store), PostgresClient(store.database)
    await dispatcher.defer(*(Job("x", {"n": n}, "anna", lane="batch") for n in range(100)))
    for _ in range(30):  # 30 of anna's are taken, in the order of their priorities
        await owners.write(
            "DELETE FROM procrastinate_jobs WHERE id = "
            "(SELECT id FROM procrastinate_jobs ORDER BY priority DESC, id LIMIT 1)"
        )
    await dispatcher.defer(*(Job("x", {"n": n}, "bert", lane="batch") for n in range(20)))
    await dispatcher.defer(Job("x", {}, "carl", lane="runs"), Job("x", {}, "carl", lane="ingest"))
    rows = await owners.read(
        "SELECT q.owner, j.queue_name FROM (SELECT row_number() OVER (ORDER BY priority DESC, id) AS place, id, "
        "queue_name FROM procrastinate_jobs) AS j JOIN (SELECT id, CASE WHEN id <= 100 THEN 'anna' WHEN id <= 120 "
        "THEN 'bert' ELSE 'carl' END AS owner FROM procrastinate_jobs) AS q USING (id) ORDER BY place"
    )
    order = [str(row[0]) for row in rows]
    assert (rows[0][1], rows[-1][1]) == ("runs@d", "ingest")
    assert order[1:42].count("bert") == 20, "one of each in turn, though anna's 70 were there before"
    assert order[42:-1] == ["anna"] * 49


async def test_a_run_without_a_worker_has_one_job_and_its_end_needs_none(store: PostgresStore) -> None:
    dispatcher, journal = dispatcher_of(store), store.journal
    own = dispatcher.get_run_queue("runs")
    await journal.create_run("r1", make_run_created(), worker=None, lease_s=0, queue=own)
    await journal.send_signal("r1", "cancel", {})
    assert await dispatcher.runs.enqueue_run("r1", own)
    assert await read_waiting(store) == [own]
    claim = await journal.claim("r1", worker="w", lease_s=60)
    assert claim is not None
    assert claim.epoch == 1
    readiness, seconds_left = await dispatcher.runs.read_readiness("r1")
    assert readiness == "held"
    assert 50 < seconds_left <= 60
    assert not await dispatcher.runs.enqueue_run("r1", own)
    await journal.append("r1", 1, [make_end()])
    assert await dispatcher.runs.read_readiness("r1") == ("ended", 0)


async def test_requests_that_come_at_once_take_no_more_than_the_free_slots(store: PostgresStore) -> None:
    dispatcher = dispatcher_of(store, slots=2)
    worker = run_worker_of(store, dispatcher, Counter())
    await asyncio.gather(*(worker.create_run(f"r{number}", make_run_created()) for number in range(12)))
    assert worker.live_count == 2
    assert await read_waiting(store) == ["runs@d"] * 10, "the others wait for any process"
    await worker.begin_drain(0)


async def test_the_sweep_finds_runs_that_nobody_holds_and_that_have_no_job(store: PostgresStore) -> None:
    dispatcher, counts, journal = dispatcher_of(store, slots=0), Counter[str](), store.journal
    await journal.create_run("idle", make_run_created(), worker="lost", lease_s=0.01, queue="runs@d")
    await journal.create_run("before the queue", make_run_created(), worker="lost", lease_s=0.01)
    await journal.create_run("held", make_run_created(), worker="alive", lease_s=60, queue="runs@d")
    await journal.create_run("of a dead process", make_run_created(), worker="dead", lease_s=60, queue="runs@d")
    sweeper = sweeper_of(store, dispatcher, counts, dead="dead")
    await dispatcher.start()
    await sweeper.sweep()
    assert counts["swept"] == 1, "the dead process's run, at once; the others may still be held by one that is slow"
    async with asyncio.timeout(20):
        while counts["swept"] < 3:
            await asyncio.sleep(0.05)
            await sweeper.sweep()
    await sweeper.sweep()
    assert counts["swept"] == 3
    await dispatcher.aclose()


async def test_runs_for_a_worker_that_nobody_has_any_more_are_adopted(store: PostgresStore) -> None:
    gone = dispatcher_of(store, "gone")
    await store.journal.create_run("r1", make_run_created(), worker=None, lease_s=0, queue=gone.get_run_queue("runs"))
    dispatcher, counts, seen = dispatcher_of(store), Counter[str](), list[str]()

    async def note(arguments: object) -> None:
        seen.append(str(arguments))

    dispatcher.register("run", note)
    sweeper = sweeper_of(store, dispatcher, counts, adopt_s=0.2)
    await dispatcher.start()
    await sweeper.sweep()
    assert (await read_waiting(store), counts["adopted"]) == (["runs@gone"], 0)
    async with asyncio.timeout(20):
        while not seen:
            await asyncio.sleep(0.05)
            await sweeper.sweep()
    assert counts["adopted"] == 1
    await dispatcher.drain(1)
    await dispatcher.aclose()


async def test_a_job_is_repeated_postponed_or_stays_as_a_dead_letter(store: PostgresStore) -> None:
    dispatcher, state = dispatcher_of(store, lanes=("ingest",)), QueueState(PostgresClient(store.database), NO_AUDIT)
    calls, finished = Counter[str](), asyncio.Event()

    async def handle(arguments: dict[str, object]) -> None:
        name = str(arguments["name"])
        calls[name] += 1
        if name == "later" and calls[name] < 3:
            raise PostponeJobError("not yet")
        if name == "never" and calls[name] == 1:
            raise DeadJobError("it cannot be done")
        if calls["never"] and calls["later"] == 3:
            finished.set()

    dispatcher.register("x", handle)  # type: ignore[arg-type]
    await dispatcher.defer(
        *(Job("x", {"name": name}, "anna", key=name) for name in ("never", "later", "later")),
        Job("x", {"name": "n"}, "b"),
    )
    await dispatcher.start()
    async with asyncio.timeout(30):
        await finished.wait()
        while not (dead := await state.list_dead_letters()) or await has_open_jobs(state):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)
    assert [(letter.kind, letter.arguments) for letter in dead] == [("x", {"name": "never"})]
    assert [(depth.queue, depth.failed) for depth in await state.list_depths()] == [("ingest", 1)]
    assert calls == {"later": 3, "never": 1, "n": 1}
    with pytest.raises(NotFoundError, match="stepgate queue dead"):
        await state.requeue(999_999, by="anna")
    await state.requeue(dead[0].id, by="anna")
    async with asyncio.timeout(30):
        while await has_open_jobs(state):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)
    assert calls["never"] == 2
    assert [worker.queue for worker in await state.list_workers()] == ["ingest"]
    await dispatcher.drain(1)
    await dispatcher.aclose()
    assert await state.list_workers() == []


async def test_a_dead_letter_of_a_run_that_has_ended_is_not_done_again(store: PostgresStore) -> None:
    dispatcher, statements = dispatcher_of(store), PostgresClient(store.database)
    await store.journal.create_run("r1", make_run_created(), worker=None, lease_s=0, queue="runs@d")
    await statements.write("UPDATE procrastinate_jobs SET status = 'failed'")
    claim = await store.journal.claim("r1", worker="w", lease_s=60)
    assert claim is not None
    await store.journal.append("r1", claim.epoch, [make_end()])
    (letter,) = await QueueState(statements, NO_AUDIT).list_dead_letters()
    with pytest.raises(ConflictError, match="has ended"):
        await QueueState(statements, NO_AUDIT).requeue(letter.id, by="anna")
    await QueueState(statements, NO_AUDIT).discard(letter.id, by="anna")
    assert await QueueState(statements, NO_AUDIT).list_dead_letters() == []
    assert dispatcher.options.name == "w"


@pytest.mark.parametrize("end", ["DELETE", "UPDATE"])
async def test_the_end_of_a_job_is_stored_although_the_database_refused_it_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(lane_worker, "RETRY_SECONDS", 0.1)
    dispatcher, state = dispatcher_of(store), QueueState(PostgresClient(store.database), NO_AUDIT)
    calls, begun = 0, asyncio.Event()

    async def handle(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await refuse_once(store, f"{end} ON procrastinate_jobs")
            begun.set()
            if end == "UPDATE":
                raise PostponeJobError("left unfinished")

    dispatcher.register("x", handle)
    await dispatcher.defer(Job("x", {}, "anna", lane="runs", key="r1"))
    await dispatcher.start()
    async with asyncio.timeout(30):
        await begun.wait()
        while await has_open_jobs(state):  # noqa: ASYNC110 - nobody is told of the end of a job
            await asyncio.sleep(0.02)
    assert calls == (1 if end == "DELETE" else 2)
    await dispatcher.drain(1)
    await dispatcher.aclose()


async def test_the_end_of_a_job_that_another_worker_has_taken_over_is_not_stored(store: PostgresStore) -> None:
    dispatcher, statements = dispatcher_of(store), PostgresClient(store.database)
    begun, ended, goes_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(_: object) -> None:
        begun.set()
        await goes_on.wait()
        ended.set()

    dispatcher.register("x", handle)
    await dispatcher.defer(Job("x", {}, "anna", lane="runs"))
    await dispatcher.start()
    async with asyncio.timeout(30):
        await begun.wait()
        await statements.write(
            "WITH other AS (INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id) "
            "UPDATE procrastinate_jobs SET worker_id = other.id FROM other"
        )
        goes_on.set()
        await ended.wait()
    await dispatcher.drain(5)
    await dispatcher.aclose()
    assert await statements.read("SELECT status FROM procrastinate_jobs") == [("doing",)]


async def test_a_run_is_announced_once_it_is_stored_also_where_a_trigger_did_it_before(store: PostgresStore) -> None:
    dispatcher, statements = dispatcher_of(store), PostgresClient(store.database)
    trigger = "procrastinate_jobs_notify_queue_job_inserted_v1"
    await statements.write(f"ALTER TABLE procrastinate_jobs ENABLE TRIGGER {trigger}")
    await apply_queue_schema(store.database)
    (enabled,) = await statements.read(f"SELECT tgenabled FROM pg_trigger WHERE tgname = '{trigger}'")
    assert enabled[0] in (b"D", "D")
    own = dispatcher.get_run_queue("runs")
    async with await psycopg.AsyncConnection.connect(store.database.url, autocommit=True) as listener:
        await listener.execute(f'LISTEN "procrastinate_queue_v1#{own}"')
        await store.journal.create_run("r1", make_run_created(), worker=None, lease_s=0, queue=own)
        received = [json.loads(notice.payload)["type"] async for notice in listener.notifies(timeout=30, stop_after=1)]
    assert received == ["job_inserted"]


async def test_a_job_is_begun_at_once_though_it_was_announced_during_a_look(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "POLL_SECONDS", 600.0)
    dispatcher, done = dispatcher_of(store, lease_s=2400.0), asyncio.Event()
    looks, look = Counter[str](), dispatcher.manager._look_for_job

    async def look_late(*arguments: Any) -> Any:
        """The second look finds nothing; before it is told so, a job is stored and announced."""
        job = await look(*arguments)
        looks["all"] += 1
        if looks["all"] == 2:
            announced = dispatcher._workers["runs"]._new_job_event
            announced.clear()
            await dispatcher.defer(Job("x", {}, "anna", lane="runs"))
            async with asyncio.timeout(30):
                await announced.wait()
        return job

    async def handle(_: object) -> None:
        done.set()

    monkeypatch.setattr(dispatcher.manager, "_look_for_job", look_late)
    dispatcher.register("x", handle)
    await dispatcher.start()
    async with asyncio.timeout(30):
        while not looks:  # noqa: ASYNC110 - nobody is told of a look
            await asyncio.sleep(0.02)
        await listens(store, dispatcher)
        dispatcher._workers["runs"]._new_job_event.set()
        await done.wait()
    await dispatcher.drain(1)
    await dispatcher.aclose()


async def test_a_process_that_finds_others_faster_pauses_before_it_looks_for_a_job(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = dispatcher_of(store, slots=0)
    await dispatcher.start()
    await dispatcher.defer(Job("x", {}, "anna", lane="runs"))
    own, longest = dispatcher.get_run_queue("runs"), list[float]()
    found = iter([None] * 9 + [SimpleNamespace()] * 9 + [None] * 2)

    async def fetch(*_: object, **__: object) -> object:
        return next(found)

    def choose(_: float, end: float) -> float:
        longest.append(end)
        return 0.0

    monkeypatch.setattr("procrastinate.manager.JobManager.fetch_job", fetch)
    monkeypatch.setattr("random.uniform", choose)
    for _ in range(20):
        await dispatcher.manager.fetch_job([own], 1)
    await dispatcher.manager.fetch_job(["of another lane"], 1)
    assert longest[:9] == [0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05, 0.05, 0.05]
    assert longest[9:14] == pytest.approx([0.025, 0.0125, 0.00625, 0.003125, 0.0015625])
    assert longest[14:] == [0.002], "without a pause from then on, until another one was faster again"
    await dispatcher.aclose()


async def test_only_failures_count_as_attempts(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_worker, "RETRY_SECONDS", 0.05)
    dispatcher, statements = dispatcher_of(store), PostgresClient(store.database)
    calls = 0

    async def handle(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls <= MAX_ATTEMPTS:
            raise PostponeJobError("held by another process")
        if calls <= 2 * MAX_ATTEMPTS:
            raise StoreError("the database is away")
        raise RuntimeError("a defect")

    dispatcher.register("x", handle)
    await dispatcher.defer(Job("x", {}, "anna", lane="runs"))
    await dispatcher.start()
    async with asyncio.timeout(60):
        while not await QueueState(statements, NO_AUDIT).list_dead_letters():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.05)
    assert calls == 3 * MAX_ATTEMPTS
    await dispatcher.drain(1)
    await dispatcher.aclose()


def test_no_private_method_of_the_queue_is_overridden() -> None:
    for own, base in ((lane_worker.LaneJobManager, JobManager), (lane_worker.LaneWorker, Worker)):
        private = {name for name in vars(own) if name.startswith("_") and not name.startswith("__")}
        assert not private & set(dir(base))


async def test_a_worker_is_listed_before_it_takes_jobs(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "RESTART_SECONDS", 0.1)
    await refuse_once(store, "INSERT ON queue_workers")
    dispatcher, state = dispatcher_of(store), QueueState(PostgresClient(store.database), NO_AUDIT)
    listed, done = list[str](), asyncio.Event()

    async def handle(_: object) -> None:
        listed.extend(worker.queue for worker in await state.list_workers())
        done.set()

    dispatcher.register("x", handle)
    await dispatcher.defer(Job("x", {}, "anna", lane="runs"))
    await dispatcher.start()
    async with asyncio.timeout(30):
        await done.wait()
    assert listed == ["runs@d"]
    await dispatcher.drain(1)
    await dispatcher.aclose()


async def test_a_run_whose_log_is_damaged_is_a_dead_letter_and_a_newer_one_is_left_to_others(
    store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher, counts, statements = dispatcher_of(store), Counter[str](), PostgresClient(store.database)
    worker = run_worker_of(store, dispatcher, counts)
    for run_id in ("damaged", "newer"):
        await store.journal.create_run(run_id, make_run_created(), worker=None, lease_s=0, queue="runs@d")
    await statements.write("UPDATE events SET data = '{}' WHERE run_id = 'damaged'")
    await statements.write("UPDATE events SET v = 999 WHERE run_id = 'newer'")
    calls = Counter[str]()

    async def handle(arguments: JsonObject) -> None:
        calls[str(arguments["run_id"])] += 1
        await worker.execute_job(arguments)

    dispatcher.register(RUN_JOB, handle)
    await dispatcher.start()
    state = QueueState(statements, NO_AUDIT)
    async with asyncio.timeout(30):
        while not (calls["newer"] and await state.list_dead_letters()):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)
    await asyncio.sleep(LEASE_S)  # a process looks four times in that time
    assert calls == {"damaged": 1, "newer": 1}
    assert [letter.run_id for letter in await state.list_dead_letters()] == ["damaged"]
    assert await read_waiting(store) == ["runs@d"]
    assert counts == {"dead": 1}
    assert "run newer is left to a process of a newer version" in caplog.text
    await dispatcher.drain(1)
    await dispatcher.aclose()
