"""`CorpusIndexer`: the documents of a corpus, cut into windows and put into a collection, with what they can be
filtered by. Many at a time: there are thousands of them, and each is short.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from agent.core.embedder import Embedded, Embedder
from agent.core.errors import EmbedderError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.vectors import VectorIndex
from agent.knowledge.chunkers import FixedChunker
from agent.knowledge.collection_store import Collection, CollectionStore, recorded
from agent.knowledge.corpus import CorpusDocument, Faults, Progress, read_corpus
from agent.knowledge.corpus_names import INDEX_WORDS, SERVICE_FIELDS, SEVERITY_FIELDS
from agent.knowledge.dense import embedded, entries
from agent.knowledge.documents import Document, DocumentStore, Passages, document_id
from agent.knowledge.hold import held
from agent.knowledge.levels import level_of, plain
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.models import Chunk, ParsedChunk, ParserOutput
from agent.knowledge.naming import refuse_unusable
from agent.knowledge.shelf import Shelf
from agent.knowledge.templates import from_template

SOURCE = "corpus:"
"""What the sources of a corpus's documents begin with; their ids follow."""
TEMPLATE = "windows"
"""The pipeline that cuts as a corpus is cut: 900 characters, 120 of them shared with the window before."""
BATCH_DOCUMENTS = 200
BATCH_CHARS = 400_000
"""What is written at once: enough to be quick, little enough to lie in memory."""


@dataclass(slots=True)
class BuildReport:
    """What became of a corpus. `absent` are documents of the collection that come from a corpus, but not this one."""

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
    """A document on its way into the collection."""

    document: Document
    passages: tuple[Passage, ...]
    known: Document | None


class CorpusIndexer:
    """Builds collections from corpora, beside the `Library`, on the same stores."""

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
        """Put the documents of these files into a collection: unchanged ones are skipped, changed ones replaced; with
        `prune`, those that come from a corpus but are in none of these files are removed.

        Interrupted, it goes on from there when it is called again. `ConflictError` while somebody else writes into
        the collection, `BadRequestError` for a file that cannot be read, `StoreError`."""
        started = monotonic()
        row = await self._collections.get(owner, collection)
        if row is None:
            refuse_unusable(collection)
            row = Collection(collection, from_template(TEMPLATE))
        report = BuildReport(collection)
        embedders = [row.embedder]
        async with (
            held(self._documents, owner, collection) as hold,
            recorded(self._collections, owner, row, lambda: embedders[-1]) as begun,
        ):
            sets = await self._collections.vectors(owner, collection)
            shelf = Shelf(self._documents, self._lexical, self._vectors, self._embedder, hold, sets)
            there = await shelf.tidy(await self._documents.list(owner, collection))
            known = {one.source: one for one in there if one.source.startswith(SOURCE)}
            met: set[str] = set()
            batch: list[_Item] = []
            for document in self._read(corpora, known, met, report, progress):
                await begun()
                batch.append(self._item(collection, document, known.get(f"{SOURCE}{document.doc_id}")))
                if len(batch) == BATCH_DOCUMENTS or sum(one.document.size for one in batch) > BATCH_CHARS:
                    embedders.append(await self._put(owner, shelf, batch, report) or embedders[-1])
                    batch = []
            if batch:
                embedders.append(await self._put(owner, shelf, batch, report) or embedders[-1])
            await self._prune(shelf, known, met, report, prune=prune)
            if met:
                await begun()
        report.seconds = monotonic() - started
        return report

    def _read(
        self,
        corpora: Sequence[Path],
        known: Mapping[str, Document],
        met: set[str],
        report: BuildReport,
        progress: Progress,
    ) -> Iterator[CorpusDocument]:
        """The documents that are new or have changed. A second one of the same id is a fault."""
        for path in corpora:
            for line, document in read_corpus(path, report.faults, progress=progress):
                source = f"{SOURCE}{document.doc_id}"
                if source in met:
                    why = f"the id {document.doc_id[:80]!r} stands further up too, and that one is kept"
                    report.faults.add(path.name, line, why)
                    continue
                met.add(source)
                old = known.get(source)
                lacks_vectors = old is not None and self._embedder is not None and not old.embedder
                if old is not None and old.checksum == _checksum(document) and not lacks_vectors:
                    report.unchanged += 1
                else:
                    yield document

    def _item(self, collection: str, document: CorpusDocument, known: Document | None) -> _Item:
        checksum = _checksum(document)
        title = str(document.metadata.get("title") or "").strip() or document.doc_id
        source = f"{SOURCE}{document.doc_id}"
        chunks = self._chunker.chunk(_parsed(document, checksum))
        row = Document(
            source=source,
            name=title[:300],
            document_id=document_id(collection, source, checksum),
            checksum=checksum,
            title=title[:300],
            file_type="csv",
            size=len(document.text),
            pages=0,
            at=self._clock(),
        )
        passages = tuple(_passage(row, document, chunk) for chunk in chunks)
        row = replace(row, chunk_ids=tuple(passage.chunk_id for passage in passages))
        return _Item(row, passages, known)

    async def _put(self, owner: str, shelf: Shelf, batch: Sequence[_Item], report: BuildReport) -> str:
        """Write documents; the new passages are there before the old ones go. The embedder that made their vectors."""
        passages = [passage for item in batch for passage in item.passages]
        replaced = [item.known.document_id for item in batch if item.known is not None]
        made = await self._embedded(owner, shelf, report, passages, replaced)
        await self._lexical.put(report.collection, passages, owner=owner)
        if made is not None:
            await self._vectors.put(shelf.sets.serving, entries(passages, made, owner=owner))
        space = str(made.space) if made is not None else ""
        for item in batch:
            old = item.known
            is_other = old is not None and old.document_id != item.document.document_id
            stale = (Passages(old.document_id, len(old.chunk_ids)),) if old is not None and is_other else ()
            placed = replace(item.document, embedder=space, stale=stale)
            await self._documents.put(owner, report.collection, placed)
            if stale:
                await shelf.tidy([placed])
            report.added += old is None
            report.changed += old is not None
        report.chunks += len(passages)
        return space

    async def _embedded(
        self, owner: str, shelf: Shelf, report: BuildReport, passages: Sequence[Passage], replaced: Sequence[str]
    ) -> Embedded | None:
        """Vectors, where there is an embedder that works; without them the passages are found by their words."""
        if self._embedder is None or not shelf.makes_vectors:
            return None
        try:
            return await embedded(
                passages,
                self._embedder,
                self._vectors,
                owner=owner,
                collection=report.collection,
                name=shelf.sets.serving,
                documents=replaced,
            )
        except (EmbedderError, VectorSpaceError) as error:
            shelf.no_vectors = f"no vectors: {error.message}"
            report.notes.append(shelf.no_vectors)
            return None

    async def _prune(
        self, shelf: Shelf, known: Mapping[str, Document], met: set[str], report: BuildReport, *, prune: bool
    ) -> None:
        """Remove what no file holds any more, if that is wanted. Where a file could not be read whole, nothing is."""
        gone = [document for source, document in known.items() if source not in met]
        if not prune or not met or report.faults.count:
            report.absent = len(gone)
            if prune and gone and report.faults.count:
                report.notes.append("nothing was removed, because some lines could not be read")
            return
        for document in gone:
            await shelf.remove(document)
            report.removed += 1


def _checksum(document: CorpusDocument) -> str:
    return hashlib.sha256(document.line().encode("utf-8", "replace")).hexdigest()


def _parsed(document: CorpusDocument, checksum: str) -> ParserOutput:
    """The document as the chunkers take it: one block."""
    block = ParsedChunk(chunk_id="0", content=document.text, chunk_index=0)
    return ParserOutput(document_id=checksum, metadata={}, chunks=(block,), total_pages=0, processing_time_ms=0)


def _passage(row: Document, document: CorpusDocument, chunk: Chunk) -> Passage:
    """A window as it is searched and cited: with the document's metadata, and its service and severity as they are
    compared."""
    metadata: JsonObject = {name: value for name, value in document.metadata.items() if name not in INDEX_WORDS}
    services = [said for name in SERVICE_FIELDS if (said := plain(_said(document, name)))]
    severities = [
        said
        for name in SEVERITY_FIELDS
        if (given := _said(document, name)) and (said := level_of(given) or plain(given))
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


def _said(document: CorpusDocument, name: str) -> str:
    value = document.metadata.get(name)
    return str(value) if isinstance(value, str | int | float) else ""
