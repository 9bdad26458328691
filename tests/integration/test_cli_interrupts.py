"""Ctrl-C at any moment: quiet, exit code 130, and a cancelled run stays cancelled."""

import signal
import sys
from pathlib import Path
from time import sleep

import pytest

from tests.integration.test_cli import start_cli, start_cold_cli, stepgate
from tests.support.processes import Process, start
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer


@pytest.mark.parametrize("pause_s", [0.0, 0.005, 0.2])
def test_two_interrupts_leave_a_cancelled_run(tmp_path: Path, pause_s: float) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("never", to="completion", fault="hang"),
    )
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m"}
        asking = start_cli(tmp_path, "ask", "search and compute", **settings)
        asking.line_with("s1 calculator")
        asking.signal(signal.SIGINT)
        sleep(pause_s)
        if asking.child.poll() is None:
            asking.signal(signal.SIGINT)
        assert asking.wait(30) == 130
    told = asking.output[-1]
    assert told.startswith("cancelled; see `stepgate runs show run_")
    assert "cancelled" in stepgate(tmp_path, "runs", "show", told.rsplit(" ", 1)[1].strip("`"))[1].splitlines()[0]


@pytest.mark.parametrize("pause_s", [0.15, 0.3, 0.45])
def test_an_interrupt_while_the_program_is_loaded_is_quiet(tmp_path: Path, pause_s: float) -> None:
    process = start_cold_cli(tmp_path, "serve", port="0")
    sleep(pause_s)
    process.signal(signal.SIGINT)
    # On a busy machine the signal may come before Python itself is loaded, which ends it without a word.
    assert process.wait(30) in (130, 0, -signal.SIGINT)
    assert "Traceback" not in "\n".join(process.output)


def test_an_interrupt_in_the_imports_ends_the_process_at_once(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    process = _with_path(tmp_path)
    process.line_with("loading")
    process.signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert process.output == ["loading"]


def _with_path(folder: Path) -> Process:
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from gateway.entry import main; main()"
    return start([sys.executable, "-c", code])
