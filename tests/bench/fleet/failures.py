"""Rows 2, 3, 4 and 7: workers that are killed, stopped and ended, and a database that is away.

The runs are those of the soak: they have side effects, of which the judge finds each that happened twice. Every worker
calls its machine by another name, so that nobody can see that its process has ended: as on machines of their own, its
silence is all that others know.
"""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic, time

from tests.bench.fleet.table import Line
from tests.bench.fleet.trial import Site, Trial, trial
from tests.soak.clients import Load, SentRequest, Target
from tests.soak.killer import scenario
from tests.support.processes import Process
from tests.support.script import Script, answers, script

WORKERS = 3
CLIENTS = 8
TAKE_OVER_LEASES = 2.0
"""The aim for the time from the death of a worker until another one has claimed its runs, in leases."""
STOP_S = 5.0
"""How long a worker may take to stop beyond its drain, in seconds."""
_ENDS = "('run.succeeded', 'run.failed', 'run.cancelled')"


async def kill_workers(site: Site, *, kills: int, lease_s: float) -> list[Line]:
    """Row 2: kills one of three workers under load, again and again."""
    what = f"2 kill -9 of one of {WORKERS} workers, {kills} times"
    pick = random.Random(2)
    longest, taken = 0.0, 0
    async with trial(site, "kills", scenario(), gateway={"queue_slots": 1}, lease_seconds=lease_s) as one:
        await _start_workers(one, WORKERS)
        async with _load(one) as asked:
            deaths: list[tuple[float, dict[str, int]]] = []
            for number in range(kills):
                await asyncio.sleep(pick.uniform(0.5, 1.5))
                worker = one.fleet.workers.pop(pick.randrange(WORKERS))
                worker.kill()
                deaths.append((time(), _list_runs(one, worker)))
                await one.fleet.start_worker(host=f"machine-{WORKERS + number}")
        ends = await one.judge(what, asked)
        for died, runs in deaths:
            seconds = _measure_take_overs(one, died, runs)
            longest, taken = max([longest, *seconds]), taken + len(seconds)
    return [
        ends,
        Line(
            f"{what}: longest take-over",
            f"{longest / lease_s:.2f} leases of {lease_s:g} s ({taken} runs)",
            f"<= {TAKE_OVER_LEASES:g} leases",
            bool(taken) and longest / lease_s <= TAKE_OVER_LEASES,
        ),
    ]


async def wake_zombie(site: Site, *, runs: int, lease_s: float) -> list[Line]:
    """Row 3: stops a worker for three leases, wakes it, and kills the one that has most of its runs."""
    what = "3 a worker stopped for 3 leases, its successor killed"
    # An answer takes so long that the successor still waits for it when the zombie wakes.
    model = _delay(scenario(), "completion", 2.5 * lease_s)
    async with trial(site, "zombie", model, lease_seconds=lease_s, queue_slots=runs) as one:
        await _start_workers(one, WORKERS)
        await one.ask_many(runs, "search, investigate")
        await asyncio.to_thread(one.upstream.wait_for, "completion", runs // 2)
        zombie = max(one.fleet.workers, key=lambda worker: len(_list_runs(one, worker)))
        stopped = _list_runs(one, zombie)
        zombie.signal(signal.SIGSTOP)
        await asyncio.sleep(3 * lease_s)
        others = [worker for worker in one.fleet.workers if worker is not zombie]
        successor = max(others, key=lambda worker: len({*stopped} & {*_list_runs(one, worker)}))
        inherited = {*stopped} & {*_list_runs(one, successor)}
        zombie.signal(signal.SIGCONT)
        await asyncio.sleep(0.25 * lease_s)
        killed = inherited & {*_list_runs(one, successor)}
        successor.kill()
        ends = await one.judge(what)
    return [
        ends,
        Line(
            f"{what}: its runs, and those killed again",
            f"{len(stopped)}, {len(killed)}",
            "at least 1, else nothing is shown",
            bool(killed),
        ),
    ]


async def stop_database(site: Site, *, pauses: tuple[float, ...], lease_s: float) -> list[Line]:
    """Row 4: stops PostgreSQL under load."""
    lines = []
    for seconds in pauses:
        what = f"4 PostgreSQL away for {seconds:g} s"
        name = f"away{seconds:g}".replace(".", "_")
        async with trial(site, name, scenario(), gateway={"queue_slots": 1}, lease_seconds=lease_s) as one:
            await _start_workers(one, WORKERS)
            async with _load(one) as asked:
                await one.wait_until(f"SELECT count(*) >= {CLIENTS} FROM events WHERE type IN {_ENDS}")
                await asyncio.to_thread(site.server.restart, seconds)
                back = time()
                ended = f"SELECT min(at) FROM events WHERE type IN {_ENDS} AND at > %s"
                await one.wait_until(ended, back)
                first = float(one.read(ended, back)[0][0]) - back
                await asyncio.sleep(2 * lease_s)
            ends = await one.judge(what, asked)
        lines += [ends, Line(f"{what}: from its return to the first end", f"{first:.1f} s")]
    return lines


async def drain_worker(site: Site, *, runs: int, drain_s: float, lease_s: float) -> list[Line]:
    """Row 7: SIGTERM to a worker that has many runs, of which half end while it drains."""
    what = f"7 SIGTERM to a worker with {runs} runs, half short"
    text, late = "A gateway stands between clients and models.", runs // 2
    model = script(
        answers(text, about="Answer late", delay_s=3 * drain_s),
        answers(text, about="Answer soon", delay_s=0.8 * drain_s),
    )
    async with trial(
        site, "drain", model, lease_seconds=lease_s, queue_slots=runs, drain_seconds=drain_s, max_queued_runs=runs
    ) as one:
        (worker,) = await _start_workers(one, 1)
        await one.ask_many(late, "Answer late")
        await one.ask_many(runs - late, "Answer soon")
        await asyncio.to_thread(one.upstream.wait_for, "planner", runs)
        held, began = len(_list_runs(one, worker)), monotonic()
        worker.signal(signal.SIGTERM)
        successor = asyncio.create_task(one.fleet.start_worker(host="machine-1"))
        code = await asyncio.to_thread(worker.wait)
        seconds = monotonic() - began
        await successor
        ends = await one.judge(what)
        handed = one.read("SELECT count(DISTINCT run_id) FROM events WHERE type = 'run.suspended'")[0][0]
    most = drain_s + STOP_S
    return [
        Line(
            f"{what}: until it has stopped",
            f"{seconds:.1f} s, exit code {code}",
            f"<= {most:g} s (drain {drain_s:g} s)",
            code == 0 and seconds <= most,
        ),
        Line(
            f"{what}: its runs, and those handed back",
            f"{held}, {handed}",
            f"{runs}, {late}: the long ones",
            (held, handed) == (runs, late),
        ),
        ends,
    ]


async def _start_workers(one: Trial, count: int) -> list[Process]:
    return [*await asyncio.gather(*(one.fleet.start_worker(host=f"machine-{number}") for number in range(count)))]


@asynccontextmanager
async def _load(one: Trial) -> AsyncIterator[list[SentRequest]]:
    """Clients of every door, which ask as long as the context lasts. Yields what they ask."""
    target = Target(one.url)
    target.up.set()
    load = Load(target, random.Random(1))
    clients = [asyncio.create_task(load.keep_asking()) for _ in range(CLIENTS)]
    try:
        yield load.asked
        target.closing = True
        await asyncio.wait(clients, timeout=60)
    finally:
        for client in clients:
            client.cancel()
        await asyncio.wait(clients)
        await load.aclose()


def _list_runs(one: Trial, worker: Process) -> dict[str, int]:
    """The unfinished runs that the journal has for a worker, with their epochs."""
    query = "SELECT run_id, epoch FROM runs WHERE NOT terminal AND split_part(worker, ':', 2) = %s"
    return {str(run_id): int(epoch) for run_id, epoch in one.read(query, str(worker.pid))}


def _measure_take_overs(one: Trial, died: float, runs: dict[str, int]) -> list[float]:
    """The seconds from a death to the claim of each of its runs by the next worker. Leaves out a run whose next
    worker was killed too, before it wrote anything.
    """
    rows = one.read("SELECT run_id, epoch, at FROM events WHERE type = 'run.claimed' AND run_id = ANY(%s)", [*runs])
    return [float(at) - died for run_id, epoch, at in rows if epoch == runs[run_id] + 1]


def _delay(rules: Script, purpose: str, seconds: float) -> Script:
    """The script with whole answers of this purpose begun after so many seconds."""
    return Script(
        [
            replace(rule, reply=replace(rule.reply, delay_s=seconds))
            if rule.purpose == purpose and rule.reply.fault is None
            else rule
            for rule in rules.rules
        ]
    )
