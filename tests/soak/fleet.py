"""A fleet on one PostgreSQL: a gateway and its workers, and what its database says of their runs."""

import asyncio
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import ClassVar

import psycopg

from agent.core.events import Event
from agent.storage.journal_postgres import open_postgres
from tests.soak.clients import ROOM
from tests.support.processes import ROOT, Process, start
from tests.support.scripted_server import ScriptedServer

LEASE_S = 2.0
SETTLE_S = 120.0
"""How long the fleet may take to end what is left after the last kill, in seconds."""


class Fleet:
    """A gateway and its workers, with the tools whose effects the ledger writes down.

    `settings` are of all processes, by their names in lower case without `AGENT_`. Processes run the code in `root`.
    """

    gateway_command: ClassVar[tuple[str, ...]] = ("-m", "tests.soak.gateway")
    worker_command: ClassVar[tuple[str, ...]] = ("-m", "tests.soak.worker")

    def __init__(
        self, folder: Path, database: str, upstream: ScriptedServer, ledger_url: str = "", **settings: object
    ) -> None:
        self.root = ROOT
        self._environment = {
            "AGENT_DATA_DIR": str(folder / "data"),
            "AGENT_ROOMS_DIR": str(folder / "rooms"),
            "AGENT_SKILLS_DIRS": str(folder / "skills"),
            "AGENT_PORT": "0",
            "AGENT_LLM_BASE_URL": upstream.url,
            "AGENT_MODEL_FAST": "scripted",
            "AGENT_MODEL_PROFILE": "capable",
            "AGENT_DISCOVER": "off",
            "AGENT_DEFAULT_ROOM": ROOM,
            "AGENT_LEASE_SECONDS": str(LEASE_S),
            "AGENT_DATABASE_URL": database,
            "AGENT_DISPATCH": "queue",
            "AGENT_QUEUE_SLOTS": "4",
            "SOAK_LEDGER": ledger_url,
            **_name_settings(settings),
        }
        self.workers: list[Process] = []

    async def start_gateway(self, *, cold: bool = False, **settings: object) -> tuple[Process, str]:
        """Starts the gateway, which begins runs of its own on one slot. Returns it with its URL."""
        environment = self._environment | {"AGENT_QUEUE_SLOTS": "1"} | _name_settings(settings)
        gateway = self._start((sys.executable, *self.gateway_command), environment, cold=cold)
        line = await asyncio.to_thread(gateway.line_with, "Stepgate listens on ", 90)
        return gateway, line.rsplit(" ", 1)[1]

    async def start_worker(self, *prefix: str, host: str = "", **settings: object) -> Process:
        """Starts one more worker. It calls its machine `host`, where that is given, so that others cannot see that
        its process has ended. `prefix` stands before its command.
        """
        environment = self._environment | {"SOAK_HOST": host} | _name_settings(settings)
        worker = self._start((*prefix, sys.executable, *self.worker_command), environment)
        self.workers.append(worker)
        await asyncio.to_thread(worker.line_with, "Stepgate worker takes ", 90)
        return worker

    def _start(self, command: Sequence[str], environment: Mapping[str, str], *, cold: bool = False) -> Process:
        """Starts a process of the code in `root`. Processes that begin with imports done have this tree's code."""
        is_other = self.root != ROOT
        return start(command, environment=environment, cwd=self.root, cold=cold or is_other)

    def kill_workers(self) -> None:
        """Ends all workers at once."""
        for worker in self.workers:
            worker.kill()

    async def kill_worker(self, pick: random.Random) -> str:
        """Ends a worker, or stops it for so long that others take its runs over. Returns how."""
        worker = self.workers.pop(pick.randrange(len(self.workers)))
        if pick.random() < 0.25:
            worker.signal(signal.SIGSTOP)
            await asyncio.sleep(3 * LEASE_S)
            worker.signal(signal.SIGCONT)
            await asyncio.sleep(pick.uniform(0, 0.5))
            worker.kill()
            return "stopped for three leases, woken, killed"
        worker.kill()
        return "killed"


async def settle(url: str, within_s: float = SETTLE_S) -> int:
    """Waits until every run has ended. Returns how many have not."""
    until = monotonic() + within_s
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row = connection.execute("SELECT count(*) FROM runs WHERE NOT terminal").fetchone()
            assert row is not None
            if not row[0] or monotonic() > until:
                return int(row[0])
            await asyncio.sleep(0.2)


async def read_logs(url: str) -> dict[str, list[Event]]:
    """The events of every run."""
    store = await open_postgres(url)
    try:
        async with store.database.transaction() as db:
            ids = [str(row[0]) for row in await (await db.execute("SELECT run_id FROM runs")).fetchall()]
        return {run_id: await store.journal.read_events(run_id) for run_id in ids}
    finally:
        await store.close()


def count_jobs(url: str) -> dict[str, int]:
    """Returns how many jobs the queue still has, by status."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT status::text, count(*) FROM procrastinate_jobs GROUP BY status").fetchall()
    return {f"jobs left, {status}": int(count) for status, count in rows}


def _name_settings(settings: dict[str, object]) -> dict[str, str]:
    return {f"AGENT_{name.upper()}": str(value) for name, value in settings.items()}
