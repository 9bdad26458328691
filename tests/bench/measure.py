"""Reading what a process uses (Linux), and medians over rounds in which the contenders take turns."""

import os
from collections.abc import Awaitable, Callable, Sequence
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
