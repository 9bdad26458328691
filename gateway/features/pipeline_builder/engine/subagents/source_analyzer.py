"""`SourceAnalyzer`: examines a source and reports its files, parsers that read them, and uncertainties."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from agent.core.concurrent_calls import gather_all
from agent.core.errors import ToolError
from agent.core.models import DeferredModel, JsonObject
from agent.core.subagent_result import SubAgentResult
from agent.llm.prompts import format_block
from agent.subagents.base import Caller, CallResult, SubAgent, ToolCalls
from agent.tools import Tool
from gateway.features.pipeline_builder.engine.prompts import PROMPTS
from gateway.features.pipeline_builder.engine.subagents.parsed_files import ParsedFiles
from gateway.features.pipeline_builder.engine.subagents.reading_tools import (
    DetectLanguageTool,
    LanguageResult,
    ParserTrial,
    PreviewOutput,
    PreviewTool,
    TryParserTool,
)
from gateway.features.pipeline_builder.engine.subagents.source_analysis import (
    AnalysisFinal,
    SourceAnalysis,
    SourceEvidence,
    build_analysis,
)
from gateway.features.pipeline_builder.engine.subagents.source_context import open_source_files
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles
from gateway.features.pipeline_builder.engine.subagents.source_resources import SourceResources
from gateway.features.pipeline_builder.engine.subagents.source_tools import (
    OTHER,
    EnumerateFilesTool,
    EnumerateOutput,
    SampleFilesTool,
)

KINDS_TRIED = 12
FILES_A_KIND = 3
"""By rules: a few files of each frequent extension, from the smallest to the largest, whatever the source's size."""
KINDS_SHOWN = 4
"""By rules: how many unreadable extensions are previewed."""


class SourceTask(DeferredModel):
    """What to analyse, and for which purpose."""

    source_id: str = Field(
        default="",
        max_length=4_000,
        description="the source: its id, a path, a URL, or gdrive:<id>; empty for the conversation's own",
    )
    user_intent: str = Field(default="", max_length=4_000, description="what the user wants to do with it, if known")


class SourceAnalyzer(SubAgent[SourceTask, AnalysisFinal]):
    """Samples instead of reading everything. After a crash it lists the source again."""

    AGENT_ID = "source_analyzer"
    PROMPTS = PROMPTS
    DESCRIPTION = (
        "Investigate a data source: what files there are, which parsers read them, languages, kinds of text, problems. "
        "Returns a structured analysis."
    )
    KEYWORDS = ("source", "folder", "analyse", "analyze", "files", "documents", "index")
    MAX_TURNS: ClassVar[int] = 30
    KEEPS_RESULTS: ClassVar[bool] = True
    Task = SourceTask
    Final = AnalysisFinal

    resources: SourceResources

    def __init__(self, task: SourceTask, caller: Caller, resources: SourceResources) -> None:
        super().__init__(task, caller, resources)
        self._evidence = SourceEvidence()
        self._files: SourceFiles | None = None

    async def prepare(self) -> None:
        """Finds the source."""
        self._files = await open_source_files(self.task.source_id, self.caller, self.resources, self.exit_stack)

    def make_tools(self) -> Sequence[Tool]:
        """The five tools, limited to this source."""
        assert self._files is not None
        readings = ParsedFiles(self._files, self.exit_stack)
        return (
            EnumerateFilesTool(self._files),
            SampleFilesTool(self._files),
            TryParserTool(self._files, readings),
            DetectLanguageTool(readings, self.resources.languages),
            PreviewTool(self._files),
        )

    def build_first_message(self) -> str:
        """Source and purpose."""
        intent = self.task.user_intent.strip() or "Not specified; infer it from the content."
        return (
            f"Analyse the source {self.task.source_id or 'of the conversation'} for a pipeline.\n\n"
            + format_block("task", intent)
            + "\n\nProduce an analysis that a pipeline can be recommended by."
        )

    def build_partial_data(self) -> JsonObject:
        """The analysis so far."""
        return build_analysis(self._evidence).model_dump(mode="json")

    async def conclude(self, final: AnalysisFinal, calls: ToolCalls) -> SubAgentResult:
        """The counted analysis with the model's additions."""
        await self._ensure_counts(calls)
        return _build_result(build_analysis(self._evidence, final))

    async def run_by_rules(self, calls: ToolCalls) -> SubAgentResult:
        """The analysis by rule: parses a few files of each extension and detects their language."""
        counts = await self._ensure_counts(calls)
        readable = [extension for extension, one in counts.by_extension.items() if one.readable]
        others = [
            extension for extension, one in counts.by_extension.items() if not one.readable and extension != OTHER
        ]
        files = await self._sample_names(calls, readable[:KINDS_TRIED], FILES_A_KIND)
        odd = await self._sample_names(calls, others[:KINDS_SHOWN], 1)
        await gather_all(calls("get_file_content_preview", {"file": name}) for name in odd)
        await gather_all(calls("try_parser", {"file": name}) for name in (*files, *odd))
        trials = self._evidence.trials.values()  # program texts look English whatever their authors speak
        read = sorted(one.file for one in trials if one.success and one.characters and "code" not in one.document_types)
        await gather_all(calls("detect_language", {"file": name}) for name in read)
        return _build_result(build_analysis(self._evidence))

    async def _ensure_counts(self, calls: ToolCalls) -> EnumerateOutput:
        """The file counts; lists the source if the model has not."""
        if self._evidence.counts is None:
            called = await calls("enumerate_files", {})
            if self._evidence.counts is None:
                raise ToolError(called.error or "the source could not be listed", agent_id=self.AGENT_ID)
        return self._evidence.counts

    async def _sample_names(self, calls: ToolCalls, extensions: Sequence[str], count: int) -> list[str]:
        outputs = await gather_all(
            calls("sample_files", {"extension": extension, "count": count, "pick": "spread"})
            for extension in extensions
        )
        return [name for called in outputs for name in _list_file_names(called)]

    def record_value(self, tool: str, value: JsonObject) -> None:
        """Records counts and trials, by file."""
        match tool:
            case "enumerate_files":
                self._evidence.counts = EnumerateOutput.model_validate(value)
            case "try_parser":
                trial = ParserTrial.model_validate(value)
                self._evidence.trials[trial.file, trial.parser] = trial
            case "detect_language" if value.get("file"):
                spoken = LanguageResult.model_validate(value)
                self._evidence.languages[spoken.file] = spoken
            case "get_file_content_preview":
                preview = PreviewOutput.model_validate(value)
                self._evidence.previews[preview.file] = preview


def _list_file_names(called: CallResult) -> list[str]:
    files = called.value.get("files") if isinstance(called.value, dict) else None
    return [str(one["file"]) for one in files if isinstance(one, dict)] if isinstance(files, list) else []


def _build_result(made: SourceAnalysis) -> SubAgentResult:
    return SubAgentResult(
        success=True, data=made.model_dump(mode="json"), uncertainties=made.uncertainties, summary=made.summary
    )
