"""`search_previous_issues`: earlier tickets and incidents like this one, each once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from agent.core.models import Frozen, JsonObject, Source
from agent.knowledge.levels import level_of, plain
from agent.knowledge.library import Library
from agent.knowledge.llm_rerank import CANDIDATES as CANDIDATES_OF_A_MODEL
from agent.knowledge.llm_rerank import order_of
from agent.knowledge.models import RetrievedContext
from agent.tools import READ_ONLY, ToolContext, TypedTool
from mcp_tools.builtin.incident.evidence import (
    ask,
    is_of_service,
    is_of_severity,
    require,
    said_of,
    snippet,
    source_name,
    title_of,
    unmarked,
)
from mcp_tools.builtin.incident.text import own_words

CANDIDATES = 100
"""Passages of each search that are filtered and brought down to one a ticket."""
NOTHING_LIKE_IT = "No earlier issue is like this one."
_TICKET = re.compile(r"\b(?:[A-Z][A-Z0-9]{1,9}-\d{1,7}|(?:INC|PRB|CHG)\d{4,10})\b")
Filters = Literal["service+severity", "service", "severity", "none"]


class SearchPreviousIssuesInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=100_000, description="the incident in words")
    limit: int = Field(default=3, ge=1, le=10, description="how many results at most")
    service: str = Field(default="", max_length=200, description="only issues of this service or project")
    severity: str = Field(default="", max_length=100, description="only issues of this severity or priority")
    use_llm_rerank: bool = Field(default=False, description="have a model order the results, where that is possible")


class IssueHit(Frozen):
    """An earlier ticket or incident."""

    ticket: str
    summary: str = Field(description="its title")
    relevance: float = Field(description="from 0 to 1")
    source: str = Field(description="the system it is from, e.g. jira")
    doc_id: str
    chunk_id: str
    score: float = Field(description="the retriever's score, from 0 to 1; the same as relevance")
    retrieval_mode: str = Field(description="lexical, vector, hybrid or hybrid_rerank")
    match: Literal["strict", "relaxed"] = Field(description="strict: it holds every word of the query")
    snippet: str = Field(description="words of the ticket, as they stand there")
    why_selected: str


class SearchPreviousIssuesOutput(BaseModel):
    """The issues: those that hold every word of the query first, then the others by relevance; in the order of a model
    where one was asked to rerank them."""

    results: list[IssueHit]
    filters: Filters = Field(
        default="none", description="the filters that were kept; each is given up if nothing is found"
    )
    note: str = ""


@dataclass(frozen=True, slots=True)
class Issue:
    """A passage of an earlier issue, and the ticket it belongs to."""

    ticket: str
    found: RetrievedContext
    strict: bool


class SearchPreviousIssuesTool(TypedTool[SearchPreviousIssuesInput, SearchPreviousIssuesOutput]):
    """Searches earlier issues."""

    name = "search_previous_issues"
    description = (
        "Search earlier tickets and incidents like this one: how they were solved, each ticket once; "
        "filters by service and severity are given up when nothing matches."
    )
    annotations = READ_ONLY
    tainted = True
    by_name = True
    keywords = (
        "incident", "outage", "latency", "error", "severity", "previous", "similar", "issues", "tickets", "jira",
        "history",
    )  # fmt: skip
    Input = SearchPreviousIssuesInput
    Output = SearchPreviousIssuesOutput

    def __init__(self, library: Library, collection: str) -> None:
        super().__init__()
        self._library = library
        self._collection = collection

    async def run(self, args: SearchPreviousIssuesInput, context: ToolContext) -> SearchPreviousIssuesOutput:
        """The nearest issues."""
        args = args.model_copy(update={"query": own_words(args.query)})
        most = max(args.limit, CANDIDATES_OF_A_MODEL) if args.use_llm_rerank else args.limit
        issues, filters, note = await previous_issues(
            self._library.preferring(context.retrieval_mode),
            context.owner,
            self._collection,
            args.query,
            most,
            args.service,
            args.severity,
        )
        notes = [note] if note else []
        if args.use_llm_rerank:
            texts = [f"{cited_name(issue)}\n{issue.found.content}" for issue in issues]
            order, told = await order_of(args.query, texts, context.model.ask if context.model else None)
            issues = [issues[at] for at in order][: args.limit]
            notes += [told] if told else []
        return SearchPreviousIssuesOutput(
            results=[_hit(issue, args, filters) for issue in issues], filters=filters, note="; ".join(notes)
        )

    def text(self, output: SearchPreviousIssuesOutput) -> str:
        """The issues, numbered as their sources are."""
        if not output.results:
            return NOTHING_LIKE_IT
        return "\n\n".join(
            f"{unmarked(_cited(hit.ticket, hit.summary))}\n{unmarked(hit.snippet)} [{number}]"
            for number, hit in enumerate(output.results, start=1)
        )

    def sources(self, output: SearchPreviousIssuesOutput) -> tuple[Source, ...]:
        """A source for each ticket."""
        return tuple(
            Source(id=number, name=_cited(hit.ticket, hit.summary), quotes=(hit.snippet,))
            for number, hit in enumerate(output.results, start=1)
        )


async def previous_issues(
    library: Library, owner: str, collection: str, query: str, limit: int, service: str, severity: str
) -> tuple[list[Issue], Filters, str]:
    """The nearest issues, each ticket once, the filters that were kept, and what the search has to note."""
    await require(
        library,
        owner,
        collection,
        "AGENT_INCIDENT_ISSUES",
        f"stepgate corpus build FILE.jsonl --collection {collection}",
    )
    for filters in _relaxed(service, severity):
        kept_service = service if "service" in filters else ""
        kept_severity = severity if "severity" in filters else ""
        found, note = await _matching(library, owner, collection, query, kept_service, kept_severity)
        if found:
            given_up = "" if filters == _relaxed(service, severity)[0] else f"; kept of the filters: {filters}"
            return _by_ticket(found)[:limit], filters, f"{note}{given_up}".removeprefix("; ")
    return [], "none", ""


def _relaxed(service: str, severity: str) -> tuple[Filters, ...]:
    """The filters to try, one after the other: both, the service alone, none."""
    if service and severity:
        return ("service+severity", "service", "none")
    if service:
        return ("service", "none")
    return ("severity", "none") if severity else ("none",)


async def _matching(
    library: Library, owner: str, collection: str, query: str, service: str, severity: str
) -> tuple[Sequence[RetrievedContext], str]:
    """Passages that match the filters: by their fields, asked of the index, or by their text, read here."""
    if not service and not severity:
        return await ask(library, owner, collection, query, top_k=CANDIDATES)
    named = " ".join((query, *(word for word in (service, severity) if word)))
    found, note = await ask(library, owner, collection, named, top_k=CANDIDATES)
    matching = [
        one
        for one in found
        if (not service or is_of_service(one, service)) and (not severity or is_of_severity(one, severity))
    ]
    # The scores are those of the query itself, wherever it finds the passage.
    fields: JsonObject = {}
    if service:
        fields["match_service"] = plain(service)
    if severity:
        fields["match_severity"] = level_of(severity) or plain(severity)
    by_field, also = await ask(library, owner, collection, query, top_k=CANDIDATES, filters=fields)
    known = {one.chunk_id for one in by_field}
    return [*by_field, *(one for one in matching if one.chunk_id not in known)], note or also


def _by_ticket(found: Sequence[RetrievedContext]) -> list[Issue]:
    """The best passage of each ticket; strict hits first, then by relevance."""
    issues = [Issue(ticket_of(one), one, _is_strict(one)) for one in found]
    issues.sort(key=lambda issue: (not issue.strict, -issue.found.relevance_score))
    best: dict[str, Issue] = {}
    for issue in issues:
        best.setdefault(plain(issue.ticket), issue)
    return list(best.values())


def ticket_of(found: RetrievedContext) -> str:
    """The ticket a passage belongs to: what it says itself, else what its name looks like, else its name."""
    said = said_of(found, "ticket", "issue_key", "incident_number")
    named = _TICKET.search(f"{said_of(found, 'source')} {said_of(found, 'title')}")
    return said or (named[0] if named else said_of(found, "doc_id") or source_name(found))


def subject_of(found: RetrievedContext) -> str:
    """What a ticket is about, without its own number in front."""
    title, ticket = title_of(found), ticket_of(found)
    return title.removeprefix(ticket).lstrip(" :-\u2013") or title


def cited_name(issue: Issue) -> str:
    """How a ticket is cited."""
    return _cited(issue.ticket, subject_of(issue.found))


def _cited(ticket: str, title: str) -> str:
    return ticket if title == ticket else f"{ticket}: {title}"


def _is_strict(found: RetrievedContext) -> bool:
    scores = found.metadata.get("scores")
    lexical = scores.get("lexical") if isinstance(scores, dict) else None
    return isinstance(lexical, dict) and lexical.get("strict") is True


def _hit(issue: Issue, args: SearchPreviousIssuesInput, filters: Filters) -> IssueHit:
    found, why = issue.found, [issue.found.why_selected]
    if filters != "none":
        why.append(f"matches the {filters.replace('+', ' and the ')} asked for")
    elif args.service or args.severity:
        why.append("nothing matched the filters; without them")
    relevance = round(found.relevance_score, 3)
    return IssueHit(
        ticket=issue.ticket,
        summary=subject_of(found),
        relevance=relevance,
        source=said_of(found, "source_type") or "documents",
        doc_id=said_of(found, "doc_id") or found.source_id,
        chunk_id=found.chunk_id,
        score=relevance,
        retrieval_mode=found.retrieval_mode,
        match="strict" if issue.strict else "relaxed",
        snippet=snippet(found.content, args.query),
        why_selected="; ".join(why),
    )
