"""`ValidationSession`: the pipeline under validation, its source, and the trials so far. The validator's tools share
it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.core.errors import ToolInputError
from agent.core.models import FrozenModel, JsonObject
from agent.subagents import Caller
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor, ProcessedDocument
from gateway.features.documents.engine.ingest.dry_run_report import FileResult, ValidationReport
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_diff import PipelineDiff
from gateway.features.pipeline_builder.engine.subagents.parsed_files import ParsedFiles
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles
from gateway.features.pipeline_builder.engine.subagents.source_resources import SourceResources

FAILURES_KEPT = 100
MESSAGE_CHARS = 300


class DryRunOutput(FrozenModel):
    """The report of a dry run, of the pipeline itself or with a change. `note` says that it is an earlier report."""

    pipeline_diff: PipelineDiff | None = None
    report: ValidationReport
    note: str = ""


class AlternativeOutput(FrozenModel):
    """One file read another way, and the pipeline change this means."""

    file: str
    success: bool
    error_code: str | None = None
    error: str | None = None
    pages: int = 0
    characters: int = 0
    chunks: int = 0
    seconds: float = 0.0
    pipeline_diff: PipelineDiff


@dataclass
class ValidationSession:
    """The state of a validation. `base_report` is of the pipeline itself, `changed_runs` are those with changes."""

    pipeline: PipelineDAG
    files: SourceFiles
    readings: ParsedFiles
    resources: SourceResources
    caller: Caller
    sample_count: int
    seed: int
    base_report: ValidationReport | None = None
    changed_runs: list[DryRunOutput] = field(default_factory=list)
    alternatives: list[AlternativeOutput] = field(default_factory=list)

    def find_report(self, diff: PipelineDiff | None) -> ValidationReport | None:
        """The report of the dry run with this change (None: of the pipeline itself), if there is one."""
        if diff is None:
            return self.base_report
        return next((one.report for one in self.changed_runs if one.pipeline_diff == diff), None)

    async def dry_run(self, pipeline: PipelineDAG) -> ValidationReport:
        """Runs a dry run; only failed files are listed. Raises what `Library.dry_run` raises."""
        report = await self.resources.library.dry_run(
            self.files.request,
            pipeline,
            sample_count=self.sample_count,
            seed=self.seed,
            roots=self.resources.roots,
        )
        return report.model_copy(update={"files": tuple(_list_failures(report.files))})

    async def process_file(self, pipeline: PipelineDAG, name: str) -> ProcessedDocument:
        """Takes a file through a pipeline. Raises the narrowest `ParserError`, or `ToolInputError` if it does not
        exist."""
        file = await self.files.get_file(name)
        if file.file_type is None:
            raise ToolInputError(f"{name} is of a type that no parser reads; leave such files out")
        async with self.files.open_copy(name) as copy, DocumentProcessor(pipeline) as workshop:
            return await workshop.process(str(copy.path), file.file_type, self.files.request.source_type)

    async def resolve_name(self, file: str) -> str:
        """The name of a file given by name or source id. Raises `ToolInputError`."""
        failed = next((one for one in self.failures if file in (one.source, one.name)), None)
        return (await self.files.get_file(failed.name if failed is not None else file)).name

    @property
    def failures(self) -> Sequence[FileResult]:
        """The failures in the dry run of the pipeline itself."""
        return self.base_report.files if self.base_report is not None else ()

    def get_failure(self, file: str) -> FileResult:
        """The failure of a file. Raises `ToolInputError` if it did not fail."""
        for one in self.failures:
            if file in (one.source, one.name):
                return one
        names = ", ".join(one.name for one in self.failures[:10]) or "none"
        hint = "run_dry_run first" if self.base_report is None else f"those that failed are {names}"
        raise ToolInputError(f"no file {file[:200]!r} has failed; {hint}")


def parse_diff(data: JsonObject) -> PipelineDiff:
    """Parses a change from JSON. Raises `ToolInputError`."""
    try:
        return PipelineDiff.model_validate(data)
    except ValueError as error:
        raise ToolInputError(f"this is not a pipeline_diff: {str(error)[:MESSAGE_CHARS]}") from error


def _list_failures(files: Sequence[FileResult]) -> list[FileResult]:
    failed = [one for one in files if one.status == "failed"][:FAILURES_KEPT]
    return [one.model_copy(update={"message": one.message[:MESSAGE_CHARS]}) for one in failed]
