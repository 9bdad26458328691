"""`IngestResources`: the stores that an ingestion works with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.llm.embedder import Embedder
from agent.storage.objects import ObjectStore
from agent.storage.vectors import VectorIndex
from gateway.features.documents.engine.ingest.collection_store import CollectionStore
from gateway.features.documents.engine.search.documents import DocumentStore
from gateway.features.documents.engine.search.lexical import LexicalIndex


@dataclass(frozen=True, slots=True)
class IngestResources:
    """Resources of all ingestions. `workspaces` is the folder of their temporary files; `clock` gives UTC seconds."""

    documents: DocumentStore
    lexical: LexicalIndex
    vectors: VectorIndex
    embedder: Embedder | None
    collections: CollectionStore
    objects: ObjectStore
    workspaces: Path
    clock: Callable[[], float]
