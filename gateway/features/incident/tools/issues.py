"""`search_previous_issues`: finds similar earlier tickets and incidents, each ticket once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from agent.core.models import DeferredModel, FrozenModel, JsonObject, Source
from agent.tools import READ_ONLY, PlanHints, ToolContext, TypedTool
from gateway.features.documents.engine.grounded_answers.footnote_marks import strip_footnote_marks
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.llm_rerank import MAX_CANDIDATES as CANDIDATES_OF_A_MODEL
from gateway.features.documents.engine.search.llm_rerank import rerank_with_model
from gateway.features.documents.engine.search.models import RetrievedContext
from gateway.features.documents.engine.search.severity import normalize_name, parse_severity
from gateway.features.incident.engine.evidence import (
    TICKET_FIELDS,
    choose_collections,
    extract_snippet,
    format_source_name,
    format_title,
    get_metadata_text,
    matches_service,
    matches_severity,
    require_collection,
    search_evidence,
)
from gateway.features.incident.engine.text import remove_pasted_logs

MAX_CANDIDATES = 100
"""Passages of each search that are filtered and reduced to one for each ticket."""
NO_SIMILAR_ISSUE = "No earlier issue is similar."
_TICKET = re.compile(r"\b(?:[A-Z][A-Z0-9]{1,9}-\d{1,7}|(?:INC|PRB|CHG)\d{4,10})\b")
AppliedFilters = Literal["service+severity", "service", "severity", "none"]


class SearchPreviousIssuesInput(DeferredModel):
    """Arguments of `search_previous_issues`."""

    query: str = Field(min_length=1, max_length=100_000, description="the incident in words")
    limit: int = Field(default=3, ge=1, le=10, description="how many results at most")
    service: str = Field(default="", max_length=200, description="only issues of this service or project")
    severity: str = Field(default="", max_length=100, description="issues of this severity or priority come first")
    use_llm_rerank: bool = Field(default=False, description="have a model order the results, where that is possible")


class IssueHit(FrozenModel):
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


class SearchPreviousIssuesOutput(DeferredModel):
    """Issues with every word of the query first, then the others by relevance; or in the order of the reranking
    model."""

    results: list[IssueHit]
    filters: AppliedFilters = Field(
        default="none", description="the filters that were applied; each is dropped if nothing is found"
    )
    note: str = ""


@dataclass(frozen=True, slots=True)
class Issue:
    """A passage of an earlier issue and its ticket."""

    ticket: str
    passage: RetrievedContext
    is_strict: bool
    has_severity: bool = True
    """False if it was added after the issues of the severity that was asked for."""


class SearchPreviousIssuesTool(TypedTool[SearchPreviousIssuesInput, SearchPreviousIssuesOutput]):
    name = "search_previous_issues"
    description = (
        "Search similar earlier tickets and incidents and how they were solved, each ticket once; a filter by "
        "service is dropped if nothing matches, and issues of another severity follow those of the severity asked for."
    )
    annotations = READ_ONLY
    tainted = True
    reads = ("collections",)
    is_opt_in = True
    keywords = (
        "incident", "outage", "latency", "error", "severity", "previous", "similar", "issues", "tickets", "jira",
        "history",
    )  # fmt: skip
    hints = PlanHints(intent="find similar tickets and incidents", heading="Earlier issues")

    def __init__(self, library: Library, collection: str | None = None) -> None:
        """`collection` is searched instead of the room's."""
        super().__init__()
        self._library = library
        self._collection = collection

    async def run(self, args: SearchPreviousIssuesInput, context: ToolContext) -> SearchPreviousIssuesOutput:
        args = args.model_copy(update={"query": remove_pasted_logs(args.query)})
        most = max(args.limit, CANDIDATES_OF_A_MODEL) if args.use_llm_rerank else args.limit
        library = self._library.in_room(context.retrieval_mode, context.collections)
        issues, filters, note = await find_previous_issues(
            library,
            context.owner,
            self._collection or (await choose_collections(library, context.owner, context.collections)).issues,
            args.query,
            most,
            args.service,
            args.severity,
        )
        notes = [note] if note else []
        if args.use_llm_rerank:
            texts = [f"{format_issue_name(issue)}\n{issue.passage.content}" for issue in issues]
            order, rerank_note = await rerank_with_model(
                args.query, texts, context.model.ask if context.model else None
            )
            issues = [issues[at] for at in order][: args.limit]
            notes += [rerank_note] if rerank_note else []
        return SearchPreviousIssuesOutput(
            results=[_make_hit(issue, args, filters) for issue in issues], filters=filters, note="; ".join(notes)
        )

    def format_text(self, output: SearchPreviousIssuesOutput) -> str:
        if not output.results:
            return NO_SIMILAR_ISSUE
        parts = []
        for number, hit in enumerate(output.results, start=1):
            name = strip_footnote_marks(_join_ticket_and_title(hit.ticket, hit.summary))
            parts.append(f"{name}\n{strip_footnote_marks(hit.snippet)} [{number}]")
        return "\n\n".join(parts)

    def list_sources(self, output: SearchPreviousIssuesOutput) -> tuple[Source, ...]:
        """One source for each ticket."""
        return tuple(
            Source(id=number, name=_join_ticket_and_title(hit.ticket, hit.summary), quotes=(hit.snippet,))
            for number, hit in enumerate(output.results, start=1)
        )


async def find_previous_issues(
    library: Library, owner: str, collection: str, query: str, limit: int, service: str, severity: str
) -> tuple[list[Issue], AppliedFilters, str]:
    """The nearest issues, each ticket once, the filters that were applied, and a note of the search."""
    await require_collection(
        library,
        owner,
        collection,
        f"stepgate corpus build FILE.jsonl --collection {collection}",
    )
    for filters in _list_relaxed_filters(service, severity):
        kept_service = service if "service" in filters else ""
        kept_severity = severity if "severity" in filters else ""
        passages, note = await _search_with_filters(library, owner, collection, query, kept_service, kept_severity)
        if passages:
            dropped = "" if filters == _list_relaxed_filters(service, severity)[0] else f"; applied filters: {filters}"
            issues = _select_best_per_ticket(passages)
            if kept_severity and len(issues) < limit:
                others, _ = await _search_with_filters(library, owner, collection, query, kept_service, "")
                issues += _select_others(others, issues)
            return issues[:limit], filters, f"{note}{dropped}".removeprefix("; ")
    return [], "none", ""


def _select_others(found: Sequence[RetrievedContext], issues: Sequence[Issue]) -> list[Issue]:
    """The issues that are not among `issues`, marked as those of another severity."""
    known_tickets = {normalize_name(issue.ticket) for issue in issues}
    others = [one for one in _select_best_per_ticket(found) if normalize_name(one.ticket) not in known_tickets]
    return [replace(one, has_severity=False) for one in others]


def _list_relaxed_filters(service: str, severity: str) -> tuple[AppliedFilters, ...]:
    """The filters to try in order: all, the service alone, none."""
    if service and severity:
        return ("service+severity", "service", "none")
    if service:
        return ("service", "none")
    return ("severity", "none") if severity else ("none",)


async def _search_with_filters(
    library: Library, owner: str, collection: str, query: str, service: str, severity: str
) -> tuple[Sequence[RetrievedContext], str]:
    """Passages that match the filters by metadata (searched in the index) or by text (checked here)."""
    if not service and not severity:
        return await search_evidence(library, owner, collection, query, top_k=MAX_CANDIDATES)
    named = " ".join((query, *(word for word in (service, severity) if word)))
    passages, note = await search_evidence(library, owner, collection, named, top_k=MAX_CANDIDATES)
    matching = [
        one
        for one in passages
        if (not service or matches_service(one, service)) and (not severity or matches_severity(one, severity))
    ]
    # This search is last, so that a passage keeps the score of the query itself.
    fields: JsonObject = {}
    if service:
        fields["match_service"] = normalize_name(service)
    if severity:
        fields["match_severity"] = parse_severity(severity) or normalize_name(severity)
    by_field, also = await search_evidence(library, owner, collection, query, top_k=MAX_CANDIDATES, filters=fields)
    known_chunk_ids = {one.chunk_id for one in by_field}
    return [*by_field, *(one for one in matching if one.chunk_id not in known_chunk_ids)], note or also


def _select_best_per_ticket(found: Sequence[RetrievedContext]) -> list[Issue]:
    """The best passage of each ticket; strict matches first, then by relevance."""
    issues = [Issue(get_ticket(one), one, _is_strict_match(one)) for one in found]
    issues.sort(key=lambda issue: (not issue.is_strict, -issue.passage.relevance_score))
    best: dict[str, Issue] = {}
    for issue in issues:
        best.setdefault(normalize_name(issue.ticket), issue)
    return list(best.values())


def get_ticket(found: RetrievedContext) -> str:
    """The ticket of a passage: from its metadata, else from its name."""
    ticket_field = get_metadata_text(found, *TICKET_FIELDS)
    named = _TICKET.search(f"{get_metadata_text(found, 'source')} {get_metadata_text(found, 'title')}")
    return ticket_field or (named[0] if named else get_metadata_text(found, "doc_id") or format_source_name(found))


def get_subject(found: RetrievedContext) -> str:
    """A ticket's title without its number; the number if it has no other title than its id."""
    title, ticket = format_title(found), get_ticket(found)
    if title == get_metadata_text(found, "doc_id"):
        return ticket
    return title.removeprefix(ticket).lstrip(" :-\u2013") or title


def format_issue_name(issue: Issue) -> str:
    """The name under which a ticket is cited."""
    return _join_ticket_and_title(issue.ticket, get_subject(issue.passage))


def _join_ticket_and_title(ticket: str, title: str) -> str:
    return ticket if title == ticket else f"{ticket}: {title}"


def _is_strict_match(found: RetrievedContext) -> bool:
    scores = found.metadata.get("scores")
    lexical = scores.get("lexical") if isinstance(scores, dict) else None
    return isinstance(lexical, dict) and lexical.get("strict") is True


def _make_hit(issue: Issue, args: SearchPreviousIssuesInput, filters: AppliedFilters) -> IssueHit:
    passage, why = issue.passage, [issue.passage.why_selected]
    if not issue.has_severity:
        why.append("another severity than the one asked for")
    elif filters != "none":
        why.append(f"matches the {filters.replace('+', ' and the ')} asked for")
    elif args.service or args.severity:
        why.append("nothing matched the filters, so they were dropped")
    relevance = round(passage.relevance_score, 3)
    return IssueHit(
        ticket=issue.ticket,
        summary=get_subject(passage),
        relevance=relevance,
        source=get_metadata_text(passage, "source_type") or "documents",
        doc_id=get_metadata_text(passage, "doc_id") or passage.source_id,
        chunk_id=passage.chunk_id,
        score=relevance,
        retrieval_mode=passage.retrieval_mode,
        match="strict" if issue.is_strict else "relaxed",
        snippet=extract_snippet(passage.content, args.query),
        why_selected="; ".join(why),
    )
