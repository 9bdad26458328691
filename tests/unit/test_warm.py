"""What is forked for tests is what `python -m` makes: the tests that rest on it would else show something else."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.support import warm, warm_client
from tests.support.processes import start

MIRROR = "tests.support.mirror"
GIVEN_TO_ALL = {"AGENT_MODEL_PROFILE": "capable", "AGENT_DISCOVER": "off"}


def run_command(folder: Path, *words: str, cold: bool) -> tuple[int, dict[str, Any], list[str]]:
    """Exit code, what the process says of itself, and what else it printed."""
    environment = {"AGENT_PORT": "1", "MIRROR_X": "a=b\nc", "PYTHONPATH": str(warm.ROOT), "TZ": "Asia/Tokyo"}
    process = start([sys.executable, "-m", MIRROR, *words], environment=environment, cwd=folder, cold=cold)
    code = process.wait()
    says = json.loads(process.output[0])
    assert says.pop("pid") == process.pid
    return code, says, [line for line in process.output[1:] if not line.startswith("  ")]


@pytest.mark.parametrize(
    "words", [("x y", "é"), ("exit", "0"), ("exit", "3"), ("signal", "9"), ("signal", "15"), ("raise",)]
)
def test_it_is_told_from_a_cold_one_by_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, says, lines = run_command(tmp_path, *words, cold=False)
    assert (code, says, lines) == run_command(tmp_path, *words, cold=True)
    assert says["environment"] == {**GIVEN_TO_ALL, "AGENT_PORT": "1", "MIRROR_X": "a=b\nc"}
    assert says["leads"], "of a group of its own, so that it ends with what it starts"


def test_settings_of_the_surroundings_do_not_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_PORT", "2")
    monkeypatch.setenv("MIRROR_X", "3")
    process = start([sys.executable, "-m", MIRROR])
    assert process.wait() == 0
    assert json.loads(process.output[0])["environment"] == {**GIVEN_TO_ALL, "MIRROR_X": "3"}


def test_it_is_signalled_stopped_and_killed_by_its_pid() -> None:
    process = start([sys.executable, "-m", MIRROR, "sleep"])
    process.line_with("to stderr")
    assert process.child.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.child.wait(0.05)
    process.signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    assert "KeyboardInterrupt" in process.output


async def test_a_command_line_stands_for_it(tmp_path: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        *warm.command(MIRROR), cwd=tmp_path, env={"MIRROR_X": "4", "PYTHONPATH": str(warm.ROOT)},
        stdin=-1, stdout=-1, stderr=-1,
    )  # fmt: skip
    out, err = await asyncio.wait_for(child.communicate(b"some words"), 30)
    line, words = out.split(b"\n", 1)
    says = json.loads(line)
    assert (says["cwd"], says["environment"]) == (str(tmp_path), {"MIRROR_X": "4"})
    assert (child.returncode, words, err) == (0, b"some words", b"to stderr\n")


@pytest.mark.parametrize(("words", "code"), [(("exit", "3"), 3), (("signal", "9"), -9), (("signal", "11"), -11)])
async def test_a_command_line_ends_as_what_it_stands_for(words: tuple[str, ...], code: int) -> None:
    child = await asyncio.create_subprocess_exec(*warm.command(MIRROR, *words), cwd=warm.ROOT, stdout=-1, stderr=-1)
    await asyncio.wait_for(child.communicate(), 30)
    assert child.returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_ending_a_command_line_ends_what_it_stands_for(number: signal.Signals) -> None:
    child = await asyncio.create_subprocess_exec(*warm.command(MIRROR, "sleep"), cwd=warm.ROOT, stdout=-1)
    assert child.stdout is not None
    pid = json.loads(await child.stdout.readline())["pid"]
    os.kill(pid, 0)
    child.send_signal(number)
    assert await asyncio.wait_for(child.wait(), 30) == -number
    until = monotonic() + 10
    while _is_there(pid) and monotonic() < until:
        sleep(0.01)  # noqa: ASYNC251 - nothing else runs here
    assert not _is_there(pid)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_that_asks_for_nothing_and_goes_harms_nobody(tmp_path: Path) -> None:
    address = warm.command(MIRROR)[4]
    with warm_client.connect(address):
        pass
    assert run_command(tmp_path, cold=False)[0] == 0
