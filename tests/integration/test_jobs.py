"""Jobs: carried out, followed, given up, and taken up again after their process has ended."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import StoreError, StoreFullError
from agent.storage.sql import SqliteClient
from gateway.features.documents.engine.ingest import batch_reader, job_ingestion, job_runner
from gateway.features.documents.engine.ingest.batches import BatchItem
from gateway.features.documents.engine.ingest.connectors.port import MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorError
from gateway.features.documents.engine.ingest.job_runner import IngestJobs
from gateway.features.documents.engine.ingest.jobs import Job, JobRequest, JobStore, WalkResult
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.ingest.uploads import Uploads
from gateway.features.documents.engine.search.models import ConnectorInput
from tests.support.engine import Bench, engine_bench
from tests.support.faulty import DEADLINE_S, Gate, disturbed, failing
from tests.support.reading import consistent
from tests.support.sources import REQUEST, Site, page

WANTED = JobRequest(source=REQUEST)


class House:
    """A library, and processes that do jobs in it."""

    def __init__(self, bench: Bench, site: Site) -> None:
        self.bench = bench
        self.site = site
        self.passed = 0.0
        self.store = JobStore(SqliteClient(bench.store.database), lambda: time.time() + self.passed)
        self._processes: list[IngestJobs] = []

    def process(self) -> IngestJobs:
        """One more process that takes up jobs."""
        jobs = IngestJobs(self.store, self.bench.library, [self.bench.engine.settings.data_dir / "files"])
        jobs.start()
        self._processes.append(jobs)
        return jobs

    async def ended(self, job: Job) -> Job:
        """The job at its end."""
        found = await self._processes[-1].wait("local", job.id, DEADLINE_S)
        assert found.is_finished, found
        return found

    async def aclose(self) -> None:
        """End the processes."""
        for process in self._processes:
            await process.aclose()


@asynccontextmanager
async def house(tmp_path: Path, pages: int = 2) -> AsyncIterator[House]:
    site = Site({page(f"{number}.md"): f"# {number}\n\nText {number}." for number in range(pages)})
    async with engine_bench(tmp_path / "data", None) as bench:
        bench.library._connectors = {**bench.library._connectors, "web": site}
        made = House(bench, site)
        try:
            yield made
        finally:
            await made.aclose()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("HEARTBEAT_SECONDS", 0.01), ("POLL_SECONDS", 0.02)):
        monkeypatch.setattr(job_runner, name, seconds)
    for name, value in (("BATCH_DOCUMENTS", 1), ("POLL_SECONDS", 0.02), ("BATCHES_AT_ONCE", 1)):
        monkeypatch.setattr(job_ingestion, name, value)


@pytest.mark.row("S000-52", "S000-07")
async def test_a_job_goes_from_queued_over_running_to_done_with_counts(tmp_path: Path) -> None:
    gate, beaten = Gate(), asyncio.Event()
    async with house(tmp_path) as made:
        job = await made.store.create("local", "work", JobRequest(source=REQUEST, pipeline=from_template("notes")))
        assert job.status == "queued"

        async def second(*_: Any, **__: Any) -> None:
            if len(await made.bench.library._documents.list("local", "work")) == 1:
                await gate.arrive()

        async def beat(job: Job, worker: str, progress: Any, seconds: float) -> None:
            if progress.total == 2:
                beaten.set()

        with (
            disturbed(made.bench.library._lexical, "put", before=second),
            disturbed(made.store, "renew_lease", after=beat),
        ):
            made.process()
            async with asyncio.timeout(DEADLINE_S):
                await gate.reached.wait()
                await beaten.wait()
            running = await made.store.get("local", job.id)
            assert (running.status, running.progress.done, running.progress.total) == ("running", 1, 2)
            gate.open()
            done = await made.ended(job)
        assert (done.status, done.progress.done, done.progress.total) == ("done", 2, 2)
        assert done.outcome.report is not None
        assert {key: done.outcome.report[key] for key in ("read", "template", "skipped_count")} == {
            "read": 2, "template": "notes", "skipped_count": 0
        }  # fmt: skip


async def test_a_job_that_cannot_be_done_says_why(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.site.breaks_after, made.site.error = 0, ConnectorError("no such host")
        process = made.process()
        failed = await made.ended(await process.submit("local", "work", WANTED))
        assert failed.status == "failed"
        assert failed.outcome.failure is not None
        assert (failed.outcome.failure.error_code, failed.outcome.failure.message) == (
            "ERR_CONNECTOR_FAILED", "no such host"
        )  # fmt: skip
        outside = ConnectorInput(source_type="local", source_identifier=str(tmp_path), recursive=True)
        refused = await made.ended(await process.submit("local", "work", JobRequest(source=outside)))
        assert refused.outcome.failure is not None
        assert refused.outcome.failure.error_code == "ERR_CONNECTOR_AUTH", "jobs read beneath the roots only"


async def test_skipped_documents_are_told_with_their_codes(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        made.site.missing = {page("0.md"): MissedDocument(page("0.md"), "0.md", ConnectorError("HTTP status 500"))}
        made.site.pages[page("x.exe")] = "MZ"
        done = await made.ended(await made.process().submit("local", "work", WANTED))
        assert done.outcome.report is not None
        assert done.outcome.report["by_reason"] == {"ERR_CONNECTOR_FAILED": 1, "ERR_PARSER_UNSUPPORTED": 1}
        assert done.outcome.report["read"] == 1


async def test_two_jobs_of_one_collection_are_done_one_after_the_other(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        process = made.process()
        jobs = [await process.submit("local", "work", WANTED) for _ in range(3)]
        done = [await made.ended(job) for job in jobs]
        assert [job.status for job in done] == ["done", "done", "done"]
        reports = [job.outcome.report or {} for job in done]
        assert sorted((report["read"], report["unchanged"]) for report in reports) == [(0, 2), (0, 2), (2, 0)]


async def test_a_process_that_is_stopped_leaves_its_job_to_the_next(tmp_path: Path) -> None:
    gate = Gate()
    async with house(tmp_path) as made:

        async def second(*_: Any, **__: Any) -> None:
            if len(await made.bench.library._documents.list("local", "work")) == 1:
                await gate.arrive()

        with disturbed(made.bench.library._lexical, "put", before=second):
            process = made.process()
            job = await process.submit("local", "work", WANTED)
            async with asyncio.timeout(DEADLINE_S):
                await gate.reached.wait()
            await process.aclose()
        left = await made.store.get("local", job.id)
        assert (left.status, left.attempts) == ("interrupted", 0)
        made.process()
        done = await made.ended(job)
        assert done.outcome.report is not None
        assert (done.outcome.report["read"], done.outcome.report["unchanged"]) == (2, 0), "each is counted once"


async def test_a_job_of_a_process_that_died_is_taken_up_and_at_last_given_up(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        job = await made.store.create("local", "work", WANTED)
        for _ in range(job_runner.ATTEMPTS):
            await made.store.claim("a process that dies", job_runner.LEASE_SECONDS)
            made.passed += job_runner.LEASE_SECONDS + 1
        assert (await made.store.get("local", job.id)).status == "interrupted"
        made.process()
        given_up = await made.ended(job)
        assert given_up.outcome.failure is not None
        assert "stopped 3 times" in given_up.outcome.failure.message
        other = await made.store.create("local", "work", WANTED)
        await made.store.claim("a process that dies", job_runner.LEASE_SECONDS)
        made.passed += job_runner.LEASE_SECONDS + 1
        assert (await made.ended(other)).status == "done"


async def test_who_has_lost_a_job_stops(tmp_path: Path) -> None:
    gate = Gate()
    async with house(tmp_path) as made:
        with disturbed(made.bench.library._lexical, "put", before=gate.arrive):
            process = made.process()
            job = await process.submit("local", "work", WANTED)
            async with asyncio.timeout(DEADLINE_S):
                await gate.reached.wait()
                (task,) = process._tasks
                made.passed += job_runner.LEASE_SECONDS + 1
                taken = None
                while taken is None:  # its beat may have prolonged it in the same moment
                    made.passed += job_runner.LEASE_SECONDS + 1
                    taken = await made.store.claim("another process", 1e9)
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        assert (await made.store.get("local", job.id)).status == "running", "it is the other one's now"
        assert await made.bench.library.list_documents("local", "work") == []


async def test_a_suspended_process_that_wakes_removes_nothing_of_the_one_that_has_its_job_now(tmp_path: Path) -> None:
    async with house(tmp_path, pages=20) as made:
        statements = SqliteClient(made.bench.store.database)
        first, second = (IngestJobs(JobStore(statements, time.time), made.bench.library, []) for _ in range(2))
        suspended, woken = asyncio.Event(), asyncio.Event()

        async def suspend(*_: Any, **__: Any) -> None:
            walked = (await statements.read("SELECT walk FROM jobs"))[0][0]
            if walked and not woken.is_set():
                suspended.set()
                await woken.wait()
                raise ConnectorError("its connection was ended")
            await asyncio.sleep(0.01)

        async def notice_late(*_: Any, **__: Any) -> None:
            if suspended.is_set():
                await woken.wait()
                await asyncio.sleep(0.5)

        async def read_slowly(*_: Any, **__: Any) -> None:
            await asyncio.sleep(0.02)

        with (
            disturbed(first.store.batches, "claim", before=suspend),
            disturbed(first.store, "renew_lease", before=notice_late),
            disturbed(second.store.batches, "claim", before=read_slowly),
        ):
            async with asyncio.timeout(DEADLINE_S):
                first.start()
                job = await first.submit("local", "work", WANTED)
                await suspended.wait()
                (zombie,) = first._tasks
                await statements.write("UPDATE jobs SET until = 1")
                await statements.write("UPDATE job_batches SET until = 1 WHERE status = 'running'")
                second.start()
                while not second._tasks:  # noqa: ASYNC110 - it looks for jobs of others now and then
                    await asyncio.sleep(0.01)
                woken.set()
                await asyncio.wait([zombie])
                locked = await statements.read("SELECT holder FROM ingestions")
                assert locked == [(job.id,)], "the lock of the collection is not released either"
                done = await second.wait("local", job.id, DEADLINE_S)
        there = len(await made.bench.library.list_documents("local", "work"))
        assert (done.status, there, (done.outcome.report or {})["read"]) == ("done", 20, 20)
        await first.aclose()
        await second.aclose()


async def test_a_defect_ends_one_job_and_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with house(tmp_path) as made:

        async def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError("a defect")

        process = made.process()
        with disturbed(made.bench.library._lexical, "put", before=broken):
            failed = await made.ended(await process.submit("local", "work", WANTED))
        assert failed.outcome.failure is not None
        assert failed.outcome.failure.error_code == "ERR_INTERNAL"
        assert "a defect" not in failed.outcome.failure.message
        assert "ZeroDivisionError" in caplog.text
        assert (await made.ended(await process.submit("local", "work", WANTED))).status == "done"


async def test_a_store_that_fails_for_a_moment_stops_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        failures = [StoreError("busy"), StoreError("busy")]

        async def fails(*_: Any, **__: Any) -> None:
            if failures:
                raise failures.pop()

        job = await made.store.create("local", "work", WANTED)
        with disturbed(made.store, "claim", before=fails):
            made.process()
            assert (await made.ended(job)).status == "done"
        assert failures == []


async def test_a_batch_that_cannot_be_stored_is_tried_again_and_at_last_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reader, "RETRY_SECONDS", 0.0)
    async with house(tmp_path) as made:
        tries = []

        async def full(collection: str, passages: Any, **_: Any) -> None:
            if passages[0].metadata["source"] == "1.md":
                tries.append(1)
                if len(tries) in made_full:
                    raise StoreFullError("the disk is full")

        with disturbed(made.bench.library._lexical, "put", before=full):
            made_full: set[int] = {1, 2}
            process = made.process()
            done = await made.ended(await process.submit("local", "work", WANTED))
            assert (done.status, (done.outcome.report or {})["read"], len(tries)) == ("done", 2, 3)
            made.site.pages[page("1.md")] += " More."
            made.site.pages[page("2.md")] = "# 2\n\nText 2."
            made_full = {4, 5, 6}
            failed = await made.ended(await process.submit("local", "work", WANTED))
        assert failed.outcome.failure is not None
        assert failed.outcome.failure.error_code == "ERR_STORE_FULL"
        assert "1 document had been read into 'work' by then" in failed.outcome.failure.message
        assert len(await made.bench.library.list_documents("local", "work")) == 3, "the others were read, none is lost"
        again = await made.ended(await process.submit("local", "work", WANTED))
        assert again.outcome.report is not None
        assert (again.outcome.report["read"], again.outcome.report["unchanged"]) == (1, 2)
        assert await consistent(made.bench)


async def test_fetched_files_that_cannot_be_had_for_a_moment_are_read_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reader, "RETRY_SECONDS", 0.0)
    async with house(tmp_path) as made:
        objects, failures = made.bench.library.resources.objects, [StoreError("the bucket is away")]
        fetch = objects.fetch

        def fetch_later(name: str, path: Path) -> None:
            if failures:
                raise failures.pop()
            fetch(name, path)

        monkeypatch.setattr(objects, "fetch", fetch_later)
        process = made.process()
        done = await made.ended(await process.submit("local", "work", WANTED))
        assert (done.status, (done.outcome.report or {}).get("read")) == ("done", 2), done.outcome
        assert failures == []


@pytest.mark.parametrize("method", ["claim", "add", "count_open", "list_sources", "list_results"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_job_outlives_a_store_that_fails_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, when: str
) -> None:
    monkeypatch.setattr(job_runner, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(
        batch_reader, "BATCH_LEASE_SECONDS", 0.2
    )  # a batch that is claimed, but whose claim is not told
    failure = failing(StoreError("the connection was ended"), times=2)
    async with house(tmp_path, pages=4) as made:
        with (
            disturbed(made.store.batches, method, before=failure)
            if when == "before"
            else disturbed(made.store.batches, method, after=failure)
        ):
            process = made.process()
            done = await made.ended(await process.submit("local", "work", WANTED))
        assert (done.status, (done.outcome.report or {}).get("read"), done.progress.done) == ("done", 4, 4)
        assert len(await made.bench.library.list_documents("local", "work")) == 4
        assert await consistent(made.bench)


async def test_a_job_whose_store_goes_on_failing_is_given_up_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_runner, "RETRY_SECONDS", 0.0)
    async with house(tmp_path) as made:
        with disturbed(made.store.batches, "add", before=failing(StoreFullError("the disk is full"), times=99)):
            process = made.process()
            failed = await made.ended(await process.submit("local", "work", WANTED))
        assert (failed.status, failed.attempts) == ("failed", job_runner.ATTEMPTS)
        assert failed.outcome.failure is not None
        assert failed.outcome.failure.error_code == "ERR_STORE_FULL"


async def test_the_next_start_removes_what_an_ended_job_had_fetched(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with disturbed(made.store.batches, "remove", before=failing(StoreError("killed here"))):
            process = made.process()
            job = await process.submit("local", "work", WANTED)
            assert (await made.ended(job)).status == "done"
            await process.aclose()
        objects = made.bench.library.resources.objects
        name = f"{Uploads.get_fetched_name('local', job.id)}/left"
        (tmp_path / "left").write_text("fetched")
        objects.put(name, tmp_path / "left")
        made.process()
        async with asyncio.timeout(DEADLINE_S):
            while list(objects.list(name)) or await made.store.list_with_traces():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_what_a_machine_that_is_gone_had_fetched_is_fetched_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        job = await made.store.create("local", "work", WANTED)
        await made.store.claim("dead", job_runner.LEASE_SECONDS)
        await made.store.set_place(job, "dead", f"{tmp_path}/gone#1")
        item = BatchItem(
            source=page("0.md"),
            name="0.md",
            file_type="md",
            file="fetched/local/x",
            is_object=True,
            size=1,
            checksum="c",
        )
        await made.store.batches.add(job.id, "dead", f"{tmp_path}/gone#1", [item])
        await made.store.set_walk(job, "dead", WalkResult(unchanged=7))
        made.passed += job_runner.LEASE_SECONDS + 1
        made.process()
        done = await made.ended(job)
        assert done.outcome.report is not None
        assert (done.outcome.report["read"], done.outcome.report["unchanged"]) == (2, 0)
        assert (done.progress.done, done.progress.total) == (2, 2)


async def test_a_new_job_is_left_to_processes_that_see_its_folder(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nApples.")
    request = JobRequest(source=ConnectorInput(source_type="local", source_identifier=str(docs), recursive=True))
    async with house(tmp_path) as made:
        seeing = IngestJobs(made.store, made.bench.library, [docs])
        first = await seeing.submit("local", "work", request)
        blind = made.process()
        assert (await made.ended(await blind.submit("local", "other", WANTED))).status == "done"
        assert (await made.store.get("local", first.id)).status == "queued", "it is older, and was passed over"
        seeing.start()
        assert (await made.ended(first)).status == "done"
        await seeing.aclose()

        # A process with another, empty folder at the path does not take the documents for removed.
        second = await seeing.submit("local", "work", request)
        docs.rename(tmp_path / "mounted elsewhere")
        docs.mkdir()
        empty = IngestJobs(made.store, made.bench.library, [docs])
        empty.start()
        assert (await made.ended(await empty.submit("local", "third", WANTED))).status == "done"
        await empty.aclose()
        assert (await made.store.get("local", second.id)).status == "queued"
        assert len(await made.bench.library.list_documents("local", "work")) == 1


async def test_a_folder_that_this_machine_does_not_see_is_left_to_others(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        local = ConnectorInput(source_type="local", source_identifier="/elsewhere", recursive=True)
        job = await made.store.create("local", "work", JobRequest(source=local))
        await made.store.claim("dead", job_runner.LEASE_SECONDS)
        await made.store.set_place(job, "dead", "/elsewhere#1")
        made.passed += job_runner.LEASE_SECONDS + 1
        process = made.process()
        assert (await made.ended(await process.submit("local", "other", WANTED))).status == "done"
        assert (await made.store.get("local", job.id)).status == "interrupted"
