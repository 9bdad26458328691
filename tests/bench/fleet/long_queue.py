"""Row 5: what it costs to take a run beside very many jobs of another lane, and to look at an empty lane beside them.

Measured at the server, over all statements that `LaneJobManager.fetch_job` sends: by the durations that it logs, and by
the processor time of its processes, which other programs of the machine do not lengthen.
"""

import os
import re
from pathlib import Path

import psycopg

from agent.runs.dispatch import LANES, RUN_JOB, Job
from agent.storage.journal_postgres import open_postgres
from agent.storage.postgres import add_options
from gateway.features.fleet.engine.fair_queueing import BAND, COST_UNITS
from gateway.features.fleet.engine.queue import QueueDispatcher, QueueOptions
from gateway.features.fleet.engine.queue_names import name_ingest_queue
from gateway.features.fleet.engine.queue_schema import apply_queue_schema
from tests.bench.fleet.table import Line
from tests.bench.fleet.trial import Site
from tests.bench.measure import percentile
from tests.soak.postgres_server import PostgresServer

FETCHES = 200
"""More than five: from the sixth call on, the server may use a plan that is made without the arguments."""
FETCH_P50_MS = 5.0
"""The aim for a fetch. Without a band of priorities for each lane it took 227 ms beside 200,000 jobs."""
LOOK_P50_MS = 1.0
"""The aim for a look at an empty lane. A fetch there took 1,233 ms beside a million jobs."""
_FILL = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args) "
    "SELECT %(queue)s, 'stepgate.ingest.batch', -%(base)s - n * %(cost)s, '{}' FROM generate_series(1, %(jobs)s) AS n"
)
_DURATION = re.compile(r"duration: ([0-9.]+) ms")

Cost = tuple[float, float]
"""What a fetch cost the server: milliseconds by its clock, and milliseconds of its processor."""


async def measure(site: Site, jobs: int) -> list[Line]:
    """Measures fetches of runs, and looks at the empty lane `batch`, beside so many jobs of the lane `ingest`."""
    what = f"5 beside {jobs:,} waiting jobs of another lane"
    url = site.server.create_database("long_queue")
    await (await open_postgres(url)).close()  # creates the tables
    store = await open_postgres(add_options(url, log_min_duration_statement=0))
    try:
        await apply_queue_schema(store.database)
        _fill(url, jobs)
        dispatcher = QueueDispatcher(store.database, QueueOptions("bench", "d", (), slots=0))
        await dispatcher.start()
        run_queue, batch_queue = (dispatcher.get_run_queue(lane) for lane in ("runs", "batch"))
        await dispatcher.defer(
            *(Job(RUN_JOB, {"run_id": f"r{number}"}, "A", lane="runs", key=f"r{number}") for number in range(FETCHES))
        )
        worker = await dispatcher.manager.register_worker()
        fetches = await _measure_fetches(dispatcher, run_queue, worker, site.server, finds=True)
        looks = await _measure_fetches(dispatcher, batch_queue, worker, site.server, finds=False)
        await dispatcher.aclose()
    finally:
        await store.close()
    return [
        _line(f"{what}: fetch of a run, server time", fetches, FETCH_P50_MS),
        _line(f"{what}: look at an empty lane, server time", looks, LOOK_P50_MS),
    ]


def _fill(url: str, jobs: int) -> None:
    values = {
        "queue": name_ingest_queue(None),
        "base": LANES.index("ingest") * BAND,
        "cost": min(COST_UNITS, BAND // (jobs + 1)),
        "jobs": jobs,
    }
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no trigger writes an event for each job
        connection.execute(_FILL.encode(), values)
        connection.execute("VACUUM ANALYZE procrastinate_jobs")


async def _measure_fetches(
    dispatcher: QueueDispatcher, queue: str, worker: int, server: PostgresServer, *, finds: bool
) -> list[Cost]:
    """Returns what each fetch cost the server, of which nothing else asks anything meanwhile."""
    costs = []
    for _ in range(FETCHES):
        start, used = os.stat(server.log).st_size, _read_cpu_ms(server.pid)  # noqa: PTH116 - nothing else runs
        job = await dispatcher.manager.fetch_job([queue], worker)
        assert (job is not None) == finds, f"the queue {queue} has {job}"
        clock = sum(read_durations(server.log, start))
        assert clock > 0, f"no duration stands in {server.log}"
        costs.append((clock, _read_cpu_ms(server.pid) - used))
    return costs


def read_durations(log: Path, start: int) -> list[float]:
    """The milliseconds of each step of a statement that the server has logged since the file was that long."""
    with log.open("rb") as file:
        file.seek(start)
        return [float(found) for found in _DURATION.findall(file.read().decode("utf-8", "replace"))]


def _read_cpu_ms(server: int) -> float:
    """The processor time of all processes of the server that run now, in milliseconds."""
    used = 0
    for child in Path(f"/proc/{server}/task/{server}/children").read_text("ascii").split():
        used += int(Path(f"/proc/{child}/schedstat").read_text("ascii").split()[0])
    return used / 1e6


def _line(what: str, costs: list[Cost], aim: float) -> Line:
    clock, processor = ([percentile([cost[at] for cost in costs], share) for share in (0.5, 0.99)] for at in (0, 1))
    return Line(
        what,
        f"p50 {clock[0]:.2f} ms, p99 {clock[1]:.2f} ms; processor {processor[0]:.2f}, {processor[1]:.2f}",
        f"processor p50 <= {aim:g} ms",
        processor[0] <= aim,
    )
