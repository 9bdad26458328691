"""`Library`: an owner's collections. Folders are read into them, and passages found in them with their evidence.

Reading is incremental: what has not changed is skipped by its checksum, what has changed is replaced, what is gone is
removed. A document's new passages are in place before its old ones go, so a collection is never without either.
"""

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from agent.core.embedder import Embedder
from agent.core.errors import AgentError, ConflictError, EmbedderError, NotFoundError, StoreError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.vectors import VectorIndex
from agent.knowledge.chunkers import Chunker, StructureChunker
from agent.knowledge.dense import entries
from agent.knowledge.documents import Document, DocumentStore
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.local_files import Candidate, candidates
from agent.knowledge.models import Chunk, MemoryOutput, MemoryQuery, ParserInput, ParserOutput, RetrievalMode
from agent.knowledge.naming import vector_set
from agent.knowledge.parsers import ParserPool
from agent.knowledge.retriever import Retriever

HOLD_SECONDS = 120.0
"""How long a process that died keeps others from indexing its collection; a living one prolongs it with every file."""

Progress = Callable[[str, int, int], None]
"""Told of each file: its name, how many are done, how many there are."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not read, and why."""

    source: str
    code: str
    reason: str


@dataclass(slots=True)
class IngestReport:
    """What became of a folder."""

    collection: str
    read: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    seconds: float = 0.0
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def by_reason(self) -> dict[str, int]:
        """How many files were skipped, by code."""
        return dict(Counter(one.code for one in self.skipped))


class Library:
    """The collections of this store."""

    def __init__(
        self,
        documents: DocumentStore,
        lexical: LexicalIndex,
        vectors: VectorIndex,
        embedder: Embedder | None,
        *,
        clock: Callable[[], float],
        chunker: Chunker | None = None,
    ) -> None:
        self._documents = documents
        self._lexical = lexical
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._chunker = chunker or StructureChunker()
        self._retriever = Retriever(lexical, vectors, embedder)

    async def collections(self, owner: str) -> dict[str, int]:
        """The owner's collections, and how many documents each has."""
        return await self._documents.collections(owner)

    async def documents(self, owner: str, collection: str) -> Sequence[Document]:
        """The documents of a collection. `NotFoundError` for one that is not there."""
        found = await self._documents.list(owner, collection)
        if not found:
            raise await self._unknown(owner, collection)
        return found

    async def search(
        self, owner: str, collection: str, query: MemoryQuery, *, mode: RetrievalMode = "hybrid_rerank"
    ) -> MemoryOutput:
        """Passages of a collection. `NotFoundError`, `MemoryNoResultsError`, `BadRequestError`, `StoreError`."""
        if collection not in await self._documents.collections(owner):
            raise await self._unknown(owner, collection)
        return await self._retriever.search(query, collection=collection, owner=owner, mode=mode)

    async def ingest(
        self, owner: str, collection: str, root: Path, *, progress: Progress = lambda _, __, ___: None
    ) -> IngestReport:
        """Read a folder, or one file, into a collection. A file that cannot be read stops nothing; the report has it.

        `ConflictError` while somebody else reads into this collection; `BadRequestError` for a folder that is none."""
        started = monotonic()
        report = IngestReport(collection)
        found = await asyncio.to_thread(lambda: list(candidates(root)))
        async with self._held(owner, collection) as prolong, ParserPool() as pool:
            known = {document.source: document for document in await self._documents.list(owner, collection)}
            for number, candidate in enumerate(found):
                progress(candidate.name, number, len(found))
                await prolong()
                await self._take(owner, candidate, known.get(candidate.source), pool, report)
            progress("", len(found), len(found))
            below = f"{(await asyncio.to_thread(root.resolve)).as_posix()}/"
            gone = known.keys() - {candidate.source for candidate in found}
            for source in sorted(source for source in gone if source.startswith(below)):
                await self._remove(owner, collection, known[source])
                report.removed += 1
        report.seconds = monotonic() - started
        return report

    async def drop(self, owner: str, collection: str) -> int:
        """Remove a collection with its passages and vectors; how many documents it had. `NotFoundError`."""
        documents = await self.documents(owner, collection)
        async with self._held(owner, collection):
            await self._lexical.drop(collection, owner=owner)
            await self._vectors.drop(vector_set(owner, collection))
            for document in documents:
                await self._documents.remove(owner, collection, document.source)
        return len(documents)

    async def _take(
        self, owner: str, candidate: Candidate, known: Document | None, pool: ParserPool, report: IngestReport
    ) -> None:
        """One file: skipped, unchanged, or read and put in place of what was there."""
        if candidate.file_type is None:
            kind = candidate.path.suffix or "files without an ending"
            report.skipped.append(Skipped(candidate.name, "ERR_PARSER_UNSUPPORTED", f"{kind} is not read"))
            return
        try:
            checksum, size = await asyncio.to_thread(_checksum, candidate.path)
            if known is not None and known.checksum == checksum and not known.stale:
                report.unchanged += 1
                return
            parsed = await pool.parse(ParserInput(file_path=str(candidate.path), file_type=candidate.file_type))
        except StoreError:
            raise
        except AgentError as error:
            report.skipped.append(Skipped(candidate.name, error.code, error.message))
            return
        except OSError as error:
            report.skipped.append(Skipped(candidate.name, "ERR_FILE", f"it cannot be read: {error.strerror}"))
            return
        await self._put(owner, report, _document(candidate, checksum, size, parsed, self._clock()), known, parsed)

    async def _put(
        self, owner: str, report: IngestReport, document: Document, known: Document | None, parsed: ParserOutput
    ) -> None:
        chunks = await asyncio.to_thread(self._chunker.chunk, parsed)
        passages = [_passage(document, chunk) for chunk in chunks]
        stale = (*known.stale, known.document_id) if known is not None else ()
        stale = tuple(dict.fromkeys(one for one in stale if one != document.document_id))
        placed = replace(document, chunk_ids=tuple(passage.chunk_id for passage in passages), stale=stale)
        await self._lexical.put(report.collection, passages, owner=owner)
        await self._embed(owner, report, passages)
        await self._documents.put(owner, report.collection, placed)
        if stale:
            await self._lexical.delete(report.collection, stale, owner=owner)
            gone = [chunk for chunk in (known.chunk_ids if known else ()) if chunk not in placed.chunk_ids]
            await self._vectors.delete(vector_set(owner, report.collection), gone, owner=owner)
            await self._documents.put(owner, report.collection, replace(placed, stale=()))
        report.read += 1
        report.chunks += len(passages)
        report.notes += [f"{document.name}: {uncertainty}" for uncertainty in parsed.uncertainties]

    async def _embed(self, owner: str, report: IngestReport, passages: Sequence[Passage]) -> None:
        """Vectors, where there is an embedder; without them the passages are found by their words."""
        if self._embedder is None or not passages:
            return
        name = vector_set(owner, report.collection)
        try:
            made = await self._embedder.embed([f"{passage.title}\n{passage.text}" for passage in passages])
            await self._vectors.open(name, made.space)
            await self._vectors.put(name, entries(passages, made, owner=owner))
        except (EmbedderError, VectorSpaceError) as error:
            note = f"no vectors: {error.message}"
            if note not in report.notes:
                report.notes.append(note)

    async def _remove(self, owner: str, collection: str, document: Document) -> None:
        await self._lexical.delete(collection, [document.document_id, *document.stale], owner=owner)
        await self._vectors.delete(vector_set(owner, collection), document.chunk_ids, owner=owner)
        await self._documents.remove(owner, collection, document.source)

    @asynccontextmanager
    async def _held(self, owner: str, collection: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Keep others from writing into the collection; what is given prolongs that."""
        holder = secrets.token_hex(8)

        async def prolong() -> None:
            if not await self._documents.hold(owner, collection, holder, HOLD_SECONDS):
                raise ConflictError(
                    f"somebody else is reading into {collection!r}; wait for its end (or {HOLD_SECONDS:.0f} s after a "
                    "crash) and start again: what is done is not done twice",
                    agent_id="library",
                )

        await prolong()
        try:
            yield prolong
        finally:
            await asyncio.shield(self._documents.let_go(owner, collection, holder))

    async def _unknown(self, owner: str, collection: str) -> NotFoundError:
        there = ", ".join(await self._documents.collections(owner)) or "none yet: `stepgate ingest FOLDER` makes one"
        return NotFoundError(f"there is no collection {collection!r}; there are {there}", agent_id="library")


def _checksum(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return digest, file.tell()


def _document(candidate: Candidate, checksum: str, size: int, parsed: ParserOutput, at: float) -> Document:
    """The row of a document. A changed file gets a new id: its old passages go when the new ones are in place."""
    digest = hashlib.blake2b(f"{candidate.source}\x00{checksum}".encode("utf-8", "replace"), digest_size=12)
    title = str(parsed.metadata.get("title") or "").strip() or candidate.path.name
    return Document(
        source=candidate.source,
        name=candidate.name,
        document_id=f"doc_{digest.hexdigest()}",
        checksum=checksum,
        title=title[:300],
        file_type=candidate.file_type or "txt",
        size=size,
        pages=parsed.total_pages,
        uncertainties=parsed.uncertainties,
        at=at,
    )


def _passage(document: Document, chunk: Chunk) -> Passage:
    """A chunk as it is searched and cited: with its place in the document."""
    metadata: JsonObject = {
        "source": document.name,
        "source_type": "local",
        "file_type": document.file_type,
        "pages": list(chunk.pages),
        "start": chunk.start,
        "end": chunk.end,
        "heading_path": list(chunk.heading_path),
        "boxes": [list(box) for box in chunk.boxes],
        "checksum": chunk.checksum,
        "file_checksum": document.checksum,
    }
    title = " / ".join((document.title, *chunk.heading_path))
    return Passage(f"{document.document_id}.{chunk.index}", document.document_id, title[:500], chunk.text, metadata)
