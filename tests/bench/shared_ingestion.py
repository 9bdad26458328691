"""An ingestion shared by processes of which one is killed: `python -m tests.bench.shared_ingestion [OPTIONS]`.

A gateway accepts the job; workers (`stepgate worker --lanes ingest`) read batches of it beside the gateway, on a
PostgreSQL of the tests (`tests/support/postgres.py`). When a third is read, the gateway, which has the job, is killed
with -9, or with `--kill worker` a worker. Then another process has the job once the dead one's leases have run out
(30 s). Judged from the database. Exits with 1 if anything was lost, read twice or left behind.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import psycopg

from tests.support.postgres import fresh_database
from tests.support.processes import GatewayProcess, Process, start
from tests.support.website import Website

POLL_S = 0.2
TIDY_S = 2.0
"""How long a process may take after the end of a job to remove its batches."""


@dataclass(frozen=True)
class Outcome:
    """What was measured: seconds until the kill and in all, and the faults that were found."""

    documents: int
    seconds: float
    killed_after: float
    faults: list[str]


def make_folder(folder: Path, count: int) -> None:
    """Write small Markdown files, a thousand in each subfolder."""
    for number in range(count):
        path = folder / f"{number // 1000}" / f"note-{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nThe valve of pump {number} is opened on day {number * 7 % 365}.\n")


def put_pages(site: Website, count: int) -> None:
    """Put a start page that links to pages there, each with a text of its own."""
    names = [f"/page-{number}.html" for number in range(count - 1)]
    site.html("/", *names, text="Start")
    for name in names:
        site.html(name, text=f"The page {name}")


def start_worker(folder: Path, settings: dict[str, str]) -> Process:
    """Start a worker of the lane `ingest`."""
    environment = {f"AGENT_{key.upper()}": value for key, value in settings.items()}
    environment |= {"AGENT_DATA_DIR": str(folder), "AGENT_SKILLS_DIRS": "none"}
    command = [sys.executable, "-m", "gateway.cli", "worker", "--lanes", "ingest"]
    process = start(command, environment=environment)
    process.line_with("Stepgate worker takes")
    return process


async def follow(database: psycopg.AsyncConnection[Any], job_id: str, until: int | None) -> tuple[str, int]:
    """Wait until so many documents are read, or until the job has ended; its status and what is done."""
    while True:
        cursor = await database.execute("SELECT status, batched FROM jobs WHERE id = %s", (job_id,))
        row = await cursor.fetchone()
        assert row is not None
        if row[0] in ("done", "failed") or (until is not None and row[1] >= until):
            return str(row[0]), int(row[1])
        await asyncio.sleep(POLL_S)


async def judge(database: psycopg.AsyncConnection[Any], job_id: str, count: int, progress: list[int]) -> list[str]:
    """Compare what is in the database with what there was to read."""
    faults = []
    expected = {
        "documents": ("SELECT count(*), count(DISTINCT source) FROM documents", (count, count)),
        "passages": ("SELECT count(DISTINCT document_id), count(*) - count(DISTINCT chunk_id) FROM chunks", (count, 0)),
        "passages of no document": (
            "SELECT count(*) FROM chunks WHERE NOT EXISTS "
            "(SELECT 1 FROM documents WHERE documents.document_id = chunks.document_id)", (0,),
        ),
        "traces": ("SELECT (SELECT count(*) FROM job_batches), (SELECT count(*) FROM pending_passages)", (0, 0)),
        "read": ("SELECT (outcome::json -> 'report' ->> 'read')::int, status FROM jobs", (count, "done")),
    }  # fmt: skip
    for what, (query, wanted) in expected.items():
        found = await (await database.execute(query.encode())).fetchone()
        if found != wanted:
            faults.append(f"{what}: {found} instead of {wanted}")
    if progress != sorted(progress):
        faults.append("progress went back")
    return faults


async def measure(kind: str, count: int, workers: int, kill: str) -> Outcome:
    """Do one ingestion and judge it."""
    with tempfile.TemporaryDirectory(prefix="shared-ingestion-") as name, fresh_database() as url:
        folder = Path(name)
        async with Website() as site, await psycopg.AsyncConnection.connect(url, autocommit=True) as database:
            settings = {
                "database_url": url, "dispatch": "queue", "file_roots": str(folder / "docs"), "log_level": "error",
                "fetch_allow_hosts": f"127.0.0.1:{site.port}", "objects_url": f"file://{folder}/shared",
            }  # fmt: skip
            (folder / "docs").mkdir()
            if kind == "folder":
                await asyncio.to_thread(make_folder, folder / "docs", count)
                source = {"source_type": "local", "source_identifier": str(folder / "docs"), "recursive": True}
            else:
                put_pages(site, count)
                source = {"source_type": "web", "source_identifier": site.at("/"), "recursive": True}
            gateway = await asyncio.to_thread(GatewayProcess, folder / "gateway", **settings)
            helpers = [
                await asyncio.to_thread(start_worker, folder / f"worker-{number}", settings)
                for number in range(workers)
            ]
            try:
                began = monotonic()
                async with httpx.AsyncClient(timeout=60) as client:
                    path = f"{gateway.url}/v1/collections/notes/ingest"
                    job = (
                        await client.post(path, json={**source, "max_pages": count + 10} if kind == "crawl" else source)
                    ).json()
                progress = [(await follow(database, job["id"], count // 3))[1]]
                killed = monotonic() - began
                if kill != "none":
                    (gateway.process if kill == "gateway" else helpers[0]).kill()
                while (state := await follow(database, job["id"], progress[-1] + 1))[0] not in ("done", "failed"):
                    progress.append(state[1])
                seconds = monotonic() - began
                await asyncio.sleep(TIDY_S)
                faults = await judge(database, job["id"], count, progress)
                return Outcome(count, seconds, killed, faults)
            finally:
                for process in (gateway.process, *helpers):
                    process.kill()


def main() -> None:
    """Print one line; exit with 1 for a fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", choices=("folder", "crawl"), default="folder")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", choices=("gateway", "worker", "none"), default="gateway")
    options = parser.parse_args()
    made = asyncio.run(measure(options.source, options.documents, options.workers, options.kill))
    print(
        f"{options.source} of {made.documents:,} documents, a gateway and {options.workers} workers, killed: "
        f"{options.kill} after {made.killed_after:.0f} s; done after {made.seconds:.0f} s, "
        f"{made.documents / made.seconds:.0f} documents a second; faults: {'; '.join(made.faults) or 'none'}"
    )
    raise SystemExit(1 if made.faults else 0)


if __name__ == "__main__":
    main()
