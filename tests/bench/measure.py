"""Reading what a process uses (Linux), and medians over rounds in which the contenders take turns."""

import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from tests.bench.contenders import Running

ROUNDS = 3
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") / 1024

Figures = dict[str, float]
"""One figure a contender, by its name."""


def cpu_seconds(pid: int) -> float:
    """CPU a process has used, all threads, user and system, in seconds; in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kb(pid: int) -> float:
    """Resident memory of a process in KB."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE_KB


@contextmanager
def core_of_its_own(pid: int, *others: int) -> Iterator[None]:
    """Gives a process one core within the block, and the others and this process the remaining ones.

    Where the kernel moved them about, the same turn took from 5.3 to 7.8 ms of CPU, by what a core's caches still held;
    on its own core it takes 4.5 to 5.0. Does nothing on a machine of one core.
    """
    every = os.sched_getaffinity(0)
    own = {max(every)}
    rest = every - own or every
    _set_cores(pid, own)
    for other in (os.getpid(), *others):
        _set_cores(other, rest)
    try:
        yield
    finally:
        for one in (pid, os.getpid(), *others):
            _set_cores(one, every)


def _set_cores(pid: int, cores: Collection[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), cores)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def in_turn(
    running: Sequence[Running], figure: Callable[[Running], Awaitable[float]], rounds: int = ROUNDS
) -> Figures:
    """The median figure of each contender; each round asks all of them, so that a busy machine is busy for all."""
    found: dict[str, list[float]] = {one.name: [] for one in running}
    for _ in range(rounds):
        for one in running:
            found[one.name].append(await figure(one))
    return {name: median(values) for name, values in found.items()}
