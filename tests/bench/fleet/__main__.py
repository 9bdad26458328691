"""`make bench-fleet`: the table of a fleet from one run. `python -m tests.bench.fleet 1 5` measures these rows only.

A PostgreSQL server of its own, a scripted model over HTTP, a gateway and workers as processes. Exit code 1 if an aim is
missed, 2 without PostgreSQL's programs.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.bench.fleet import failures, fairness, long_queue, throughput
from tests.bench.fleet.machines import Machines
from tests.bench.fleet.table import Line, render
from tests.bench.fleet.trial import Site
from tests.soak.postgres_server import PostgresServer, find_binaries

NO_POSTGRES = (
    "bench-fleet: PostgreSQL's programs initdb and pg_ctl are not found, neither on the PATH nor in "
    "/usr/lib/postgresql; install its server, on Debian with: apt-get install postgresql"
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured, and for how long. `--short` has its own."""

    workers: tuple[int, ...] = (1, 2, 4, 8)
    seconds: float = 15.0
    kills: int = 10
    lease: float = 5.0
    zombie_runs: int = 24
    pauses: tuple[float, ...] = (1.0, 10.0, 60.0)
    jobs: int = 1_000_000
    queued: int = 1_000
    drained: int = 100
    drain: float = 10.0


SHORT = Sizes((2,), 3.0, 1, 1.5, 9, (1.0,), 20_000, 60, 20, 3.0)

Measurement = Callable[[Site, Sizes], Awaitable[list[Line]]]

ROWS: dict[str, Measurement] = {
    "1": lambda site, sizes: throughput.measure(site, sizes.workers, sizes.seconds),
    "2": lambda site, sizes: failures.kill_workers(site, kills=sizes.kills, lease_s=sizes.lease),
    "3": lambda site, sizes: failures.wake_zombie(site, runs=sizes.zombie_runs, lease_s=sizes.lease),
    "4": lambda site, sizes: failures.stop_database(site, pauses=sizes.pauses, lease_s=sizes.lease),
    "5": lambda site, sizes: long_queue.measure(site, sizes.jobs),
    "6": lambda site, sizes: fairness.measure(site, sizes.queued),
    "7": lambda site, sizes: failures.drain_worker(site, runs=sizes.drained, drain_s=sizes.drain, lease_s=sizes.lease),
}


def read_arguments(arguments: list[str]) -> tuple[list[str], Sizes]:
    """The rows and the sizes that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet", description=__doc__)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)}; all if none is named")
    parser.add_argument("--short", action="store_true", help="small sizes: a minute and a half; figures mean little")
    parser.add_argument("--workers", type=int, nargs="+", help="row 1: numbers of workers")
    parser.add_argument("--seconds", type=float, help="row 1: how long each rate is measured")
    parser.add_argument("--kills", type=int, help="row 2: how often a worker is killed")
    parser.add_argument("--lease", type=float, help="rows 2, 3, 4 and 7: AGENT_LEASE_SECONDS")
    parser.add_argument("--pauses", type=float, nargs="+", help="row 4: how long PostgreSQL is away, in seconds")
    parser.add_argument("--jobs", type=int, help="row 5: waiting jobs of the other lane")
    parser.add_argument("--queued", type=int, help="row 6: runs that the first owner queues")
    parser.add_argument("--drained", type=int, help="row 7: runs of the worker that is ended")
    parser.add_argument("--drain", type=float, help="row 7: AGENT_DRAIN_SECONDS")
    options = vars(parser.parse_args(arguments))
    rows, sizes = options.pop("rows") or list(ROWS), SHORT if options.pop("short") else Sizes()
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    given = {name: tuple(one) if isinstance(one, list) else one for name, one in options.items() if one is not None}
    return rows, Sizes(**{**{name: getattr(sizes, name) for name in Sizes.__slots__}, **given})


async def measure(rows: list[str], sizes: Sizes, folder: Path) -> tuple[list[Line], str]:
    """Measures the rows. Returns their lines, and how the workers of row 1 were kept apart."""
    lines = []
    with Machines(max(sizes.workers) if "1" in rows else 0) as machines:
        with PostgresServer(folder / "postgres", machines.network) as server:
            site, began = Site(folder, server, machines), monotonic()
            for row in rows:
                lines += await ROWS[row](site, sizes)
                print(f"row {row} is measured, after {monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        apart = machines.absent or "each worker of row 1 in a network namespace of its own"
    return lines, apart if "1" in rows else ""


def main() -> int:
    """Measures, prints, and returns the exit code."""
    rows, sizes = read_arguments(sys.argv[1:])
    if find_binaries() is None:
        print(NO_POSTGRES, file=sys.stderr)
        return 2
    folder, began = Path(tempfile.mkdtemp(prefix="stepgate-bench-fleet-")), monotonic()
    try:
        lines, apart = asyncio.run(measure(rows, sizes, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    heading = f"Stepgate fleet: {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    print(render(lines, "; ".join([heading, *([apart] if apart else []), f"measured in {monotonic() - began:.0f} s"])))
    return 1 if any(line.holds is False for line in lines) else 0


if __name__ == "__main__":
    raise SystemExit(main())
