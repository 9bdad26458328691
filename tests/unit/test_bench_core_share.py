"""A process can be held to a share of a core, and is free again afterwards."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.bench import core_share

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the bench measures on Linux")


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that computes until it is killed; its pid."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    yield child.pid
    child.kill()
    child.wait()


def read_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]


def wait_until(condition: Callable[[], bool]) -> None:
    until = monotonic() + 20
    while not condition():
        assert monotonic() < until
        sleep(0.001)


def test_without_control_groups_a_process_is_stopped_again_and_again(
    busy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_share, "GROUPS", tmp_path / "absent")
    with core_share.hold([busy], 0.4) as way:
        assert way == "by SIGSTOP and SIGCONT"
        for _ in range(3):
            wait_until(lambda: read_state(busy) == "T")
            wait_until(lambda: read_state(busy) != "T")
    wait_until(lambda: read_state(busy) != "T")
    sleep(2 * core_share.STOPPING_PERIOD_SECONDS)
    assert read_state(busy) != "T"


def test_a_control_group_holds_a_process_for_the_length_of_the_block(busy: int) -> None:
    before = Path(f"/proc/{busy}/cgroup").read_text("ascii")
    with core_share.hold([busy], 0.25) as way:
        if way != "by control groups":
            pytest.skip("this process may not make control groups")
        (group,) = core_share.GROUPS.glob(f"**/stepgate-bench-{busy}")
        assert str(busy) in (group / "cgroup.procs").read_text("ascii").split()
        limits = [
            path.read_text("ascii").split() for path in group.glob("cpu.*") if path.name.endswith(("quota_us", "max"))
        ]
        assert any(limit[0] == "2500" for limit in limits)
    assert not group.exists()
    assert Path(f"/proc/{busy}/cgroup").read_text("ascii") == before
