"""`python -m tests.soak.cluster --kills N --seed S`: kill the workers of a fleet again and again, and judge it.

A gateway and three workers on a PostgreSQL of their own. Workers are killed (`kill -9`), or stopped for three leases so
that they wake up as zombies; now and then PostgreSQL is restarted. The judge compares the journal with the logs of the
clients, of the tools' targets and of the model server. Exit code 1 with the findings.
"""

import argparse
import asyncio
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from tests.soak.clients import Load, Target
from tests.soak.fleet import SETTLE_S, Fleet, count_jobs, read_logs, settle
from tests.soak.judge import judge_logs
from tests.soak.killer import furnish, scenario
from tests.soak.ledger import ledger
from tests.soak.postgres_server import PostgresServer
from tests.support.scripted_server import ScriptedServer

WORKERS = 3
CLIENTS = 8


async def soak_cluster(folder: Path, *, kills: int, seed: int) -> tuple[Counter[str], list[str], Mapping[str, int]]:
    """Kills so often, lets the fleet end what is left, and judges. Returns what was done, findings, and figures."""
    pick, deeds = random.Random(seed), Counter[str]()
    furnish(folder)
    with PostgresServer(folder / "postgres") as server, ScriptedServer(scenario()) as upstream:
        async with ledger() as kept:
            fleet = Fleet(folder, server.url, upstream, kept.url)
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
                left = await settle(server.url)
                await asyncio.wait(clients, timeout=60)
            finally:
                for client in clients:
                    client.cancel()
                await asyncio.wait(clients)
                await load.aclose()
                for process in (gateway, *fleet.workers):
                    process.kill()
            verdict = judge_logs(await read_logs(server.url), load.asked, kept, upstream.requests())
            findings = [*verdict.findings, *([f"{left} runs did not end within {SETTLE_S:g} s"] if left else [])]
            figures = {**verdict.figures, **count_jobs(server.url)}
    return deeds, findings, figures


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
