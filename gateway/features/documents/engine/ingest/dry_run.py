"""`DryRun`: tries a pipeline on a sample of a source. Files are fetched, parsed and split; nothing is indexed.

Failed files are tried again with changes that might help; those that do are recommended.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from agent.core.concurrent_calls import gather_all
from agent.core.errors import AgentError, EmbedderError, StoreError
from agent.llm.embedder import Embedder
from agent.text.plurals import format_count
from gateway.features.documents.engine.ingest.connectors.port import Connector, FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor
from gateway.features.documents.engine.ingest.dry_run_report import (
    FileResult,
    PipelineFix,
    ValidationReport,
    build_report,
)
from gateway.features.documents.engine.ingest.dry_run_sample import Candidate, Sampler
from gateway.features.documents.engine.ingest.errors import ConnectorError, ParserUnsupportedError
from gateway.features.documents.engine.ingest.file_types import list_file_types
from gateway.features.documents.engine.ingest.parser_fallbacks import ParserFallback, suggest_fallbacks
from gateway.features.documents.engine.ingest.parsers import ocr
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import get_source_options, list_parser_types
from gateway.features.documents.engine.ingest.pipeline_diff import diff_pipelines
from gateway.features.documents.engine.ingest.plugins import ParserOptions, parse_options
from gateway.features.documents.engine.ingest.walk import close_walk
from gateway.features.documents.engine.search.models import Chunk, ConnectorInput, FileType

CONCURRENT_FILES = 2
"""Files processed at the same time: as many as a parser pool has processes."""
EMBEDDED_PASSAGES = 16
"""Passages that are embedded to test the embedder; each may cost money."""
FILES_PER_FIX = 5
"""Failed files that a change is tried on."""


@dataclass(slots=True)
class _FileTrial:
    candidate: Candidate
    result: FileResult
    chunks: list[Chunk] = field(default_factory=list)
    parser_s: float = 0.0
    chunker_s: float = 0.0


class DryRun:
    """One trial of the processor's pipeline. `folder` keeps downloaded sample files until the end."""

    def __init__(
        self,
        connector: Connector,
        processor: DocumentProcessor,
        embedder: Embedder | None,
        folder: Path,
        *,
        sample_count: int,
        seed: int,
    ) -> None:
        self._connector = connector
        self._processor = processor
        self._embedder = embedder
        self._folder = folder
        self._sampler = Sampler(sample_count, seed)
        self._seed = seed
        self._slots = asyncio.Semaphore(CONCURRENT_FILES)
        self._request: ConnectorInput | None = None
        self._file_types: set[FileType] = set()
        self._excluded: Counter[str] = Counter()
        self._unread: Counter[str] = Counter()
        self._notes: list[str] = []

    async def run(self, request: ConnectorInput) -> ValidationReport:
        """Walks the source, tries the sample and judges the result. Raises `ConnectorError` if the source cannot be
        read."""
        self._request = request
        started = monotonic()
        await self._walk(request)
        source_s = monotonic() - started
        chosen = self._sampler.sample()
        tried = await self._try_all(self._processor, chosen)
        chunks = [chunk for one in tried for chunk in one.chunks]
        embedder_s, notes = await self._embed(chunks)
        notes += self._walk_notes()
        timings = {
            "source": source_s,
            "parser": sum(one.parser_s for one in tried),
            "chunker": sum(one.chunker_s for one in tried),
            "embedder": embedder_s,
        }
        fixes = await self._find_fixes([one for one in tried if one.result.status == "failed"])
        results = [one.result for one in tried]
        return build_report(
            results,
            chunks,
            timings,
            fixes,
            found=self._sampler.seen_count,
            seed=self._seed,
            blocking=await self._list_missing_ocr(),
            notes=notes,
        )

    async def _walk(self, request: ConnectorInput) -> None:
        """Walks the whole source; keeps the bytes of files that may be sampled."""
        downloads, copies = self._folder / "fetched", self._folder / "sample"
        for folder in (downloads, copies):
            folder.mkdir()
        walk = self._connector.fetch(request, downloads, {})
        async with close_walk(walk):
            async for document in walk:
                if not self._is_counted(document) or not self._sampler.would_keep(document):
                    continue
                candidate = await asyncio.to_thread(
                    _keep_copy, document, downloads, copies / str(self._sampler.seen_count)
                )
                dropped = self._sampler.add(candidate)
                if dropped is not None and dropped.is_copy and dropped.path is not None:
                    dropped.path.unlink()

    def _is_counted(self, found: FetchedDocument | MissedDocument) -> bool:
        """Whether a file counts for the pipeline's readiness: not if it is excluded, or no parser reads it."""
        if isinstance(found, MissedDocument) and found.is_walk_limit:
            self._notes.append(found.error.message)
            return False
        self._sampler.seen_count += 1
        file_type = found.file_type if isinstance(found, FetchedDocument) else None
        kind = file_type or Path(found.name).suffix.lower() or "no extension"
        if get_source_options(self._processor.pipeline).excludes(found.name, file_type):
            self._excluded[kind] += 1
            return False
        if isinstance(found, MissedDocument):
            if isinstance(found.error, ParserUnsupportedError):  # a link, a pipe, a device
                self._unread[str(found.error.details.get("found"))] += 1
            return not isinstance(found.error, ParserUnsupportedError)
        if found.file_type is None:
            self._unread[kind] += 1
            return False
        self._file_types.add(found.file_type)
        return True

    async def _try_all(self, processor: DocumentProcessor, candidates: Sequence[Candidate]) -> list[_FileTrial]:
        return await gather_all(self._try(processor, candidate) for candidate in candidates)

    async def _try(self, processor: DocumentProcessor, candidate: Candidate) -> _FileTrial:
        """Processes one file; a failure is its result."""
        document = candidate.found
        if isinstance(document, MissedDocument):
            result = FileResult(
                source=document.source, name=document.name, file_type=None, status="failed", stage="source"
            )
            return _FileTrial(candidate, _make_failed_result(result, document.error))
        assert self._request is not None
        size = document.output.file_size_bytes if document.output is not None else 0
        result = FileResult(
            source=document.source,
            name=document.name,
            file_type=document.file_type,
            status="failed",
            stage="parser",
            size_bytes=size,
        )
        if document.file_type is None or candidate.path is None:
            return _FileTrial(candidate, _make_failed_result(result, ConnectorError("nothing was fetched; try again")))
        async with self._slots:
            started = monotonic()
            try:
                made = await processor.process(str(candidate.path), document.file_type, self._request.source_type)
            except StoreError:
                raise
            except AgentError as error:
                seconds = monotonic() - started
                failed = _make_failed_result(result, error).model_copy(update={"seconds": round(seconds, 4)})
                return _FileTrial(candidate, failed, parser_s=seconds)
        done = result.model_copy(
            update={
                "status": "ok",
                "stage": None,
                "pages": made.parsed.total_pages,
                "chunks": len(made.chunks),
                "characters": sum(len(chunk.text) for chunk in made.chunks),
                "uncertainties": made.parsed.uncertainties,
                "coverage": made.parsed.coverage,
                "seconds": round(made.parser_s + made.chunker_s, 4),
            }
        )
        return _FileTrial(candidate, done, made.chunks, made.parser_s, made.chunker_s)

    async def _embed(self, chunks: Sequence[Chunk]) -> tuple[float, list[str]]:
        """The seconds that embedding some passages took, and notes on failures."""
        if self._embedder is None or not chunks or not self._wants_vectors:
            return 0.0, []
        started = monotonic()
        try:
            await self._embedder.embed([chunk.text for chunk in chunks[:EMBEDDED_PASSAGES]])
        except EmbedderError as error:
            return monotonic() - started, [f"passages would have no vectors: {error.message}"]
        return monotonic() - started, []

    def _walk_notes(self) -> list[str]:
        """Notes on excluded files, files that no parser reads, and limits that ended the walk."""
        if self._excluded:
            self._notes.append(f"{_list_kinds(self._excluded)} left out, as the pipeline says")
        if self._unread:
            self._notes.append(f"{_list_kinds(self._unread)} of a kind that no parser reads")
        return self._notes

    async def _list_missing_ocr(self) -> list[str]:
        """Lists what has to be installed for the OCR that the pipeline asks for, if the source has PDFs."""
        if "pdf" not in self._file_types:
            return []
        pipeline = self._processor.pipeline
        parsers = [node for node in pipeline.list_nodes("parser") if "pdf" in list_parser_types(pipeline, node)]
        options = [parse_options(ParserOptions, node.options) for node in parsers]
        installed = await asyncio.to_thread(ocr.list_installed_languages)
        return [
            f"OCR is requested but not installed: {ocr.install_hint(one.ocr_languages)}"
            for one in options
            if one.force_ocr and not set(one.ocr_languages.split("+")) <= installed
        ]

    @property
    def _wants_vectors(self) -> bool:
        routes = [self._processor.find_route(kind) for kind in list_file_types()]
        return any(route is not None and route.wants_vectors for route in routes)

    async def _find_fixes(self, failed: Sequence[_FileTrial]) -> list[PipelineFix]:
        """The changes that make failed files readable, each tried on a few of them."""
        pipeline = self._processor.pipeline
        fixes: list[PipelineFix] = []
        for fallback, ones in _find_useful_fallbacks(pipeline, failed).items():
            few = ones[:FILES_PER_FIX]
            async with DocumentProcessor(fallback.pipeline) as processor:
                again = await self._try_all(processor, [one.candidate for one in few])
            read = sum(one.result.status == "ok" for one in again)
            if read:
                description = f"{fallback.description}: {read} of {len(few)} files that failed are read then"
                fixes.append(
                    PipelineFix(description=description, pipeline_diff=diff_pipelines(pipeline, fallback.pipeline))
                )
        return fixes


def _list_kinds(counts: Counter[str]) -> str:
    """The beginning of a sentence: `3 files (.png 2, .zip 1) are`."""
    listed = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    return f"{format_count(counts.total(), 'file')} ({listed}) {'is' if counts.total() == 1 else 'are'}"


def _find_useful_fallbacks(
    pipeline: PipelineDAG, failed: Sequence[_FileTrial]
) -> dict[ParserFallback, list[_FileTrial]]:
    """The changes that may help, each with the files it may help."""
    wanted: dict[ParserFallback, list[_FileTrial]] = {}
    largest = max((one.result.size_bytes for one in failed), default=0)
    for one in failed:
        for fallback in suggest_fallbacks(pipeline, one.result, largest):
            wanted.setdefault(fallback, []).append(one)
    return wanted


def _keep_copy(found: FetchedDocument | MissedDocument, downloads: Path, place: Path) -> Candidate:
    """The file in place, or a copy of a file that the connector will delete."""
    if isinstance(found, MissedDocument) or found.output is None:
        return Candidate(found)
    path = Path(found.output.file_path)
    if not path.is_relative_to(downloads):
        return Candidate(found, path)
    copy = place.with_suffix(path.suffix)
    shutil.copyfile(path, copy)  # no link: a connector may write the next one over it
    return Candidate(found, copy, is_copy=True)


def _make_failed_result(result: FileResult, error: AgentError) -> FileResult:
    return result.model_copy(
        update={"error_code": error.code, "message": error.message, "details": dict(error.details)}
    )
