"""`python -m tests.soak.upgrade [--from COMMIT]`: upgrade a fleet under load, process by process, and judge it.

A gateway and two workers of an older commit on a PostgreSQL of their own, under load; two further gateways if it has no
workers yet. A gateway of this tree is started beside them, which migrates the tables. Then the older workers are
replaced, one by SIGTERM and one by `kill -9`, and the older gateway by `kill -9`. The judge of `tests.soak.cluster`
compares the journal with the logs of the clients, of the tools' targets and of the model server. Exit code 1 with the
findings, 2 where there is no such commit.
"""

import argparse
import asyncio
import io
import random
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from tests.soak.clients import Load, Target
from tests.soak.fleet import SETTLE_S, Fleet, count_jobs, read_logs, settle
from tests.soak.judge import judge_logs
from tests.soak.killer import furnish, scenario
from tests.soak.ledger import ledger
from tests.soak.postgres_server import PostgresServer
from tests.support.processes import ROOT, Process
from tests.support.scripted_server import ScriptedServer

CLIENTS = 8


class NoCommitError(Exception):
    """Raised if the commit to upgrade from cannot be had; its text says why."""


def extract(commit: str, folder: Path) -> None:
    """Writes the files of a commit into an empty folder. NoCommitError if there is no such commit."""
    archive = _run_git("archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


async def upgrade_fleet(
    folder: Path, older_tree: Path, *, seconds: float, seed: int
) -> tuple[list[str], Mapping[str, int]]:
    """Upgrades under load, `seconds` between one step and the next. Returns the findings, and figures."""
    furnish(folder)
    with PostgresServer(folder / "postgres") as server, ScriptedServer(scenario()) as upstream:
        async with ledger() as kept:
            older = Fleet(folder, server.url, upstream, kept.url)
            older.root = older_tree
            newer = Fleet(folder, server.url, upstream, kept.url)
            target = Target()
            load = Load(target, random.Random(seed))
            clients = [asyncio.create_task(load.keep_asking()) for _ in range(CLIENTS)]
            processes: list[Process] = []
            try:
                phases, findings = await _replace_processes(older, newer, target, load, processes, seconds)
                target.closing = True
                if left := await settle(server.url):
                    findings += [f"{left} runs did not end within {SETTLE_S:g} s"]
                await asyncio.wait(clients, timeout=60)
            finally:
                for client in clients:
                    client.cancel()
                await asyncio.wait(clients)
                await load.aclose()
                for process in processes:
                    process.kill()
            verdict = judge_logs(await read_logs(server.url), load.asked, kept, upstream.requests())
            figures = {**phases, **verdict.figures, **count_jobs(server.url)}
    return [*findings, *verdict.findings], figures


async def _replace_processes(
    older: Fleet, newer: Fleet, target: Target, load: Load, processes: list[Process], seconds: float
) -> tuple[dict[str, int], list[str]]:
    """Replaces the older processes one after the other. Appends all to `processes`. Returns how much was asked before,
    meanwhile and afterwards, and findings."""
    older_gateway, target.url = await older.start_gateway()
    processes.append(older_gateway)
    replaced = [await _start_worker(older, processes) for _ in range(2)]
    target.up.set()
    await asyncio.sleep(seconds)
    before = len(load.asked)
    newer_gateway, target.url = await newer.start_gateway()
    processes.append(newer_gateway)
    await asyncio.sleep(seconds)
    for process, number in zip(replaced, (signal.SIGTERM, signal.SIGKILL), strict=True):
        processes.append(await newer.start_worker())
        process.signal(number)
        await asyncio.sleep(seconds)
    older_gateway.kill()
    after = len(load.asked)
    await asyncio.sleep(seconds)
    phases = {
        "requests before the upgrade": before,
        "requests while both versions ran": after - before,
        "requests after it": len(load.asked) - after,
    }
    findings = [
        _describe("a process of this version ended", one) for one in (newer_gateway, *newer.workers) if _ended(one)
    ]
    if replaced[0].child.poll() != 0:
        findings.append(_describe("SIGTERM did not end the older process with 0", replaced[0]))
    return phases, findings


async def _start_worker(fleet: Fleet, processes: list[Process]) -> Process:
    """Starts a worker, or a further gateway where the fleet's code has no workers."""
    if (fleet.root / "tests" / "soak" / "worker.py").is_file():
        processes.append(await fleet.start_worker())
    else:
        processes.append((await fleet.start_gateway())[0])
    return processes[-1]


def main() -> int:
    """Upgrades, prints, judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="commit", default="HEAD~1", help="the older commit; HEAD~1 if left out")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to wait between the steps")
    parser.add_argument("--seed", type=int, default=None, help="of an earlier upgrade, to repeat its requests")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="stepgate-soak-upgrade-"))
    older_tree = folder / "older"
    older_tree.mkdir()
    try:
        extract(options.commit, older_tree)
    except NoCommitError as error:
        shutil.rmtree(folder)
        print(f"soak-upgrade: {error}")
        return 2
    print(f"from {options.commit}, seed {seed}", flush=True)
    began = monotonic()
    findings, figures = asyncio.run(upgrade_fleet(folder, older_tree, seconds=options.seconds, seed=seed))
    rows = {**figures, "seconds": round(monotonic() - began), "findings": len(findings)}
    width = max(len(name) for name in rows)
    print()
    for name, figure in rows.items():
        print(f"{name.ljust(width)}  {figure:>7}")
    for finding in findings:
        print(f"- {finding}")
    if not findings:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if findings else 0


def _ended(process: Process) -> bool:
    return process.child.poll() is not None


def _describe(finding: str, process: Process) -> str:
    return f"{finding}:\n" + "\n".join(process.output[-20:])


def _run_git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True)
    except FileNotFoundError:
        raise NoCommitError("git is not installed") from None
    except subprocess.CalledProcessError as error:
        raise NoCommitError(error.stderr.decode(errors="replace").strip() or "git found no such commit") from None
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
