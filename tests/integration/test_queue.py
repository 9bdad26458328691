"""Runs on a queue: a gateway that only accepts, workers that execute, and what becomes of runs when workers die."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import psycopg

from tests.support.postgres import fresh_database
from tests.support.processes import GatewayProcess, Process, start
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer

PLAN = plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"})
PATIENCE_S = 25.0


class Fleet:
    """A gateway that leaves all runs to workers, on a database of their own."""

    def __init__(self, folder: Path, url: str, model: ScriptedServer, stack: ExitStack) -> None:
        self.database = url
        self._settings = {
            "AGENT_DATABASE_URL": url,
            "AGENT_DISPATCH": "queue",
            "AGENT_DATA_DIR": str(folder / "data"),
            "AGENT_LLM_BASE_URL": model.url,
            "AGENT_MODEL_FAST": "m",
            "AGENT_MODEL_PROFILE": "capable",
            "AGENT_DISCOVER": "off",
            "AGENT_LEASE_SECONDS": "1.5",
            "AGENT_SKILLS_DIRS": "none",
        }
        self._stack = stack
        gateway = {name.removeprefix("AGENT_").lower(): value for name, value in self._settings.items()}
        del gateway["data_dir"], gateway["skills_dirs"]
        self.gateway = stack.enter_context(GatewayProcess(folder / "data", **gateway, queue_slots="0"))

    def start_worker(self, *options: str, **settings: str) -> Process:
        """Starts `stepgate worker`."""
        environment = self._settings | {f"AGENT_{name.upper()}": value for name, value in settings.items()}
        worker = start([sys.executable, "-m", "gateway.cli", "worker", *options], environment=environment)
        self._stack.callback(worker.kill)
        worker.line_with("Stepgate worker takes ")
        return worker

    def read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query on the fleet's database."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def wait_until(self, statement: str, *values: object) -> None:
        """Returns once the query's first value is true."""
        until = monotonic() + PATIENCE_S
        while not (rows := self.read(statement, *values)) or not rows[0][0]:
            assert monotonic() < until, f"never became true: {statement}"

    async def ask(self, count: int, **fields: object) -> list[httpx.Response]:
        """Answers to requests sent together."""
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            bodies = [{"prompt": f"compute number {number}", **fields} for number in range(count)]
            return await asyncio.gather(*(client.post(f"{self.gateway.url}/v1/agent", json=body) for body in bodies))

    def check_ended_once(self, count: int) -> None:
        """Every run has ended, once, and its log has no gap before its end."""
        assert self.read("SELECT count(*), count(*) FILTER (WHERE terminal) FROM runs") == [(count, count)]
        ends = self.read(
            "SELECT run_id, count(*) FROM events WHERE type IN ('run.succeeded', 'run.failed', 'run.cancelled') "
            "GROUP BY run_id HAVING count(*) <> 1"
        )
        twice = self.read("SELECT run_id FROM events WHERE type = 'tool.returned' GROUP BY run_id HAVING count(*) <> 1")
        assert (ends, twice) == ([], [])


@contextmanager
def fleet_of(folder: Path, model: ScriptedServer) -> Iterator[Fleet]:
    with fresh_database() as url, ExitStack() as stack:
        yield Fleet(folder, url, model, stack)


async def test_workers_execute_what_a_gateway_accepts_and_a_killed_one_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    model = script(PLAN, says("It is 42.", to="completion", delay_s=0.6))
    with ScriptedServer(model) as server, fleet_of(tmp_path, server) as fleet:
        workers = [fleet.start_worker("--slots", "3") for _ in range(3)]
        asked = asyncio.create_task(fleet.ask(18))
        await asyncio.to_thread(server.wait_for, "completion")
        workers[0].signal(signal.SIGKILL)
        responses = await asked
        assert [response.status_code for response in responses] == [200] * 18
        assert {response.json()["response"] for response in responses} == {"It is 42."}
        fleet.check_ended_once(18)
        fleet.wait_until("SELECT count(*) = 0 FROM procrastinate_jobs")
        lines = [
            line for one in (*workers[1:], fleet.gateway.process) for line in one.output if "is taken over from" in line
        ]
        assert lines
        assert all(f":{workers[0].pid}:" in line for line in lines)
        workers[1].signal(signal.SIGTERM)
        assert workers[1].wait() == 0


async def test_a_worker_that_slept_through_its_lease_is_fenced_and_a_run_that_ends_its_workers_is_given_up(
    tmp_path: Path,
) -> None:
    model = script(
        PLAN, says("never", to="completion", delay_s=1, times=1), says("Of the other.", to="completion", delay_s=2)
    )
    with ScriptedServer(model) as server, fleet_of(tmp_path, server) as fleet:
        given_up = asyncio.create_task(fleet.ask(1))
        await asyncio.to_thread(fleet.wait_until, "SELECT count(*) = 1 FROM procrastinate_jobs")
        fleet.read("UPDATE runs SET epoch = 6 RETURNING 1")  # claimed so often, without an event of it in its log
        zombie = fleet.start_worker("--port", "0")
        (refused,) = await given_up
        assert refused.json()["error"]["error_code"] == "ERR_RUN_GIVEN_UP"
        asked = asyncio.create_task(fleet.ask(1))
        await asyncio.to_thread(server.wait_for, "completion")
        zombie.signal(signal.SIGSTOP)
        fleet.start_worker()
        await asyncio.to_thread(server.wait_for, "completion", times=2)
        zombie.signal(signal.SIGCONT)
        (response,) = await asked
        # It lost either the claim, or its connection to the server, which ends transactions that stand still.
        last = await asyncio.to_thread(zombie.line_with, response.headers["x-stepgate-run-id"])
        assert "succeeded" not in last
        assert response.json()["response"] == "Of the other."
        fleet.check_ended_once(2)
        fleet.wait_until("SELECT count(*) = 1 FROM procrastinate_jobs WHERE status = 'failed'")
        fleet.wait_until("SELECT count(*) = 1 FROM procrastinate_jobs")


def test_commands_that_only_read_the_database_do_not_load_the_engine() -> None:
    """Beside busy workers the imports of the engine took `stepgate queue` eight seconds."""
    code = (
        "import sys, gateway.bootstrap_database, gateway.features.fleet.engine.queue_state, agent.runs.retention; "
        "heavy = ('agent.execution', 'gateway.features.documents', 'agent.llm'); "
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
