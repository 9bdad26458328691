"""Two gateways on one PostgreSQL: a run of the one is followed at the other, and taken over when the one dies."""

import signal
from pathlib import Path

import httpx

from agent.core.settings import Settings
from gateway.bootstrap_database import open_store
from tests.support.postgres import fresh_database
from tests.support.processes import GatewayProcess
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer

PLAN = plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"})
BODY = {"prompt": "search and compute", "stream": True}


def names_of(response: httpx.Response) -> list[str]:
    return [line.removeprefix("event: ") for line in response.iter_lines() if line.startswith("event: ")]


def test_a_run_is_followed_from_another_process(tmp_path: Path) -> None:
    model = script(PLAN, says("It is 42.", to="completion", delay_s=1))
    with fresh_database() as url, ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m", "database_url": url}
        with GatewayProcess(tmp_path / "a", **settings) as first, GatewayProcess(tmp_path / "b", **settings) as second:
            with httpx.stream("POST", f"{first.url}/v1/agent", json=BODY, timeout=60) as response:
                run_id = response.headers["x-stepgate-run-id"]
                with httpx.stream("GET", f"{second.url}/v1/runs/{run_id}/events", timeout=60) as follow:
                    there = names_of(follow)
                here = names_of(response)
            run = httpx.get(f"{second.url}/v1/runs/{run_id}", timeout=60).json()
    assert [name for name in there if name != "answer.delta"] == [n for n in here[:-1] if n != "answer.delta"]
    assert there[-1] == "run.succeeded"
    assert run["response"]["response"] == "It is 42."


def test_the_runs_of_a_killed_process_go_on_at_another(tmp_path: Path) -> None:
    model = script(
        PLAN, says("never", to="completion", fault="hang", times=1), says("From the other one.", to="completion")
    )
    with fresh_database() as url, ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m", "database_url": url, "lease_seconds": "2"}
        with GatewayProcess(tmp_path / "a", **settings) as first, GatewayProcess(tmp_path / "b", **settings) as second:
            with httpx.stream("POST", f"{first.url}/v1/agent", json=BODY, timeout=60) as response:
                run_id = response.headers["x-stepgate-run-id"]
                for line in response.iter_lines():
                    if line == "event: answer.started":
                        break
                server.wait_for("completion")
                first.process.signal(signal.SIGKILL)
            with httpx.stream("GET", f"{second.url}/v1/runs/{run_id}/events", timeout=60) as follow:
                names = names_of(follow)
            run = httpx.get(f"{second.url}/v1/runs/{run_id}", timeout=60).json()
    assert names[-1] == "run.succeeded"
    assert names.count("tool.called") == 1
    assert run["response"]["response"] == "From the other one."


async def test_the_data_folder_beside_it_is_its_owners_alone(tmp_path: Path) -> None:
    with fresh_database() as url:
        store = await open_store(Settings(_env_file=None, data_dir=tmp_path / "data", database_url=url))
        await store.close()
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
