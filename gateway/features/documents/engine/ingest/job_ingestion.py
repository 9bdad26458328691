"""`JobIngestion`: reads the source of a job into its collection, in batches that several processes share.

One process has the job: it walks the source, adds batches, reads some of them, waits for those of others, and finishes.
Every other process that sees the files may read batches too (`help`). If the process that has the job dies, another one
continues: it walks again, and leaves alone what is in a batch already.
"""

import asyncio
import logging
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError, BusyError, StoreError
from agent.core.failures import AgentFailure
from gateway.features.documents.engine.ingest.batch_reader import BatchReader
from gateway.features.documents.engine.ingest.batches import BatchItem, BatchResult
from gateway.features.documents.engine.ingest.collection_store import track_indexing
from gateway.features.documents.engine.ingest.connectors.workspace import open_workspace
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor
from gateway.features.documents.engine.ingest.file_locations import describe_folder, describe_objects, is_visible
from gateway.features.documents.engine.ingest.index_writer import IndexWriter, open_writer
from gateway.features.documents.engine.ingest.ingest_report import IngestReport, Progress, SkippedDocument
from gateway.features.documents.engine.ingest.ingestion import IngestPlan
from gateway.features.documents.engine.ingest.jobs import Job, JobStore, WalkResult
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.ingest.uploads import Uploads
from gateway.features.documents.engine.ingest.walk import ChangedDocument, SourceWalk, close_walk
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import ConnectorInput, CoverageSummary

log = logging.getLogger(__name__)

BATCH_DOCUMENTS = 64
"""Most documents of a batch. Larger ones are lost as a whole with their process."""
BATCH_BYTES = 4_000_000
"""A batch of so many bytes is complete: a few seconds of work for Office files and PDFs."""
BATCH_SECONDS = 2.0
"""A batch waits no longer for further documents, so that those of a slow site are found soon."""
OPEN_BATCHES = 64
"""Batches of one job that wait or are read; the walk waits then, so that fetched files do not fill the store."""
BATCHES_AT_ONCE = 2
"""Batches that one process reads at once: one is parsed while the other is written."""
POLL_SECONDS = 0.2
"""How often a process looks for further batches of a job it takes part in."""
LINGER_SECONDS = 10.0
"""How long a process that helps waits for further batches before it ends its parsers."""


@dataclass(frozen=True, slots=True)
class JobIngestion:
    """The ingestion of one job in one process. Local files are read beneath `roots` only."""

    library: Library
    store: JobStore
    job: Job
    worker: str
    roots: Sequence[Path]

    @property
    def request(self) -> ConnectorInput:
        """The source of the job."""
        assert self.job.request.source is not None
        return self.job.request.source

    async def run(self, progress: Progress) -> IngestReport:
        """Does the job as the process that has it. Raises what `Library.ingest` raises, after the batches that were
        found are read; `BatchesFailedError` if some were given up, `BusyError` if another process has the job by now.
        """
        started = monotonic()
        plan, job, resources = await self._make_plan(), self.job, self.library.resources
        report = IngestReport(job.collection, template=plan.row.pipeline.template)
        async with (
            open_writer(resources, job.owner, job.collection, holder=job.id, worker=self.worker) as writer,
            self._open_reader(plan) as reader,
            track_indexing(resources.collections, job.owner, plan.row, lambda: report.embedder) as mark_started,
        ):
            walk = await self._read_all(plan, reader, writer, mark_started, progress)
            await self._add_results(report, walk)
            for source in walk.vanished:
                stored_document = await resources.documents.get_by_source(job.owner, job.collection, source)
                if stored_document is not None:
                    await writer.remove_document(stored_document)
            report.removed = len(walk.vanished)
            await writer.undo_claims(f"{job.id}/")
            await writer.remove_stale(await resources.documents.list_with_stale(job.owner, job.collection))
        report.seconds = monotonic() - started
        return report

    async def help(self) -> None:
        """Reads batches of the job until there have been none for a while. Raises `AgentError` if this process
        cannot."""
        async with self._open_reader(await self._make_plan()) as reader, asyncio.TaskGroup() as group:
            for _ in range(BATCHES_AT_ONCE):
                group.create_task(_help_with(reader))

    async def remove_traces(self) -> None:
        """Removes what is needed only until the end of the job is stored."""
        await self.store.batches.remove(self.job.id)
        name = Uploads.get_fetched_name(self.job.owner, self.job.id)
        await asyncio.to_thread(self.library.resources.objects.delete_all, name)
        await self.store.clear_place(self.job.id)

    async def _make_plan(self) -> IngestPlan:
        request = self.job.request
        return await self.library.plan_ingest(
            self.job.owner, self.job.collection, self.request, request.pipeline, self.roots
        )

    @asynccontextmanager
    async def _open_reader(self, plan: IngestPlan) -> AsyncIterator[BatchReader]:
        resources, job = self.library.resources, self.job
        sets = await resources.collections.get_vector_sets(job.owner, job.collection)
        async with (
            DocumentProcessor(plan.row.pipeline, plan.password) as processor,
            open_workspace(resources.workspaces) as folder,
        ):
            yield BatchReader(
                resources, self.store.batches, job, self.worker, self.request.source_type, processor, sets, folder
            )

    async def _read_all(
        self,
        plan: IngestPlan,
        reader: BatchReader,
        writer: IndexWriter,
        mark_started: Callable[[], Awaitable[None]],
        progress: Progress,
    ) -> WalkResult:
        """Walks, unless that is done, and waits until no batch is open."""
        walked = asyncio.Event()
        readers = [asyncio.create_task(self._read_batches(reader, walked)) for _ in range(BATCHES_AT_ONCE)]
        failure: AgentError | None = None
        try:
            walk = await self._find_walk()
            if walk is None:
                try:
                    walk = await self._walk(plan, reader, writer, mark_started, progress, readers)
                except BusyError:
                    raise
                except AgentError as error:
                    failure = error  # raised once what was found before is read
            if walk is not None:
                await mark_started()
                count = walk.processed_count
                progress("", count, count + await self.store.count_batched(self.job.id))
            walked.set()
            await asyncio.gather(*readers)
        finally:
            await cancel_and_wait(*readers)
        if failure is not None:
            raise failure
        assert walk is not None
        return walk

    async def _find_walk(self) -> WalkResult | None:
        """The finished walk of a job that is continued; discards what this process cannot see."""
        job, resources = self.job, self.library.resources
        if job.place and not await asyncio.to_thread(is_visible, job.place, resources.objects, self.roots):
            log.warning("%s: what another machine has fetched is fetched again", job.id)
            await self.store.discard_walk(job, self.worker)
            return None
        return job.walk

    async def _walk(
        self,
        plan: IngestPlan,
        reader: BatchReader,
        writer: IndexWriter,
        mark_started: Callable[[], Awaitable[None]],
        progress: Progress,
        readers: "Sequence[asyncio.Task[None]]",
    ) -> WalkResult:
        """Walks the source and adds batches of what must be read."""
        job, resources = self.job, self.library.resources
        report = IngestReport(job.collection)
        given = await self.store.batches.list_sources(job.id)
        known_documents = await self._list_known(writer, given)

        async def keep(document: Document) -> None:
            await resources.documents.put(job.owner, job.collection, document)

        walk = SourceWalk(
            self.request,
            plan.connector,
            reader.processor,
            reader.workspace,
            report,
            mark_started,
            keep,
            lambda: resources.embedder is not None and not reader.vector_failure,
            progress,
        )
        async with close_walk(changed_document := walk.find_changed(known_documents, given)):
            adder = _BatchAdder(self, readers, reader.workspace)
            async for changed in changed_document:
                await adder.add(changed)
            await adder.flush()
        made = WalkResult(
            unchanged=report.unchanged,
            left_out=report.left_out,
            skipped=tuple((one.source, one.code, one.reason) for one in report.skipped),
            notes=tuple(report.notes),
            vanished=tuple(walk.list_vanished(known_documents)),
        )
        await self.store.set_walk(job, self.worker, made)
        return made

    async def _list_known(self, writer: IndexWriter, given: set[str]) -> Mapping[str, Document]:
        """The collection's documents by source, cleaned up except for those of batches."""
        listed = await self.library.resources.documents.list(self.job.owner, self.job.collection)
        cleaned = await writer.clean_up(listed, spare=f"{self.job.id}/", busy=given)
        return {one.source: one for one in cleaned}

    async def _read_batches(self, reader: BatchReader, walked: asyncio.Event) -> None:
        """Reads batches until the walk has ended and none is open in any process."""
        while True:
            if await reader.read_next():
                continue
            if walked.is_set() and not await self.store.batches.count_open(self.job.id):
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _add_results(self, report: IngestReport, walk: WalkResult) -> None:
        """Adds up what the walk and the batches report. Raises the failure of a batch that was given up."""
        report.unchanged, report.left_out = walk.unchanged, walk.left_out
        report.skipped += [SkippedDocument(*one) for one in walk.skipped]
        report.add_notes(*walk.notes)
        results = await self.store.batches.list_results(self.job.id)
        for one in results:
            report.read += one.read
            report.chunks += one.chunks
            report.embedder = one.embedder or report.embedder
            report.coverage = CoverageSummary.merge(report.coverage, one.coverage)
            report.skipped += [SkippedDocument(item.source, item.code, item.reason) for item in one.skipped]
            report.add_notes(*one.notes)
        _raise_failure(report, results)


class BatchesFailedError(Exception):
    """Raised at the end of a job some of whose batches were given up. `failure` is that of the first."""

    def __init__(self, failure: AgentFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _raise_failure(report: IngestReport, results: Sequence[BatchResult]) -> None:
    failures = [one.failure for one in results if one.failure is not None]
    if failures:
        message = f"{failures[0].message}. {report.interruption_note}"
        raise BatchesFailedError(failures[0].model_copy(update={"message": message}))


async def _help_with(reader: BatchReader) -> None:
    until = monotonic() + LINGER_SECONDS
    while monotonic() < until:
        if await reader.read_next():
            until = monotonic() + LINGER_SECONDS
        else:
            await asyncio.sleep(POLL_SECONDS)


class _BatchAdder:
    """Adds what a walk finds as batches, each of files in one place."""

    def __init__(self, ingestion: JobIngestion, readers: "Sequence[asyncio.Task[None]]", workspace: Path) -> None:
        self._ingestion = ingestion
        self._readers = readers
        self._workspace = workspace
        self._items: list[BatchItem] = []
        self._bytes = 0
        self._since = 0.0
        self._place = ""
        self._places: dict[bool, str] = {}

    async def add(self, changed: ChangedDocument) -> None:
        """Adds a document to the current batch, and the batch to the job once it is complete."""
        path = Path(changed.output.file_path)
        is_fetched = path.is_relative_to(self._workspace)
        if is_fetched not in self._places:
            self._places[is_fetched] = await asyncio.to_thread(self._find_place, is_fetched)
        place = self._places[is_fetched]
        if place != self._place:
            await self.flush()
            await self._set_place(place)
        file = await asyncio.to_thread(self._keep_fetched, path) if is_fetched else str(path)
        document, output = changed.found, changed.output
        self._since = self._since if self._items else monotonic()
        self._bytes += output.file_size_bytes
        self._items.append(
            BatchItem(
                source=document.source,
                name=document.name,
                file_type=changed.file_type,
                file=file,
                is_object=is_fetched,
                size=output.file_size_bytes,
                checksum=output.checksum,
                version=document.version,
                url=document.url,
                source_metadata=output.source_metadata,
            )
        )
        is_old = monotonic() - self._since > BATCH_SECONDS
        if len(self._items) >= BATCH_DOCUMENTS or self._bytes >= BATCH_BYTES or is_old:
            await self.flush()

    async def flush(self) -> None:
        """Adds the current batch to the job; waits while too many are open."""
        if not self._items:
            return
        ingestion = self._ingestion
        await ingestion.store.batches.add(ingestion.job.id, ingestion.worker, self._place, self._items)
        self._items, self._bytes = [], 0
        while await ingestion.store.batches.count_open(ingestion.job.id) >= OPEN_BATCHES:
            if any(task.done() for task in self._readers):
                raise StoreError(
                    "the batches of this job cannot be read; the gateway's log has the details", agent_id="library"
                )
            await asyncio.sleep(POLL_SECONDS)

    async def _set_place(self, place: str) -> None:
        ingestion = self._ingestion
        await ingestion.store.set_place(ingestion.job, ingestion.worker, place)
        self._place = place

    def _find_place(self, is_fetched: bool) -> str:
        try:
            if is_fetched:
                objects = self._ingestion.library.resources.objects
                objects.check()
                return describe_objects(objects)
            return describe_folder(Path(self._ingestion.request.source_identifier).expanduser())
        except OSError as error:
            raise StoreError(f"the folder of the files cannot be read: {error.strerror}", agent_id="library") from error

    def _keep_fetched(self, path: Path) -> str:
        """Puts a fetched file, which the connector may delete or overwrite, into the store of objects."""
        job = self._ingestion.job
        name = f"{Uploads.get_fetched_name(job.owner, job.id)}/{secrets.token_hex(8)}"
        copy = path.with_name(f"kept-{secrets.token_hex(8)}")
        try:
            shutil.copyfile(path, copy)
            self._ingestion.library.resources.objects.put(name, copy)
        except OSError as error:
            raise StoreError(f"a fetched file cannot be stored: {error.strerror}", agent_id="library") from error
        finally:
            copy.unlink(missing_ok=True)
        return name
