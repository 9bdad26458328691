"""One ingestion shared by three gateways on one PostgreSQL, two of which are killed: nothing lost, nothing twice."""

import time
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.postgres import fresh_database
from tests.support.processes import GatewayProcess

FILES = 1500
"""Enough for five seconds of one process: the others look for work every two."""
DEADLINE_S = 150.0


def make_folder(folder: Path, count: int) -> Path:
    for number in range(count):
        path = folder / f"{number % 10}" / f"note-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nThe valve of pump {number} is opened on day {number * 7 % 365}.\n")
    (folder / "broken.pdf").write_text("%PDF-1.4 no more of it")
    return folder


def read_job(url: str, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/v1/jobs/{job_id}", timeout=60).json()
    return found


@pytest.mark.long
def test_a_folder_is_read_by_three_processes_although_two_are_killed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "docs", FILES)
    with fresh_database() as url, psycopg.connect(url, autocommit=True) as database:
        settings = {"database_url": url, "file_roots": str(tmp_path / "docs"), "log_level": "warning"}
        gateways = [GatewayProcess(tmp_path / name, **settings) for name in "abc"]
        try:
            first, second, third = gateways
            body = {"source_type": "local", "source_identifier": str(folder), "recursive": True}
            job = httpx.post(f"{first.url}/v1/collections/notes/ingest", json=body, timeout=60).json()

            def workers() -> set[str]:
                rows = database.execute("SELECT DISTINCT worker FROM job_batches WHERE status = 'running'").fetchall()
                return {str(row[0]).partition("-")[0] for row in rows}

            until = time.monotonic() + DEADLINE_S
            met: set[str] = set()
            while not {str(second.process.pid), str(third.process.pid)} & met:
                met |= workers()
                assert time.monotonic() < until, "nobody helps"
                time.sleep(0.02)
            helper = second if str(second.process.pid) in met else third
            helper.process.kill()
            first.process.kill()  # the one that has the job
            # As if their leases had run out.
            pids = tuple(f"{one.process.pid}-%" for one in (helper, first))
            for table in ("jobs", "job_batches"):
                database.execute(f"UPDATE {table} SET until = 1 WHERE worker LIKE %s OR worker LIKE %s".encode(), pids)
            left = third if helper is second else second
            done: list[int] = []
            while (found := read_job(left.url, job["id"]))["status"] not in ("done", "failed"):
                done.append(found["progress"]["done"])
                assert time.monotonic() < until, found
                time.sleep(0.1)
            assert found["status"] == "done", found
            report = found["report"]
            assert (report["read"], report["unchanged"], report["skipped_count"]) == (FILES, 0, 1)
            assert found["progress"]["done"] == found["progress"]["total"] == FILES + 1
            assert done == sorted(done), "progress never goes back"
            rows = database.execute("SELECT count(*), count(DISTINCT source) FROM documents").fetchone()
            assert rows == (FILES, FILES)
            chunks = database.execute("SELECT count(*), count(DISTINCT document_id) FROM chunks").fetchone()
            assert chunks == (FILES, FILES)
            while database.execute("SELECT count(*) FROM job_batches").fetchone() != (0,):
                assert time.monotonic() < until, "the batches of an ended job are removed"
                time.sleep(0.1)
            for table in ("pending_passages", "ingestions"):
                assert database.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,), table
            row = httpx.get(f"{left.url}/v1/collections/notes", timeout=60).json()
            assert (row["status"], row["documents"]) == ("ready", FILES)
            query = {"collection": "notes", "query_text": "valve of pump 217", "min_relevance_score": 0.1}
            results = httpx.post(f"{left.url}/v1/search", json=query, timeout=60).json()["results"]
            assert "pump 217" in results[0]["content"]
        finally:
            for gateway in gateways:
                gateway.process.kill()
