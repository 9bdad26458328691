"""`python -m tests.soak.cluster --kills N --seed S`: kill the workers of a fleet again and again, and judge it.

A gateway and three workers on a PostgreSQL of their own. Workers are killed (`kill -9`), or stopped for three leases so
that they wake up as zombies; now and then PostgreSQL is restarted. The judge compares the journal with the logs of the
clients, of the tools' targets and of the model server. Exit code 1 with the findings.
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

import psycopg

from agent.core.events import Event
from agent.storage.journal_postgres import open_postgres
from tests.soak.clients import ROOM, Load, Target
from tests.soak.judge import judge_logs
from tests.soak.killer import furnish, scenario
from tests.soak.ledger import Ledger, ledger
from tests.soak.postgres_server import PostgresServer
from tests.support.processes import Process, start
from tests.support.scripted_server import ScriptedServer

WORKERS = 3
CLIENTS = 8
LEASE_S = 2.0
SETTLE_S = 120.0
"""How long the fleet may take to end what is left after the last kill, in seconds."""


class Fleet:
    """A gateway and its workers."""

    def __init__(self, folder: Path, database: str, upstream: ScriptedServer, kept: Ledger) -> None:
        self._environment = {
            "AGENT_DATA_DIR": str(folder / "data"),
            "AGENT_ROOMS_DIR": str(folder / "rooms"),
            "AGENT_SKILLS_DIRS": str(folder / "skills"),
            "AGENT_SKILLS_USER_DIR": "false",
            "AGENT_PORT": "0",
            "AGENT_LLM_BASE_URL": upstream.url,
            "AGENT_MODEL_FAST": "scripted",
            "AGENT_TASK_ROOM": ROOM,
            "AGENT_DEFAULT_ROOM": ROOM,
            "AGENT_LEASE_SECONDS": str(LEASE_S),
            "AGENT_DATABASE_URL": database,
            "AGENT_DISPATCH": "queue",
            "AGENT_QUEUE_SLOTS": "4",
            "SOAK_LEDGER": kept.url,
        }
        self.workers: list[Process] = []

    async def start_gateway(self) -> tuple[Process, str]:
        """Starts the gateway, which begins runs of its own on one slot. Returns it with its URL."""
        gateway = start(
            [sys.executable, "-m", "tests.soak.gateway"], environment=self._environment | {"AGENT_QUEUE_SLOTS": "1"}
        )
        line = await asyncio.to_thread(gateway.line_with, "Stepgate listens on ", 90)
        return gateway, line.rsplit(" ", 1)[1]

    async def start_worker(self) -> None:
        """Starts one more worker."""
        worker = start([sys.executable, "-m", "tests.soak.worker"], environment=self._environment)
        self.workers.append(worker)
        await asyncio.to_thread(worker.line_with, "Stepgate worker takes ", 90)

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


async def soak_cluster(folder: Path, *, kills: int, seed: int) -> tuple[Counter[str], list[str], Mapping[str, int]]:
    """Kills so often, lets the fleet end what is left, and judges. Returns what was done, findings, and figures."""
    pick, deeds = random.Random(seed), Counter[str]()
    furnish(folder)
    with PostgresServer(folder / "postgres") as server, ScriptedServer(scenario()) as upstream:
        async with ledger() as kept:
            fleet = Fleet(folder, server.url, upstream, kept)
            gateway, url = await fleet.start_gateway()
            await asyncio.gather(*(fleet.start_worker() for _ in range(WORKERS)))
            target = Target(url)
            target.up.set()
            load = Load(target, random.Random(pick.random()))
            clients = [asyncio.create_task(load.keep_asking()) for _ in range(CLIENTS)]
            try:
                for number in range(1, kills + 1):
                    await asyncio.sleep(pick.uniform(0.2, 2.0))
                    deeds[await fleet.kill_worker(pick)] += 1
                    await fleet.start_worker()
                    if number % 10 == 0:
                        seconds = pick.choice((0.0, 1.0, 5.0))
                        await asyncio.to_thread(server.restart, seconds)
                        deeds[f"PostgreSQL away for {seconds:g} s"] += 1
                        print(f"{number} kills, {len(load.asked)} requests, {len(kept.entries)} effects", flush=True)
                target.closing = True
                left = await _settle(server.url)
                await asyncio.wait(clients, timeout=60)
            finally:
                for client in clients:
                    client.cancel()
                await asyncio.wait(clients)
                await load.aclose()
                for process in (gateway, *fleet.workers):
                    process.kill()
            verdict = judge_logs(await _read_logs(server.url), load.asked, kept, upstream.requests())
            findings = [*verdict.findings, *([f"{left} runs did not end within {SETTLE_S:g} s"] if left else [])]
            figures = {**verdict.figures, **_count_queue(server.url)}
    return deeds, findings, figures


async def _settle(url: str) -> int:
    """Waits until every run has ended. Returns how many have not."""
    until = monotonic() + SETTLE_S
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row = connection.execute("SELECT count(*) FROM runs WHERE NOT terminal").fetchone()
            assert row is not None
            if not row[0] or monotonic() > until:
                return int(row[0])
            await asyncio.sleep(0.2)


async def _read_logs(url: str) -> dict[str, list[Event]]:
    store = await open_postgres(url)
    try:
        async with store.database.transaction() as db:
            ids = [str(row[0]) for row in await (await db.execute("SELECT run_id FROM runs")).fetchall()]
        return {run_id: await store.journal.read_events(run_id) for run_id in ids}
    finally:
        await store.close()


def _count_queue(url: str) -> dict[str, int]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT status::text, count(*) FROM procrastinate_jobs GROUP BY status").fetchall()
    return {f"jobs left, {status}": int(count) for status, count in rows}


def main() -> int:
    """Soaks, prints, judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill a worker")
    parser.add_argument("--seed", type=int, default=None, help="of an earlier soak, to repeat its choices")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="stepgate-soak-cluster-"))
    began = monotonic()
    deeds, findings, figures = asyncio.run(soak_cluster(folder, kills=options.kills, seed=seed))
    rows = {**deeds, **figures, "seconds": round(monotonic() - began), "findings": len(findings)}
    width = max(len(name) for name in rows)
    print()
    for name, figure in rows.items():
        print(f"{name.ljust(width)}  {figure:>7}")
    for finding in findings:
        print(f"- {finding}")
    if not findings:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
