"""Rows 1, 2, 12, 16 and 17: what a planned, supervised, stored turn costs, and how long clients wait for it."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from statistics import mean, median

from tests.bench.contenders import FLOOR, FRAMEWORKS, LITELLM, STEPGATE, Running, arena, list_references
from tests.bench.load import closed_loop, open_loop
from tests.bench.measure import Figures, core_of_its_own, cpu_seconds, in_turn, percentile
from tests.bench.report import Row, compare
from tests.bench.work import request, story, turn
from tests.support.script import Script

CLIENTS = 50
FEW_CLIENTS = 25
TURNS = 300
UPSTREAM_S = 0.2
CRITICAL_S = 2 * UPSTREAM_S
RATE = 50.0
"""Requests a second of the open loop: about half of what one core can do."""


async def cpu() -> list[Row]:
    """CPU of the contender's process a turn in ms, all threads; 50 clients, a model that answers at once."""
    found = await _measure_cpu(turn(), "turn")
    what = f"1 CPU a turn, {CLIENTS} clients (2 model calls, 1 tool)"
    row = Row(what, "ms", found[STEPGATE], 4.0, list_references("turn", found))
    return [row, *compare(row, FRAMEWORKS, aim=0.35)]


async def plain_cpu() -> list[Row]:
    """The same for an answer of one model call, in a room that does not plan: all that a proxy does."""
    found = await _measure_cpu(story(4), "stream")
    what = f"1 CPU of one model call without a plan, {CLIENTS} clients"
    row = Row(what, "ms", found[STEPGATE], 2.0, list_references("stream", found))
    return [row, *compare(row, (LITELLM,), aim=1.0)]


async def _measure_cpu(rules: Script, work: str) -> Figures:
    body = request(work)

    async with arena(rules, work) as (server, running):

        async def measure(one: Running) -> float:
            with core_of_its_own(one.pid, server.pid):
                before = cpu_seconds(one.pid)
                await closed_loop(one.url, body=body, clients=CLIENTS, count=TURNS)
                return 1000 * (cpu_seconds(one.pid) - before) / TURNS

        for one in running:
            await closed_loop(one.url, body=body, clients=CLIENTS, count=100)
        return await in_turn(running, measure)


async def latency() -> Row:
    """The 99th percentile of the turn's latency over the time its two model calls take, at 50 clients."""
    body = request("turn")

    async def measure(one: Running) -> float:
        load = await closed_loop(one.url, body=body, clients=CLIENTS, count=TURNS, spread_s=CRITICAL_S)
        return percentile(load.latencies, 0.99) / CRITICAL_S

    async with arena(turn(UPSTREAM_S), "turn") as (_, running):
        for one in running:
            await closed_loop(one.url, body=body, clients=CLIENTS, count=CLIENTS, spread_s=CRITICAL_S)
        found = await in_turn(running, measure)
    return Row(
        f"2 p99 over the critical path of {1000 * CRITICAL_S:.0f} ms, {CLIENTS} clients",
        "",
        found[STEPGATE],
        1.15,
        list_references("turn", found),
    )


async def crowd() -> Row:
    """Turns a second with 500 clients over those with 50, a model that answers at once; no request may fail."""
    body = request("turn")
    crowd_size = 10 * CLIENTS

    def measure(clients: int, turns: int) -> Callable[[Running], Awaitable[float]]:
        async def throughput(one: Running) -> float:
            load = await closed_loop(one.url, body=body, clients=clients, count=turns)
            return len(load.latencies) / load.wall

        return throughput

    async with arena(turn(), "turn") as (_, running):
        for one in running:
            await closed_loop(one.url, body=body, clients=CLIENTS, count=100)
        few = await in_turn(running, measure(CLIENTS, crowd_size))
        many = await in_turn(running, measure(crowd_size, 2 * crowd_size))
    kept = {name: many[name] / few[name] for name in few}
    return Row(
        f"12 turns a second with {crowd_size} clients over {CLIENTS}",
        "",
        kept[STEPGATE],
        0.9,
        list_references("turn", kept),
        at_least=True,
        note=f"({many[STEPGATE]:.0f} of {few[STEPGATE]:.0f})",
    )


async def added_latency() -> list[Row]:
    """Milliseconds that a turn takes beyond its two model calls; clients that ask again at once, so that what one turn
    computes the others wait for."""
    body = request("turn")
    added: dict[str, list[float]] = defaultdict(list)

    async def measure(one: Running) -> float:
        load = await closed_loop(one.url, body=body, clients=FEW_CLIENTS, count=TURNS)
        milliseconds = [1000 * (latency - CRITICAL_S) for latency in load.latencies]
        added[one.name] += milliseconds
        return median(milliseconds)

    async with arena(turn(UPSTREAM_S), "turn") as (_, running):
        for one in running:
            await closed_loop(one.url, body=body, clients=FEW_CLIENTS, count=4 * FEW_CLIENTS)
        found = await in_turn(running, measure)
    details = [
        f"{name} adds {mean(values):.0f} ms in the mean, {percentile(values, 0.99):.0f} ms at the 99th percentile"
        for name, values in added.items()
    ]
    what = f"16 median added to the critical path of {1000 * CRITICAL_S:.0f} ms, {FEW_CLIENTS} clients without pauses"
    return [
        Row(what, "ms", found[STEPGATE], 20.0, list_references("turn", found), details=details),
        Row("16 the same less the floor's, whose calls are streamed, too", "ms", found[STEPGATE] - found[FLOOR], 20.0),
    ]


async def steady_latency() -> list[Row]:
    """The 99th percentile of the turn's latency over the time its two model calls take, at a steady rate that does not
    wait for answers; and what a turn takes beyond that time in the median."""
    body = request("turn")
    added: dict[str, list[float]] = defaultdict(list)

    async def measure(one: Running) -> float:
        load = await open_loop(one.url, body=body, rate=RATE, count=TURNS)
        added[one.name].append(1000 * (median(load.latencies) - CRITICAL_S))
        return percentile(load.latencies, 0.99) / CRITICAL_S

    async with arena(turn(UPSTREAM_S), "turn") as (_, running):
        for one in running:
            await open_loop(one.url, body=body, rate=RATE / 2, count=CLIENTS)
        found = await in_turn(running, measure)
    what = f"{RATE:.0f} requests a second"
    medians = {name: median(values) for name, values in added.items()}
    return [
        Row(
            f"17 p99 over the critical path of {1000 * CRITICAL_S:.0f} ms, {what}",
            "",
            found[STEPGATE],
            1.05,
            list_references("turn", found),
        ),
        Row(f"17 median added to it, {what}", "ms", medians[STEPGATE], 11.0, list_references("turn", medians)),
    ]
