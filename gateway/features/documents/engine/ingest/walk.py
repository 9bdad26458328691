"""`SourceWalk`: walks a source and decides which of its documents must be read.

Unchanged documents are skipped, by the source's version or by checksum, if the same pipeline would read them. Documents
that cannot be read are reported and stop nothing. `Ingestion` reads what it yields at once, `JobIngestion` in batches.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.core.errors import AgentError
from gateway.features.documents.engine.ingest.connectors.port import Connector, FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor
from gateway.features.documents.engine.ingest.ingest_report import IngestReport, Progress, SkippedDocument
from gateway.features.documents.engine.ingest.pipeline_check import get_source_options
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput, FileType


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that must be read, and the one it replaces."""

    found: FetchedDocument
    output: ConnectorOutput
    file_type: FileType
    known: Document | None


@dataclass(slots=True)
class SourceWalk:
    """One walk. `mark_started` is awaited once the source has answered, `keep` for an unchanged document with a new
    version; `makes_vectors` says whether documents without vectors must be read again."""

    request: ConnectorInput
    connector: Connector
    processor: DocumentProcessor
    workspace: Path
    report: IngestReport
    mark_started: Callable[[], Awaitable[None]]
    keep: Callable[[Document], Awaitable[None]]
    makes_vectors: Callable[[], bool]
    progress: Progress = lambda _, __, ___: None
    total: int | None = None
    """How many documents there are, as far as the source has said."""
    _met_sources: set[str] = field(default_factory=set)

    async def find_changed(
        self, known: Mapping[str, Document], given: AbstractSet[str] = frozenset()
    ) -> AsyncIterator[ChangedDocument]:
        """Yields the documents that must be read; those in `given` are left to others. Raises `ConnectorError` if the
        source cannot be read, and `StoreError`."""
        versions = {
            source: document.version if self._is_current(document) else "" for source, document in known.items()
        }
        walk = self.connector.fetch(self.request, self.workspace, versions)
        async with close_walk(walk):
            async for listed in walk:
                await self.mark_started()
                if isinstance(listed, MissedDocument):
                    self._on_missed(listed)
                    continue
                if listed.source in self._met_sources:  # a page that two links lead to is one document
                    continue
                self.total = listed.total if listed.total is not None else self.total
                self.progress(listed.name, self.report.processed_count, self.total)
                if listed.source in given:
                    self._met_sources.add(listed.source)
                    continue
                if (changed := await self._compare(listed, known.get(listed.source))) is not None:
                    yield changed
        await self.mark_started()

    def list_vanished(self, known: Mapping[str, Document]) -> list[str]:
        """The known sources that a whole walk would have met, and has not."""
        return [one for one in sorted(known.keys() - self._met_sources) if self.connector.covers(self.request, one)]

    def skip(self, name: str, error: AgentError, called: str = "") -> None:
        """Reports a skipped document. `called` is the temporary name that the error may use for it."""
        message = error.message.replace(called, name) if called and called not in name else error.message
        self.report.skipped.append(SkippedDocument(name, error.code, message))

    def _on_missed(self, missed: MissedDocument) -> None:
        """Handles a document that could not be fetched: it keeps its passages unless it is gone."""
        if get_source_options(self.processor.pipeline).excludes(missed.name, None):
            self.report.left_out += 1
            return
        if not missed.gone:
            self._met_sources.add(missed.source)
        if missed.is_walk_limit:
            self.report.add_notes(missed.error.message)
        else:
            self.skip(missed.name, missed.error)

    async def _compare(self, found: FetchedDocument, known: Document | None) -> ChangedDocument | None:
        """The document if it must be read; reports it otherwise."""
        if get_source_options(self.processor.pipeline).excludes(found.name, found.file_type):
            self.report.left_out += 1
            return None
        if found.file_type is None:
            kind = Path(found.name).suffix or "files without an extension that are not text"
            reason = f"no parser reads {kind}"
            self.report.skipped.append(SkippedDocument(found.name, "ERR_PARSER_UNSUPPORTED", reason))
            return None
        self._met_sources.add(found.source)
        if known is not None and (found.output is None or self._is_unchanged(known, found.output)):
            await self._keep_unchanged(known, found)
            return None
        if found.output is None:
            # The version was of a document that is not there: said by a connector that is at odds with itself.
            self.report.skipped.append(
                SkippedDocument(found.name, "ERR_CONNECTOR_FAILED", "nothing was fetched; try again")
            )
            return None
        return ChangedDocument(found, found.output, found.file_type, known)

    async def _keep_unchanged(self, known: Document, found: FetchedDocument) -> None:
        """Keeps an unchanged document, storing a new version if it has one."""
        self.report.unchanged += 1
        if found.version and found.version != known.version:
            await self.keep(replace(known, version=found.version))

    def _is_unchanged(self, known: Document, output: ConnectorOutput) -> bool:
        return known.checksum == output.checksum and self._is_current(known)

    def _is_current(self, known: Document) -> bool:
        return self.processor.is_current(known, embedder=self.makes_vectors())


@asynccontextmanager
async def close_walk(walk: AsyncIterator[object]) -> AsyncIterator[None]:
    """Closes an async generator that is left early at once instead of at garbage collection."""
    try:
        yield
    finally:
        if isinstance(walk, AsyncGenerator):
            await walk.aclose()
