"""`DryRun`: a pipeline tried on a sample of a source. Files are fetched, parsed and cut; nothing is written but in a
workspace that is removed.

What fails is tried again with the changes that might help; those that do are recommended.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from agent.core.embedder import Embedder
from agent.core.errors import AgentError, EmbedderError, StoreError
from agent.knowledge.connectors.port import Connector, Fetched, Missed
from agent.knowledge.dry_run_report import FileResult, PipelineFix, ValidationReport, report
from agent.knowledge.dry_run_sample import Candidate, Sampler
from agent.knowledge.errors import ParserUnsupportedError
from agent.knowledge.ingestion import closed
from agent.knowledge.models import Chunk, ConnectorInput, FileType
from agent.knowledge.pipeline import FILE_TYPES, PipelineDAG
from agent.knowledge.pipeline_check import left_out
from agent.knowledge.pipeline_diff import difference
from agent.knowledge.repairs import Repair, repairs
from agent.knowledge.workshop import Workshop

AT_ONCE = 2
"""Files under way at a time: as many as a pool of parsers has processes."""
EMBEDDED = 16
"""Passages that are embedded, to see that and how fast it works; each may cost money."""
TRIED = 5
"""Files of a kind that a change is tried on."""


@dataclass(slots=True)
class _Tried:
    candidate: Candidate
    result: FileResult
    chunks: list[Chunk] = field(default_factory=list)
    parser_s: float = 0.0
    chunker_s: float = 0.0


class DryRun:
    """One trial of `workshop`'s pipeline. `folder` keeps downloaded files of the sample until the end."""

    def __init__(
        self,
        connector: Connector,
        workshop: Workshop,
        embedder: Embedder | None,
        folder: Path,
        *,
        sample_count: int,
        seed: int,
    ) -> None:
        self._connector = connector
        self._workshop = workshop
        self._embedder = embedder
        self._folder = folder
        self._sampler = Sampler(sample_count, seed)
        self._seed = seed
        self._places = asyncio.Semaphore(AT_ONCE)
        self._request: ConnectorInput | None = None
        self._left: Counter[FileType] = Counter()

    async def run(self, request: ConnectorInput) -> ValidationReport:
        """Walk, try, judge. Raises `ConnectorError` when the source itself cannot be had."""
        self._request = request
        started = monotonic()
        await self._walk(request)
        source_s = monotonic() - started
        chosen = self._sampler.chosen()
        tried = await self._try_all(self._workshop, chosen)
        chunks = [chunk for one in tried for chunk in one.chunks]
        embedder_s, notes = await self._embed(chunks)
        notes += self._left_out
        timings = {
            "source": source_s,
            "parser": sum(one.parser_s for one in tried),
            "chunker": sum(one.chunker_s for one in tried),
            "embedder": embedder_s,
        }
        fixes = await self._fixes([one for one in tried if one.result.status == "failed"])
        results = [one.result for one in tried]
        return report(results, chunks, timings, fixes, found=self._sampler.offered, seed=self._seed, notes=notes)

    async def _walk(self, request: ConnectorInput) -> None:
        """Everything at the source is looked at; the bytes of what may be chosen are kept."""
        downloads, kept = self._folder / "fetched", self._folder / "sample"
        for folder in (downloads, kept):
            folder.mkdir()
        walk, types = self._connector.fetch(request, downloads, {}), left_out(self._workshop.pipeline)
        async with closed(walk):
            async for found in walk:
                self._sampler.offered += 1
                if isinstance(found, Fetched) and found.file_type in types:
                    self._left[found.file_type] += 1
                    continue
                if not self._sampler.wants(found):
                    continue
                candidate = await asyncio.to_thread(_kept, found, downloads, kept / str(self._sampler.offered))
                dropped = self._sampler.offer(candidate)
                if dropped is not None and dropped.owned and dropped.path is not None:
                    dropped.path.unlink()

    async def _try_all(self, workshop: Workshop, candidates: Sequence[Candidate]) -> list[_Tried]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._try(workshop, candidate)) for candidate in candidates]
        return [task.result() for task in tasks]

    async def _try(self, workshop: Workshop, candidate: Candidate) -> _Tried:
        """One file through parser and chunker; its failure is its result."""
        found = candidate.found
        if isinstance(found, Missed):
            result = FileResult(source=found.source, name=found.name, file_type=None, status="failed", stage="source")
            return _Tried(candidate, _failed(result, found.error))
        assert self._request is not None
        size = found.output.file_size_bytes if found.output is not None else 0
        result = FileResult(
            source=found.source,
            name=found.name,
            file_type=found.file_type,
            status="failed",
            stage="parser",
            size_bytes=size,
        )
        if found.file_type is None or candidate.path is None:
            kind = Path(found.name).suffix or "files without an ending"
            return _Tried(candidate, _failed(result, ParserUnsupportedError(f"{kind} is not read")))
        async with self._places:
            started = monotonic()
            try:
                made = await workshop.read(str(candidate.path), found.file_type, self._request.source_type)
            except StoreError:
                raise
            except AgentError as error:
                seconds = monotonic() - started
                failed = _failed(result, error).model_copy(update={"seconds": round(seconds, 4)})
                return _Tried(candidate, failed, parser_s=seconds)
        done = result.model_copy(
            update={
                "status": "ok",
                "stage": None,
                "pages": made.parsed.total_pages,
                "chunks": len(made.chunks),
                "characters": sum(len(chunk.text) for chunk in made.chunks),
                "uncertainties": made.parsed.uncertainties,
                "seconds": round(made.parser_s + made.chunker_s, 4),
            }
        )
        return _Tried(candidate, done, made.chunks, made.parser_s, made.chunker_s)

    async def _embed(self, chunks: Sequence[Chunk]) -> tuple[float, list[str]]:
        """How long some of the passages take to embed, and what is to be said about it."""
        if self._embedder is None or not chunks or not self._wants_vectors:
            return 0.0, []
        started = monotonic()
        try:
            await self._embedder.embed([chunk.text for chunk in chunks[:EMBEDDED]])
        except EmbedderError as error:
            return monotonic() - started, [f"passages would have no vectors: {error.message}"]
        return monotonic() - started, []

    @property
    def _left_out(self) -> list[str]:
        """What is to be said of files that the pipeline leaves out on purpose."""
        count, types = self._left.total(), ", ".join(sorted(self._left))
        return [f"{count} {'file is' if count == 1 else 'files are'} left out, as the pipeline says ({types})"][:count]

    @property
    def _wants_vectors(self) -> bool:
        routes = [self._workshop.route(kind) for kind in FILE_TYPES]
        return any(way is not None and way.wants_vectors for way in routes)

    async def _fixes(self, failed: Sequence[_Tried]) -> list[PipelineFix]:
        """The changes that make some of the failed files readable, each tried on a few of those it is for."""
        pipeline = self._workshop.pipeline
        fixes: list[PipelineFix] = []
        for repair, ones in _wanted(pipeline, failed).items():
            few = ones[:TRIED]
            async with Workshop(repair.pipeline) as workshop:
                again = await self._try_all(workshop, [one.candidate for one in few])
            read = sum(one.result.status == "ok" for one in again)
            if read:
                description = f"{repair.description}: {read} of {len(few)} files that failed are read then"
                fixes.append(PipelineFix(description=description, pipeline_diff=difference(pipeline, repair.pipeline)))
        return fixes


def _wanted(pipeline: PipelineDAG, failed: Sequence[_Tried]) -> dict[Repair, list[_Tried]]:
    """The repairs that may help, each with the files it may help."""
    wanted: dict[Repair, list[_Tried]] = {}
    largest = max((one.result.size_bytes for one in failed), default=0)
    for one in failed:
        for repair in repairs(pipeline, one.result, largest):
            wanted.setdefault(repair, []).append(one)
    return wanted


def _kept(found: Fetched | Missed, downloads: Path, place: Path) -> Candidate:
    """The file where it lies, or a copy of one that the connector will remove."""
    if isinstance(found, Missed) or found.output is None:
        return Candidate(found)
    path = Path(found.output.file_path)
    if not path.is_relative_to(downloads):
        return Candidate(found, path)
    copy = place.with_suffix(path.suffix)
    shutil.copyfile(path, copy)  # no link: a connector may write the next one over it
    return Candidate(found, copy, owned=True)


def _failed(result: FileResult, error: AgentError) -> FileResult:
    return result.model_copy(
        update={"error_code": error.code, "message": error.message, "details": dict(error.details)}
    )
