"""`Ingestion`: reads a source into a collection, incrementally, with a report.

Unchanged documents are skipped, by the source's version or by checksum, if the same pipeline would read them. Changed
ones are replaced, vanished ones removed. A document that cannot be read stops nothing.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.core.errors import AgentError, StoreError
from agent.ingest.connectors.port import Connector, FetchedDocument, MissedDocument
from agent.ingest.document_processor import DocumentProcessor, ProcessedDocument
from agent.ingest.index_writer import IndexWriter
from agent.ingest.local_files import TYPES
from agent.ingest.pipeline_check import source_options
from agent.search.documents import Document
from agent.search.models import ConnectorInput, ConnectorOutput, FileType

Progress = Callable[[str, int, int | None], None]
"""Called for each document with its name, how many are done, and how many there are (None while unknown)."""

REMEDIES: Mapping[str, str] = {
    "ERR_CONNECTOR_AUTH": "give another credential that may read it (credentials_id, --credentials), or leave it out",
    "ERR_PARSER_ENCRYPTED": "give the password of a PDF (password_id, --password-file), or leave it out",
    "ERR_CONNECTOR_FAILED": "read it again later",
    "ERR_CONNECTOR_REFUSED": "ask the site's owner for another way to it, or give the address it leads to as a source",
    "ERR_TIMEOUT": "give its parser more time (timeout_s), or leave it out",
}
"""What would help a skipped document, by error code."""
READ_AHEAD = 3
"""Files read ahead of the one that is written: enough to keep the parser processes busy."""


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that was not read, and why."""

    source: str
    code: str
    reason: str

    @property
    def remedy(self) -> str:
        """What would help, for the person responsible; empty if nothing would."""
        return REMEDIES.get(self.code, "")


@dataclass(slots=True)
class IngestReport:
    """The result of an ingestion. `left_out` counts files that the pipeline excludes."""

    collection: str
    read: int = 0
    unchanged: int = 0
    removed: int = 0
    left_out: int = 0
    chunks: int = 0
    seconds: float = 0.0
    skipped: list[SkippedDocument] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    template: str = ""
    embedder: str = ""

    @property
    def by_reason(self) -> dict[str, int]:
        """How many documents were skipped, by error code."""
        return dict(Counter(one.code for one in self.skipped))

    @property
    def processed_count(self) -> int:
        """How many documents were found so far."""
        return self.read + self.unchanged + self.left_out + len(self.skipped)

    @property
    def nothing_read_reason(self) -> str:
        """Why nothing was read, as a sentence; empty if something was read, now or before."""
        if self.read or self.unchanged:
            return ""
        if self.skipped:
            return "nothing was read: every document that was found was skipped"
        if self.left_out:
            return "nothing was read: the pipeline excludes every document that was found"
        known = ", ".join(sorted(TYPES))
        return f"nothing was read: there is no file that is not hidden or ignored (read are {known} and any text)"

    @property
    def interruption_note(self) -> str:
        """What an interrupted ingestion leaves behind, and how to continue."""
        return (
            f"{self.read} document{'s' if self.read != 1 else ''} had been read into {self.collection!r} by then and "
            "can be searched; everything else there is as it was. Read the same source again, and it goes on from there"
        )


@dataclass(frozen=True, slots=True)
class _PendingRead:
    """A document that is being processed, and the one it replaces."""

    found: FetchedDocument
    output: ConnectorOutput
    file_type: FileType
    known: Document | None
    task: "asyncio.Task[ProcessedDocument]"


@dataclass(slots=True)
class Ingestion:
    """One walk. `mark_started` is awaited once the source has answered."""

    request: ConnectorInput
    connector: Connector
    processor: DocumentProcessor
    writer: IndexWriter
    workspace: Path
    clock: Callable[[], float]
    report: IngestReport
    mark_started: Callable[[], Awaitable[None]]
    progress: Progress = lambda _, __, ___: None
    _met_sources: set[str] = field(default_factory=set)
    _pending: "deque[_PendingRead]" = field(default_factory=deque)

    async def run(self, known: Mapping[str, Document]) -> None:
        """Walks to the end. Raises `ConnectorError` if the source cannot be read, and `StoreError`; finished documents
        stay."""
        versions = {
            source: document.version if self._is_current(document) else "" for source, document in known.items()
        }
        total: int | None = None
        walk = self.connector.fetch(self.request, self.workspace, versions)
        try:
            async with closing_walk(walk):
                async for found in walk:
                    await self.mark_started()
                    if isinstance(found, MissedDocument):
                        self._on_missed(found)
                        continue
                    if found.source in self._met_sources:  # a page that two links lead to is one document
                        continue
                    total = found.total if found.total is not None else total
                    self.progress(found.name, self.report.processed_count, total)
                    await self._ingest(found, known.get(found.source))
            await self._write_finished(0)
        finally:
            await self._cancel_pending()
        await self.mark_started()
        self.progress("", self.report.processed_count, self.report.processed_count)
        for source in sorted(known.keys() - self._met_sources):
            if self.connector.covers(self.request, source):
                await self.writer.remove_document(known[source])
                self.report.removed += 1

    def _on_missed(self, missed: MissedDocument) -> None:
        """Handles a document that could not be fetched: it keeps its passages unless it is gone."""
        if source_options(self.processor.pipeline).excludes(missed.name, None):
            self.report.left_out += 1
            return
        if not missed.gone:
            self._met_sources.add(missed.source)
        if missed.is_walk_limit:
            self._add_notes(missed.error.message)
        else:
            self._skip(missed.name, missed.error)

    async def _ingest(self, found: FetchedDocument, known: Document | None) -> None:
        """Handles one document: unchanged, processed, or skipped."""
        if source_options(self.processor.pipeline).excludes(found.name, found.file_type):
            self.report.left_out += 1
            return
        if found.file_type is None:
            kind = Path(found.name).suffix or "files without an extension that are not text"
            reason = f"no parser reads {kind}"
            self.report.skipped.append(SkippedDocument(found.name, "ERR_PARSER_UNSUPPORTED", reason))
            return
        self._met_sources.add(found.source)
        if known is not None and (found.output is None or self._is_unchanged(known, found.output)):
            await self._keep_unchanged(known, found)
            return
        if found.output is None:
            # The version was of a document that is not there: said by a connector that is at odds with itself.
            self.report.skipped.append(
                SkippedDocument(found.name, "ERR_CONNECTOR_FAILED", "nothing was fetched; try again")
            )
            return
        path = found.output.file_path
        reading = asyncio.create_task(self.processor.process(path, found.file_type, self.request.source_type))
        self._pending.append(_PendingRead(found, found.output, found.file_type, known, reading))
        # What was downloaded may be gone with the next step of the walk; a file that lies where it lay is not.
        await self._write_finished(0 if Path(path).is_relative_to(self.workspace) else READ_AHEAD)

    async def _write_finished(self, ahead: int) -> None:
        """Writes processed documents in walk order until at most `ahead` are still being processed."""
        while len(self._pending) > ahead:
            one = self._pending[0]
            try:
                made = await one.task
            except StoreError:
                raise
            except AgentError as error:
                self._skip(one.found.name, error, called=Path(one.output.file_path).name)
            else:
                await self._write(one, made)
            self._pending.popleft()

    async def _cancel_pending(self) -> None:
        """Cancels the processing of documents after a walk that failed."""
        tasks = [one.task for one in self._pending]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # seen; the first one is raised already

    async def _write(self, one: "_PendingRead", made: ProcessedDocument) -> None:
        found, output, file_type, known = one.found, one.output, one.file_type, one.known
        document = made.to_document(
            collection=self.report.collection,
            source=found.source,
            name=found.name,
            file_type=file_type,
            source_type=self.request.source_type,
            size=output.file_size_bytes,
            url=found.url,
            at=self.clock(),
        )
        if document.checksum == output.checksum:
            document = replace(document, version=found.version)
        else:  # the bytes that were read count; without a version the next walk looks again
            self.report.notes.append(f"{found.name}: it changed while it was read")
        placed = await self.writer.write_document(document, made.chunks, known, vectors=self._wants_vectors(file_type))
        self.report.read += 1
        self.report.chunks += len(made.chunks)
        self.report.embedder = placed.embedder or self.report.embedder
        self._add_notes(
            *(f"{found.name}: {uncertainty}" for uncertainty in made.parsed.uncertainties), self.writer.vector_failure
        )

    async def _keep_unchanged(self, known: Document, found: FetchedDocument) -> None:
        """Keeps an unchanged document, storing a new version if it has one."""
        self.report.unchanged += 1
        if found.version and found.version != known.version:
            await self.writer.documents.put(
                self.writer.lock.owner, self.report.collection, replace(known, version=found.version)
            )

    def _is_unchanged(self, known: Document, output: ConnectorOutput) -> bool:
        return known.checksum == output.checksum and self._is_current(known)

    def _is_current(self, known: Document) -> bool:
        return self.processor.is_current(known, embedder=self.writer.makes_vectors)

    def _wants_vectors(self, file_type: FileType) -> bool:
        route = self.processor.find_route(file_type)
        return route is not None and route.wants_vectors

    def _skip(self, name: str, error: AgentError, called: str = "") -> None:
        """Reports a skipped document. `called` is the temporary name that the error may use for it."""
        said = error.message.replace(called, name) if called and called not in name else error.message
        self.report.skipped.append(SkippedDocument(name, error.code, said))

    def _add_notes(self, *notes: str) -> None:
        self.report.notes += [note for note in dict.fromkeys(notes) if note and note not in self.report.notes]


@asynccontextmanager
async def closing_walk(walk: AsyncIterator[object]) -> AsyncIterator[None]:
    """Closes an async generator that is left early at once instead of at garbage collection."""
    try:
        yield
    finally:
        if isinstance(walk, AsyncGenerator):
            await walk.aclose()
