"""`BatchReader`: reads the batches of one job in this process: fetches, parses, embeds and places their documents.

Every process that takes part in a job has one. It keeps the parser processes from batch to batch.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.core.cancellation import cancel_and_wait
from agent.core.concurrent_calls import gather_all
from agent.core.errors import AgentError, CollectionLockedError, NotFoundError, StoreError
from agent.storage.leases import LeaseLostError, hold_lease, keep_renewed
from agent.storage.sql import UnchangedError
from gateway.features.documents.engine.ingest.batches import Batch, BatchItem, BatchResult, BatchStore, SkippedItem
from gateway.features.documents.engine.ingest.collection_lock import CollectionLock
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor, ProcessedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError
from gateway.features.documents.engine.ingest.index_writer import IndexWriter, PreparedDocument, make_writer
from gateway.features.documents.engine.ingest.ingest_resources import IngestResources
from gateway.features.documents.engine.ingest.jobs import Job
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import CoverageSummary, SourceType
from gateway.features.documents.engine.search.naming import VectorSets

log = logging.getLogger(__name__)

BATCH_LEASE_SECONDS = 30.0
"""How long a dead process keeps its batch."""
ATTEMPTS = 3
"""A batch whose documents could not be stored, or ended their process, so often is given up."""
RETRY_SECONDS = 2.0
"""Wait before a batch that could not be stored is tried again; doubled for each attempt."""
LOCKED_SECONDS = 5.0
"""Wait before a batch whose collection another writer has is tried again."""
READS_AT_ONCE = 4
"""Documents fetched or parsed at once: the parser processes of a pipeline, and as many waiting."""


@dataclass(slots=True)
class BatchReader:
    """Reads batches of `job` as `worker`. `sets` are the vectors of its collection; files are fetched into
    `workspace`."""

    resources: IngestResources
    batches: BatchStore
    job: Job
    worker: str
    source_type: SourceType
    processor: DocumentProcessor
    sets: VectorSets
    workspace: Path
    vector_failure: str = ""
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READS_AT_ONCE))

    async def read_next(self) -> bool:
        """Claims a batch and reads it. Returns False if none is free. Raises `StoreError` if none can be claimed."""
        batch = await self.batches.claim(self.job.id, self.worker, BATCH_LEASE_SECONDS)
        if batch is None:
            return False
        try:
            await hold_lease(self._read(batch), self._renew(batch))
        except (LeaseLostError, UnchangedError):
            log.warning("batch %s goes on in another process", batch.name)
        except CollectionLockedError as error:
            log.info("batch %s waits: %s", batch.name, error.message)
            await self.batches.requeue(batch, LOCKED_SECONDS, counts=False)
        except asyncio.CancelledError:
            await asyncio.shield(self.batches.requeue(batch, 0, counts=False))
            raise
        except AgentError as error:
            await self._on_failure(batch, error)
        except Exception:  # the border of a task: a defect ends this job, and no other
            log.exception("batch %s ended with an internal error", batch.name)
            failure = AgentError("an internal error ended this job; the gateway's log has the details").to_failure()
            await self.batches.fail(batch, failure)
        return True

    async def _on_failure(self, batch: Batch, error: AgentError) -> None:
        if isinstance(error, StoreError) and batch.attempts < ATTEMPTS:
            log.warning("batch %s is tried again: %s", batch.name, error.message)
            await self.batches.requeue(batch, RETRY_SECONDS * 2 ** (batch.attempts - 1), counts=True)
        else:
            await self.batches.fail(batch, error.to_failure())

    async def _renew(self, batch: Batch) -> None:
        async def renew() -> bool:
            return await self.batches.renew_lease(batch, BATCH_LEASE_SECONDS)

        await keep_renewed(renew, name=f"batch {batch.name}", every_s=BATCH_LEASE_SECONDS / 3)

    async def _read(self, batch: Batch) -> None:
        """Reads a claimed batch to its end. Raises `UnchangedError` if its claim was lost meanwhile."""
        if batch.attempts > ATTEMPTS:
            names = ", ".join(item.name for item in batch.items[:3])
            raise AgentError(
                f"the gateway stopped {ATTEMPTS} times while it read {len(batch.items)} documents ({names} ...); its "
                "log may say why. Request the ingestion again without them",
                agent_id="library",
            )
        async with self._open_writer(batch) as writer:
            if batch.attempts > 1:
                await writer.undo_claims(f"{batch.name}/", but=batch.claim)
            prepared, result = await self._prepare(batch, writer)
            chunks = sum(len(one.chunks) for one in prepared)
            placed = await writer.embed_documents(prepared)
            result = result.model_copy(
                update={
                    "read": len(prepared),
                    "chunks": chunks,
                    "coverage": CoverageSummary.of(one.document.coverage for one in prepared),
                    "embedder": next((one.embedder for one in placed.documents if one.embedder), ""),
                    "notes": tuple(dict.fromkeys(filter(None, (*result.notes, writer.vector_failure)))),
                }
            )
            self.vector_failure = writer.vector_failure
            await writer.write_documents(placed, *self.batches.make_completion(batch, result))
        await self._remove_objects(batch)

    @asynccontextmanager
    async def _open_writer(self, batch: Batch) -> AsyncIterator[IndexWriter]:
        """Yields a writer with the job's lock of the collection, which lasts as long as any process renews it."""
        resources = self.resources
        lock = CollectionLock(
            resources.documents, self.job.owner, self.job.collection, holder=self.job.id, claim=batch.claim
        )
        await lock.acquire()
        renewal = asyncio.create_task(lock.keep_renewing(), name=f"hold {batch.name}")
        try:
            yield make_writer(resources, lock, self.sets, self.vector_failure)
        finally:
            await cancel_and_wait(renewal)

    async def _prepare(self, batch: Batch, writer: IndexWriter) -> tuple[list[PreparedDocument], BatchResult]:
        """Parses the documents of a batch, a few at a time, in order. One that cannot be read is skipped."""
        stored_by_source = await self.resources.documents.get_by_sources(
            self.job.owner, self.job.collection, [item.source for item in batch.items]
        )
        parsed = await gather_all(self._parse(batch, index) for index in range(len(batch.items)))
        prepared: list[PreparedDocument] = []
        skipped: list[SkippedItem] = []
        notes: list[str] = []
        for item, made in zip(batch.items, parsed, strict=True):
            if isinstance(made, SkippedItem):
                skipped.append(made)
                continue
            document, is_same = self._make_document(item, made)
            if not is_same:
                notes.append(f"{item.name}: it changed while it was read")
            notes += [f"{item.name}: {uncertainty}" for uncertainty in made.parsed.uncertainties]
            route = self.processor.find_route(item.file_type)
            wants_vectors = route is not None and route.wants_vectors
            prepared.append(PreparedDocument(document, made.chunks, stored_by_source.get(item.source), wants_vectors))
        return prepared, BatchResult(skipped=tuple(skipped), notes=tuple(notes), attempts=batch.attempts)

    def _make_document(self, item: BatchItem, made: ProcessedDocument) -> tuple[Document, bool]:
        """The document, and whether its bytes are those that the walk saw; else it has no version, so that
        the next walk looks again."""
        document = made.to_document(
            collection=self.job.collection,
            source=item.source,
            name=item.name,
            file_type=item.file_type,
            source_type=self.source_type,
            size=item.size,
            url=item.url,
            at=self.resources.clock(),
            source_metadata=item.source_metadata,
        )
        is_same = document.checksum == item.checksum
        return replace(document, version=item.version if is_same else ""), is_same

    async def _parse(self, batch: Batch, index: int) -> ProcessedDocument | SkippedItem:
        item = batch.items[index]
        path = Path(item.file)
        async with self._slots:
            try:
                if item.is_object:
                    path = self.workspace / f"{batch.number}-{batch.attempts}-{index}{path.suffix}"
                    await asyncio.to_thread(self._fetch, item, path)
                else:
                    await asyncio.to_thread(_check_in_place, path, item.name)
                return await self.processor.process(str(path), item.file_type, self.source_type)
            except StoreError:
                raise
            except AgentError as error:
                return SkippedItem(
                    source=item.name, code=error.code, reason=error.message.replace(path.name, item.name)
                )
            finally:
                if item.is_object:
                    await asyncio.to_thread(path.unlink, missing_ok=True)

    def _fetch(self, item: BatchItem, path: Path) -> None:
        try:
            self.resources.objects.fetch(item.file, path)
        except NotFoundError as error:
            raise ConnectorError(f"what was fetched of {item.name} no longer exists; ingest it again") from error

    async def _remove_objects(self, batch: Batch) -> None:
        for item in batch.items:
            if item.is_object:
                try:
                    await asyncio.to_thread(self.resources.objects.delete, item.file)
                except StoreError as error:  # they are removed at the end of the job
                    log.warning("a fetched file of batch %s is left: %s", batch.name, error.message)
                    return


def _check_in_place(path: Path, name: str) -> None:
    """Raises `ConnectorError` unless the file of a walk is still a file there, and no link leads to it."""
    try:
        if path.resolve(strict=True) != path or not path.is_file():
            raise ConnectorError(f"{name}: it was replaced by a link or a folder since it was listed")
    except FileNotFoundError as error:
        raise ConnectorNotFoundError(f"{name} was removed while the folder was read") from error
    except PermissionError as error:
        raise ConnectorAuthError(f"{name} may not be read by this process: {error.strerror}") from error
    except OSError as error:
        raise ConnectorError(f"{name} cannot be read: {error.strerror}") from error
