"""`kill -9` at any moment loses no accepted run, repeats no finished step and no side effect."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from agent.core.models import AgentResponse
from agent.runs.response import build_response
from tests.support.crash_worker import crash_bench
from tests.support.processes import GatewayProcess, start


def crash(folder: Path, moment: str, number: int) -> bool:
    """Run the scenario in a process that dies; whether it got to the end instead."""
    process = start([sys.executable, "-m", "tests.support.crash_worker", str(folder), moment, str(number)])
    code = process.wait(60)
    assert code in (0, -signal.SIGKILL), "\n".join(process.output)
    return code == 0


async def resume(folder: Path) -> AgentResponse:
    """What a restarted process makes of the run that was left."""
    async with crash_bench(folder) as bench:
        await bench.service.worker.recover_runs()
        (row,) = await bench.service.list_runs()
        await bench.service.wait_until_stopped(row.run_id)
        events = await bench.service.read_events(row.run_id)
        terminal = [event for event in events if event.body.terminal]
        assert len(terminal) == 1
        assert events[-1] is terminal[0]
        epochs = [event.epoch for event in events]
        assert epochs == sorted(epochs)
        return build_response(events)


def calls(folder: Path, tool: str) -> list[str]:
    file = folder / f"{tool}.log"
    return file.read_text().split() if file.exists() else []


@pytest.mark.row("Scard-08", "Scard-09")
@pytest.mark.parametrize("moment", ["after", pytest.param("before", marks=pytest.mark.long)])
def test_killed_at_every_event_boundary_the_run_ends_as_if_nothing_had_happened(tmp_path: Path, moment: str) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / f"{moment}{number}"
        folder.mkdir()
        finished = crash(folder, moment, number)
        response = asyncio.run(resume(folder)) if not finished else None
        sent = calls(folder, "send")
        assert len(sent) <= 1, f"killed {moment} append {number}: the side effect was repeated"
        if finished:
            break
        assert response is not None
        if response.metadata["status"] == "complete":
            assert response.response == "All done."
            assert sent == ["mail"]
        else:
            # Killed between the intent of the side effect and its return: nobody knows, and it is said.
            assert "may or may not have happened" in response.response, f"killed {moment} append {number}"
            assert response.metadata["uncertainties"][0]["level"] == "blocking"
    assert number > 6, "the scenario has that many boundaries"


@pytest.mark.row("Scard-08", "Scard-09")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_killed_inside_a_tool_call_only_the_side_effect_stays_unknown(tmp_path: Path, number: int) -> None:
    assert not crash(tmp_path, "tool", number)
    response = asyncio.run(resume(tmp_path))
    assert len(calls(tmp_path, "send")) == 1, "once, before the crash or after it"
    if response.metadata["status"] == "complete":
        assert response.response == "All done."
    else:
        assert "may or may not have happened" in response.response


@pytest.mark.row("Scard-08")
def test_a_gateway_killed_and_started_again_goes_on_with_its_runs(tmp_path: Path) -> None:
    import httpx

    from tests.support.script import plans, says, script
    from tests.support.scripted_server import ScriptedServer

    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("Never sent.", to="completion", fault="hang", times=1),
        says("It is 42.", to="completion"),
    )
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "scripted"}
        with GatewayProcess(tmp_path, **settings) as first:
            body = {"prompt": "search and compute", "stream": True}
            with httpx.stream("POST", f"{first.url}/v1/agent", json=body, timeout=30) as response:
                run_id = response.headers["x-stepgate-run-id"]
                for line in response.iter_lines():
                    if line == "event: answer.started":
                        break
                server.wait_for("completion")
        with GatewayProcess(tmp_path, **settings) as second:
            url = f"{second.url}/v1/runs/{run_id}/events"
            with httpx.stream("GET", url, headers={"Last-Event-ID": "3"}, timeout=30) as response:
                names = [line.removeprefix("event: ") for line in response.iter_lines() if line.startswith("event: ")]
            run = httpx.get(f"{second.url}/v1/runs/{run_id}", timeout=30).json()
    assert names[-1] == "run.succeeded"
    assert names.count("tool.called") == 1
    assert run["response"]["response"] == "It is 42."
    assert run["status"] == "succeeded"


def test_a_paused_and_revived_process_can_do_no_harm(tmp_path: Path) -> None:
    import httpx

    from tests.support.script import plans, says, script
    from tests.support.scripted_server import ScriptedServer

    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("From the zombie.", to="completion", delay_s=3, times=1),
        says("From the new owner.", to="completion"),
    )
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "scripted", "lease_seconds": "1"}
        with GatewayProcess(tmp_path, **settings) as first:
            body = {"prompt": "search and compute", "stream": True}
            with httpx.stream("POST", f"{first.url}/v1/agent", json=body, timeout=60) as response:
                run_id = response.headers["x-stepgate-run-id"]
                for line in response.iter_lines():
                    if line == "event: answer.started":
                        break
                server.wait_for("completion")
                first.process.signal(signal.SIGSTOP)
                with GatewayProcess(tmp_path, **settings) as second:
                    events = f"{second.url}/v1/runs/{run_id}/events"
                    with httpx.stream("GET", events, timeout=60) as follow:
                        seen = [line for line in follow.iter_lines() if line.startswith("event: ")]
                    first.process.signal(signal.SIGCONT)
                    first.process.line_with("was claimed by another process")
                    run = httpx.get(f"{second.url}/v1/runs/{run_id}", timeout=30).json()
    assert seen[-1] == "event: run.succeeded"
    assert run["response"]["response"] == "From the new owner."
    assert run["status"] == "succeeded"
