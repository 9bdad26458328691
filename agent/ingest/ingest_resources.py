"""`IngestResources`: the stores that an ingestion works with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.ingest.collection_store import CollectionStore
from agent.llm.embedder import Embedder
from agent.search.documents import DocumentStore
from agent.search.lexical import LexicalIndex
from agent.storage.objects import ObjectStore
from agent.storage.vectors import VectorIndex


@dataclass(frozen=True, slots=True)
class IngestResources:
    """What ingestions share. `workspaces` is the folder of their temporary files; `clock` gives UTC seconds."""

    documents: DocumentStore
    lexical: LexicalIndex
    vectors: VectorIndex
    embedder: Embedder | None
    collections: CollectionStore
    objects: ObjectStore
    workspaces: Path
    clock: Callable[[], float]
