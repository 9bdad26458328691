"""`IndexWriter`: writes a document's passages to all indexes, or to none.

New passages are written before old ones are deleted. Writes are noted first; a failed write is rolled back, and after a
crash the next writer rolls it back.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.core.errors import EmbedderError, StoreError, VectorSpaceError
from agent.core.models import JsonObject
from agent.ingest.collection_lock import CollectionLock
from agent.llm.embedder import Embedded, Embedder
from agent.search.documents import Document, DocumentStore, PassageRange, make_document_id
from agent.search.lexical import LexicalIndex, Passage
from agent.search.models import Chunk
from agent.search.naming import VectorSets
from agent.search.vector_search import build_entries, embed_passages
from agent.storage.vectors import VectorIndex

log = logging.getLogger(__name__)


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

    async def clean_up(self, known: Sequence[Document]) -> list[Document]:
        """Deletes what an interrupted ingestion left behind; returns the updated documents."""
        pending = await self.documents.get_pending(self.lock.owner, self.lock.collection)
        if pending is not None:
            if all(document.document_id != pending.document_id for document in known):
                await self._delete_passages(pending)
            await self.lock.clear_pending()
        return [await self._delete_stale(document) for document in known]

    async def write_document(
        self, document: Document, chunks: Sequence[Chunk], known: Document | None, *, vectors: bool
    ) -> Document:
        """Replaces the known document of this source. Raises `StoreError` after rolling back.

        If the roll-back fails too, the next ingestion completes it.
        """
        document = _with_distinct_id(document, len(chunks), known)
        passages = [_passage(document, chunk) for chunk in chunks]
        replaced = [] if known is None else [known.document_id, *(one.document_id for one in known.stale)]
        made = await self.embed(passages, replaced) if vectors and passages else None
        reading = PassageRange(document.document_id, len(passages))
        old = self._replaced_readings(reading, known)
        placed = replace(
            document,
            chunk_ids=tuple(reading.chunk_ids),
            stale=old,
            embedder=str(made.space) if made is not None else "",
        )
        is_same = known is not None and known.document_id == document.document_id
        if not is_same:
            await self.lock.note_pending(reading)
        try:
            await self._write(passages, made, placed)
        except BaseException:
            if not is_same:
                await asyncio.shield(self._roll_back(reading))
            raise
        return await self._delete_stale(placed)

    async def remove_document(self, document: Document) -> None:
        """Removes a document with its passages and vectors."""
        await self._delete_passages(PassageRange(document.document_id, len(document.chunk_ids)), *document.stale)
        await self.documents.remove(self.lock.owner, self.lock.collection, document.source)

    async def _write(self, passages: Sequence[Passage], made: Embedded | None, placed: Document) -> None:
        owner, collection = self.lock.owner, self.lock.collection
        await self.lexical.put(collection, passages, owner=owner)
        if made is not None:
            await self.vectors.put(self.sets.serving, build_entries(passages, made, owner=owner))
        await self.documents.put(owner, collection, placed)

    async def _roll_back(self, reading: PassageRange) -> None:
        """Rolls back a failed write. If that fails too, the note lets the next ingestion do it."""
        try:
            await self._delete_passages(reading)
            await self.lock.clear_pending()
        except StoreError as error:
            log.warning("passages of %s are left for the next ingestion to remove: %s", reading[0], error.message)

    async def _delete_passages(self, *readings: PassageRange) -> None:
        owner, collection = self.lock.owner, self.lock.collection
        await self.lexical.delete(collection, [one.document_id for one in readings], owner=owner)
        chunk_ids = [chunk_id for one in readings for chunk_id in one.chunk_ids]
        for name in filter(None, self.sets if chunk_ids else ()):
            await self.vectors.delete(name, chunk_ids, owner=owner)

    async def _delete_stale(self, document: Document) -> Document:
        if not document.stale:
            return document
        await self._delete_passages(*document.stale)
        clean = replace(document, stale=())
        await self.documents.put(self.lock.owner, self.lock.collection, clean)
        return clean

    @staticmethod
    def _replaced_readings(reading: PassageRange, known: Document | None) -> tuple[PassageRange, ...]:
        """Returns the earlier readings that are deleted once the new one is written."""
        if known is None:
            return ()
        former = (*known.stale, PassageRange(known.document_id, len(known.chunk_ids)))
        return tuple(one for one in former if one.document_id != reading.document_id)

    async def embed(self, passages: Sequence[Passage], replaced: Sequence[str]) -> Embedded | None:
        """Returns vectors, or None without a working embedder; passages are then found by words only.

        Passages that stand unchanged in the `replaced` documents keep their vectors."""
        if self.embedder is None or self.vector_failure:
            return None
        try:
            return await embed_passages(
                passages,
                self.embedder,
                self.vectors,
                owner=self.lock.owner,
                collection=self.lock.collection,
                name=self.sets.serving,
                documents=replaced,
            )
        except (EmbedderError, VectorSpaceError) as error:
            self.vector_failure = f"no vectors: {error.message}"
            return None


def _with_distinct_id(document: Document, count: int, known: Document | None) -> Document:
    """Returns the document under a new id if the same id stands for other passages.

    A newer parser may read the same bytes differently.
    """
    if known is None or known.document_id != document.document_id or len(known.chunk_ids) == count:
        return document
    return replace(document, document_id=make_document_id(document.document_id, str(document.at)))


def _passage(document: Document, chunk: Chunk) -> Passage:
    """Returns a chunk as it is searched and cited, with its place in the document."""
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
