"""`IndexWriter`: writes a document's passages to all indexes, or to none.

New passages are written before old ones are deleted. Writes are noted first; a failed write is rolled back, and after a
crash the next writer rolls it back.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from agent.core.errors import EmbedderError, StoreError, VectorSpaceError
from agent.core.models import JsonObject
from agent.llm.embedder import Embedded, Embedder
from agent.storage.sql import SqlStatement
from agent.storage.vectors import VectorIndex
from gateway.features.documents.engine.ingest.collection_lock import CollectionLock, lock_collection
from gateway.features.documents.engine.ingest.ingest_resources import IngestResources
from gateway.features.documents.engine.search.documents import Document, DocumentStore, PassageRange, make_document_id
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.models import Chunk
from gateway.features.documents.engine.search.naming import VectorSets
from gateway.features.documents.engine.search.vector_search import build_entries, embed_passages

log = logging.getLogger(__name__)


EMBED_PASSAGES = 256
"""Passages embedded by one request to the embedder."""
PUT_VECTORS = 512
"""Vectors stored at a time."""


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A parsed document, and the one it replaces."""

    document: Document
    chunks: Sequence[Chunk]
    known: Document | None
    wants_vectors: bool


@dataclass(frozen=True, slots=True)
class EmbeddedDocuments:
    """Documents as they will be placed, with their passages and vectors. `noted` are passages under new ids."""

    documents: Sequence[Document]
    passages: Sequence[Passage]
    embedded: Sequence[Passage]
    vectors: Embedded | None
    noted: Sequence[PassageRange]


@dataclass(slots=True)
class IndexWriter:
    """Writes documents into one owner's collection."""

    documents: DocumentStore
    lexical: LexicalIndex
    vectors: VectorIndex
    embedder: Embedder | None
    lock: CollectionLock
    sets: VectorSets
    vector_failure: str = ""
    """Why no more vectors are made. A failed embedder is not called again for the rest of the ingestion."""

    @property
    def makes_vectors(self) -> bool:
        """Whether there is a working embedder."""
        return self.embedder is not None and not self.vector_failure

    async def clean_up(
        self, known: Sequence[Document], *, spare: str = "", busy: Collection[str] = ()
    ) -> list[Document]:
        """Deletes what an interrupted ingestion left behind; returns the updated documents. Claims that begin with
        `spare`, and documents of the sources `busy`, are left: their writers may be at work."""
        pending = await self.documents.get_pending(self.lock.owner, self.lock.collection)
        left = [one.passages for one in pending if not (spare and one.claim.startswith(spare))]
        current = {document.document_id for document in known}
        await self._undo([one for one in left if one.document_id not in current], [one.document_id for one in left])
        return [one if one.source in busy else await self._delete_stale(one) for one in known]

    async def undo_claims(self, prefix: str, *, but: str = "") -> None:
        """Deletes what the claims that begin with `prefix` left half written, except the claim `but`."""
        pending = await self.documents.get_pending(self.lock.owner, self.lock.collection)
        left = [one.passages for one in pending if one.claim.startswith(prefix) and one.claim != but]
        current = await self._find_current(left)
        await self._undo([one for one in left if one.document_id not in current], [one.document_id for one in left])

    async def embed_documents(self, prepared: Sequence[PreparedDocument]) -> EmbeddedDocuments:
        """Makes the passages and vectors of documents. Writes nothing."""
        documents, passages, embedded, replaced = [], [], [], []
        for one in prepared:
            document = _with_distinct_id(one.document, len(one.chunks), one.known)
            own = [_make_passage(document, chunk) for chunk in one.chunks]
            passages += own
            if one.wants_vectors and own:
                embedded += own
                replaced += [] if one.known is None else _list_reading_ids(one.known)
            documents.append(replace(document, chunk_ids=tuple(passage.chunk_id for passage in own)))
        made = await self.embed(embedded, replaced) if embedded else None
        space = {passage.document_id: str(made.space) for passage in embedded} if made is not None else {}
        placed = [
            replace(
                document,
                stale=list_replaced_readings(document.document_id, one.known),
                embedder=space.get(document.document_id, ""),
            )
            for document, one in zip(documents, prepared, strict=True)
        ]
        noted = list_new_passages((document, one.known) for document, one in zip(placed, prepared, strict=True))
        return EmbeddedDocuments(placed, passages, embedded, made, noted)

    async def write_documents(self, made: EmbeddedDocuments, *changes: SqlStatement) -> list[Document]:
        """Replaces the known documents of these sources, all of them or none; `changes` are made in the transaction
        that places them. Raises `StoreError` after rolling back, and `UnchangedError` if a change fails.

        If the roll-back fails too, the next ingestion completes it.
        """
        await self.lock.note_pending(made.noted)
        try:
            await self._write(made, changes)
        except BaseException:
            await asyncio.shield(self._roll_back(made.noted))
            raise
        return await self.remove_stale(made.documents)

    async def remove_document(self, document: Document) -> None:
        """Removes a document with its passages and vectors."""
        await self._delete_passages(PassageRange(document.document_id, len(document.chunk_ids)), *document.stale)
        await self.documents.remove(self.lock.owner, self.lock.collection, document.source)

    async def _write(self, made: EmbeddedDocuments, changes: Sequence[SqlStatement]) -> None:
        owner, collection = self.lock.owner, self.lock.collection
        await self.lexical.put(collection, made.passages, owner=owner)
        if made.vectors is not None:
            entries = build_entries(made.embedded, made.vectors, owner=owner)
            for start in range(0, len(entries), PUT_VECTORS):
                await self.vectors.put(self.sets.serving, entries[start : start + PUT_VECTORS])
        await self.documents.place(owner, collection, made.documents, *changes, claim=self.lock.claim)

    async def _roll_back(self, noted: Sequence[PassageRange]) -> None:
        """Rolls back a failed write. If that fails too, the notes let the next ingestion do it.

        Another process that has taken over the batch writes the same passages: what it has noted or placed stays.
        """
        try:
            pending = await self.documents.get_pending(self.lock.owner, self.lock.collection)
            claims = {one.passages.document_id: one.claim for one in pending}
            current = await self._find_current(noted)
            left = [one for one in noted if claims.get(one.document_id, self.lock.claim) == self.lock.claim]
            await self._undo(
                [one for one in left if one.document_id not in current],
                [one.document_id for one in left if one.document_id in claims],
            )
        except StoreError as error:
            log.warning(
                "half written passages in %s are left for the next ingestion: %s", self.lock.collection, error.message
            )

    async def _find_current(self, passages: Sequence[PassageRange]) -> AbstractSet[str]:
        ids = [one.document_id for one in passages]
        return await self.documents.find_current_ids(self.lock.owner, self.lock.collection, ids)

    async def _undo(self, passages: Sequence[PassageRange], noted: Sequence[str]) -> None:
        """Deletes passages, then the notes of them."""
        if passages:
            await self._delete_passages(*passages)
        if noted:
            await self.documents.clear_pending(self.lock.owner, self.lock.collection, noted)

    async def _delete_passages(self, *readings: PassageRange) -> None:
        owner, collection = self.lock.owner, self.lock.collection
        await self.lexical.delete(collection, [one.document_id for one in readings], owner=owner)
        chunk_ids = [chunk_id for one in readings for chunk_id in one.chunk_ids]
        for name in filter(None, self.sets if chunk_ids else ()):
            await self.vectors.delete(name, chunk_ids, owner=owner)

    async def _delete_stale(self, document: Document) -> Document:
        (clean,) = await self.remove_stale([document])
        return clean

    async def remove_stale(self, documents: Sequence[Document]) -> list[Document]:
        """Deletes the passages that the documents have replaced; returns the documents without them."""
        stale = [one for document in documents for one in document.stale]
        if not stale:
            return list(documents)
        await self._delete_passages(*stale)
        clean = [replace(document, stale=()) for document in documents]
        changed = [new for old, new in zip(documents, clean, strict=True) if old.stale]
        await self.documents.place(self.lock.owner, self.lock.collection, changed)
        return clean

    async def embed(self, passages: Sequence[Passage], replaced: Sequence[str]) -> Embedded | None:
        """Vectors, or None without a working embedder; passages are then found by words only.

        Passages that stand unchanged in the `replaced` documents keep their vectors."""
        if self.embedder is None or self.vector_failure:
            return None
        made: list[Embedded] = []
        try:
            for start in range(0, len(passages), EMBED_PASSAGES):
                part = await embed_passages(
                    passages[start : start + EMBED_PASSAGES],
                    self.embedder,
                    self.vectors,
                    owner=self.lock.owner,
                    collection=self.lock.collection,
                    name=self.sets.serving,
                    documents=replaced,
                )
                made.append(part)
        except (EmbedderError, VectorSpaceError) as error:
            self.vector_failure = f"no vectors: {error.message}"
            return None
        return replace(made[0], vectors=tuple(vector for part in made for vector in part.vectors))


@asynccontextmanager
async def open_writer(
    resources: IngestResources,
    owner: str,
    collection: str,
    *,
    patience_s: float = 0,
    holder: str = "",
    worker: str = "",
) -> AsyncIterator[IndexWriter]:
    """Locks a collection for writing, see `lock_collection`. Raises `CollectionLockedError` while another writer holds
    it.
    """
    async with lock_collection(
        resources.documents, owner, collection, patience_s=patience_s, holder=holder, worker=worker
    ) as lock:
        yield make_writer(resources, lock, await resources.collections.get_vector_sets(owner, collection))


def make_writer(
    resources: IngestResources, lock: CollectionLock, sets: VectorSets, vector_failure: str = ""
) -> IndexWriter:
    """The writer of a collection whose lock is held."""
    stores = (resources.documents, resources.lexical, resources.vectors)
    return IndexWriter(*stores, resources.embedder, lock, sets, vector_failure)


def list_replaced_readings(document_id: str, known: Document | None) -> tuple[PassageRange, ...]:
    """The earlier readings of a document that are deleted once the new one is written."""
    if known is None:
        return ()
    former = (*known.stale, PassageRange(known.document_id, len(known.chunk_ids)))
    return tuple(one for one in former if one.document_id != document_id)


def list_new_passages(documents: Iterable[tuple[Document, Document | None]]) -> list[PassageRange]:
    """The passages under new ids of documents, each given with the one it replaces."""
    return [
        PassageRange(document.document_id, len(document.chunk_ids))
        for document, earlier in documents
        if earlier is None or earlier.document_id != document.document_id
    ]


def _list_reading_ids(known: Document) -> list[str]:
    return [known.document_id, *(one.document_id for one in known.stale)]


def _with_distinct_id(document: Document, count: int, known: Document | None) -> Document:
    """The document under a new id if the same id stands for other passages.

    A newer parser may read the same bytes differently.
    """
    if known is None or known.document_id != document.document_id or len(known.chunk_ids) == count:
        return document
    return replace(document, document_id=make_document_id(document.document_id, str(document.at)))


def _make_passage(document: Document, chunk: Chunk) -> Passage:
    """A chunk as it is searched and cited, with its place in the document."""
    metadata: JsonObject = {
        "source": document.name,
        "source_type": document.source_type,
        "file_type": document.file_type,
        "pages": list(chunk.pages),
        "start": chunk.start,
        "end": chunk.end,
        "heading_path": list(chunk.heading_path),
        "boxes": [list(box) for box in chunk.boxes],
        "blocks": [[one.start, one.end, one.page, list(one.box) if one.box else None] for one in chunk.blocks],
        "checksum": chunk.checksum,
        "file_checksum": document.checksum,
    }
    if document.url is not None:
        metadata["source_url"] = document.url
    # A document is often called by its first heading.
    own = chunk.heading_path[1:] if chunk.heading_path[:1] == (document.title,) else chunk.heading_path
    title = " / ".join((document.title, *own))
    return Passage(f"{document.document_id}.{chunk.index}", document.document_id, title[:500], chunk.text, metadata)
