"""`search_incident_knowledge`: what the company's policies, runbooks, documents and tickets say of an incident."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from agent.core.models import Frozen, JsonObject, Source
from agent.knowledge.library import Library
from agent.knowledge.models import NOT_IN_DOCUMENTS, RetrievedContext
from agent.tools import READ_ONLY, ToolContext, TypedTool
from mcp_tools.builtin.incident.evidence import (
    ask,
    is_of_service,
    is_policy,
    kind_by_name,
    kind_of,
    require,
    snippet,
    source_name,
    title_of,
    unmarked,
)
from mcp_tools.builtin.incident.text import own_words

CANDIDATES = 50
"""Passages among which the best of each document, and a policy, are looked for."""
NAMES_SERVICE = 0.3
"""What naming the service is worth, as a share of what a document lacks to be wholly relevant."""
_TICKETS = frozenset({"ticket", "incident"})
POLICY_DOCUMENTS = 100
"""Documents one filter may name (`filters.MAX_VALUES`)."""


class SearchIncidentKnowledgeInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=100_000, description="the incident in words, or a question about it")
    limit: int = Field(default=3, ge=1, le=10, description="how many results at most")
    service: str = Field(default="", max_length=200, description="the service it is about; sought too")
    severity: str = Field(default="", max_length=100, description="its severity or priority; sought too")


class KnowledgeHit(Frozen):
    """A document that has to do with the incident."""

    title: str
    snippet: str = Field(description="words of the document, as they stand there")
    source_type: str = Field(description="policy, runbook, doc or ticket")
    source_id: str = Field(description="the document as it is cited: its path, or the ticket")
    score: float = Field(description="relevance, from 0 to 1")
    why_selected: str
    chunk_id: str
    retrieval_mode: str


class SearchIncidentKnowledgeOutput(BaseModel):
    """The documents, best first; at least one of them is a policy or a runbook when there is one."""

    results: list[KnowledgeHit]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was found: what it is, how near, why, and its passages, the best first."""

    name: str
    kind: str
    score: float
    why: str
    passages: tuple[RetrievedContext, ...]
    near: bool = True
    """Whether it is about the incident; False for a policy that is there because every incident has one."""


class SearchIncidentKnowledgeTool(TypedTool[SearchIncidentKnowledgeInput, SearchIncidentKnowledgeOutput]):
    """Searches the company's knowledge."""

    name = "search_incident_knowledge"
    description = (
        "Search the company's policies, runbooks, documents and tickets for what applies to an incident; "
        "returns passages to cite."
    )
    annotations = READ_ONLY
    tainted = True
    by_name = True
    keywords = (
        "incident", "outage", "latency", "error", "severity", "policy", "runbook", "escalation", "procedure", "company",
    )  # fmt: skip
    Input = SearchIncidentKnowledgeInput
    Output = SearchIncidentKnowledgeOutput

    def __init__(self, library: Library, collection: str) -> None:
        super().__init__()
        self._library = library
        self._collection = collection

    async def run(self, args: SearchIncidentKnowledgeInput, context: ToolContext) -> SearchIncidentKnowledgeOutput:
        """The documents, each with its best passage."""
        args = args.model_copy(update={"query": own_words(args.query)})
        found, note = await knowledge(
            self._library.preferring(context.retrieval_mode),
            context.owner,
            self._collection,
            args.query,
            args.limit,
            args.service,
            args.severity,
        )
        return SearchIncidentKnowledgeOutput(results=[_hit(one, args.query) for one in found], note=note)

    def text(self, output: SearchIncidentKnowledgeOutput) -> str:
        """The passages, numbered as their sources are."""
        if not output.results:
            return NOT_IN_DOCUMENTS
        return "\n\n".join(
            f"{unmarked(hit.title)} ({hit.source_type}): {unmarked(hit.snippet)} [{number}]"
            for number, hit in enumerate(output.results, start=1)
        )

    def sources(self, output: SearchIncidentKnowledgeOutput) -> tuple[Source, ...]:
        """A source for each document."""
        return tuple(
            Source(id=number, name=hit.source_id, quotes=(hit.snippet,))
            for number, hit in enumerate(output.results, start=1)
        )


async def knowledge(
    library: Library, owner: str, collection: str, query: str, limit: int, service: str, severity: str
) -> tuple[list[Document], str]:
    """The documents that have to do with an incident, best first, and what the search has to note. At most half of
    them are tickets, if there are others; at least one is a policy or a runbook, if there is one."""
    make = f"stepgate ingest FOLDER --collection {collection}"
    await require(library, owner, collection, "AGENT_INCIDENT_KNOWLEDGE", make)
    asked = " ".join((query, *(word for word in (service, severity) if word and word.lower() not in query.lower())))
    found, note = await ask(library, owner, collection, asked, top_k=CANDIDATES)
    documents = _documents(found, service)
    papers = [one for one in documents if one.kind not in _TICKETS]
    tickets = [one for one in documents if one.kind in _TICKETS]
    room = max(limit // 2, limit - len(papers))
    chosen = sorted([*tickets[:room], *papers[: limit - min(room, len(tickets))]], key=lambda one: -one.score)
    if not any(is_policy(one.kind) for one in chosen):
        nearest = [one for one in documents if is_policy(one.kind)]
        why = "the policy or runbook nearest to the incident"
        near = bool(nearest)
        nearest = nearest or _documents(await policies(library, owner, collection, asked, 1), service)
        chosen = [*chosen[: limit - 1], *(replace(one, why=f"{why}; {one.why}", near=near) for one in nearest[:1])]
    return chosen, note


async def policies(library: Library, owner: str, collection: str, query: str, top_k: int) -> Sequence[RetrievedContext]:
    """The nearest passages of policies and runbooks alone. Where none has a word of the query, those that speak of what
    every policy of incidents does; their relevance is 0."""
    documents = await library.documents(owner, collection)
    names = [one.document_id for one in documents if is_policy(kind_by_name(one.name))]
    filters: JsonObject = {"document_id": [*names[:POLICY_DOCUMENTS]]}
    for words in (query, "incident severity escalation response policy runbook") if names else ():
        found, _ = await ask(library, owner, collection, words, top_k=top_k, filters=filters, least=0.0)
        if found:
            return found if words == query else [one.model_copy(update={"relevance_score": 0.0}) for one in found]
    return ()


async def whole(library: Library, owner: str, collection: str, document: Document, query: str) -> Document:
    """A document with all its passages that share a word with the query."""
    filters: JsonObject = {"document_id": document.passages[0].source_id}
    found, _ = await ask(library, owner, collection, query, top_k=CANDIDATES, filters=filters, least=0.0)
    known = {one.chunk_id for one in document.passages}
    return replace(document, passages=(*document.passages, *(one for one in found if one.chunk_id not in known)))


def _documents(found: Sequence[RetrievedContext], service: str) -> list[Document]:
    """The documents of passages. One that several passages speak for counts more than its best passage alone, and so
    does one that names the service."""
    passages: dict[str, list[RetrievedContext]] = {}
    for one in found:
        passages.setdefault(source_name(one), []).append(one)
    documents = []
    for name, those in passages.items():
        missing = 1.0
        for passage, weight in zip(those, (1.0, 0.5, 0.25), strict=False):
            missing *= 1 - weight * passage.relevance_score
        if service and any(is_of_service(passage, service) for passage in those):
            missing *= 1 - NAMES_SERVICE
        documents.append(Document(name, kind_of(those[0]), round(1 - missing, 3), those[0].why_selected, tuple(those)))
    return sorted(documents, key=lambda one: (-one.score, one.name))


def _hit(document: Document, query: str) -> KnowledgeHit:
    found = document.passages[0]
    return KnowledgeHit(
        title=title_of(found),
        snippet=snippet(found.content, query),
        source_type=document.kind,
        source_id=document.name,
        score=document.score,
        why_selected=document.why,
        chunk_id=found.chunk_id,
        retrieval_mode=found.retrieval_mode,
    )
