"""`search_incident_knowledge`: finds policies, runbooks, documents and tickets about an incident."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from agent.answers.evidence import NOT_IN_DOCUMENTS
from agent.core.models import DeferredModel, FrozenModel, JsonObject, Source
from agent.tools import READ_ONLY, PlanHints, ToolContext, TypedTool
from gateway.features.documents.engine.grounded_answers.footnote_marks import strip_footnote_marks
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.models import RetrievedContext
from gateway.features.incident.engine.evidence import (
    choose_collections,
    classify_name,
    classify_passage,
    extract_snippet,
    format_source_name,
    format_title,
    is_policy,
    matches_service,
    require_collection,
    search_evidence,
)
from gateway.features.incident.engine.text import remove_pasted_logs
from gateway.features.incident.tools.issues import get_ticket

MAX_CANDIDATES = 50
"""Passages among which the best of each document, and a policy, are looked for."""
SERVICE_BONUS = 0.3
"""The bonus for naming the service, as a share of the difference to full relevance."""
_TICKETS = frozenset({"ticket", "incident"})
_WORD = re.compile(r"\w+")
MAX_POLICY_DOCUMENTS = 100
"""Documents one filter may name (`filters.MAX_VALUES`)."""


class SearchIncidentKnowledgeInput(DeferredModel):
    """Arguments of `search_incident_knowledge`."""

    query: str = Field(min_length=1, max_length=100_000, description="the incident in words, or a question about it")
    limit: int = Field(default=3, ge=1, le=10, description="how many results at most")
    service: str = Field(default="", max_length=200, description="the service it is about; sought too")
    severity: str = Field(default="", max_length=100, description="its severity or priority; sought too")


class KnowledgeHit(FrozenModel):
    """A document about the incident."""

    title: str
    snippet: str = Field(description="words of the document, as they stand there")
    source_type: str = Field(description="policy, runbook, doc or ticket")
    source_id: str = Field(description="the document as it is cited: its path, or the key of the ticket")
    score: float = Field(description="relevance, from 0 to 1")
    scores: dict[str, float] = Field(
        default_factory=dict,
        description="`relevance`, and `overlap`: the words that query and passage share, divided by "
        "sqrt(words of the query * words of the passage)",
    )
    why_selected: str
    chunk_id: str
    retrieval_mode: str


class SearchIncidentKnowledgeOutput(DeferredModel):
    """Documents in order of relevance; at least one is a policy or runbook if there is one."""

    results: list[KnowledgeHit]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was found, and its passages in order of relevance."""

    name: str
    kind: str
    score: float
    reason: str
    passages: tuple[RetrievedContext, ...]
    is_near: bool = True
    """Whether it is about the incident; False for a policy that is only included because every incident needs one."""


class SearchIncidentKnowledgeTool(TypedTool[SearchIncidentKnowledgeInput, SearchIncidentKnowledgeOutput]):
    name = "search_incident_knowledge"
    description = (
        "Search the company's policies, runbooks, documents and tickets for what applies to an incident; "
        "returns passages to cite."
    )
    annotations = READ_ONLY
    tainted = True
    reads = ("collections",)
    is_opt_in = True
    keywords = (
        "incident", "outage", "latency", "error", "severity", "policy", "runbook", "escalation", "procedure", "company",
    )  # fmt: skip
    hints = PlanHints(intent="find policies, runbooks and documents", heading="Policies and runbooks")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    async def run(self, args: SearchIncidentKnowledgeInput, context: ToolContext) -> SearchIncidentKnowledgeOutput:
        """The documents, each with its best passage."""
        args = args.model_copy(update={"query": remove_pasted_logs(args.query)})
        library = self._library.in_room(context.retrieval_mode, context.collections)
        documents, note = await find_documents(
            library,
            context.owner,
            (await choose_collections(library, context.owner, context.collections)).knowledge,
            args.query,
            args.limit,
            args.service,
            args.severity,
        )
        return SearchIncidentKnowledgeOutput(results=[_make_hit(one, args.query) for one in documents], note=note)

    def format_text(self, output: SearchIncidentKnowledgeOutput) -> str:
        if not output.results:
            return NOT_IN_DOCUMENTS
        return "\n\n".join(
            f"{strip_footnote_marks(hit.title)} ({hit.source_type}): {strip_footnote_marks(hit.snippet)} [{number}]"
            for number, hit in enumerate(output.results, start=1)
        )

    def list_sources(self, output: SearchIncidentKnowledgeOutput) -> tuple[Source, ...]:
        """One source for each document."""
        return tuple(
            Source(id=number, name=hit.source_id, quotes=(hit.snippet,))
            for number, hit in enumerate(output.results, start=1)
        )


async def find_documents(
    library: Library, owner: str, collection: str, query: str, limit: int, service: str, severity: str
) -> tuple[list[Document], str]:
    """The documents about an incident in order of relevance, and a note of the search.

    At most half are tickets if there are others; at least one is a policy or runbook if there is one.
    """
    make = f"stepgate ingest FOLDER --collection {collection}"
    await require_collection(library, owner, collection, make)
    search_text = " ".join(
        (query, *(word for word in (service, severity) if word and word.lower() not in query.lower()))
    )
    passages, note = await search_evidence(library, owner, collection, search_text, top_k=MAX_CANDIDATES)
    documents = _group_by_document(passages, service)
    documents_only = [one for one in documents if one.kind not in _TICKETS]
    tickets = [one for one in documents if one.kind in _TICKETS]
    max_tickets = max(limit // 2, limit - len(documents_only))
    chosen = sorted(
        [*tickets[:max_tickets], *documents_only[: limit - min(max_tickets, len(tickets))]], key=lambda one: -one.score
    )
    if not any(is_policy(one.kind) for one in chosen):
        nearest = [one for one in documents if is_policy(one.kind)]
        why = "the policy or runbook nearest to the incident"
        near = bool(nearest)
        nearest = nearest or _group_by_document(
            await find_policies(library, owner, collection, search_text, 1), service
        )
        chosen = [
            *chosen[: limit - 1],
            *(replace(one, reason=f"{why}; {one.reason}", is_near=near) for one in nearest[:1]),
        ]
    return chosen, note


async def find_policies(
    library: Library, owner: str, collection: str, query: str, top_k: int
) -> Sequence[RetrievedContext]:
    """The nearest passages of policies and runbooks.

    If none shares a word with the query, returns those about general incident words, with relevance 0.
    """
    documents = await library.list_documents(owner, collection)
    names = [one.document_id for one in documents if is_policy(classify_name(one.name))]
    filters: JsonObject = {"document_id": [*names[:MAX_POLICY_DOCUMENTS]]}
    for words in (query, "incident severity escalation response policy runbook") if names else ():
        passages, _ = await search_evidence(
            library, owner, collection, words, top_k=top_k, filters=filters, min_relevance=0.0
        )
        if passages:
            return passages if words == query else [one.model_copy(update={"relevance_score": 0.0}) for one in passages]
    return ()


async def read_whole_document(
    library: Library, owner: str, collection: str, document: Document, query: str
) -> Document:
    """A document with all its passages that share a word with the query."""
    filters: JsonObject = {"document_id": document.passages[0].source_id}
    passages, _ = await search_evidence(
        library, owner, collection, query, top_k=MAX_CANDIDATES, filters=filters, min_relevance=0.0
    )
    known_chunk_ids = {one.chunk_id for one in document.passages}
    return replace(
        document, passages=(*document.passages, *(one for one in passages if one.chunk_id not in known_chunk_ids))
    )


def _group_by_document(found: Sequence[RetrievedContext], service: str) -> list[Document]:
    """Groups passages by document. Several relevant passages, and the service's name, raise a document's score."""
    passages: dict[str, list[RetrievedContext]] = {}
    for one in found:
        passages.setdefault(format_source_name(one), []).append(one)
    documents = []
    for name, those in passages.items():
        missing = 1.0
        for passage, weight in zip(those, (1.0, 0.5, 0.25), strict=False):
            missing *= 1 - weight * passage.relevance_score
        if service and any(matches_service(passage, service) for passage in those):
            missing *= 1 - SERVICE_BONUS
        documents.append(
            Document(name, classify_passage(those[0]), round(1 - missing, 3), those[0].why_selected, tuple(those))
        )
    return sorted(documents, key=lambda one: (-one.score, one.name))


def compute_overlap(query: str, passage: str) -> float:
    """The lexical overlap of two texts, from 0 to 1, by their different words in lower case."""
    query_words, passage_words = set(_WORD.findall(query.lower())), set(_WORD.findall(passage.lower()))
    if not query_words or not passage_words:
        return 0.0
    return round(len(query_words & passage_words) / math.sqrt(len(query_words) * len(passage_words)), 4)


def _make_hit(document: Document, query: str) -> KnowledgeHit:
    passage = document.passages[0]
    return KnowledgeHit(
        title=format_title(passage),
        snippet=extract_snippet(passage.content, query),
        source_type=document.kind,
        source_id=get_ticket(passage) if document.kind in _TICKETS else document.name,
        score=document.score,
        scores={"relevance": document.score, "overlap": compute_overlap(query, passage.content)},
        why_selected=document.reason,
        chunk_id=passage.chunk_id,
        retrieval_mode=passage.retrieval_mode,
    )
