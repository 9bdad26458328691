"""`Library`: reads sources into an owner's collections, and removes them; reading them is `CollectionReader`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import BinaryIO
from weakref import WeakValueDictionary

from pydantic import SecretStr

from agent.core.errors import StoreError
from agent.core.models import JsonObject, RetrievalMode
from agent.llm.embedder import Embedder
from agent.storage.audit import NO_AUDIT, AuditEvent, AuditLog
from agent.storage.credentials import Credentials
from agent.storage.vectors import VectorIndex
from gateway.features.documents.engine.ingest.allowed_credentials import check_credentials
from gateway.features.documents.engine.ingest.collection_lock import lock_collection
from gateway.features.documents.engine.ingest.collection_reader import CollectionReader, FoundDocument
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore, track_indexing
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.connectors.selection import check_source_type, select_connector
from gateway.features.documents.engine.ingest.connectors.workspace import open_workspace
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor
from gateway.features.documents.engine.ingest.dry_run import DryRun
from gateway.features.documents.engine.ingest.dry_run_report import ValidationReport
from gateway.features.documents.engine.ingest.index_writer import open_writer
from gateway.features.documents.engine.ingest.ingest_report import IngestReport, Progress, SkippedDocument
from gateway.features.documents.engine.ingest.ingest_resources import IngestResources
from gateway.features.documents.engine.ingest.ingestion import Ingestion, IngestPlan
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import check_pipeline
from gateway.features.documents.engine.ingest.reindex import Reindexing, ReindexReport
from gateway.features.documents.engine.ingest.source_pairings import SourcePairings
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.ingest.uploads import (
    SOURCE_PREFIX,
    AddedUpload,
    StoredUpload,
    Uploads,
    ingest_upload,
)
from gateway.features.documents.engine.ingest.walk import SourceWalk
from gateway.features.documents.engine.search.documents import Document, DocumentStore
from gateway.features.documents.engine.search.lexical import LexicalIndex
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType

LOCK_WAIT_SECONDS = 15.0
"""How long a small change (an upload, a removal) waits for another writer before it fails with a conflict."""

__all__ = ["AddedUpload", "FoundDocument", "IngestReport", "Library", "Progress", "SkippedDocument"]


class Library(CollectionReader):
    """The collections of this store, and what changes them. `folder` holds temporary downloads."""

    def __init__(
        self,
        documents: DocumentStore,
        lexical: LexicalIndex,
        vectors: VectorIndex,
        embedder: Embedder | None,
        *,
        collections: CollectionStore,
        connectors: Mapping[SourceType, Connector],
        folder: Path,
        uploads: Uploads,
        clock: Callable[[], float],
        audit: AuditLog = NO_AUDIT,
        mode: RetrievalMode = "hybrid_rerank",
        credentials: Credentials | None = None,
        pairings: SourcePairings,
    ) -> None:
        super().__init__(documents, lexical, vectors, embedder, collections, uploads, mode)
        self._credentials = credentials or Credentials(folder / "credentials.json")
        self._pairings = pairings
        self._audit = audit
        self._embedder = embedder
        self._connectors = connectors
        self._workspaces = folder / "workspaces"
        self._clock = clock
        self._adding: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def ingest(
        self,
        owner: str,
        collection: str,
        source: ConnectorInput | Path,
        *,
        pipeline: PipelineDAG | None = None,
        roots: Sequence[Path] | None = None,
        password: SecretStr | None = None,
        progress: Progress = lambda _, __, ___: None,
        may_pair: bool = False,
    ) -> IngestReport:
        """Reads a source into a collection; a path means the file or folder there, recursively.

        `pipeline` becomes the collection's; without one it keeps its own, and a new collection gets the default. Local
        files are read beneath `roots` only. `password` opens protected PDFs, else the source's `password_id` does.
        `may_pair`: the operator sends its credential to its address. A document that cannot be read is reported and
        stops nothing. Raises `ConflictError` while another writer holds the collection, `ConnectorError` if the source
        cannot be read, `BadRequestError` for a pipeline that does not fit it, and `StoreError`; documents written
        before stay.
        """
        started = monotonic()
        request = source if isinstance(source, ConnectorInput) else _make_folder_input(source)
        if not may_pair:
            await self._pairings.check(owner, request)
        plan = await self.plan_ingest(owner, collection, request, pipeline, roots, password)
        row, report = plan.row, IngestReport(collection, template=plan.row.pipeline.template)
        async with (
            open_writer(self.resources, owner, collection) as writer,
            DocumentProcessor(row.pipeline, plan.password) as processor,
            open_workspace(self._workspaces) as folder,
            track_indexing(self._collections, owner, row, lambda: report.embedder) as mark_started,
        ):
            indexed = await writer.clean_up(await self._documents.list(owner, collection))

            async def keep(document: Document) -> None:
                await self._documents.put(owner, collection, document)

            walk = SourceWalk(
                request,
                plan.connector,
                processor,
                folder,
                report,
                mark_started,
                keep,
                lambda: writer.makes_vectors,
                progress,
            )
            try:
                await Ingestion(walk, processor, writer, self._clock).run(
                    {document.source: document for document in indexed}
                )
            except StoreError as error:
                error.message += f". {report.interruption_note}"
                raise
        report.seconds = monotonic() - started
        return report

    async def plan_ingest(
        self,
        owner: str,
        collection: str,
        request: ConnectorInput,
        pipeline: PipelineDAG | None,
        roots: Sequence[Path] | None,
        password: SecretStr | None = None,
    ) -> IngestPlan:
        """Decides how a source is read whose credential may go to its address.

        Raises `BadRequestError` for a pipeline that does not fit it, `ConnectorAuthError` for a credential of somebody
        else, and `CredentialError` if the password of the source is not there.
        """
        check_credentials(owner, request)
        row = await self._get_collection_row(owner, collection, pipeline)
        row = replace(row, sources=(*(one for one in row.sources if one != request), request))
        connector = select_connector(request, row.pipeline, self._connectors, roots)
        if password is None and request.password_id is not None:
            password = await asyncio.to_thread(self._credentials.get_password, request.password_id)
        return IngestPlan(row, connector, password)

    @property
    def resources(self) -> IngestResources:
        """The resources of ingestion jobs."""
        return IngestResources(
            self._documents,
            self._lexical,
            self._vectors,
            self._embedder,
            self._collections,
            self.uploads.objects,
            self._workspaces,
            self._clock,
        )

    async def reindex(self, owner: str, collection: str, progress: Progress = lambda _, __, ___: None) -> ReindexReport:
        """Rebuilds a collection's terms with this release's rules and its vectors with the current embedder, from
        stored passages.

        The old ones serve searches until then. Continues where it was interrupted. Raises `NotFoundError`,
        `BadRequestError` if the terms are current and there is no embedder, `EmbedderError`, `ConflictError`,
        `StoreError`.
        """
        row = await self.get_collection(owner, collection)
        async with open_writer(self.resources, owner, collection) as writer:
            documents = await writer.clean_up(await self._documents.list(owner, collection))
            return await Reindexing(row, documents, writer, self._collections).run(progress)

    def check_source_type(self, source_type: SourceType) -> None:
        """Raises `BadRequestError` for a source type without a connector."""
        check_source_type(source_type, self._connectors)

    async def check_ingest(
        self, owner: str, collection: str, source: ConnectorInput, pipeline: PipelineDAG | None = None
    ) -> None:
        """Raises what `ingest` would raise at once for a name, a pipeline, their fit with the source, and its
        credentials.
        """
        await self._pairings.check(owner, source)
        select_connector(
            source, (await self._get_collection_row(owner, collection, pipeline)).pipeline, self._connectors, None
        )

    async def dry_run(
        self,
        request: ConnectorInput,
        pipeline: PipelineDAG,
        *,
        sample_count: int = 50,
        seed: int = 0,
        roots: Sequence[Path] | None = None,
    ) -> ValidationReport:
        """Tries a pipeline on a sample of a source and writes nothing. Raises what `ingest` raises for the two."""
        connector = select_connector(request, check_pipeline(pipeline), self._connectors, roots)
        async with open_workspace(self._workspaces) as folder, DocumentProcessor(pipeline) as processor:
            trial = DryRun(connector, processor, self._embedder, folder, sample_count=sample_count, seed=seed)
            return await trial.run(request)

    async def add_upload(
        self, owner: str, collection: str, name: str | None, data: BinaryIO, *, pipeline: PipelineDAG | None = None
    ) -> AddedUpload:
        """Stores an uploaded file and reads it into a collection; the same bytes twice change nothing.

        Raises the narrowest `ParserError` for a file that cannot be read, which is not kept; `TooLargeError`,
        `ConflictError`, `StoreError`.
        """
        row = await self._get_collection_row(owner, collection, pipeline)
        async with open_workspace(self._workspaces) as folder:
            stored = await asyncio.to_thread(self.uploads.store, owner, data, folder)
            async with self._adding.setdefault((owner, stored.checksum), asyncio.Lock()):
                try:
                    return await self._ingest_upload(owner, row, stored, name, is_changed=pipeline is not None)
                finally:
                    await self._remove_unused_upload(owner, stored.source)

    async def _ingest_upload(
        self, owner: str, row: Collection, stored: StoredUpload, name: str | None, *, is_changed: bool
    ) -> AddedUpload:
        """Reads a stored upload into its collection, whose row is stored if it is new or `is_changed`."""
        async with (
            open_writer(self.resources, owner, row.name, patience_s=LOCK_WAIT_SECONDS) as writer,
            DocumentProcessor(row.pipeline) as processor,
        ):
            await writer.clean_up(await self._documents.list(owner, row.name))
            earlier = await self._documents.get_by_source(owner, row.name, stored.source)
            added = await ingest_upload(writer, processor, stored, name, earlier, at=self._clock())
            if row.created == 0 or is_changed:
                await self._collections.put(owner, row)
        return added

    async def remove_document(
        self, owner: str, document_id: str, collection: str | None = None, *, by: str | None = None
    ) -> None:
        """Removes a document with its passages, vectors and uploaded bytes; `by` is recorded.

        A document that is still at its source returns with the next ingestion. Raises `NotFoundError`, `ConflictError`.
        """
        entry = await self.get_document(owner, document_id, collection)
        detail: JsonObject = {"collection": entry.collection}
        async with (
            self._audit.record_before(AuditEvent("document.delete", document_id, owner=owner, by=by, detail=detail)),
            open_writer(self.resources, owner, entry.collection, patience_s=LOCK_WAIT_SECONDS) as writer,
        ):
            # It may have been read again while the lock was waited for: its passages stand under another id then.
            current = await self._documents.get_by_source(owner, entry.collection, entry.document.source)
            if current is not None:
                await writer.remove_document(current)
        await self._remove_unused_upload(owner, entry.document.source)

    async def drop_collection(self, owner: str, collection: str, *, by: str | None = None) -> int:
        """Removes a collection with its passages and vectors; `by` is recorded. Returns how many documents it had.

        Raises `NotFoundError`.
        """
        documents = await self.list_documents(owner, collection)
        detail: JsonObject = {"documents": len(documents)}
        async with (
            self._audit.record_before(AuditEvent("collection.delete", collection, owner=owner, by=by, detail=detail)),
            lock_collection(self._documents, owner, collection),
        ):
            await self._lexical.drop(collection, owner=owner)
            for name in filter(None, await self._collections.get_vector_sets(owner, collection)):
                await self._vectors.drop(name)
            documents = await self._documents.list(owner, collection)  # some may have come before the lock was held
            for document in documents:
                await self._documents.remove(owner, collection, document.source)
            await self._collections.remove(owner, collection)
        for document in documents:
            await self._remove_unused_upload(owner, document.source)
        return len(documents)

    async def _get_collection_row(self, owner: str, name: str, pipeline: PipelineDAG | None) -> Collection:
        """The collection as it is or will be, with the requested pipeline."""
        stored = await self._collections.get_or_plan(owner, name, from_template())
        return replace(stored, pipeline=check_pipeline(pipeline or stored.pipeline))

    async def _remove_unused_upload(self, owner: str, source: str) -> None:
        """Deletes uploaded bytes that no collection uses."""
        checksum = source.removeprefix(SOURCE_PREFIX)
        if checksum != source and not await self._documents.count_collections_with(owner, source, checksum):
            await asyncio.to_thread(self.uploads.remove, owner, checksum)


def _make_folder_input(path: Path) -> ConnectorInput:
    return ConnectorInput(source_type="local", source_identifier=str(path), recursive=True)
