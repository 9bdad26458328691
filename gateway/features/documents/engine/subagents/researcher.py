"""`Researcher`: answers a question from the web and the user's collections in findings, each with a quotation.

A finding whose quotation is in nothing that was read is dropped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict, Field, JsonValue

from agent.core.concurrent_calls import gather_all
from agent.core.events import StepOutput
from agent.core.models import DeferredModel, FrozenModel, JsonObject
from agent.core.subagent_result import SubAgentResult, Uncertainty
from agent.llm.prompts import format_block, quote_inline
from agent.subagents.base import Caller, SubAgent, SubAgentResources, ToolCalls
from agent.subagents.model_uncertainty import ModelUncertainty
from agent.text.plurals import format_count
from agent.tools import Tool
from gateway.features.documents.engine.prompts import PROMPTS

SEARCH, FETCH = "search_knowledge", "web_fetch"
MIN_QUOTE_CHARS = 12
"""Characters. Shorter quotations match almost anything."""
QUOTE_CHARS = 400
MAX_FINDINGS = 30


class ResearchTask(DeferredModel):
    """A question, and where to look."""

    question: str = Field(min_length=1, max_length=4_000, description="the question, complete")
    collection: str = Field(default="", max_length=200, description="where to look; empty for every collection")
    urls: list[str] = Field(default_factory=list, max_length=5, description="pages to read")


class ResearchFinding(FrozenModel):
    """A claim with its quotation and source."""

    claim: str
    quote: str
    source: str
    url: str | None = None


class ModelFinding(DeferredModel):
    """A finding as a model writes it."""

    claim: str = Field(min_length=1)
    quote: str = Field(min_length=1)


class ResearchFinal(DeferredModel):
    """The model's last reply."""

    model_config = ConfigDict(extra="ignore")

    findings: list[ModelFinding] = Field(default_factory=list)
    uncertainties: list[ModelUncertainty] = Field(default_factory=list)
    summary: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class _Passage:
    text: str
    source: str
    url: str | None


class Researcher(SubAgent[ResearchTask, ResearchFinal]):
    """Has no tools of its own; it borrows its parent's."""

    AGENT_ID = "researcher"
    PROMPTS = PROMPTS
    DESCRIPTION = (
        "Research a question in the user's collections and on web pages. Returns findings, each with the quoted words "
        "it rests on."
    )
    KEYWORDS = ("research", "investigate", "sources", "evidence", "compare", "web")
    BORROWS: ClassVar[tuple[str, ...]] = (SEARCH, FETCH)
    Task = ResearchTask
    Final = ResearchFinal

    def __init__(self, task: ResearchTask, caller: Caller, resources: SubAgentResources) -> None:
        super().__init__(task, caller, resources)
        self._read: list[_Passage] = []

    def make_tools(self) -> Sequence[Tool]:
        """Empty: all tools are borrowed."""
        return ()

    def build_first_message(self) -> str:
        """The question, and where to look."""
        where = [f"Collection: {self.task.collection}"] if self.task.collection else []
        where += [f"Page: {url}" for url in self.task.urls]
        return "\n".join(
            ["Research this question.", format_block("task", self.task.question), *map(quote_inline, where)]
        )

    def record_call(self, tool: str, args: JsonObject, output: StepOutput) -> None:
        """Records what was read, by source."""
        if output.error_code is None:
            self._read += [one for one in _iter_passages(output) if one not in self._read]

    def build_partial_data(self) -> JsonObject:
        """The passages that were read, as verbatim findings."""
        return self._build_data(self._list_passage_findings())

    async def conclude(self, final: ResearchFinal, calls: ToolCalls) -> SubAgentResult:
        """The findings whose quotations are in what was read."""
        findings = [one for one in map(self._verify_finding, final.findings[:MAX_FINDINGS]) if one is not None]
        uncertainties = [one.to_uncertainty() for one in final.uncertainties[:20]]
        lost = len(final.findings[:MAX_FINDINGS]) - len(findings)
        if lost:
            message = f"left out: {format_count(lost, 'finding')} whose words are in nothing that was read"
            uncertainties.insert(0, Uncertainty(severity="notable", message=message))
        if not findings:
            return self._build_result((), uncertainties, "Nothing that was read bears out an answer.")
        return self._build_result(findings, uncertainties, final.summary.strip()[:2_000])

    async def run_by_rules(self, calls: ToolCalls) -> SubAgentResult:
        """Passages that match the question, verbatim."""
        tool_calls = [calls(SEARCH, {"query": self.task.question, "collection": self.task.collection})]
        tool_calls += [calls(FETCH, {"url": url}) for url in self.task.urls]
        failed = [called.error for called in await gather_all(tool_calls) if called.error is not None]
        uncertainties = [Uncertainty(severity="info", message=error[:500]) for error in failed]
        findings = self._list_passage_findings()
        count = len(findings)
        summary = (
            f"{count} passage{'s' if count != 1 else ''} found for the question." if count else "Nothing was found."
        )
        return self._build_result(findings, uncertainties, summary)

    def _verify_finding(self, said: ModelFinding) -> ResearchFinding | None:
        quote = _normalise_quote(said.quote)
        if len(quote) < MIN_QUOTE_CHARS:
            return None
        for one in self._read:
            if quote in _normalise_quote(one.text):
                return ResearchFinding(
                    claim=said.claim[:1_000], quote=said.quote[:2_000], source=one.source, url=one.url
                )
        return None

    def _list_passage_findings(self) -> list[ResearchFinding]:
        return [
            ResearchFinding(claim=text, quote=text, source=one.source, url=one.url)
            for one in self._read[:MAX_FINDINGS]
            if (text := one.text.strip()[:QUOTE_CHARS])
        ]

    def _build_data(self, findings: Sequence[ResearchFinding]) -> JsonObject:
        items: list[JsonValue] = [one.model_dump(mode="json") for one in findings]
        sources: list[JsonValue] = [*dict.fromkeys(one.source for one in self._read)]
        return {"question": self.task.question, "findings": items, "sources_read": sources}

    def _build_result(
        self, findings: Sequence[ResearchFinding], uncertainties: Sequence[Uncertainty], summary: str
    ) -> SubAgentResult:
        missing = [] if findings else [Uncertainty(severity="notable", message="nothing was found that can be cited")]
        return SubAgentResult(
            success=True, data=self._build_data(findings), uncertainties=(*missing, *uncertainties), summary=summary
        )


def _iter_passages(output: StepOutput) -> Iterator[_Passage]:
    """Yields the passages of a search result, the text of a page, or any other text."""
    value = output.value if isinstance(output.value, dict) else {}
    results = value.get("results")
    if isinstance(results, list):
        for one in results:
            if isinstance(one, dict):
                url = one.get("source_url")
                place = f", page {one['page']}" if one.get("page") else ""
                yield _Passage(
                    str(one.get("text", "")), f"{one.get('source', '')}{place}", url if isinstance(url, str) else None
                )
        return
    url = value.get("url")
    name = str(value.get("title") or url or "a tool's result")
    yield _Passage(str(value.get("text") or output.text), name, url if isinstance(url, str) else None)


def _normalise_quote(text: str) -> str:
    """Normalises a text for comparing quotations: line breaks, quotation marks, case."""
    return " ".join(text.replace("\u2019", "'").replace("\u201c", '"').replace("\u201d", '"').casefold().split())
