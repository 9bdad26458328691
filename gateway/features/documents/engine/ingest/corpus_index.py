"""`CorpusIndexer`: splits the documents of a corpus into windows and indexes them with their filter fields,
in batches."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.chunkers import FixedChunker
from gateway.features.documents.engine.ingest.collection_store import track_indexing
from gateway.features.documents.engine.ingest.corpus import CorpusDocument, Faults, Progress, read_corpus
from gateway.features.documents.engine.ingest.corpus_fields import INDEX_WORDS, SERVICE_FIELDS, SEVERITY_FIELDS
from gateway.features.documents.engine.ingest.index_writer import (
    EmbeddedDocuments,
    IndexWriter,
    list_new_passages,
    list_replaced_readings,
    open_writer,
)
from gateway.features.documents.engine.ingest.ingest_resources import IngestResources
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.documents import Document, make_document_id
from gateway.features.documents.engine.search.lexical import Passage
from gateway.features.documents.engine.search.models import Chunk, ParsedChunk, ParserOutput
from gateway.features.documents.engine.search.severity import normalize_name, parse_severity

SOURCE_PREFIX = "corpus:"
"""Prefix of the source ids of corpus documents; the document id follows."""
TEMPLATE = "windows"
"""The pipeline template that splits like a corpus: windows of 900 characters with 120 of overlap."""
BATCH_DOCUMENTS = 128
BATCH_CHARS = 400_000
"""The size of one write: large enough to be fast, small enough for memory, and for statements of less than a thousand
parameters, as older SQLite versions allow."""


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
    """Builds collections from corpora, on the stores of `Library`."""

    def __init__(self, resources: IngestResources) -> None:
        self._resources = resources
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
        resources = self._resources
        row = await resources.collections.get_or_plan(owner, collection, from_template(TEMPLATE))
        report = BuildReport(collection)
        embedders = [row.embedder]
        async with (
            open_writer(resources, owner, collection) as writer,
            track_indexing(resources.collections, owner, row, lambda: embedders[-1]) as mark_started,
        ):
            there = await writer.clean_up(await resources.documents.list(owner, collection))
            by_source = {one.source: one for one in there if one.source.startswith(SOURCE_PREFIX)}
            seen: set[str] = set()
            batch: list[_Item] = []
            for document in self._iter_changed_documents(corpora, by_source, seen, report, progress):
                await mark_started()
                batch.append(self._make_item(collection, document, by_source.get(f"{SOURCE_PREFIX}{document.doc_id}")))
                if len(batch) == BATCH_DOCUMENTS or sum(one.document.size for one in batch) > BATCH_CHARS:
                    embedders.append(await self._write_batch(writer, batch, report) or embedders[-1])
                    batch = []
            if batch:
                embedders.append(await self._write_batch(writer, batch, report) or embedders[-1])
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
                    why = f"the id {document.doc_id[:80]!r} occurs earlier too, and that document is kept"
                    report.faults.add(path.name, line, why)
                    continue
                seen.add(source)
                old = known.get(source)
                lacks_vectors = old is not None and self._resources.embedder is not None and not old.embedder
                if old is not None and old.checksum == _compute_checksum(document) and not lacks_vectors:
                    report.unchanged += 1
                else:
                    yield document

    def _make_item(self, collection: str, document: CorpusDocument, known: Document | None) -> _Item:
        checksum = _compute_checksum(document)
        source = f"{SOURCE_PREFIX}{document.doc_id}"
        chunks = self._chunker.chunk(_to_parser_output(document, checksum))
        row = Document(
            source=source,
            name=document.title,
            document_id=make_document_id(collection, source, checksum),
            checksum=checksum,
            title=document.title,
            file_type="csv",
            size=len(document.text),
            pages=0,
            at=self._resources.clock(),
        )
        passages = tuple(_make_passage(row, document, chunk) for chunk in chunks)
        row = replace(row, chunk_ids=tuple(passage.chunk_id for passage in passages))
        return _Item(row, passages, known)

    async def _write_batch(self, writer: IndexWriter, batch: Sequence[_Item], report: BuildReport) -> str:
        """Writes documents, all of them or none; returns the embedder of their vectors."""
        passages = [passage for item in batch for passage in item.passages]
        made = await writer.embed(passages, [item.known.document_id for item in batch if item.known is not None])
        if writer.vector_failure and writer.vector_failure not in report.notes:
            report.notes.append(writer.vector_failure)
        space = str(made.space) if made is not None else ""
        documents = [
            replace(item.document, embedder=space, stale=list_replaced_readings(item.document.document_id, item.known))
            for item in batch
        ]
        new = list_new_passages((item.document, item.known) for item in batch)
        await writer.write_documents(EmbeddedDocuments(documents, passages, passages, made, new))
        report.added += sum(item.known is None for item in batch)
        report.changed += sum(item.known is not None for item in batch)
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
