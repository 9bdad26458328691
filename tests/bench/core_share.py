"""Holding processes to a share of a core, so that two can be compared with one on a machine of few cores."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import sleep

GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 10_000
"""Short, so that a process that has used its share stands still for milliseconds only."""
STOPPING_PERIOD_SECONDS = 0.05

SETTINGS_V1 = {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": "{quota}", "cpu.shares": "262144"}
SETTINGS_V2 = {"cpu.max": "{quota} " + str(PERIOD_US), "cpu.weight": "10000"}
"""The largest weight, so that a process gets its share beside other programs too."""


@contextlib.contextmanager
def hold(pids: Sequence[int], share: float) -> Iterator[str]:
    """Lets each of these processes use at most `share` of a core within the block. Yields how that is done.

    Control groups where this process may make them, else the processes are stopped and continued in turn."""
    with contextlib.ExitStack() as stack:
        try:
            for pid in pids:
                stack.enter_context(_hold_by_group(pid, share))
        except OSError:
            stack.close()
        else:
            yield "by control groups"
            return
    with _hold_by_signals(pids, share):
        yield "by SIGSTOP and SIGCONT"


@contextlib.contextmanager
def _hold_by_group(pid: int, share: float) -> Iterator[None]:
    is_v2 = (GROUPS / "cgroup.controllers").exists()
    parent = GROUPS if is_v2 else GROUPS / "cpu"
    if is_v2:
        (parent / "cgroup.subtree_control").write_text("+cpu", "ascii")
    group = parent / f"stepgate-bench-{pid}"
    former = _find_group(pid, parent, is_v2=is_v2)
    group.mkdir(exist_ok=True)
    try:
        for name, value in (SETTINGS_V2 if is_v2 else SETTINGS_V1).items():
            (group / name).write_text(value.format(quota=round(share * PERIOD_US)), "ascii")
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(
                int(thread.name), os.SCHED_OTHER, os.sched_param(0)
            )  # no quota holds real-time processes
        (group / "cgroup.procs").write_text(str(pid), "ascii")
        yield
    finally:
        with contextlib.suppress(OSError):  # it may have ended
            (former / "cgroup.procs").write_text(str(pid), "ascii")
        group.rmdir()


def _find_group(pid: int, parent: Path, *, is_v2: bool) -> Path:
    """The group that a process is in."""
    for line in Path(f"/proc/{pid}/cgroup").read_text("ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" if is_v2 else "cpu" in controllers.split(","):
            return parent / path.lstrip("/")
    return parent


@contextlib.contextmanager
def _hold_by_signals(pids: Sequence[int], share: float) -> Iterator[None]:
    """Each process runs for `share` of every period. It may use less than that, never more."""
    ended = threading.Event()

    def send(pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def alternate(pid: int) -> None:
        while not ended.is_set():
            send(pid, signal.SIGSTOP)
            sleep((1 - share) * STOPPING_PERIOD_SECONDS)
            send(pid, signal.SIGCONT)
            sleep(share * STOPPING_PERIOD_SECONDS)

    threads = [threading.Thread(target=alternate, args=(pid,)) for pid in pids]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
