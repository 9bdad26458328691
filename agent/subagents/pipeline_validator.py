"""`PipelineValidator`: tries a pipeline on a sample of a source, looks into what fails, and recommends changes that
were seen to help. All figures are counted from the dry runs."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.errors import ToolError
from agent.core.models import JsonObject
from agent.core.plurals import many
from agent.core.subagents import SubAgentResult, Uncertainty
from agent.knowledge.dry_run_report import PipelineFix, ValidationReport
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import read_pipeline
from agent.knowledge.pipeline_diff import PipelineDiff
from agent.prompts.blocks import block
from agent.subagents.base import Caller, Calls, Materials, SubAgent
from agent.subagents.inspection_tools import CompareParserOutputTool, InspectChunksTool
from agent.subagents.readings import Readings
from agent.subagents.source_analysis import SaidUncertainty
from agent.subagents.sources import files_of
from agent.subagents.validation_bench import AlternativeOutput, DryRunOutput, ValidationBench
from agent.subagents.validation_tools import FailureDetailsTool, RunDryRunTool, TryAlternativeConfigTool
from agent.tools import Tool

MOST_TRIED = 3
"""Changes that are tried on the whole sample before they are recommended; each costs a dry run."""
MOST_SAID = 20
SHOWN_CHARS = 20_000
"""Characters of the pipeline that the model is shown; hardly any has more."""
AGREES = 0.005
"""How far a rate that a model names may be from the counted one: it rounds."""


class ValidationTask(BaseModel):
    """What is to be validated, and on what."""

    pipeline: JsonObject = Field(description="the pipeline as JSON: nodes and edges")
    source_id: str = Field(default="", max_length=4_000, description="the source: its id, a path, a URL, gdrive:<id>")
    sample_count: int = Field(default=50, ge=1, le=200, description="files that are tried")
    seed: int = Field(default=0, description="the same seed tries the same files")


class SaidFix(BaseModel):
    """A change as a model recommends it; it is tried before it is believed."""

    description: str = Field(default="", max_length=2_000)
    pipeline_diff: JsonObject = Field(default_factory=dict)


class ValidationFinal(BaseModel):
    """What the model ends with. Its figures are only held against those that were counted."""

    model_config = ConfigDict(extra="ignore")

    success_rate: float | None = None
    assessment: Literal["ready", "needs_adjustment", "blocking_issues"] | None = None
    recommended_fixes: list[SaidFix] = Field(default_factory=list)
    uncertainties: list[SaidUncertainty] = Field(default_factory=list)
    summary: str = Field(min_length=1)


class PipelineValidator(SubAgent[ValidationTask, ValidationFinal]):
    """After a crash, what was tried is known from the log; what had not returned is tried again."""

    AGENT_ID = "pipeline_validator"
    DESCRIPTION = (
        "Validate a pipeline on sample files of a source: success rate, failures by kind, changes that help. Returns a "
        "structured report with an assessment."
    )
    KEYWORDS = ("validate", "pipeline", "test", "dry", "run", "samples")
    MAX_TURNS: ClassVar[int] = 25
    Task = ValidationTask
    Final = ValidationFinal

    def __init__(self, task: ValidationTask, caller: Caller, materials: Materials) -> None:
        super().__init__(task, caller, materials)
        self._bench: ValidationBench | None = None

    async def prepare(self) -> None:
        """Check the pipeline, find the source."""
        pipeline = read_pipeline(self.task.pipeline)
        files = await files_of(self.task.source_id, self.caller, self.materials, self.closing)
        readings = Readings(files, self.closing)
        self._bench = ValidationBench(
            pipeline, files, readings, self.materials, self.caller, self.task.sample_count, self.task.seed
        )

    def tools(self) -> Sequence[Tool]:
        """The five tools, on one bench."""
        bench = self._prepared
        return (
            RunDryRunTool(bench),
            FailureDetailsTool(bench),
            TryAlternativeConfigTool(bench),
            CompareParserOutputTool(bench),
            InspectChunksTool(bench),
        )

    def message(self) -> str:
        """The pipeline, and how large the sample is."""
        return (
            f"Validate this pipeline on a sample of {self.task.sample_count} files of its source and report on its "
            f"quality.\n\n{block('data', _shown(self._prepared.pipeline), name='pipeline')}"
        )

    def partial(self) -> JsonObject:
        """The report of the dry run, if there is one."""
        base = self._prepared.base
        return base.model_dump(mode="json") if base is not None else {}

    async def conclude(self, final: ValidationFinal, calls: Calls) -> SubAgentResult:
        """The counted report, the changes that were seen to help, and what the model understood."""
        report = await self._validated(calls, final)
        extra = [
            Uncertainty(severity=one.severity, message=one.message[:500]) for one in final.uncertainties[:MOST_SAID]
        ]
        wrong = _contradiction(final, report)
        if wrong is not None:
            return _result(report, (wrong,), "")
        return _result(report, extra, final.summary.strip()[:2_000])

    async def by_rules(self, calls: Calls) -> SubAgentResult:
        """The counted report, and the dry run's own repairs where they help."""
        return _result(await self._validated(calls, None), (), "")

    async def _validated(self, calls: Calls, final: ValidationFinal | None) -> ValidationReport:
        """The report, with only those changes recommended that raise its rate on the same sample."""
        bench = self._prepared
        if bench.base is None:
            called = await calls("run_dry_run", {})
            if bench.base is None:
                raise ToolError(called.error or "the dry run did not come to its end", agent_id=self.AGENT_ID)
        base = bench.base
        fixes: list[PipelineFix] = []
        dry_runs = 0
        for wanted in _candidates(bench, final) if base.files_failed else ():
            tried = bench.tried(wanted.pipeline_diff)
            if tried is None and dry_runs < MOST_TRIED:
                dry_runs += 1
                await calls("run_dry_run", {"pipeline_diff": wanted.pipeline_diff.model_dump(mode="json")})
                tried = bench.tried(wanted.pipeline_diff)
            if tried is not None and tried.success_rate > base.success_rate:
                helped = (
                    f"{tried.files_succeeded} of {tried.files_tested} files are read then, not {base.files_succeeded}"
                )
                fixes.append(wanted.model_copy(update={"description": f"{wanted.description}: {helped}"}))
        return base.model_copy(update={"recommended_fixes": tuple(fixes), "summary": _summary(base, fixes)})

    def keep(self, tool: str, value: JsonObject) -> None:
        """Reports, and what helped."""
        bench = self._prepared
        match tool:
            case "run_dry_run":
                output = DryRunOutput.model_validate(value)
                if output.pipeline_diff is None:
                    bench.base = output.report
                elif bench.tried(output.pipeline_diff) is None:
                    bench.changed.append(output)
            case "try_alternative_config":
                bench.alternatives.append(AlternativeOutput.model_validate(value))

    @property
    def _prepared(self) -> ValidationBench:
        assert self._bench is not None, "prepare comes first"
        return self._bench


def _candidates(bench: ValidationBench, final: ValidationFinal | None) -> list[PipelineFix]:
    """The changes that may help, each once: those tried already, the dry run's own, those that helped with a file, and
    the model's."""
    found: dict[str, PipelineFix] = {}
    for fix in _wanted(bench, final):
        if fix.pipeline_diff != PipelineDiff():
            found.setdefault(fix.pipeline_diff.model_dump_json(), fix)
    return list(found.values())


def _wanted(bench: ValidationBench, final: ValidationFinal | None) -> Iterator[PipelineFix]:
    said = final.recommended_fixes[:MOST_SAID] if final is not None else []
    for output in bench.changed:
        if output.pipeline_diff is not None:
            yield PipelineFix(description="As tried on the sample", pipeline_diff=output.pipeline_diff)
    if bench.base is not None:
        for fix in bench.base.recommended_fixes:
            yield fix.model_copy(update={"description": fix.description.partition(":")[0]})
    for alternative in sorted(bench.alternatives, key=lambda one: (one.file, one.pipeline_diff.model_dump_json())):
        if alternative.success:
            description = f"As it helped with {alternative.file}"
            yield PipelineFix(description=description, pipeline_diff=alternative.pipeline_diff)
    for one in said:
        try:
            diff = PipelineDiff.model_validate(one.pipeline_diff)
        except ValidationError:
            continue  # advice in words alone; it stands in the summary
        yield PipelineFix(description=one.description.strip() or "As the validator proposes", pipeline_diff=diff)


def _contradiction(final: ValidationFinal, report: ValidationReport) -> Uncertainty | None:
    """That the model's figures are not those that were counted, where that is so."""
    rate = final.success_rate
    if rate is not None and 1 < rate <= 100:
        rate /= 100
    said: JsonObject = {}
    if rate is not None and abs(rate - report.success_rate) > AGREES:
        said["success_rate"] = final.success_rate
    if final.assessment is not None and final.assessment != report.assessment:
        said["assessment"] = final.assessment
    if not said:
        return None
    words = ", ".join(f"{key} {value}" for key, value in said.items())
    message = (
        f"the validator claimed {words}; counted were {report.success_rate:.0%} of {report.files_tested} files, "
        f"{report.assessment}. Its summary was left out"
    )
    return Uncertainty(severity="notable", message=message, context=said)


def _result(report: ValidationReport, extra: Sequence[Uncertainty], understood: str) -> SubAgentResult:
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


def _summary(base: ValidationReport, fixes: Sequence[PipelineFix]) -> str:
    """The figures, and the changes that help."""
    parts = [
        f"{base.success_rate * 100:.0f} % of {many(base.files_tested, 'file')} "
        f"{'is' if base.files_tested == 1 else 'are'} read ({base.assessment.replace('_', ' ')})."
    ]
    if not base.files_tested:
        parts = [base.summary]
    if base.failure_categories:
        listed = "; ".join(f"{category.count} {name}" for name, category in base.failure_categories.items())
        parts.append(f"{listed}.")
    parts += [f"{fix.description}." for fix in fixes]
    return " ".join(parts)


def _shown(pipeline: PipelineDAG) -> str:
    return pipeline.model_dump_json(indent=2)[:SHOWN_CHARS]
