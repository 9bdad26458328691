"""`make bench`: the whole table from one run. `python -m tests.bench 1 5` measures these rows only."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter

from tests.bench import (
    crash,
    durability,
    first_chunk,
    footprint,
    gateways,
    ingestion,
    instructions,
    latency,
    makespan,
    stored_runs,
    supervision,
    turn,
)
from tests.bench.contenders import FLOOR, peers
from tests.bench.measure import ROUNDS
from tests.bench.report import NotMeasuredError, Row, render

Measurement = Callable[[], Awaitable[Row | list[Row]]]

ROWS: dict[str, tuple[Measurement, ...]] = {
    "1": (turn.cpu, turn.plain_cpu),
    "2": (turn.latency,),
    "3": (first_chunk.plain, first_chunk.planned),
    "4": (makespan.row,),
    "5": (supervision.row,),
    "6": (crash.row,),
    "7": (durability.row,),
    "8": (footprint.at_rest, footprint.in_flight, footprint.streams),
    "9": (ingestion.rows,),
    "10": (latency.rows,),
    "11": (stored_runs.rows,),
    "12": (turn.crowd,),
    "13": (gateways.two_gateways,),
    "14": (gateways.two_workers,),
    "15": (instructions.row,),
    "16": (turn.added_latency,),
    "17": (turn.steady_latency,),
}

VERSIONS = {
    FLOOR: "a pass-through proxy on aiohttp that makes the same model calls, streamed, and keeps nothing",
    **{one.name: one.version for one in peers},
}


async def main(wanted: list[str]) -> None:
    """Measure and print."""
    started = perf_counter()
    rows: list[Row] = []
    not_measured: dict[str, str] = {}
    for number in wanted:
        for measure in ROWS[number]:
            try:
                found = await measure()
            except NotMeasuredError as error:
                not_measured[number] = str(error)
                continue
            rows += found if isinstance(found, list) else [found]
            print(f"row {number} is measured, after {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    seconds = perf_counter() - started
    print(render(rows, rounds=ROUNDS, versions=VERSIONS, not_measured=not_measured, seconds=seconds))


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(ROWS)
    if unknown := [number for number in chosen if number not in ROWS]:
        sys.exit(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    asyncio.run(main(chosen))
