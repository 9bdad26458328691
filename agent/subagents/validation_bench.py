"""`ValidationBench`: the pipeline under validation, its source, and what was tried on them so far. The tools of the
`PipelineValidator` work on one together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.core.errors import ToolInputError
from agent.core.models import Frozen, JsonObject
from agent.knowledge.dry_run_report import FileResult, ValidationReport
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_diff import PipelineDiff
from agent.knowledge.workshop import Made, Workshop
from agent.subagents.base import Caller, Materials
from agent.subagents.readings import Readings
from agent.subagents.source_files import SourceFiles

FAILURES_KEPT = 100
MESSAGE_CHARS = 300


class DryRunOutput(Frozen):
    """A dry run's report, of the pipeline itself or with a change. `files` has those that failed; `note` says that it
    is one of before."""

    pipeline_diff: PipelineDiff | None = None
    report: ValidationReport
    note: str = ""


class AlternativeOutput(Frozen):
    """One file read another way, and the change of the pipeline that this is."""

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
class ValidationBench:
    """Where a pipeline is tried. `base` is the dry run of the pipeline itself, `changed` those with changes."""

    pipeline: PipelineDAG
    files: SourceFiles
    readings: Readings
    materials: Materials
    caller: Caller
    sample_count: int
    seed: int
    base: ValidationReport | None = None
    changed: list[DryRunOutput] = field(default_factory=list)
    alternatives: list[AlternativeOutput] = field(default_factory=list)

    def tried(self, diff: PipelineDiff | None) -> ValidationReport | None:
        """The report of the dry run with this change, or of the pipeline itself, where there was one."""
        if diff is None:
            return self.base
        return next((one.report for one in self.changed if one.pipeline_diff == diff), None)

    async def dry_run(self, pipeline: PipelineDAG) -> ValidationReport:
        """A dry run on the sample; only what failed is listed file by file. Raises what `Library.dry_run` does."""
        report = await self.materials.library.dry_run(
            self.files.request,
            pipeline,
            sample_count=self.sample_count,
            seed=self.seed,
            roots=self.materials.roots,
        )
        return report.model_copy(update={"files": tuple(_failures(report.files))})

    async def made(self, pipeline: PipelineDAG, name: str) -> Made:
        """A file through a pipeline. Raises the narrowest `ParserError`, `ToolInputError` for a file that is not
        there."""
        file = await self.files.file(name)
        if file.file_type is None:
            raise ToolInputError(f"{name} is of a type that no parser reads; leave such files out")
        async with self.files.copied(name) as copy, Workshop(pipeline) as workshop:
            return await workshop.read(str(copy.path), file.file_type, self.files.request.source_type)

    async def name(self, file: str) -> str:
        """The name of a file that is called by its name or by its source, as reports do. `ToolInputError`."""
        failed = next((one for one in self.failures if file in (one.source, one.name)), None)
        return (await self.files.file(failed.name if failed is not None else file)).name

    @property
    def failures(self) -> Sequence[FileResult]:
        """What failed in the dry run of the pipeline itself."""
        return self.base.files if self.base is not None else ()

    def failure(self, file: str) -> FileResult:
        """The failure of a file. `ToolInputError` for one that did not fail."""
        for one in self.failures:
            if file in (one.source, one.name):
                return one
        names = ", ".join(one.name for one in self.failures[:10]) or "none"
        hint = "run_dry_run first" if self.base is None else f"those that failed are {names}"
        raise ToolInputError(f"no file {file[:200]!r} has failed; {hint}")


def diff_of(data: JsonObject) -> PipelineDiff:
    """A change as JSON. `ToolInputError` for what is none."""
    try:
        return PipelineDiff.model_validate(data)
    except ValueError as error:
        raise ToolInputError(f"this is no pipeline_diff: {str(error)[:MESSAGE_CHARS]}") from error


def _failures(files: Sequence[FileResult]) -> list[FileResult]:
    failed = [one for one in files if one.status == "failed"][:FAILURES_KEPT]
    return [one.model_copy(update={"message": one.message[:MESSAGE_CHARS]}) for one in failed]
