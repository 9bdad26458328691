"""`Library`: an owner's collections. Sources are read into them, and passages found in them with their evidence."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import BinaryIO
from weakref import WeakValueDictionary

from pydantic import SecretStr

from agent.core.audit import UNRECORDED, Act, AuditLog
from agent.core.credentials import Credentials
from agent.core.embedder import Embedder
from agent.core.errors import NotFoundError, StoreError
from agent.core.models import JsonObject, RetrievalMode
from agent.core.vectors import VectorIndex
from agent.knowledge.collection_store import Collection, CollectionStore, recorded
from agent.knowledge.connectors.choice import connector_for
from agent.knowledge.connectors.port import Connector
from agent.knowledge.connectors.workspace import workspace
from agent.knowledge.documents import Document, DocumentStore
from agent.knowledge.dry_run import DryRun
from agent.knowledge.dry_run_report import ValidationReport
from agent.knowledge.hold import held
from agent.knowledge.ingestion import Ingestion, IngestReport, Progress, Skipped
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.models import ConnectorInput, MemoryOutput, MemoryQuery, SourceType
from agent.knowledge.naming import refuse_unusable
from agent.knowledge.originals import open_original
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import checked
from agent.knowledge.reindex import Reindexing, ReindexReport
from agent.knowledge.retriever import Retriever
from agent.knowledge.shelf import Shelf
from agent.knowledge.templates import from_template
from agent.knowledge.uploads import SOURCE, Added, Uploads, read_upload
from agent.knowledge.workshop import Workshop

PATIENCE_SECONDS = 15.0
"""How long a small change (an upload, a removal) waits for another writer; a long one is told as a conflict."""

__all__ = ["Added", "Found", "IngestReport", "Library", "Progress", "Skipped"]


@dataclass(frozen=True, slots=True)
class Found:
    """A document, and the collection it is in."""

    collection: str
    document: Document


class Library:
    """The collections of this store. `folder` holds uploads, and what is downloaded while it is read."""

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
        max_upload_bytes: int,
        clock: Callable[[], float],
        audit: AuditLog = UNRECORDED,
        mode: RetrievalMode = "hybrid_rerank",
        credentials: Credentials | None = None,
    ) -> None:
        self._credentials = credentials or Credentials(folder / "credentials.json")
        self._audit = audit
        self._mode = mode
        self._documents = documents
        self._lexical = lexical
        self._vectors = vectors
        self._embedder = embedder
        self._collections = collections
        self._connectors = connectors
        self._workspaces = folder / "workspaces"
        self._clock = clock
        self._retriever = Retriever(lexical, vectors, embedder, collections)
        self.uploads = Uploads(folder / "uploads", max_upload_bytes)
        self._adding: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def collections(self, owner: str) -> dict[str, int]:
        """The owner's collections, and how many documents each has."""
        counts = await self._documents.collections(owner)
        names = sorted({*counts, *await self._collections.list(owner)})
        return {name: counts.get(name, 0) for name in names}

    async def collection(self, owner: str, name: str) -> Collection:
        """A collection with its pipeline: the default one where none was kept. `NotFoundError`."""
        stored = await self._collections.get(owner, name)
        if stored is None and name not in await self._documents.collections(owner):
            raise await self._unknown(owner, name)
        return stored or Collection(name, from_template())

    async def documents(self, owner: str, collection: str) -> Sequence[Document]:
        """The documents of a collection. `NotFoundError` for one that is not there."""
        found = await self._documents.list(owner, collection)
        if not found and await self._collections.get(owner, collection) is None:
            raise await self._unknown(owner, collection)
        return found

    async def document(self, owner: str, document_id: str, collection: str | None = None) -> Found:
        """A document by its id. `NotFoundError`."""
        for name, document in (await self._documents.by_id(owner, document_id)).items():
            if collection in (None, name):
                return Found(name, document)
        raise NotFoundError(
            f"there is no document {document_id!r}; it may have been read anew since", agent_id="library"
        )

    async def passages(self, owner: str, found: Found) -> list[Passage]:
        """The passages of a document, in the order of its text."""
        chunk_ids = found.document.chunk_ids
        indexed = await self._lexical.passages(found.collection, chunk_ids, owner=owner)
        return [indexed[chunk_id].passage for chunk_id in chunk_ids if chunk_id in indexed]

    def open_file(self, owner: str, found: Found) -> BinaryIO:
        """The bytes a document was read from; blocks. See `open_original` for what it raises."""
        return open_original(found.document, self.uploads, owner)

    async def search(
        self, owner: str, collection: str, query: MemoryQuery, *, mode: RetrievalMode | None = None
    ) -> MemoryOutput:
        """Passages of a collection. `NotFoundError`, `MemoryNoResultsError`, `BadRequestError`, `StoreError`."""
        if collection not in await self.collections(owner):
            raise await self._unknown(owner, collection)
        return await self._retriever.search(query, collection=collection, owner=owner, mode=mode or self._mode)

    def preferring(self, mode: RetrievalMode | None) -> "Library":
        """The same library with another way to search, where a search names none."""
        other = copy.copy(self)
        other._mode = mode or self._mode
        return other

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
    ) -> IngestReport:
        """Read a source into a collection; a path stands for the folder or file there, with all that is below it.

        `pipeline` becomes the collection's; without one it keeps its own, and a new one gets the default. `roots` are
        the only folders local files are read from. `password` opens protected PDFs, else the credential that the source
        names for that. A document that cannot be read stops nothing; the report has it.
        `ConflictError` while somebody else reads into this collection, `ConnectorError` for a source that cannot be
        had, `BadRequestError` for a pipeline that is not for it, `StoreError`: what was done by then stays done."""
        started = monotonic()
        request = source if isinstance(source, ConnectorInput) else _folder(source)
        row = await self._row(owner, collection, pipeline)
        row = replace(row, sources=(*(one for one in row.sources if one != request), request))
        connector = connector_for(request, row.pipeline, self._connectors, roots)
        if password is None and request.password_id is not None:
            password = await asyncio.to_thread(self._credentials.password, request.password_id)
        report = IngestReport(collection, template=row.pipeline.template)
        async with (
            self._writing(owner, collection) as shelf,
            Workshop(row.pipeline, password) as workshop,
            workspace(self._workspaces) as folder,
            recorded(self._collections, owner, row, lambda: report.embedder) as begun,
        ):
            known = await shelf.tidy(await self._documents.list(owner, collection))
            walk = Ingestion(request, connector, workshop, shelf, folder, self._clock, report, begun, progress)
            try:
                await walk.run({document.source: document for document in known})
                await shelf.hold.written()
            except StoreError as error:
                error.message += f". {report.so_far}"
                raise
        report.seconds = monotonic() - started
        return report

    async def reindex(self, owner: str, collection: str, progress: Progress = lambda _, __, ___: None) -> ReindexReport:
        """Make the terms of a collection as this release does, and its vectors by the embedder that is set now, from
        its stored passages; those there are serve until then. Interrupted, it goes on from there when called again.

        `NotFoundError`, `BadRequestError` where the terms are right and there is no embedder, `EmbedderError`,
        `ConflictError`, `StoreError`."""
        row = await self.collection(owner, collection)
        async with self._writing(owner, collection) as shelf:
            documents = await shelf.tidy(await self._documents.list(owner, collection))
            return await Reindexing(row, documents, shelf, self._collections).run(progress)

    async def check(
        self, owner: str, collection: str, source: ConnectorInput, pipeline: PipelineDAG | None = None
    ) -> None:
        """Raise what `ingest` would say at once: of a name, a pipeline, and whether the two fit the source."""
        connector_for(source, (await self._row(owner, collection, pipeline)).pipeline, self._connectors, None)

    async def dry_run(
        self,
        request: ConnectorInput,
        pipeline: PipelineDAG,
        *,
        sample_count: int = 50,
        seed: int = 0,
        roots: Sequence[Path] | None = None,
    ) -> ValidationReport:
        """Try a pipeline on a sample of a source, and write nothing. Raises what `ingest` does for the two."""
        connector = connector_for(request, checked(pipeline), self._connectors, roots)
        async with workspace(self._workspaces) as folder, Workshop(pipeline) as workshop:
            trial = DryRun(connector, workshop, self._embedder, folder, sample_count=sample_count, seed=seed)
            return await trial.run(request)

    async def add(
        self, owner: str, collection: str, name: str | None, data: BinaryIO, *, pipeline: PipelineDAG | None = None
    ) -> Added:
        """Keep an uploaded file and read it into a collection; the same bytes twice change nothing.

        Raises the narrowest `ParserError` for a file that cannot be read, and keeps nothing of it; `TooLargeError`,
        `ConflictError`, `StoreError`."""
        row = await self._row(owner, collection, pipeline)
        stored = await asyncio.to_thread(self.uploads.take, owner, data)
        async with self._adding.setdefault((owner, stored.checksum), asyncio.Lock()):
            try:
                async with (
                    self._writing(owner, collection, patience_s=PATIENCE_SECONDS) as shelf,
                    Workshop(row.pipeline) as workshop,
                ):
                    await shelf.tidy(await self._documents.list(owner, collection))
                    known = await self._documents.by_source(owner, collection, stored.source)
                    added = await read_upload(shelf, workshop, stored, name, known, at=self._clock())
                    await shelf.hold.written()
                    if row.created == 0 or pipeline is not None:
                        await self._collections.put(owner, row)
            finally:
                await self._forget_unused(owner, stored.source)
        return added

    async def remove(
        self, owner: str, document_id: str, collection: str | None = None, *, by: str | None = None
    ) -> None:
        """Remove a document with its passages, vectors and uploaded bytes; `by` whom is recorded. `NotFoundError`,
        `ConflictError`.

        One that is still at its source comes back with the next reading."""
        found = await self.document(owner, document_id, collection)
        detail: JsonObject = {"collection": found.collection}
        async with (
            self._audit.recorded(Act("document.delete", document_id, owner=owner, by=by, detail=detail)),
            self._writing(owner, found.collection, patience_s=PATIENCE_SECONDS) as shelf,
        ):
            await shelf.remove(found.document)
        await self._forget_unused(owner, found.document.source)

    async def drop(self, owner: str, collection: str, *, by: str | None = None) -> int:
        """Remove a collection with its passages and vectors, `by` whom is recorded; how many documents it had.
        `NotFoundError`."""
        documents = await self.documents(owner, collection)
        detail: JsonObject = {"documents": len(documents)}
        async with (
            self._audit.recorded(Act("collection.delete", collection, owner=owner, by=by, detail=detail)),
            held(self._documents, owner, collection),
        ):
            await self._lexical.drop(collection, owner=owner)
            for name in filter(None, await self._collections.vectors(owner, collection)):
                await self._vectors.drop(name)
            for document in documents:
                await self._documents.remove(owner, collection, document.source)
            await self._collections.remove(owner, collection)
        for document in documents:
            await self._forget_unused(owner, document.source)
        return len(documents)

    async def _row(self, owner: str, name: str, pipeline: PipelineDAG | None) -> Collection:
        """The collection as it is, or as it will be, with the pipeline that is asked for."""
        stored = await self._collections.get(owner, name)
        if stored is None:
            refuse_unusable(name)
            stored = Collection(name, from_template())
        return replace(stored, pipeline=checked(pipeline or stored.pipeline))

    @asynccontextmanager
    async def _writing(self, owner: str, collection: str, *, patience_s: float = 0) -> AsyncIterator[Shelf]:
        """The right to write into a collection. `ConflictError` while somebody else has it."""
        async with held(self._documents, owner, collection, patience_s=patience_s) as hold:
            sets = await self._collections.vectors(owner, collection)
            yield Shelf(self._documents, self._lexical, self._vectors, self._embedder, hold, sets)

    async def _forget_unused(self, owner: str, source: str) -> None:
        """Remove uploaded bytes that no collection holds any more."""
        checksum = source.removeprefix(SOURCE)
        if checksum != source and not await self._documents.holding(owner, source, checksum):
            await asyncio.to_thread(self.uploads.remove, owner, checksum)

    async def _unknown(self, owner: str, collection: str) -> NotFoundError:
        there = ", ".join(await self.collections(owner)) or "none yet: `stepgate ingest FOLDER` makes one"
        return NotFoundError(f"there is no collection {collection!r}; there are {there}", agent_id="library")


def _folder(path: Path) -> ConnectorInput:
    return ConnectorInput(source_type="local", source_identifier=str(path), recursive=True)
