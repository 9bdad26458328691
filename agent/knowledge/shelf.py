"""`Shelf`: a document's passages are put in their place, in all indexes or in none.

The new passages of a document are there before its old ones go. What is about to be written is noted first; when the
writing fails it is taken back, and after a crash the next one to write takes it back.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.core.embedder import Embedded, Embedder
from agent.core.errors import EmbedderError, StoreError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.vectors import VectorIndex
from agent.knowledge.dense import embedded, entries
from agent.knowledge.documents import Document, DocumentStore, Passages, document_id
from agent.knowledge.hold import Hold
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.models import Chunk
from agent.knowledge.naming import VectorSets

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Shelf:
    """Where documents of one owner's collection are put."""

    documents: DocumentStore
    lexical: LexicalIndex
    vectors: VectorIndex
    embedder: Embedder | None
    hold: Hold
    sets: VectorSets
    no_vectors: str = ""
    """Why this ingestion makes no more vectors; an embedder that failed is not asked ten thousand times."""

    @property
    def makes_vectors(self) -> bool:
        """Whether there is an embedder, and it works."""
        return self.embedder is not None and not self.no_vectors

    async def tidy(self, known: Sequence[Document]) -> list[Document]:
        """Take away what an interrupted ingestion left behind; the documents as they are then."""
        pending = await self.documents.pending(self.hold.owner, self.hold.collection)
        if pending is not None:
            if all(document.document_id != pending.document_id for document in known):
                await self._take_away(pending)
            await self.hold.written()
        return [await self._without_stale(document) for document in known]

    async def place(
        self, document: Document, chunks: Sequence[Chunk], known: Document | None, *, vectors: bool
    ) -> Document:
        """Put a document in the place of the one that is known of its source. Raises `StoreError`, and leaves the
        collection as it was, as far as the store can still be written; the next ingestion sees to the rest."""
        document = _distinct(document, len(chunks), known)
        passages = [_passage(document, chunk) for chunk in chunks]
        made = await self._embedded(passages, known) if vectors and passages else None
        reading = Passages(document.document_id, len(passages))
        old = self._replaced(reading, known)
        placed = replace(
            document,
            chunk_ids=tuple(reading.chunk_ids),
            stale=old,
            embedder=str(made.space) if made is not None else "",
        )
        is_same = known is not None and known.document_id == document.document_id
        if not is_same:
            await self.hold.writing(reading)
        try:
            await self._write(passages, made, placed)
        except BaseException:
            if not is_same:
                await asyncio.shield(self._take_back(reading))
            raise
        return await self._without_stale(placed)

    async def remove(self, document: Document) -> None:
        """Remove a document with its passages and vectors."""
        await self._take_away(Passages(document.document_id, len(document.chunk_ids)), *document.stale)
        await self.documents.remove(self.hold.owner, self.hold.collection, document.source)

    async def _write(self, passages: Sequence[Passage], made: Embedded | None, placed: Document) -> None:
        owner, collection = self.hold.owner, self.hold.collection
        await self.lexical.put(collection, passages, owner=owner)
        if made is not None:
            await self.vectors.put(self.sets.serving, entries(passages, made, owner=owner))
        await self.documents.put(owner, collection, placed)

    async def _take_back(self, reading: Passages) -> None:
        """Undo a writing that failed. Where that fails too, what was noted tells the next ingestion."""
        try:
            await self._take_away(reading)
            await self.hold.written()
        except StoreError as error:
            log.warning("passages of %s are left for the next ingestion to remove: %s", reading[0], error.message)

    async def _take_away(self, *readings: Passages) -> None:
        owner, collection = self.hold.owner, self.hold.collection
        await self.lexical.delete(collection, [one.document_id for one in readings], owner=owner)
        chunk_ids = [chunk_id for one in readings for chunk_id in one.chunk_ids]
        for name in filter(None, self.sets if chunk_ids else ()):
            await self.vectors.delete(name, chunk_ids, owner=owner)

    async def _without_stale(self, document: Document) -> Document:
        if not document.stale:
            return document
        await self._take_away(*document.stale)
        clean = replace(document, stale=())
        await self.documents.put(self.hold.owner, self.hold.collection, clean)
        return clean

    @staticmethod
    def _replaced(reading: Passages, known: Document | None) -> tuple[Passages, ...]:
        """The readings that go when the new one is in place."""
        if known is None:
            return ()
        former = (*known.stale, Passages(known.document_id, len(known.chunk_ids)))
        return tuple(one for one in former if one.document_id != reading.document_id)

    async def _embedded(self, passages: Sequence[Passage], known: Document | None) -> Embedded | None:
        """Vectors, where there is an embedder; without them the passages are found by their words."""
        if self.embedder is None or self.no_vectors:
            return None
        # Passages that have not changed keep their vectors.
        replaced = [] if known is None else [known.document_id, *(one.document_id for one in known.stale)]
        try:
            return await embedded(
                passages,
                self.embedder,
                self.vectors,
                owner=self.hold.owner,
                collection=self.hold.collection,
                name=self.sets.serving,
                documents=replaced,
            )
        except (EmbedderError, VectorSpaceError) as error:
            self.no_vectors = f"no vectors: {error.message}"
            return None


def _distinct(document: Document, count: int, known: Document | None) -> Document:
    """The document under an id of its own, where the same id stands for other passages: a newer version of a parser
    may read the same bytes differently."""
    if known is None or known.document_id != document.document_id or len(known.chunk_ids) == count:
        return document
    return replace(document, document_id=document_id(document.document_id, str(document.at)))


def _passage(document: Document, chunk: Chunk) -> Passage:
    """A chunk as it is searched and cited: with its place in the document."""
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
