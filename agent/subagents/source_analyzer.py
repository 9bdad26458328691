"""`SourceAnalyzer`: looks into a source and says what is there, how it can be read, and what is doubtful."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from agent.core.errors import ToolError
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult
from agent.prompts.blocks import block
from agent.subagents.base import Called, Caller, Calls, Materials, SubAgent, together
from agent.subagents.reading_tools import (
    DetectLanguageTool,
    LanguageFound,
    ParserTrial,
    PreviewOutput,
    PreviewTool,
    TryParserTool,
)
from agent.subagents.readings import Readings
from agent.subagents.source_analysis import AnalysisFinal, Evidence, SourceAnalysis, analysis
from agent.subagents.source_files import SourceFiles
from agent.subagents.source_tools import OTHER, EnumerateFilesTool, EnumerateOutput, SampleFilesTool
from agent.subagents.sources import files_of
from agent.tools import Tool

KINDS_TRIED = 12
FILES_A_KIND = 3
"""By rules: of each of the most frequent endings a few files, from the smallest to the largest, whatever the source's
size."""
KINDS_SHOWN = 4
"""By rules: of endings nobody reads, how many are looked at."""


class SourceTask(BaseModel):
    """What is to be analysed, and what for."""

    source_id: str = Field(
        default="",
        max_length=4_000,
        description="the source: its id, a path, a URL, or gdrive:<id>; empty for the conversation's own",
    )
    user_intent: str = Field(default="", max_length=4_000, description="what the user wants to do with it, if known")


class SourceAnalyzer(SubAgent[SourceTask, AnalysisFinal]):
    """Samples instead of reading everything. After a crash it lists the source again where it needs names."""

    AGENT_ID = "source_analyzer"
    DESCRIPTION = (
        "Investigate a data source: what files there are, which parsers read them, languages, kinds of text, problems. "
        "Returns a structured analysis."
    )
    KEYWORDS = ("source", "folder", "analyse", "analyze", "files", "documents", "index")
    MAX_TURNS: ClassVar[int] = 30
    Task = SourceTask
    Final = AnalysisFinal

    def __init__(self, task: SourceTask, caller: Caller, materials: Materials) -> None:
        super().__init__(task, caller, materials)
        self._evidence = Evidence()
        self._files: SourceFiles | None = None

    async def prepare(self) -> None:
        """Find the source."""
        self._files = await files_of(self.task.source_id, self.caller, self.materials, self.closing)

    def tools(self) -> Sequence[Tool]:
        """The five tools, on this source alone."""
        assert self._files is not None
        readings = Readings(self._files, self.closing)
        return (
            EnumerateFilesTool(self._files),
            SampleFilesTool(self._files),
            TryParserTool(self._files, readings),
            DetectLanguageTool(readings, self.materials.languages),
            PreviewTool(self._files),
        )

    def message(self) -> str:
        """Source and intent."""
        intent = self.task.user_intent.strip() or "Not specified; infer it from the content."
        return (
            f"Analyse the source {self.task.source_id or 'of the conversation'} for a pipeline.\n\n"
            + block("task", intent)
            + "\n\nProduce an analysis that a pipeline can be recommended by."
        )

    def partial(self) -> JsonObject:
        """The analysis as far as it goes."""
        return analysis(self._evidence).model_dump(mode="json")

    async def conclude(self, final: AnalysisFinal, calls: Calls) -> SubAgentResult:
        """The analysis, counted by us and understood by the model."""
        await self._counted(calls)
        return _result(analysis(self._evidence, final))

    async def by_rules(self, calls: Calls) -> SubAgentResult:
        """The same by rule: a few files of each ending are parsed, and their language told."""
        counts = await self._counted(calls)
        readable = [extension for extension, one in counts.by_extension.items() if one.readable]
        others = [
            extension for extension, one in counts.by_extension.items() if not one.readable and extension != OTHER
        ]
        files = await self._sampled(calls, readable[:KINDS_TRIED], FILES_A_KIND)
        odd = await self._sampled(calls, others[:KINDS_SHOWN], 1)
        await together(calls("get_file_content_preview", {"file": name}) for name in odd)
        await together(calls("try_parser", {"file": name}) for name in (*files, *odd))
        read = sorted(trial.file for trial in self._evidence.trials.values() if trial.success and trial.characters)
        await together(calls("detect_language", {"file": name}) for name in read)
        return _result(analysis(self._evidence))

    async def _counted(self, calls: Calls) -> EnumerateOutput:
        """The counts; asked for if the model has not."""
        if self._evidence.counts is None:
            called = await calls("enumerate_files", {})
            if self._evidence.counts is None:
                raise ToolError(called.error or "the source could not be listed", agent_id=self.AGENT_ID)
        return self._evidence.counts

    async def _sampled(self, calls: Calls, extensions: Sequence[str], count: int) -> list[str]:
        found = await together(
            calls("sample_files", {"extension": extension, "count": count, "pick": "spread"})
            for extension in extensions
        )
        return [name for called in found for name in _names(called)]

    def keep(self, tool: str, value: JsonObject) -> None:
        """What was counted and tried, by file."""
        match tool:
            case "enumerate_files":
                self._evidence.counts = EnumerateOutput.model_validate(value)
            case "try_parser":
                trial = ParserTrial.model_validate(value)
                self._evidence.trials[trial.file, trial.parser] = trial
            case "detect_language" if value.get("file"):
                spoken = LanguageFound.model_validate(value)
                self._evidence.languages[spoken.file] = spoken
            case "get_file_content_preview":
                preview = PreviewOutput.model_validate(value)
                self._evidence.previews[preview.file] = preview


def _names(called: Called) -> list[str]:
    files = called.value.get("files") if isinstance(called.value, dict) else None
    return [str(one["file"]) for one in files if isinstance(one, dict)] if isinstance(files, list) else []


def _result(made: SourceAnalysis) -> SubAgentResult:
    return SubAgentResult(
        success=True, data=made.model_dump(mode="json"), uncertainties=made.uncertainties, summary=made.summary
    )
