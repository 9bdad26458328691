"""Row 1: runs a second and the time from acceptance to start, by the number of workers.

Each run is one call to a model that answers after `MODEL_S`. Processor time tells what bounds the rate: everything,
PostgreSQL, the model's server and the clients too, shares the processors of this machine.
"""

import asyncio
import os
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic, perf_counter, time

import psycopg

from tests.bench.fleet.table import Line
from tests.bench.fleet.trial import ShippedFleet, Site, Trial, trial
from tests.bench.measure import TICKS, cpu_seconds, percentile
from tests.soak.fleet import settle
from tests.support.script import answers, script

MODEL_S = 1.0
SLOTS = 15
WARM_S = 2.0
"""How long a fleet is loaded before it is measured, in seconds. Before that, every slot has had a run: the first run of
a process loads what only runs need."""
COMMITS = 100
PROMPT = "Say what a gateway is"
POLL_S = 0.1
LOAD = 0.5
"""The share of the measured rate at which the time to the start is measured."""
START_P50_MS = 50.0
"""The aim for the median time from acceptance to start; the prototype had 8 to 18."""
_ENDS = "type IN ('run.succeeded', 'run.failed', 'run.cancelled')"

Usage = dict[str, float]
"""Processor time by what used it."""


async def measure(site: Site, workers: tuple[int, ...], seconds: float) -> list[Line]:
    """Measures fleets of so many workers, each for so many seconds."""
    lines = [_measure_commits(site)]
    for count in workers:
        lines += await measure_fleet(site, count, seconds)
    return lines


def _measure_commits(site: Site) -> Line:
    """Measures how long the disk makes a commit wait, on which the time of everything else depends."""
    times = []
    with psycopg.connect(site.server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE commits (at timestamptz)")
        for _ in range(COMMITS):
            began = perf_counter()
            connection.execute("INSERT INTO commits VALUES (now())")
            times.append(1000 * (perf_counter() - began))
    return Line("1 a commit of PostgreSQL on this disk", f"p50 {median(times):.1f} ms")


async def measure_fleet(site: Site, workers: int, seconds: float) -> list[Line]:
    """Measures one fleet."""
    what = f"1 {workers} worker{'s' if workers > 1 else ''} of {SLOTS} slots"
    model = script(answers("A gateway stands between clients and models.", delay_s=MODEL_S))
    async with trial(
        site, f"throughput{workers}", model, kind=ShippedFleet, cold=True, queue_slots=SLOTS, lease_seconds=15
    ) as one:
        await asyncio.gather(*(one.fleet.start_worker(*site.machines.prefix(number)) for number in range(workers)))
        await one.ask_many(workers * SLOTS, PROMPT)
        await settle(one.database)
        rate, cpu_ms, others = await _measure_rate(site, one, workers * SLOTS, seconds)
        await settle(one.database)
        starts = await _measure_starts(one, LOAD * rate, seconds)
        ends = await one.judge(what)
    p50, p99, processors = percentile(starts, 0.5), percentile(starts, 0.99), os.cpu_count() or 1
    possible = 1000 * processors / sum(cpu_ms.values())
    shown = ", ".join(f"{name} {ms:.1f}" for name, ms in cpu_ms.items() if name != "workers")
    return [
        Line(
            f"{what}: runs a second",
            f"{rate:.1f}",
            f"ideal {workers * SLOTS / MODEL_S:.0f}; {processors} processors allow {possible:.0f}",
        ),
        Line(
            f"{what}: processor ms a run",
            f"workers {cpu_ms['workers']:.1f}",
            f"{shown}; other programs used {others:.1f} processors",
        ),
        Line(
            f"{what}: acceptance to start, at {LOAD * rate:.1f} runs/s",
            f"p50 {p50:.0f} ms, p99 {p99:.0f} ms",
            f"p50 <= {START_P50_MS:.0f} ms",
            p50 <= START_P50_MS,
        ),
        ends,
    ]


async def _measure_rate(site: Site, one: Trial, slots: int, seconds: float) -> tuple[float, Usage, float]:
    """Keeps more runs accepted than there are slots. Returns the ends a second, the processor ms of a run by what used
    them, and how many processors other programs used.
    """
    async with await psycopg.AsyncConnection.connect(one.database, autocommit=True) as database:
        filling = asyncio.create_task(_keep_full(one, database, 2 * slots))
        try:
            await asyncio.sleep(WARM_S + MODEL_S)
            before, busy, began = _read_usage(site, one), read_busy_seconds(), time()
            await asyncio.sleep(seconds)
            after, busy, ended = _read_usage(site, one), read_busy_seconds() - busy, time()
        finally:
            filling.cancel()
            await asyncio.wait([filling])
    runs = one.read(f"SELECT count(*) FROM events WHERE {_ENDS} AND at BETWEEN %s AND %s", began, ended)[0][0]
    assert runs, "no run has ended"
    used = {name: after[name] - before[name] for name in after}
    others = max(0.0, busy - sum(used.values())) / (ended - began)
    cpu_ms = {name: 1000 * seconds / runs for name, seconds in used.items()}
    return runs / (ended - began), cpu_ms, others


async def _keep_full(one: Trial, database: "psycopg.AsyncConnection[tuple[int]]", target: int) -> None:
    while True:
        row = await (await database.execute("SELECT count(*) FROM runs WHERE NOT terminal")).fetchone()
        assert row is not None
        await asyncio.gather(*(one.ask(PROMPT) for _ in range(target - row[0])))
        await asyncio.sleep(POLL_S)


async def _measure_starts(one: Trial, rate: float, seconds: float) -> list[float]:
    """Has runs accepted at random moments, `rate` a second. Returns the ms from each acceptance to its first claim."""
    pick, first, asking = Random(7), len(one.asked), set[asyncio.Task[None]]()
    until = monotonic() + seconds
    while monotonic() < until:
        asking.add(asyncio.create_task(one.ask(PROMPT)))
        await asyncio.sleep(pick.expovariate(rate))
    await asyncio.wait(asking)
    await settle(one.database)
    rows = one.read(
        "SELECT 1000 * (min(claimed.at) - created.at) FROM events AS created JOIN events AS claimed USING (run_id) "
        "WHERE created.type = 'run.created' AND claimed.type = 'run.claimed' AND run_id = ANY(%s) "
        "GROUP BY run_id, created.at",
        [asked.run_id for asked in one.asked[first:]],
    )
    return [float(row[0]) for row in rows]


def _read_usage(site: Site, one: Trial) -> Usage:
    return {
        "workers": sum(cpu_seconds(worker.pid) for worker in one.fleet.workers),
        "gateway": cpu_seconds(one.gateway.pid),
        "PostgreSQL": read_tree_cpu(site.server.pid),
        "model": cpu_seconds(one.upstream.pid),
        "clients": cpu_seconds(os.getpid()),
    }


def read_busy_seconds() -> float:
    """The seconds that the processors of this machine have been busy, all together."""
    user, nice, system, _, _, irq, softirq, steal = Path("/proc/stat").read_text("ascii").split()[1:9]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / TICKS


def read_tree_cpu(pid: int) -> float:
    """The CPU seconds of a process, of the children it has, and of those it had."""
    used = 0.0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = file.read_text("utf-8", "replace").partition(" ")
        except OSError:  # it has ended
            continue
        fields = rest.rpartition(")")[2].split()
        if pid in (int(number), int(fields[1])):
            used += sum(map(int, fields[11 : 15 if int(number) == pid else 13])) / TICKS
    return used
