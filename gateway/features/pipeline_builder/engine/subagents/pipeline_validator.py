"""`PipelineValidator`: tries a pipeline on a sample, examines failures, and recommends changes that helped.

All figures are counted from dry runs.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import ConfigDict, Field, ValidationError

from agent.core.errors import ToolError
from agent.core.models import DeferredModel, JsonObject
from agent.core.subagent_result import SubAgentResult, Uncertainty
from agent.llm.prompts import format_block
from agent.subagents.base import Caller, SubAgent, ToolCalls
from agent.subagents.model_uncertainty import ModelUncertainty
from agent.text.plurals import format_count
from agent.tools import Tool
from gateway.features.documents.engine.ingest.dry_run_report import PipelineFix, ValidationReport
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import parse_pipeline
from gateway.features.documents.engine.ingest.pipeline_diff import PipelineDiff
from gateway.features.pipeline_builder.engine.prompts import PROMPTS
from gateway.features.pipeline_builder.engine.subagents.inspection_tools import (
    CompareParserOutputTool,
    InspectChunksTool,
)
from gateway.features.pipeline_builder.engine.subagents.parsed_files import ParsedFiles
from gateway.features.pipeline_builder.engine.subagents.source_context import open_source_files
from gateway.features.pipeline_builder.engine.subagents.source_resources import SourceResources
from gateway.features.pipeline_builder.engine.subagents.validation_session import (
    AlternativeOutput,
    DryRunOutput,
    ValidationSession,
)
from gateway.features.pipeline_builder.engine.subagents.validation_tools import (
    FailureDetailsTool,
    RunDryRunTool,
    TryAlternativeConfigTool,
)

MAX_FIXES_TRIED = 3
"""Changes tried on the whole sample before they are recommended; each costs a dry run."""
MAX_MODEL_ITEMS = 20
SHOWN_CHARS = 20_000
"""Characters of the pipeline that the model sees; few pipelines have more."""
RATE_TOLERANCE = 0.005
"""How far a model's rate may differ from the counted one through rounding."""


class ValidationTask(DeferredModel):
    """What to validate, and on which source."""

    pipeline: JsonObject = Field(description="the pipeline as JSON: nodes and edges")
    source_id: str = Field(default="", max_length=4_000, description="the source: its id, a path, a URL, gdrive:<id>")
    sample_count: int = Field(default=50, ge=1, le=200, description="files that are tried")
    seed: int = Field(default=0, description="the same seed tries the same files")


class ModelFix(DeferredModel):
    """A change recommended by a model; it is tried before it is believed."""

    description: str = Field(default="", max_length=2_000)
    pipeline_diff: JsonObject = Field(default_factory=dict)


class ValidationFinal(DeferredModel):
    """What the model ends with. Its figures are only compared with the counted ones."""

    model_config = ConfigDict(extra="ignore")

    success_rate: float | None = None
    assessment: Literal["ready", "needs_adjustment", "blocking_issues"] | None = None
    recommended_fixes: list[ModelFix] = Field(default_factory=list)
    uncertainties: list[ModelUncertainty] = Field(default_factory=list)
    summary: str = Field(min_length=1)


class PipelineValidator(SubAgent[ValidationTask, ValidationFinal]):
    """Resumes from the log: recorded trials are known, unfinished ones are repeated."""

    AGENT_ID = "pipeline_validator"
    PROMPTS = PROMPTS
    DESCRIPTION = (
        "Validate a pipeline on sample files of a source: success rate, failures by kind, changes that help. Returns a "
        "structured report with an assessment."
    )
    KEYWORDS = ("validate", "pipeline", "test", "dry", "run", "samples")
    MAX_TURNS: ClassVar[int] = 25
    KEEPS_RESULTS: ClassVar[bool] = True
    Task = ValidationTask
    Final = ValidationFinal

    resources: SourceResources

    def __init__(self, task: ValidationTask, caller: Caller, resources: SourceResources) -> None:
        super().__init__(task, caller, resources)
        self._session: ValidationSession | None = None

    async def prepare(self) -> None:
        """Checks the pipeline and finds the source."""
        pipeline = parse_pipeline(self.task.pipeline)
        files = await open_source_files(self.task.source_id, self.caller, self.resources, self.exit_stack)
        readings = ParsedFiles(files, self.exit_stack)
        self._session = ValidationSession(
            pipeline, files, readings, self.resources, self.caller, self.task.sample_count, self.task.seed
        )

    def make_tools(self) -> Sequence[Tool]:
        """The five tools, sharing one session."""
        bench = self._prepared
        return (
            RunDryRunTool(bench),
            FailureDetailsTool(bench),
            TryAlternativeConfigTool(bench),
            CompareParserOutputTool(bench),
            InspectChunksTool(bench),
        )

    def build_first_message(self) -> str:
        """The pipeline and the sample size."""
        return (
            f"Validate this pipeline on a sample of {self.task.sample_count} files of its source and report on its "
            f"quality.\n\n{format_block('data', _format_pipeline(self._prepared.pipeline), name='pipeline')}"
        )

    def build_partial_data(self) -> JsonObject:
        """The report of the dry run, if there is one."""
        base = self._prepared.base_report
        return base.model_dump(mode="json") if base is not None else {}

    async def conclude(self, final: ValidationFinal, calls: ToolCalls) -> SubAgentResult:
        """The counted report, the changes that helped, and the model's summary."""
        report = await self._validate(calls, final)
        extra = [one.to_uncertainty() for one in final.uncertainties[:MAX_MODEL_ITEMS]]
        wrong = _find_contradiction(final, report)
        if wrong is not None:
            return _build_result(report, (wrong,), "")
        return _build_result(report, extra, final.summary.strip()[:2_000])

    async def run_by_rules(self, calls: ToolCalls) -> SubAgentResult:
        """The counted report, and the dry run's own changes that helped."""
        return _build_result(await self._validate(calls, None), (), "")

    async def _validate(self, calls: ToolCalls, final: ValidationFinal | None) -> ValidationReport:
        """The report, recommending only changes that raise the rate on the same sample."""
        bench = self._prepared
        if bench.base_report is None:
            called = await calls("run_dry_run", {})
            if bench.base_report is None:
                raise ToolError(called.error or "the dry run did not finish", agent_id=self.AGENT_ID)
        base = bench.base_report
        fixes: list[PipelineFix] = []
        dry_runs = 0
        for wanted in _list_candidate_fixes(bench, final) if base.files_failed else ():
            tried = bench.find_report(wanted.pipeline_diff)
            if tried is None and dry_runs < MAX_FIXES_TRIED:
                dry_runs += 1
                await calls("run_dry_run", {"pipeline_diff": wanted.pipeline_diff.model_dump(mode="json")})
                tried = bench.find_report(wanted.pipeline_diff)
            if tried is not None and tried.success_rate > base.success_rate:
                helped = (
                    f"{tried.files_succeeded} of {tried.files_tested} files are read then, not {base.files_succeeded}"
                )
                fixes.append(wanted.model_copy(update={"description": f"{wanted.description}: {helped}"}))
        return base.model_copy(update={"recommended_fixes": tuple(fixes), "summary": _describe_report(base, fixes)})

    def record_value(self, tool: str, value: JsonObject) -> None:
        """Records reports and alternatives."""
        bench = self._prepared
        match tool:
            case "run_dry_run":
                output = DryRunOutput.model_validate(value)
                if output.pipeline_diff is None:
                    bench.base_report = output.report
                elif bench.find_report(output.pipeline_diff) is None:
                    bench.changed_runs.append(output)
            case "try_alternative_config":
                bench.alternatives.append(AlternativeOutput.model_validate(value))

    @property
    def _prepared(self) -> ValidationSession:
        assert self._session is not None, "prepare comes first"
        return self._session


def _list_candidate_fixes(bench: ValidationSession, final: ValidationFinal | None) -> list[PipelineFix]:
    """The changes that may help, once each: those tried, the dry run's, those that helped a file, the
    model's."""
    fixes: dict[str, PipelineFix] = {}
    for fix in _iter_proposed_fixes(bench, final):
        if fix.pipeline_diff != PipelineDiff():
            fixes.setdefault(fix.pipeline_diff.model_dump_json(), fix)
    return list(fixes.values())


def _iter_proposed_fixes(bench: ValidationSession, final: ValidationFinal | None) -> Iterator[PipelineFix]:
    proposed_fixes = final.recommended_fixes[:MAX_MODEL_ITEMS] if final is not None else []
    for output in bench.changed_runs:
        if output.pipeline_diff is not None:
            yield PipelineFix(description="As tried on the sample", pipeline_diff=output.pipeline_diff)
    if bench.base_report is not None:
        for fix in bench.base_report.recommended_fixes:
            yield fix.model_copy(update={"description": fix.description.partition(":")[0]})
    for alternative in sorted(bench.alternatives, key=lambda one: (one.file, one.pipeline_diff.model_dump_json())):
        if alternative.success:
            description = f"As it helped with {alternative.file}"
            yield PipelineFix(description=description, pipeline_diff=alternative.pipeline_diff)
    for one in proposed_fixes:
        try:
            diff = PipelineDiff.model_validate(one.pipeline_diff)
        except ValidationError:
            continue  # advice in words alone; it stands in the summary
        yield PipelineFix(description=one.description.strip() or "As the validator proposes", pipeline_diff=diff)


def _find_contradiction(final: ValidationFinal, report: ValidationReport) -> Uncertainty | None:
    """An uncertainty if the model's figures differ from the counted ones."""
    rate = final.success_rate
    if rate is not None and 1 < rate <= 100:
        rate /= 100
    claims: JsonObject = {}
    if rate is not None and abs(rate - report.success_rate) > RATE_TOLERANCE:
        claims["success_rate"] = final.success_rate
    if final.assessment is not None and final.assessment != report.assessment:
        claims["assessment"] = final.assessment
    if not claims:
        return None
    words = ", ".join(f"{key} {value}" for key, value in claims.items())
    message = (
        f"the validator claimed {words}; counted were {report.success_rate:.0%} of {report.files_tested} files, "
        f"{report.assessment}. Its summary was left out"
    )
    return Uncertainty(severity="notable", message=message, context=claims)


def _build_result(report: ValidationReport, extra: Sequence[Uncertainty], understood: str) -> SubAgentResult:
    counted = [
        Uncertainty(severity=one.severity, message=one.message, context=one.context) for one in report.uncertainties
    ]
    summary = f"{report.summary} {understood}".strip()
    return SubAgentResult(
        success=True,
        data=report.model_copy(update={"summary": summary}).model_dump(mode="json"),
        uncertainties=(*counted, *extra),
        summary=summary,
    )


def _describe_report(base: ValidationReport, fixes: Sequence[PipelineFix]) -> str:
    """Describes the figures and the changes that help."""
    parts = [
        f"{base.success_rate * 100:.0f} % of {format_count(base.files_tested, 'file')} "
        f"{'is' if base.files_tested == 1 else 'are'} read ({base.assessment.replace('_', ' ')})."
    ]
    if not base.files_tested:
        parts = [base.summary]
    if base.failure_categories:
        listed = "; ".join(f"{category.count} {name}" for name, category in base.failure_categories.items())
        parts.append(f"{listed}.")
    parts += [f"{fix.description}." for fix in fixes]
    return " ".join(parts)


def _format_pipeline(pipeline: PipelineDAG) -> str:
    return pipeline.model_dump_json(indent=2)[:SHOWN_CHARS]
