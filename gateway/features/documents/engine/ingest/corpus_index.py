"""`CorpusIndexer`: splits the documents of a corpus into windows and indexes them with their filter fields,
in batches."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from agent.core.models import JsonObject
from agent.llm.embedder import Embedder
from agent.storage.vectors import VectorIndex
from gateway.features.documents.engine.ingest.chunkers import FixedChunker
from gateway.features.documents.engine.ingest.collection_lock import lock_collection
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore, track_indexing
from gateway.features.documents.engine.ingest.corpus import CorpusDocument, Faults, Progress, read_corpus
from gateway.features.documents.engine.ingest.corpus_fields import INDEX_WORDS, SERVICE_FIELDS, SEVERITY_FIELDS
from gateway.features.documents.engine.ingest.index_writer import IndexWriter
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.documents import Document, DocumentStore, PassageRange, make_document_id
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.models import Chunk, ParsedChunk, ParserOutput
from gateway.features.documents.engine.search.naming import validate_collection_name
from gateway.features.documents.engine.search.severity import normalize_name, parse_severity
from gateway.features.documents.engine.search.vector_search import build_entries

SOURCE_PREFIX = "corpus:"
"""Prefix of the source ids of corpus documents; the document id follows."""
TEMPLATE = "windows"
"""The pipeline template that splits like a corpus: windows of 900 characters with 120 of overlap."""
BATCH_DOCUMENTS = 200
BATCH_CHARS = 400_000
"""The size of one write: large enough to be fast, small enough for memory."""


@dataclass(slots=True)
class BuildReport:
    """The result of indexing a corpus. `absent` counts corpus documents of the collection that these files do
    not have."""

    collection: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    absent: int = 0
    chunks: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)


@dataclass(frozen=True, slots=True)
class _Item:
    """A document that is about to be written."""

    document: Document
    passages: tuple[Passage, ...]
    known: Document | None


class CorpusIndexer:
    """Builds collections from corpora, on the same stores as `Library`."""

    def __init__(
        self,
        documents: DocumentStore,
        lexical: LexicalIndex,
        vectors: VectorIndex,
        embedder: Embedder | None,
        collections: CollectionStore,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._documents = documents
        self._lexical = lexical
        self._vectors = vectors
        self._embedder = embedder
        self._collections = collections
        self._clock = clock
        self._chunker = FixedChunker()

    async def build(
        self,
        owner: str,
        collection: str,
        corpora: Sequence[Path],
        *,
        prune: bool = False,
        progress: Progress = lambda _, __, ___: None,
    ) -> BuildReport:
        """Indexes the documents of these files: skips unchanged ones, replaces changed ones.

        With `prune`, removes corpus documents that are in none of the files. Continues where it was interrupted. Raises
        `ConflictError` while another writer holds the collection, `BadRequestError` for an unreadable file, and
        `StoreError`.
        """
        started = monotonic()
        row = await self._collections.get(owner, collection)
        if row is None:
            validate_collection_name(collection)
            row = Collection(collection, from_template(TEMPLATE))
        report = BuildReport(collection)
        embedders = [row.embedder]
        async with (
            lock_collection(self._documents, owner, collection) as lock,
            track_indexing(self._collections, owner, row, lambda: embedders[-1]) as mark_started,
        ):
            sets = await self._collections.get_vector_sets(owner, collection)
            writer = IndexWriter(self._documents, self._lexical, self._vectors, self._embedder, lock, sets)
            there = await writer.clean_up(await self._documents.list(owner, collection))
            by_source = {one.source: one for one in there if one.source.startswith(SOURCE_PREFIX)}
            seen: set[str] = set()
            batch: list[_Item] = []
            for document in self._iter_changed_documents(corpora, by_source, seen, report, progress):
                await mark_started()
                batch.append(self._make_item(collection, document, by_source.get(f"{SOURCE_PREFIX}{document.doc_id}")))
                if len(batch) == BATCH_DOCUMENTS or sum(one.document.size for one in batch) > BATCH_CHARS:
                    embedders.append(await self._write_batch(owner, writer, batch, report) or embedders[-1])
                    batch = []
            if batch:
                embedders.append(await self._write_batch(owner, writer, batch, report) or embedders[-1])
            await self._prune(writer, by_source, seen, report, prune=prune)
            if seen:
                await mark_started()
        report.seconds = monotonic() - started
        return report

    def _iter_changed_documents(
        self,
        corpora: Sequence[Path],
        known: Mapping[str, Document],
        seen: set[str],
        report: BuildReport,
        progress: Progress,
    ) -> Iterator[CorpusDocument]:
        """Yields new and changed documents. A repeated id is a fault."""
        for path in corpora:
            for line, document in read_corpus(path, report.faults, progress=progress):
                source = f"{SOURCE_PREFIX}{document.doc_id}"
                if source in seen:
                    why = f"the id {document.doc_id[:80]!r} stands further up too, and that one is kept"
                    report.faults.add(path.name, line, why)
                    continue
                seen.add(source)
                old = known.get(source)
                lacks_vectors = old is not None and self._embedder is not None and not old.embedder
                if old is not None and old.checksum == _compute_checksum(document) and not lacks_vectors:
                    report.unchanged += 1
                else:
                    yield document

    def _make_item(self, collection: str, document: CorpusDocument, known: Document | None) -> _Item:
        checksum = _compute_checksum(document)
        title = str(document.metadata.get("title") or "").strip() or document.doc_id
        source = f"{SOURCE_PREFIX}{document.doc_id}"
        chunks = self._chunker.chunk(_to_parser_output(document, checksum))
        row = Document(
            source=source,
            name=title[:300],
            document_id=make_document_id(collection, source, checksum),
            checksum=checksum,
            title=title[:300],
            file_type="csv",
            size=len(document.text),
            pages=0,
            at=self._clock(),
        )
        passages = tuple(_make_passage(row, document, chunk) for chunk in chunks)
        row = replace(row, chunk_ids=tuple(passage.chunk_id for passage in passages))
        return _Item(row, passages, known)

    async def _write_batch(self, owner: str, writer: IndexWriter, batch: Sequence[_Item], report: BuildReport) -> str:
        """Writes documents, new passages before old ones are deleted; returns the embedder of their vectors."""
        passages = [passage for item in batch for passage in item.passages]
        replaced = [item.known.document_id for item in batch if item.known is not None]
        made = await writer.embed(passages, replaced)
        if writer.vector_failure and writer.vector_failure not in report.notes:
            report.notes.append(writer.vector_failure)
        await self._lexical.put(report.collection, passages, owner=owner)
        if made is not None:
            await self._vectors.put(writer.sets.serving, build_entries(passages, made, owner=owner))
        space = str(made.space) if made is not None else ""
        for item in batch:
            old = item.known
            is_other = old is not None and old.document_id != item.document.document_id
            stale = (PassageRange(old.document_id, len(old.chunk_ids)),) if old is not None and is_other else ()
            placed = replace(item.document, embedder=space, stale=stale)
            await self._documents.put(owner, report.collection, placed)
            if stale:
                await writer.clean_up([placed])
            report.added += old is None
            report.changed += old is not None
        report.chunks += len(passages)
        return space

    async def _prune(
        self, writer: IndexWriter, known: Mapping[str, Document], seen: set[str], report: BuildReport, *, prune: bool
    ) -> None:
        """Removes documents that no file holds, if requested. Nothing is removed if a file could not be read
        completely."""
        gone = [document for source, document in known.items() if source not in seen]
        if not prune or not seen or report.faults.count:
            report.absent = len(gone)
            if prune and gone and report.faults.count:
                report.notes.append("nothing was removed, because some lines could not be read")
            return
        for document in gone:
            await writer.remove_document(document)
            report.removed += 1


def _compute_checksum(document: CorpusDocument) -> str:
    return hashlib.sha256(document.to_json_line().encode("utf-8", "replace")).hexdigest()


def _to_parser_output(document: CorpusDocument, checksum: str) -> ParserOutput:
    """The document as chunkers take it: one block."""
    block = ParsedChunk(chunk_id="0", content=document.text, chunk_index=0)
    return ParserOutput(document_id=checksum, metadata={}, chunks=(block,), total_pages=0, processing_time_ms=0)


def _make_passage(row: Document, document: CorpusDocument, chunk: Chunk) -> Passage:
    """A window as it is searched and cited, with normalised service and severity for filters."""
    metadata: JsonObject = {name: value for name, value in document.metadata.items() if name not in INDEX_WORDS}
    services = [
        metadata_text for name in SERVICE_FIELDS if (metadata_text := normalize_name(_format_metadata(document, name)))
    ]
    severities = [
        metadata_text
        for name in SEVERITY_FIELDS
        if (given := _format_metadata(document, name))
        and (metadata_text := parse_severity(given) or normalize_name(given))
    ]
    if services:
        metadata["match_service"] = [*dict.fromkeys(services)]
    if severities:
        metadata["match_severity"] = [*dict.fromkeys(severities)]
    metadata |= {
        "source": row.name,
        "source_type": document.source,
        "doc_id": document.doc_id,
        "file_type": row.file_type,
        "pages": [],
        "start": chunk.start,
        "end": chunk.end,
        "heading_path": [],
        "boxes": [],
        "checksum": chunk.checksum,
        "file_checksum": row.checksum,
    }
    return Passage(f"{row.document_id}.{chunk.index}", row.document_id, row.title[:500], chunk.text, metadata)


def _format_metadata(document: CorpusDocument, name: str) -> str:
    value = document.metadata.get(name)
    return str(value) if isinstance(value, str | int | float) else ""
