"""`CollectionReader`: an owner's collections for those who only look: lists, documents, search."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

from agent.core.errors import NotFoundError
from agent.core.models import RetrievalMode
from agent.llm.embedder import Embedder
from agent.storage.vectors import VectorIndex
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore
from gateway.features.documents.engine.ingest.source_files import open_source_file
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.ingest.uploads import (
    Uploads,
)
from gateway.features.documents.engine.search.documents import Document, DocumentStore
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.models import MemoryOutput, MemoryQuery
from gateway.features.documents.engine.search.relevance_calibration import RelevanceCalibration
from gateway.features.documents.engine.search.retriever import Retriever


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document and the collection that holds it."""

    collection: str
    document: Document


class CollectionReader:
    """The collections of this store. `Library` adds what reads sources into them and removes them."""

    def __init__(
        self,
        documents: DocumentStore,
        lexical: LexicalIndex,
        vectors: VectorIndex,
        embedder: Embedder | None,
        collections: CollectionStore,
        uploads: Uploads,
        mode: RetrievalMode,
    ) -> None:
        self._documents = documents
        self._lexical = lexical
        self._vectors = vectors
        self._collections = collections
        self._mode = mode
        self._only: frozenset[str] | None = None
        self._retriever = Retriever(lexical, vectors, embedder, collections)
        self._relevance = RelevanceCalibration(self._retriever, lexical)
        self.uploads = uploads
        self.document_counts = collections.document_counts
        """The rows of an owner's collections, for runs that only have to name them."""

    async def list_collections(self, owner: str) -> dict[str, int]:
        """The owner's collections with their document counts."""
        counts = await self._collections.count_documents(owner)
        return {name: count for name, count in counts.items() if self._only is None or name in self._only}

    async def list_outgrown(self) -> dict[str, int]:
        """The collections, as `owner/name`, with more vectors than are searched quickly, and their numbers."""
        counts = await self._vectors.list_outgrown()
        owned = await self._collections.list_owners() if counts else ()
        sets = {
            f"{owner}/{name}": (await self._collections.get_vector_sets(owner, name)).serving for owner, name in owned
        }
        return {name: counts[serving] for name, serving in sets.items() if serving in counts}

    async def get_collection(self, owner: str, name: str) -> Collection:
        """A collection with its pipeline, the default one if none is stored. Raises `NotFoundError`."""
        stored = await self._collections.get(owner, name)
        if stored is None and name not in await self._documents.count_by_collection(owner):
            raise await self._make_unknown_error(owner, name)
        return stored or Collection(name, from_template())

    async def list_documents(self, owner: str, collection: str) -> Sequence[Document]:
        """The documents of a collection. Raises `NotFoundError` for an unknown collection."""
        documents = await self._documents.list(owner, collection)
        if not documents and await self._collections.get(owner, collection) is None:
            raise await self._make_unknown_error(owner, collection)
        return documents

    async def list_newest_documents(self, owner: str, limit: int) -> Sequence[FoundDocument]:
        """Lists the owner's documents that were read last."""
        return [FoundDocument(*row) for row in await self._documents.list_newest(owner, limit)]

    async def stamp_documents(self, owner: str) -> tuple[int, float]:
        """The number of the owner's documents and when the last one was read: both differ after a change."""
        return await self._documents.stamp(owner)

    async def get_document(self, owner: str, document_id: str, collection: str | None = None) -> FoundDocument:
        """A document by its id. Raises `NotFoundError`."""
        for name, document in (await self._documents.get_by_id(owner, document_id)).items():
            if collection in (None, name):
                return FoundDocument(name, document)
        raise NotFoundError(
            f"there is no document {document_id!r}; it may have been read again since", agent_id="library"
        )

    async def list_passages(self, owner: str, found: FoundDocument) -> list[Passage]:
        """The passages of a document in text order."""
        chunk_ids = found.document.chunk_ids
        indexed = await self._lexical.get_passages(found.collection, chunk_ids, owner=owner)
        return [indexed[chunk_id].passage for chunk_id in chunk_ids if chunk_id in indexed]

    def open_file(self, owner: str, found: FoundDocument) -> BinaryIO:
        """Opens the bytes that a document was read from; blocks. Raises what `open_source_file` raises."""
        return open_source_file(found.document, self.uploads, owner)

    async def search(
        self, owner: str, collection: str, query: MemoryQuery, *, mode: RetrievalMode | None = None
    ) -> MemoryOutput:
        """Searches a collection. Raises `NotFoundError`, `MemoryNoResultsError`, `BadRequestError`, `StoreError`."""
        if collection not in await self.list_collections(owner):
            raise await self._make_unknown_error(owner, collection)
        return await self._retriever.search(query, collection=collection, owner=owner, mode=mode or self._mode)

    async def get_relevance_threshold(
        self, owner: str, collection: str, query: str, *, mode: RetrievalMode | None = None
    ) -> float:
        """The least relevance of a passage of this collection that has to do with the query."""
        return await self._relevance.get_threshold(owner, collection, query, mode or self._mode)

    def in_room(self, mode: RetrievalMode | None, collections: Iterable[str] | None) -> Self:
        """A library with another default search mode that lists, and so searches, these collections only; None
        keeps the mode, and all collections.
        """
        other = copy.copy(self)
        other._mode = mode or self._mode
        other._only = None if collections is None else frozenset(collections)
        return other

    async def _make_unknown_error(self, owner: str, collection: str) -> NotFoundError:
        there = ", ".join(await self.list_collections(owner)) or "none yet: `stepgate ingest FOLDER` makes one"
        return NotFoundError(f"there is no collection {collection!r}; there are {there}", agent_id="library")
