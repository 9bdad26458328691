"""`Ingestion`: reads a source into a collection, incrementally, with a report.

Changed documents are replaced, vanished ones removed. A document that cannot be read stops nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import SecretStr

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError, StoreError
from gateway.features.documents.engine.ingest.collection_store import Collection
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor, ProcessedDocument
from gateway.features.documents.engine.ingest.index_writer import IndexWriter, PreparedDocument
from gateway.features.documents.engine.ingest.ingest_report import IngestReport
from gateway.features.documents.engine.ingest.walk import ChangedDocument, SourceWalk, close_walk
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import CoverageSummary

READ_AHEAD = 3
"""Files read ahead of the one that is written: enough to keep the parser processes busy."""


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """How a source is read into a collection: its row with the pipeline, the connector, the password of PDFs."""

    row: Collection
    connector: Connector
    password: SecretStr | None


@dataclass(frozen=True, slots=True)
class _PendingRead:
    """A document that is being processed."""

    changed: ChangedDocument
    task: "asyncio.Task[ProcessedDocument]"


@dataclass(slots=True)
class Ingestion:
    """Reads what a walk finds, each document before the next ones."""

    walk: SourceWalk
    processor: DocumentProcessor
    writer: IndexWriter
    clock: Callable[[], float]
    _pending: "deque[_PendingRead]" = field(default_factory=deque)

    @property
    def report(self) -> IngestReport:
        """The documents read so far."""
        return self.walk.report

    async def run(self, known: Mapping[str, Document]) -> None:
        """Walks to the end. Raises `ConnectorError` if the source cannot be read, and `StoreError`; finished documents
        stay."""
        try:
            async with close_walk(changed_document := self.walk.find_changed(known)):
                async for changed in changed_document:
                    await self._ingest(changed)
            await self._write_finished(0)
        finally:
            await self._cancel_pending()
        self.walk.progress("", self.report.processed_count, self.report.processed_count)
        for source in self.walk.list_vanished(known):
            await self.writer.remove_document(known[source])
            self.report.removed += 1

    async def _ingest(self, changed: ChangedDocument) -> None:
        path, source_type = changed.output.file_path, self.walk.request.source_type
        reading = asyncio.create_task(self.processor.process(path, changed.file_type, source_type))
        self._pending.append(_PendingRead(changed, reading))
        # What was downloaded may be gone with the next step of the walk; a file that lies where it lay is not.
        await self._write_finished(0 if Path(path).is_relative_to(self.walk.workspace) else READ_AHEAD)

    async def _write_finished(self, ahead: int) -> None:
        """Writes processed documents in walk order until at most `ahead` are still being processed."""
        while len(self._pending) > ahead:
            one = self._pending[0]
            try:
                made = await one.task
            except StoreError:
                raise
            except AgentError as error:
                self.walk.skip(one.changed.found.name, error, called=Path(one.changed.output.file_path).name)
            else:
                await self._write(one.changed, made)
            self._pending.popleft()

    async def _cancel_pending(self) -> None:
        """Cancels the processing of documents after a walk that failed."""
        tasks = [one.task for one in self._pending]
        await cancel_and_wait(*tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # seen; the first one is raised already

    async def _write(self, changed: ChangedDocument, made: ProcessedDocument) -> None:
        source_document, output, file_type = changed.found, changed.output, changed.file_type
        document = made.to_document(
            collection=self.report.collection,
            source=source_document.source,
            name=source_document.name,
            file_type=file_type,
            source_type=self.walk.request.source_type,
            size=output.file_size_bytes,
            url=source_document.url,
            at=self.clock(),
            source_metadata=output.source_metadata,
        )
        if document.checksum == output.checksum:
            document = replace(document, version=source_document.version)
        else:  # the bytes that were read count; without a version the next walk looks again
            self.report.notes.append(f"{source_document.name}: it changed while it was read")
        route = self.processor.find_route(file_type)
        wants_vectors = route is not None and route.wants_vectors
        prepared = PreparedDocument(document, made.chunks, changed.known, wants_vectors)
        (placed,) = await self.writer.write_documents(await self.writer.embed_documents([prepared]))
        self.report.read += 1
        self.report.chunks += len(made.chunks)
        self.report.coverage = CoverageSummary.merge(self.report.coverage, CoverageSummary.of([document.coverage]))
        self.report.embedder = placed.embedder or self.report.embedder
        self.report.add_notes(
            *(f"{source_document.name}: {uncertainty}" for uncertainty in made.parsed.uncertainties),
            self.writer.vector_failure,
        )
