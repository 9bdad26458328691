"""`build_incident_brief`: causes, actions and escalation for an incident, each line with a citation.

The tool writes no lines of its own: all are sentences of documents and tickets.
"""

from collections.abc import Sequence

from pydantic import Field

from agent.core.models import DeferredModel, FrozenModel, JsonObject, Source
from agent.tools import READ_ONLY, CompleteMessages, PlanHints, ToolContext, ToolResult, TypedTool
from gateway.features.documents.engine.grounded_answers.footnote_marks import strip_footnote_marks
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.models import RetrievedContext
from gateway.features.documents.engine.search.severity import Severity
from gateway.features.incident.engine.evidence import (
    choose_collections,
    classify_passage,
    extract_snippet,
    format_source_name,
    format_title,
    is_policy,
)
from gateway.features.incident.engine.summary_rewriting import rewrite_summary
from gateway.features.incident.engine.text import remove_pasted_logs
from gateway.features.incident.tools.citations import SourceCitations
from gateway.features.incident.tools.issues import (
    NO_SIMILAR_ISSUE,
    Issue,
    SearchPreviousIssuesTool,
    find_previous_issues,
    format_issue_name,
    get_subject,
)
from gateway.features.incident.tools.knowledge import (
    Document,
    SearchIncidentKnowledgeTool,
    find_documents,
    find_policies,
    read_whole_document,
)
from gateway.features.incident.tools.priority import classify
from gateway.features.incident.tools.summary import summarize

MAX_CAUSES, MAX_ACTIONS, MAX_ESCALATIONS = 4, 7, 3
MAX_RUNBOOKS = 2
"""Runbooks that are read completely: the instructions stand below the passage that was found."""
SUMMARY_WORDS = 40
NO_EVIDENCE = "No document or earlier issue is about this incident, so there is no evidence for a brief."
_LEVEL_CODES: dict[Severity, str] = {
    "critical": "SEV1 P1 critical", "high": "SEV2 P2 high", "medium": "SEV3 P3 medium", "low": "SEV4 P4 low",
}  # fmt: skip


class BuildIncidentBriefInput(DeferredModel):
    """Arguments of `build_incident_brief`."""

    query: str = Field(min_length=1, max_length=100_000, description="the incident in words")
    service: str = Field(default="", max_length=200, description="the service it is about")
    severity: str = Field(default="", max_length=100, description="its severity, e.g. SEV2")
    priority: str = Field(default="", max_length=100, description="its priority, e.g. P1")
    limit: int = Field(default=5, ge=1, le=10, description="documents and earlier issues to rest on, each")


class BriefLine(FrozenModel):
    """A sentence of a source, and its citation numbers."""

    text: str
    citations: tuple[int, ...]


class SimilarIncident(FrozenModel):
    """An earlier issue."""

    ticket: str
    summary: str
    relevance: float
    citations: tuple[int, ...]


class BriefCitation(FrozenModel):
    """The source behind a citation number."""

    id: int
    title: str
    source_type: str
    source_id: str
    chunk_id: str
    quotes: tuple[str, ...] = Field(description="the words that were taken from it")


class BuildIncidentBriefOutput(DeferredModel):
    """The brief. Every line has a citation. If nothing was found there are no lines, and confidence is 0."""

    summary: str
    similar_incidents: list[SimilarIncident]
    probable_causes: list[BriefLine]
    recommended_actions: list[BriefLine]
    escalation_recommendation: BriefLine | None
    confidence: float = Field(ge=0, le=1, description="how much evidence there is and how near; no probability")
    citations: list[BriefCitation]


class BuildIncidentBriefTool(TypedTool[BuildIncidentBriefInput, BuildIncidentBriefOutput]):
    name = "build_incident_brief"
    description = (
        "Build an incident's brief from policies, runbooks and earlier issues: similar incidents, probable causes, "
        "recommended actions and escalation, every line cited."
    )
    annotations = READ_ONLY
    tainted = True
    reads = ("collections",)
    is_opt_in = True
    keywords = (
        "incident",
        "outage",
        "brief",
        "causes",
        "actions",
        "escalation",
        "recommend",
        "severity",
        "latency",
        "error",
    )
    hints = PlanHints(
        intent="brief those who handle the incident",
        runs_after=(SearchIncidentKnowledgeTool.name, SearchPreviousIssuesTool.name),
        heading="Brief",
        comes_first=True,
    )

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    async def run(self, args: BuildIncidentBriefInput, context: ToolContext) -> BuildIncidentBriefOutput:
        """Searches, then selects sentences."""
        severity = args.severity or args.priority
        given = {"severity": args.severity, "priority": args.priority}
        level, _ = classify(args.query, {name: value for name, value in given.items() if value.strip()})
        args = args.model_copy(update={"query": remove_pasted_logs(args.query)})
        library, owner = self._library.in_room(context.retrieval_mode, context.collections), context.owner
        collections = await choose_collections(library, owner, context.collections)
        where = (library, owner, collections.knowledge)
        documents, _ = await find_documents(*where, args.query, args.limit, args.service, severity)
        runbooks = [one for one in documents if one.kind == "runbook"][:MAX_RUNBOOKS]
        details = [
            await read_whole_document(*where, one, f"{args.query} check mitigate escalate cause") for one in runbooks
        ]
        rules = await find_policies(
            *where, f"escalate page on-call {_LEVEL_CODES[level]} {args.service}", MAX_ESCALATIONS
        )
        issues, _, _ = await find_previous_issues(
            library, owner, collections.issues, args.query, args.limit, args.service, severity
        )
        return build_brief(
            args.query, level, [one for one in documents if one not in runbooks] + details, rules, issues
        )

    async def refine(
        self, value: JsonObject, args: JsonObject, complete: CompleteMessages
    ) -> tuple[ToolResult | None, str | None]:
        changed, problem = await rewrite_summary(value, args, complete)
        return None if changed is None else self.make_result(self.Output.model_validate(changed)), problem

    def format_text(self, output: BuildIncidentBriefOutput) -> str:
        lines = [output.summary]
        for title, section in (
            ("Probable causes", output.probable_causes),
            ("Recommended actions", output.recommended_actions),
            ("Escalation", [output.escalation_recommendation] if output.escalation_recommendation else []),
        ):
            if section:
                lines += [
                    "",
                    f"**{title}**",
                    "",
                    *(f"- {strip_footnote_marks(line.text)} {_format_marks(line.citations)}" for line in section),
                ]
        if output.similar_incidents:
            lines += ["", "**Similar incidents**", ""]
            lines += [
                f"- {one.ticket}: {strip_footnote_marks(one.summary)} {_format_marks(one.citations)}"
                for one in output.similar_incidents
            ]
        return "\n".join([*lines, "", f"Confidence: {output.confidence:.0%}"])

    def list_sources(self, output: BuildIncidentBriefOutput) -> tuple[Source, ...]:
        return tuple(Source(id=one.id, name=one.source_id, quotes=one.quotes) for one in output.citations)


def build_brief(
    query: str,
    level: Severity,
    documents: Sequence[Document],
    rules: Sequence[RetrievedContext],
    issues: Sequence[Issue],
) -> BuildIncidentBriefOutput:
    """The brief that this evidence supports; deterministic. `rules` are passages about whom to call."""
    citations = SourceCitations(query)
    for document in documents:
        citations.add(document.name, document.kind, document.score, document.passages)
    for issue in issues:
        citations.add(
            format_issue_name(issue), classify_passage(issue.passage), issue.passage.relevance_score, [issue.passage]
        )
    if citations.is_empty:
        return BuildIncidentBriefOutput(
            summary=NO_EVIDENCE, similar_incidents=[], probable_causes=[], recommended_actions=[],
            escalation_recommendation=None, confidence=0.0, citations=[],
        )  # fmt: skip
    similar = [
        SimilarIncident(
            ticket=issue.ticket,
            summary=get_subject(issue.passage),
            relevance=round(issue.passage.relevance_score, 3),
            citations=citations.cite(format_issue_name(issue), extract_snippet(issue.passage.content, query)),
        )
        for issue in issues
    ]
    summary = _write_summary(citations, query, level, documents, issues)
    distant = frozenset(one.name for one in documents if not one.is_near)
    causes = _make_lines(
        citations.select_best(MAX_CAUSES, lambda line: None if line.source.name in distant else line.cause_score)
    )
    actions = _make_lines(
        citations.select_best(MAX_ACTIONS, lambda line: None if line.source.name in distant else line.action_score)
    )
    for passage in rules:
        if classify_passage(passage) == "policy":  # another service's runbook says whom that one calls
            citations.add(format_source_name(passage), "policy", passage.relevance_score, [passage])
    codes = frozenset(_LEVEL_CODES[level].lower().split())
    escalation = _make_lines(citations.select_best(MAX_ESCALATIONS, lambda line: line.score_escalation(codes)))
    return BuildIncidentBriefOutput(
        summary=summary,
        similar_incidents=similar,
        probable_causes=causes,
        recommended_actions=actions,
        escalation_recommendation=_join_lines(escalation),
        confidence=_compute_confidence(documents, issues),
        citations=[
            BriefCitation(
                id=one.number,
                title=one.title,
                source_type=one.kind,
                source_id=one.name,
                chunk_id=one.passages[0].chunk_id,
                quotes=tuple(one.quotes),
            )
            for one in citations.list_cited()
        ],
    )


def _write_summary(
    citations: SourceCitations, query: str, level: Severity, documents: Sequence[Document], issues: Sequence[Issue]
) -> str:
    """The reported incident, the nearest earlier issue and the nearest document, with citations."""
    parts = []
    if issues:
        nearest = issues[0]
        number = citations.cite(format_issue_name(nearest), extract_snippet(nearest.passage.content, query))
        parts.append(
            f"The nearest earlier issue is {strip_footnote_marks(format_issue_name(nearest))} {_format_marks(number)}."
        )
    else:
        parts.append(NO_SIMILAR_ISSUE)
    policy = max((one for one in documents if is_policy(one.kind)), key=lambda one: one.score, default=None)
    if policy is not None:
        number = citations.cite(policy.name, extract_snippet(policy.passages[0].content, query))
        title = strip_footnote_marks(format_title(policy.passages[0]))
        parts.append(f"The nearest {policy.kind} is {title} {_format_marks(number)}.")
    report = strip_footnote_marks(summarize(query, SUMMARY_WORDS)).rstrip(".")
    return " ".join((f"Reported ({level}): {report}.", *parts))


def _make_lines(lines: Sequence[tuple[str, int]]) -> list[BriefLine]:
    return [BriefLine(text=text, citations=(number,)) for text, number in lines]


def _join_lines(lines: Sequence[BriefLine]) -> BriefLine | None:
    """Several lines as one, with the citations of all."""
    if not lines:
        return None
    citations = dict.fromkeys(number for line in lines for number in line.citations)
    return BriefLine(text=" ".join(line.text for line in lines), citations=tuple(citations))


def _compute_confidence(documents: Sequence[Document], issues: Sequence[Issue]) -> float:
    """The confidence: half from the nearest issue, a third from the nearest document, the rest for a policy or
    runbook. Without an earlier case a brief is a guess.
    """
    nearest = max((issue.passage.relevance_score for issue in issues), default=0.0)
    document = max((one.score for one in documents if one.is_near), default=0.0)
    policy = any(is_policy(one.kind) for one in documents)
    return round(min(0.95, 0.5 * nearest + 0.3 * document + 0.15 * policy), 2)


def _format_marks(citations: Sequence[int]) -> str:
    return "".join(f"[{number}]" for number in citations)
