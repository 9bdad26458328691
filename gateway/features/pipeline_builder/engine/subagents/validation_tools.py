"""Tools that try a pipeline: dry runs, failure details, alternatives."""

from time import monotonic

from pydantic import Field

from agent.core.errors import ConflictError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.tools import ToolContext, TypedTool
from agent.tools.tool import In, Out
from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.pipeline_check import PipelineInvalidError, check_pipeline
from gateway.features.documents.engine.ingest.pipeline_diff import apply_diff, diff_pipelines
from gateway.features.pipeline_builder.engine.subagents.alternatives import with_chunker_for_type, with_parser_for_type
from gateway.features.pipeline_builder.engine.subagents.validation_session import (
    AlternativeOutput,
    DryRunOutput,
    ValidationSession,
    parse_diff,
)

DRY_RUN_SECONDS = 280.0
"""Nearly all of the sub-agent's time: a sample of scans takes minutes."""
KNOWN = (
    "This is the report of before: the same pipeline on the same sample gives the same, and nothing was run again. Try "
    "a change, or end with your report."
)
FILE_SECONDS = 150.0
FILE = "name or source of a file, as the dry run gives it"


class ValidationTool(TypedTool[In, Out]):
    """The base of the tools of one validation. All show text of documents."""

    tainted = True

    def __init__(self, session: ValidationSession) -> None:
        super().__init__()
        self._session = session


class DryRunInput(DeferredModel):
    """The pipeline under validation, or a change of it."""

    pipeline_diff: JsonObject | None = Field(default=None, description="a change, as try_alternative_config gives it")


class RunDryRunTool(ValidationTool[DryRunInput, DryRunOutput]):
    """Tries the pipeline on the sample and writes nothing."""

    name = "run_dry_run"
    description = "Run the pipeline on the sample without writing anything: counts, failures, passages, timings."
    timeout_s = DRY_RUN_SECONDS

    async def run(self, args: DryRunInput, context: ToolContext) -> DryRunOutput:
        """Runs the trial unless it was made before. Raises `ToolInputError` for a change that does not fit."""
        diff = parse_diff(args.pipeline_diff) if args.pipeline_diff is not None else None
        report = self._session.find_report(diff)
        if report is not None:
            return DryRunOutput(pipeline_diff=diff, report=report, note=KNOWN)
        if diff is None:
            return DryRunOutput(report=await self._session.dry_run(self._session.pipeline))
        try:
            pipeline = check_pipeline(apply_diff(self._session.pipeline, diff))
        except (ConflictError, PipelineInvalidError, ValueError) as error:
            raise ToolInputError(f"the change does not fit the pipeline: {error}") from error
        return DryRunOutput(pipeline_diff=diff, report=await self._session.dry_run(pipeline))


class FileInput(DeferredModel):
    """Which file."""

    file: str = Field(min_length=1, max_length=4_000, description=FILE)


class FailureDetails(DeferredModel):
    """Why a file failed. `traceback_summary` names the stage and what the parser knew."""

    file: str
    stage: str
    error_code: str
    error: str
    traceback_summary: str
    details: JsonObject
    file_type: str | None
    size_bytes: int
    seconds: float


class FailureDetailsTool(ValidationTool[FileInput, FailureDetails]):
    name = "get_failure_details"
    description = "Say at which stage a file failed, with which error, and what is known of the cause."

    async def run(self, args: FileInput, context: ToolContext) -> FailureDetails:
        """Reads the last dry run of the pipeline. Raises `ToolInputError` for a file that did not fail in it."""
        failed = self._session.get_failure(args.file)
        code, stage = failed.error_code or "ERR_INTERNAL", failed.stage or "parser"
        details = "".join(f"; {key}: {value}" for key, value in failed.details.items())
        return FailureDetails(
            file=failed.name,
            stage=stage,
            error_code=code,
            error=failed.message,
            traceback_summary=f"{stage}: {code}: {failed.message}{details}"[:1_000],
            details=failed.details,
            file_type=failed.file_type,
            size_bytes=failed.size_bytes,
            seconds=failed.seconds,
        )


class AlternativeInput(DeferredModel):
    """A file, and how to read or split it instead. Options are added to the pipeline's."""

    file: str = Field(min_length=1, max_length=4_000, description=FILE)
    parser: str = Field(default="", max_length=100, description="name of another parser; empty keeps the pipeline's")
    parser_options: JsonObject = Field(default_factory=dict, description="e.g. force_ocr, timeout_s, file_bytes")
    chunker: str = Field(default="", max_length=100, description="name of another chunker; empty keeps the pipeline's")
    chunker_options: JsonObject = Field(default_factory=dict, description="e.g. size, overlap")


class TryAlternativeConfigTool(ValidationTool[AlternativeInput, AlternativeOutput]):
    """Reads one file another way. A change that helps can be tried on the whole sample by its `pipeline_diff`."""

    name = "try_alternative_config"
    description = "Read one failed file with another parser, chunker or other options; returns the change as a diff."
    timeout_s = FILE_SECONDS

    async def run(self, args: AlternativeInput, context: ToolContext) -> AlternativeOutput:
        """Tries one file. Raises `ToolInputError` for an invalid alternative."""
        bench = self._session
        name = await bench.resolve_name(args.file)
        file_type = (await bench.files.get_file(name)).file_type
        if file_type is None:
            raise ToolInputError(f"{name} is of a type that no parser reads; leave such files out")
        try:
            changed = with_parser_for_type(bench.pipeline, file_type, parser=args.parser, options=args.parser_options)
            changed = with_chunker_for_type(changed, file_type, chunker=args.chunker, options=args.chunker_options)
        except PipelineInvalidError as error:
            raise ToolInputError(error.message) from error
        output = AlternativeOutput(file=name, success=False, pipeline_diff=diff_pipelines(bench.pipeline, changed))
        started = monotonic()
        try:
            made = await bench.process_file(changed, name)
        except ParserError as error:
            failed = {"error_code": error.code, "error": error.message, "seconds": round(monotonic() - started, 3)}
            return output.model_copy(update=failed)
        return output.model_copy(
            update={
                "success": True,
                "pages": made.parsed.total_pages,
                "chunks": len(made.chunks),
                "characters": sum(len(chunk.text) for chunk in made.chunks),
                "seconds": round(monotonic() - started, 3),
            }
        )
