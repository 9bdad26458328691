"""`build_incident_brief`: causes, actions and escalation for an incident, each line cited to a source that was found.

No line is written here: causes, actions and escalations are sentences of documents and tickets.
"""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.core.models import Frozen, Source
from agent.knowledge.levels import Level
from agent.knowledge.library import Library
from agent.knowledge.models import RetrievedContext
from agent.tools import READ_ONLY, ToolContext, TypedTool
from mcp_tools.builtin.incident.book import Book
from mcp_tools.builtin.incident.evidence import is_policy, kind_of, snippet, source_name, title_of, unmarked
from mcp_tools.builtin.incident.issues import NOTHING_LIKE_IT, Issue, cited_name, previous_issues, subject_of
from mcp_tools.builtin.incident.knowledge import Document, knowledge, policies, whole
from mcp_tools.builtin.incident.priority import classify
from mcp_tools.builtin.incident.summary import summary_of
from mcp_tools.builtin.incident.text import own_words

CAUSES, ACTIONS, ESCALATIONS = 4, 7, 3
RUNBOOKS = 2
"""Runbooks that are read whole: what to do stands below what was found."""
SUMMARY_WORDS = 40
NO_EVIDENCE = "Nothing that was searched has to do with this incident: there is no evidence to rest a brief on."
_CODES: dict[Level, str] = {
    "critical": "SEV1 P1 critical", "high": "SEV2 P2 high", "medium": "SEV3 P3 medium", "low": "SEV4 P4 low",
}  # fmt: skip


class BuildIncidentBriefInput(BaseModel):
    """The incident."""

    query: str = Field(min_length=1, max_length=100_000, description="the incident in words")
    service: str = Field(default="", max_length=200, description="the service it is about")
    severity: str = Field(default="", max_length=100, description="its severity, e.g. SEV2")
    priority: str = Field(default="", max_length=100, description="its priority, e.g. P1")
    limit: int = Field(default=5, ge=1, le=10, description="documents and earlier issues to rest on, each")


class BriefLine(Frozen):
    """A sentence of a source, and the number of its citation."""

    text: str
    citations: tuple[int, ...]


class SimilarIncident(Frozen):
    """An earlier issue."""

    ticket: str
    summary: str
    relevance: float
    citations: tuple[int, ...]


class BriefCitation(Frozen):
    """What a number stands for."""

    id: int
    title: str
    source_type: str
    source_id: str
    chunk_id: str
    quotes: tuple[str, ...] = Field(description="the words that were taken from it")


class BuildIncidentBriefOutput(BaseModel):
    """The brief. Every line names a citation; where nothing was found there are no lines, and confidence is 0."""

    summary: str
    similar_incidents: list[SimilarIncident]
    probable_causes: list[BriefLine]
    recommended_actions: list[BriefLine]
    escalation_recommendation: BriefLine | None
    confidence: float = Field(ge=0, le=1, description="how much evidence there is and how near; no probability")
    citations: list[BriefCitation]


class BuildIncidentBriefTool(TypedTool[BuildIncidentBriefInput, BuildIncidentBriefOutput]):
    """Writes the brief of an incident."""

    name = "build_incident_brief"
    description = (
        "Build an incident's brief from policies, runbooks and earlier issues: similar incidents, probable causes, "
        "recommended actions and escalation, every line cited."
    )
    annotations = READ_ONLY
    tainted = True
    by_name = True
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
    Input = BuildIncidentBriefInput
    Output = BuildIncidentBriefOutput

    def __init__(self, library: Library, knowledge_collection: str, issues_collection: str) -> None:
        super().__init__()
        self._library = library
        self._knowledge = knowledge_collection
        self._issues = issues_collection

    async def run(self, args: BuildIncidentBriefInput, context: ToolContext) -> BuildIncidentBriefOutput:
        """Search, then choose sentences."""
        severity = args.severity or args.priority
        given = {"severity": args.severity, "priority": args.priority}
        level, _ = classify(args.query, {name: value for name, value in given.items() if value.strip()})
        args = args.model_copy(update={"query": own_words(args.query)})
        library, owner = self._library.preferring(context.retrieval_mode), context.owner
        where = (library, owner, self._knowledge)
        documents, _ = await knowledge(*where, args.query, args.limit, args.service, severity)
        runbooks = [one for one in documents if one.kind == "runbook"][:RUNBOOKS]
        details = [await whole(*where, one, f"{args.query} check mitigate escalate cause") for one in runbooks]
        rules = await policies(*where, f"escalate page on-call {_CODES[level]} {args.service}", ESCALATIONS)
        issues, _, _ = await previous_issues(
            library, owner, self._issues, args.query, args.limit, args.service, severity
        )
        return brief(args.query, level, [one for one in documents if one not in runbooks] + details, rules, issues)

    def text(self, output: BuildIncidentBriefOutput) -> str:
        """The brief in Markdown."""
        lines = [output.summary]
        for title, found in (
            ("Probable causes", output.probable_causes),
            ("Recommended actions", output.recommended_actions),
            ("Escalation", [output.escalation_recommendation] if output.escalation_recommendation else []),
        ):
            if found:
                lines += [
                    "",
                    f"**{title}**",
                    "",
                    *(f"- {unmarked(line.text)} {_marks(line.citations)}" for line in found),
                ]
        if output.similar_incidents:
            lines += ["", "**Similar incidents**", ""]
            lines += [
                f"- {one.ticket}: {unmarked(one.summary)} {_marks(one.citations)}" for one in output.similar_incidents
            ]
        return "\n".join([*lines, "", f"Confidence: {output.confidence:.0%}"])

    def sources(self, output: BuildIncidentBriefOutput) -> tuple[Source, ...]:
        """The citations."""
        return tuple(Source(id=one.id, name=one.source_id, quotes=one.quotes) for one in output.citations)


def brief(
    query: str,
    level: Level,
    documents: Sequence[Document],
    rules: Sequence[RetrievedContext],
    issues: Sequence[Issue],
) -> BuildIncidentBriefOutput:
    """The brief that this evidence allows; the same for the same evidence. `rules` are passages on who is called."""
    book = Book(query)
    for document in documents:
        book.add(document.name, document.kind, document.score, document.passages)
    for issue in issues:
        book.add(cited_name(issue), kind_of(issue.found), issue.found.relevance_score, [issue.found])
    if book.is_empty:
        return BuildIncidentBriefOutput(
            summary=NO_EVIDENCE, similar_incidents=[], probable_causes=[], recommended_actions=[],
            escalation_recommendation=None, confidence=0.0, citations=[],
        )  # fmt: skip
    similar = [
        SimilarIncident(
            ticket=issue.ticket,
            summary=subject_of(issue.found),
            relevance=round(issue.found.relevance_score, 3),
            citations=book.cite(cited_name(issue), snippet(issue.found.content, query)),
        )
        for issue in issues
    ]
    summary = _summary(book, query, level, documents, issues)
    far = frozenset(one.name for one in documents if not one.near)
    causes = _lines(book.best(CAUSES, lambda line: None if line.source.name in far else line.cause_worth))
    actions = _lines(book.best(ACTIONS, lambda line: None if line.source.name in far else line.action_worth))
    for passage in rules:
        if kind_of(passage) == "policy":  # another service's runbook says whom that one calls
            book.add(source_name(passage), "policy", passage.relevance_score, [passage])
    codes = frozenset(_CODES[level].lower().split())
    escalation = _lines(book.best(ESCALATIONS, lambda line: line.escalation_worth(codes)))
    return BuildIncidentBriefOutput(
        summary=summary,
        similar_incidents=similar,
        probable_causes=causes,
        recommended_actions=actions,
        escalation_recommendation=_joined(escalation),
        confidence=_confidence(documents, issues),
        citations=[
            BriefCitation(
                id=one.number,
                title=one.title,
                source_type=one.kind,
                source_id=one.name,
                chunk_id=one.passages[0].chunk_id,
                quotes=tuple(one.quotes),
            )
            for one in book.cited()
        ],
    )


def _summary(book: Book, query: str, level: Level, documents: Sequence[Document], issues: Sequence[Issue]) -> str:
    """What is reported, and the nearest of what is known, each with its citation."""
    parts = []
    if issues:
        nearest = issues[0]
        number = book.cite(cited_name(nearest), snippet(nearest.found.content, query))
        parts.append(f"The nearest earlier issue is {unmarked(cited_name(nearest))} {_marks(number)}.")
    else:
        parts.append(NOTHING_LIKE_IT)
    applies = max((one for one in documents if is_policy(one.kind)), key=lambda one: one.score, default=None)
    if applies is not None:
        number = book.cite(applies.name, snippet(applies.passages[0].content, query))
        parts.append(f"The nearest {applies.kind} is {unmarked(title_of(applies.passages[0]))} {_marks(number)}.")
    told = unmarked(summary_of(query, SUMMARY_WORDS)).rstrip(".")
    return " ".join((f"Reported ({level}): {told}.", *parts))


def _lines(found: Sequence[tuple[str, int]]) -> list[BriefLine]:
    return [BriefLine(text=text, citations=(number,)) for text, number in found]


def _joined(lines: Sequence[BriefLine]) -> BriefLine | None:
    """Several lines as one, with the citations of all."""
    if not lines:
        return None
    citations = dict.fromkeys(number for line in lines for number in line.citations)
    return BriefLine(text=" ".join(line.text for line in lines), citations=tuple(citations))


def _confidence(documents: Sequence[Document], issues: Sequence[Issue]) -> float:
    """Half from the nearest issue, a third from the nearest document, the rest for a policy or runbook: without
    somebody's having been there before, a brief is a guess."""
    nearest = max((issue.found.relevance_score for issue in issues), default=0.0)
    document = max((one.score for one in documents if one.near), default=0.0)
    policy = any(is_policy(one.kind) for one in documents)
    return round(min(0.95, 0.5 * nearest + 0.3 * document + 0.15 * policy), 2)


def _marks(citations: Sequence[int]) -> str:
    return "".join(f"[{number}]" for number in citations)
