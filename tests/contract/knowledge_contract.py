"""The contract of the document, collection and job stores. A driver's test class provides `statements`: two clients of
one store, as two processes have them.
"""

from dataclasses import replace

import pytest

from agent.core.errors import AgentError, BusyError, NotFoundError
from agent.storage.sql import SqlClient, UnchangedError
from gateway.features.documents.engine.ingest import jobs as jobs_module
from gateway.features.documents.engine.ingest.batches import BatchItem, BatchResult
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore, track_indexing
from gateway.features.documents.engine.ingest.jobs import Job, JobOutcome, JobProgress, JobRequest, JobStore, WalkResult
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.documents import Document, DocumentStore, PassageRange, PendingPassages
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.documents.engine.search.naming import VectorSets, make_vector_set_name

FOLDER = ConnectorInput(source_type="local", source_identifier="/docs", recursive=True)
PAIR = tuple[SqlClient, SqlClient]


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make_document(source: str = "/docs/a.md", **changes: object) -> Document:
    whole = Document(source, "a.md", "doc_1", "c" * 64, "A", "md", 12, 1, ("doc_1.0", "doc_1.1"), at=5.0)
    return replace(whole, **changes)  # type: ignore[arg-type]


class KnowledgeContract:
    @pytest.fixture
    def statements(self) -> PAIR:
        raise AssertionError("a driver's test class gives its own `statements` fixture")

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def documents(self, statements: PAIR, clock: Clock) -> DocumentStore:
        return DocumentStore(statements[0], clock)

    @pytest.fixture
    def elsewhere(self, statements: PAIR, clock: Clock) -> DocumentStore:
        return DocumentStore(statements[1], clock)

    @pytest.fixture
    def collections(self, statements: PAIR, clock: Clock) -> CollectionStore:
        return CollectionStore(statements[0], clock)

    @pytest.fixture
    def jobs(self, statements: PAIR, clock: Clock) -> JobStore:
        return JobStore(statements[0], clock)

    @pytest.fixture
    def other_jobs(self, statements: PAIR, clock: Clock) -> JobStore:
        return JobStore(statements[1], clock)

    async def test_documents_come_back_as_they_went(self, documents: DocumentStore, elsewhere: DocumentStore) -> None:
        stale = (PassageRange("doc_0", 7),)
        kept = make_document(
            stale=stale, uncertainties=("a scan",), url="https://a.example/", version='W/"1"', embedder="m"
        )
        await documents.put("ann", "work", kept)
        await documents.put("ann", "work", make_document("/docs/b.md", document_id="doc_2", name='q"\u2603.md'))
        await documents.put("bob", "work", make_document())
        assert await elsewhere.list("ann", "work") == [
            kept, make_document("/docs/b.md", document_id="doc_2", name='q"\u2603.md')
        ]  # fmt: skip
        assert await elsewhere.get_by_source("ann", "work", "/docs/a.md") == kept
        assert await elsewhere.get_by_source("ann", "home", "/docs/a.md") is None
        assert await elsewhere.get_by_id("ann", "doc_1") == {"work": kept}
        assert await elsewhere.get_by_id("eve", "doc_1") == {}
        assert await elsewhere.count_by_collection("ann") == {"work": 2}
        assert await elsewhere.count_collections_with("ann", "/docs/a.md", "c" * 64) == 1

    async def test_a_document_is_replaced_by_source_and_forgotten_twice(self, documents: DocumentStore) -> None:
        await documents.put("ann", "work", make_document())
        await documents.put("ann", "work", make_document(document_id="doc_9"))
        assert [one.document_id for one in await documents.list("ann", "work")] == ["doc_9"]
        for _ in range(2):
            await documents.remove("ann", "work", "/docs/a.md")
        assert await documents.list("ann", "work") == []

    async def test_half_characters_do_no_harm(self, documents: DocumentStore) -> None:
        await documents.put("ann", "work\udcff", make_document("/docs/\udcff.md", name="\ud800"))
        (found,) = await documents.list("ann", "work\udcff")
        assert (found.source, found.name) == ("/docs/\ufffd.md", "\ufffd")

    async def test_rows_of_an_earlier_version_can_be_read(self, statements: PAIR, documents: DocumentStore) -> None:
        data = (
            '{"source": "/a", "name": "a", "document_id": "d", "checksum": "c", "title": "t", "file_type": "md", '
            '"size": 1, "pages": 1, "chunk_ids": ["d.0"], "uncertainties": [], "stale": ["old"], "at": 1.0}'
        )
        await statements[0].write(
            "INSERT INTO documents (owner, collection, source, document_id, checksum, data, at) VALUES (?,?,?,?,?,?,?)",
            "ann", "work", "/a", "d", "c", data, 1.0,
        )  # fmt: skip
        (found,) = await documents.list("ann", "work")
        assert found.stale == (PassageRange("old", 0),)
        assert (found.fingerprint, found.version, found.source_type) == ("", "", "local")

    async def test_one_holds_a_collection_until_it_lets_go_or_its_time_is_up(
        self, documents: DocumentStore, elsewhere: DocumentStore, clock: Clock
    ) -> None:
        assert await documents.acquire_lock("ann", "work", "one", 30)
        assert await documents.acquire_lock("ann", "work", "one", 30), "holding again prolongs"
        assert not await elsewhere.acquire_lock("ann", "work", "two", 30)
        assert await elsewhere.acquire_lock("ann", "home", "two", 30)
        assert await elsewhere.acquire_lock("bob", "work", "two", 30)
        await elsewhere.release_lock("ann", "work", "two")
        assert not await elsewhere.acquire_lock("ann", "work", "two", 30), "only the holder lets go"
        await documents.release_lock("ann", "work", "one")
        assert await elsewhere.acquire_lock("ann", "work", "two", 30)
        clock.now += 31
        assert await documents.acquire_lock("ann", "work", "one", 30)
        noted = await elsewhere.note_pending("ann", "work", "two", "two", [PassageRange("d", 1)])
        assert not noted, "it was lost meanwhile"

    async def test_what_was_about_to_be_written_is_known_to_the_next(
        self, documents: DocumentStore, elsewhere: DocumentStore, clock: Clock
    ) -> None:
        await documents.acquire_lock("ann", "work", "one", 30)
        assert await documents.get_pending("ann", "work") == []
        both = [PassageRange("doc_3", 2), PassageRange("doc_4", 1)]
        assert await documents.note_pending("ann", "work", "one", "claim 1", both)
        assert await documents.note_pending("ann", "work", "one", "claim 2", [PassageRange("doc_4", 5)])
        await documents.note_pending("ann", "work", "one", "claim 1", [])
        clock.now += 31
        assert await elsewhere.acquire_lock("ann", "work", "two", 30)
        noted = [PendingPassages(both[0], "claim 1"), PendingPassages(PassageRange("doc_4", 5), "claim 2")]
        assert await elsewhere.get_pending("ann", "work") == noted
        await elsewhere.release_lock("ann", "work", "two")
        assert await documents.acquire_lock("ann", "work", "three", 30), "let go although something is pending"
        assert await documents.get_pending("ann", "work") == noted
        await documents.clear_pending("ann", "work", ["doc_3", "unknown"])
        placed = [make_document(f"/docs/{number}.md", document_id=f"doc_{number}") for number in (4, 5)]
        await documents.place("ann", "work", placed, claim="claim 2")
        assert await documents.get_pending("ann", "work") == []
        assert await documents.find_current_ids("ann", "work", ["doc_3", "doc_4"]) == {"doc_4"}
        found = await documents.get_by_sources("ann", "work", ["/docs/5.md", "/docs/6.md"])
        assert found == {"/docs/5.md": placed[1]}

    async def test_what_belongs_together_is_placed_together_or_not_at_all(
        self, documents: DocumentStore, jobs: JobStore, clock: Clock
    ) -> None:
        await jobs.create("ann", "work", JobRequest(source=FOLDER))
        job = await jobs.claim("one", 30)
        assert job is not None
        items = [
            BatchItem(source=f"/docs/{number}", name="x", file_type="md", file="x", size=1, checksum="c")
            for number in range(3)
        ]
        await jobs.batches.add(job.id, "one", "/docs#1", items)
        await jobs.batches.add(job.id, "one", "/docs#1", items[:1])
        with pytest.raises(BusyError):
            await jobs.batches.add(job.id, "two", "/docs#1", items)
        assert await jobs.batches.list_due_jobs(5) == [("ann", job.id, "/docs#1")]
        late = await jobs.batches.claim(job.id, "two", 30)
        second = await jobs.batches.claim(job.id, "two", 30)
        assert late is not None
        assert second is not None
        assert (late.number, late.items, second.number) == (1, tuple(items), 2)
        assert await jobs.batches.claim(job.id, "three", 30) is None
        assert await jobs.batches.renew_lease(second, 30)
        clock.now += 31
        again = await jobs.batches.claim(job.id, "three", 30)
        assert again is not None
        assert (again.number, again.attempts) == (1, 2)
        assert not await jobs.batches.renew_lease(late, 30)
        for batch in (late, again, again):
            done = jobs.batches.make_completion(batch, BatchResult(read=3))
            placed = [make_document(f"/{batch.worker}")]
            if batch is again and not await documents.list("ann", "work"):
                await documents.place("ann", "work", placed, *done)
            else:
                with pytest.raises(UnchangedError):
                    await documents.place("ann", "work", placed, *done)
        assert [one.source for one in await documents.list("ann", "work")] == ["/three"]
        assert (await jobs.get("ann", job.id)).progress.done == 3, "it is counted once"
        assert [one.read for one in await jobs.batches.list_results(job.id)] == [3]
        assert await jobs.batches.count_open(job.id) == 1
        assert await jobs.batches.list_sources(job.id) == {"/docs/0", "/docs/1", "/docs/2"}
        clock.now += 31
        assert await jobs.batches.list_due_jobs(5) == [("ann", job.id, "/docs#1")]
        await jobs.finish(job, "one", JobProgress(), JobOutcome())
        assert await jobs.batches.list_due_jobs(5) == []
        assert await jobs.batches.claim(job.id, "two", 30) is None, "the job has ended"

    async def test_collections_keep_their_pipeline_and_sources(
        self, collections: CollectionStore, statements: PAIR, clock: Clock
    ) -> None:
        wanted = Collection("work", from_template("scans"), (FOLDER,), "mini (384 numbers)", "indexing")
        await collections.put("ann", wanted)
        other = CollectionStore(statements[1], clock)
        assert await other.get("ann", "work") == replace(wanted, created=1000.0, updated=1000.0)
        assert await other.get("bob", "work") is None
        clock.now = 2000.0
        await other.put("ann", replace(wanted, status="ready"))
        found = await collections.get("ann", "work")
        assert found is not None
        assert (found.created, found.updated, found.status) == (1000.0, 2000.0, "ready")
        assert await collections.remove("ann", "work")
        assert not await collections.remove("ann", "work")

    async def test_collections_are_listed_with_their_documents(
        self, collections: CollectionStore, documents: DocumentStore
    ) -> None:
        assert await collections.count_documents("ann") == {}
        for name in ("work", "Empty", "empty"):
            await collections.put("ann", Collection(name, from_template()))
        await documents.put("ann", "work", make_document("/a", document_id="doc_1"))
        await documents.put("ann", "work", make_document("/b", document_id="doc_2"))
        await documents.put("ann", "rowless", make_document("/c", document_id="doc_3"))
        await documents.put("bob", "work", make_document("/d", document_id="doc_4"))
        assert list((await collections.count_documents("ann")).items()) == [
            ("Empty", 0), ("empty", 0), ("rowless", 1), ("work", 2)
        ]  # fmt: skip

    async def test_the_vectors_that_serve_a_collection_can_change_and_go_with_it(
        self, collections: CollectionStore, statements: PAIR, clock: Clock
    ) -> None:
        first = VectorSets(make_vector_set_name("ann", "work"))
        assert await collections.get_vector_sets("ann", "work") == first
        await collections.put("ann", Collection("work", from_template()))
        await collections.set_vector_sets("ann", "work", VectorSets(first.serving, "the-new-one"))
        await collections.set_vector_sets("ann", "work", VectorSets("the-new-one", first.serving))
        other = CollectionStore(statements[1], clock)
        assert await other.get_vector_sets("ann", "work") == VectorSets("the-new-one", first.serving)
        assert await other.get_vector_sets("bob", "work") == VectorSets(make_vector_set_name("bob", "work"))
        await collections.remove("ann", "work")
        assert await other.get_vector_sets("ann", "work") == first

    async def test_a_reading_is_recorded_from_its_first_document_to_its_end(self, collections: CollectionStore) -> None:
        async def status() -> str:
            row = await collections.get("ann", "work")
            return "" if row is None else row.status

        row = Collection("work", from_template())
        with pytest.raises(KeyError):
            async with track_indexing(collections, "ann", row, lambda: ""):
                raise KeyError("a source that never answers")
        assert await status() == ""

        async def broken_off() -> None:
            async with track_indexing(collections, "ann", row, lambda: "") as begun:
                await begun()
                assert await status() == "indexing"
                raise KeyError("it breaks off")

        with pytest.raises(KeyError):
            await broken_off()
        assert await status() == "incomplete"
        async with track_indexing(collections, "ann", row, lambda: "mini") as begun:
            await begun()
        assert await status() == "ready"

    async def test_a_job_behind_many_that_another_process_must_do_is_found(self, jobs: JobStore, clock: Clock) -> None:
        for owner in ("ann", "bert"):
            for _ in range(jobs_module.MAX_WAITING):
                await jobs.create(owner, "work", JobRequest(source=FOLDER))
        clock.now += 1
        reachable = await jobs.create("cleo", "work", JobRequest())

        async def is_reachable(job: Job) -> bool:
            return not job.request.is_local

        claimed = await jobs.claim("one", 30, is_reachable)
        assert claimed is not None
        assert claimed.id == reachable.id
        assert await jobs.claim("one", 30, is_reachable) is None

    async def test_a_job_is_done_by_one_worker_and_says_how_far_it_is(
        self, jobs: JobStore, other_jobs: JobStore, clock: Clock
    ) -> None:
        made = await jobs.create("ann", "work", JobRequest(source=FOLDER, pipeline=from_template("notes")))
        assert (made.status, made.attempts) == ("queued", 0)
        claimed = await other_jobs.claim("two", 30)
        assert claimed is not None
        assert (claimed.id, claimed.status, claimed.attempts) == (made.id, "running", 1)
        assert claimed.request == made.request
        assert await jobs.claim("one", 30) is None
        clock.now += 10
        assert await other_jobs.renew_lease(claimed, "two", JobProgress(current="b.md", done=1, total=3), 30)
        assert not await jobs.renew_lease(claimed, "one", JobProgress(), 30), "it is not theirs"
        assert (await jobs.get("ann", made.id)).progress == JobProgress(current="b.md", done=1, total=3)
        await other_jobs.finish(claimed, "two", JobProgress(done=3, total=3), JobOutcome(report={"read": 3}))
        done = await jobs.get("ann", made.id)
        assert (done.status, done.is_finished, done.outcome.report) == ("done", True, {"read": 3})
        assert await jobs.claim("one", 30) is None

    async def test_a_job_that_failed_says_why(self, jobs: JobStore) -> None:
        await jobs.create("ann", "work", JobRequest(source=FOLDER))
        claimed = await jobs.claim("one", 30)
        assert claimed is not None
        await jobs.finish(claimed, "one", JobProgress(), JobOutcome(failure=AgentError("it broke").to_failure()))
        failed = await jobs.get("ann", claimed.id)
        assert failed.status == "failed"
        assert failed.outcome.failure is not None
        assert failed.outcome.failure.message == "it broke"

    async def test_a_job_whose_process_died_is_interrupted_and_taken_up(
        self, documents: DocumentStore, jobs: JobStore, other_jobs: JobStore, clock: Clock
    ) -> None:
        made = await jobs.create("ann", "work", JobRequest(source=FOLDER))
        await jobs.claim("one", 30)
        clock.now += 31
        assert (await other_jobs.get("ann", made.id)).status == "interrupted"
        again = await other_jobs.claim("two", 30)
        assert again is not None
        assert again.attempts == 2
        assert not await jobs.renew_lease(made, "one", JobProgress(), 30)
        assert not await jobs.finish(made, "one", JobProgress(), JobOutcome())
        assert (await jobs.get("ann", made.id)).status == "running", "who lost it cannot finish it"
        await documents.acquire_lock("ann", "work", made.id, 30)
        await documents.release_lock("ann", "work", made.id, "one")
        assert not await documents.acquire_lock("ann", "work", "upload", 30), "nor release the lock that they share"
        item = BatchItem(source="/docs/1", name="x", file_type="md", file="x", size=1, checksum="c")
        await jobs.batches.add(made.id, "two", "/docs#1", [item])
        await jobs.set_walk(made, "two", WalkResult())
        with pytest.raises(BusyError):
            await jobs.discard_walk(made, "one")
        assert (await jobs.batches.count_open(made.id), (await jobs.get("ann", made.id)).walk) == (1, WalkResult())
        await jobs.discard_walk(made, "two")
        assert (await jobs.batches.count_open(made.id), (await jobs.get("ann", made.id)).walk) == (0, None)
        assert await jobs.finish(made, "two", JobProgress(), JobOutcome())
        await documents.release_lock("ann", "work", made.id, "one")
        assert await documents.acquire_lock("ann", "work", "upload", 30), "nobody needs it any more"

    async def test_a_job_that_is_put_back_waits_its_time_and_counts_no_attempt(
        self, jobs: JobStore, clock: Clock
    ) -> None:
        await jobs.create("ann", "work", JobRequest(source=FOLDER))
        claimed = await jobs.claim("one", 30)
        assert claimed is not None
        await jobs.requeue(claimed, "one", "queued", 5)
        assert await jobs.claim("one", 30) is None
        clock.now += 6
        again = await jobs.claim("one", 30)
        assert again is not None
        assert again.attempts == 1
        await jobs.requeue(again, "one", "interrupted", 0)
        assert (await jobs.get("ann", again.id)).status == "interrupted"
        assert await jobs.claim("two", 30) is not None

    async def test_jobs_belong_to_their_owner_and_do_not_pile_up(
        self, jobs: JobStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[Job] = []
        for _ in range(3):
            clock.now += 1
            made.append(await jobs.create("ann", "work", JobRequest(source=FOLDER)))
        assert [job.id for job in await jobs.list("ann", 2)] == [made[2].id, made[1].id]
        with pytest.raises(NotFoundError):
            await jobs.get("bob", made[0].id)
        monkeypatch.setattr(jobs_module, "MAX_WAITING", 3)
        with pytest.raises(BusyError, match="3 jobs are waiting"):
            await jobs.create("ann", "work", JobRequest(source=FOLDER))
        first = await jobs.claim("one", 30)
        assert first is not None
        assert first.id == made[0].id
        await jobs.finish(first, "one", JobProgress(), JobOutcome())
        clock.now += jobs_module.KEPT_SECONDS + 1
        await jobs.create("ann", "work", JobRequest(source=FOLDER))
        with pytest.raises(NotFoundError):
            await jobs.get("ann", first.id)
