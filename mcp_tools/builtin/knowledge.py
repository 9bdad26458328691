"""`search_knowledge`: passages of the user's own documents, each with its place, to be cited."""

import re
from typing import Literal

from pydantic import BaseModel, Field

from agent.core.errors import ToolInputError
from agent.core.models import JsonObject, Source
from agent.knowledge.errors_retrieval import MemoryNoResultsError
from agent.knowledge.library import Library
from agent.knowledge.models import NOT_IN_DOCUMENTS, MemoryQuery, RetrievedContext
from agent.tools import READ_ONLY, ToolContext, TypedTool

QUOTE_CHARS = 1_200
_FOOTNOTE = re.compile(r"\[\d{1,3}\](?!\()")
"""A document's own footnote marks, which would be taken for our citations; the quotes keep them."""


class SearchKnowledgeInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=4_000, description="the question, or the words to look for")
    collection: str = Field(default="", max_length=200, description="where to look; empty for every collection")
    top_k: int = Field(default=5, ge=1, le=20, description="how many passages at most")
    min_relevance_score: float = Field(default=0.4, ge=0, le=1, description="least relevance, from 0 to 1")


class FoundPassage(BaseModel):
    """A passage with the place it stands at."""

    chunk_id: str
    source_id: str
    collection: str
    source: str
    page: int
    text: str
    relevance_score: float
    retrieval_mode: Literal["lexical", "vector", "hybrid", "hybrid_rerank"]
    why_selected: str
    source_url: str | None = None
    metadata: JsonObject = Field(default_factory=dict, description="where it stands: pages, boxes, headings, checksums")


class SearchKnowledgeOutput(BaseModel):
    """Passages, best first."""

    results: list[FoundPassage]
    note: str = ""


class SearchKnowledgeTool(TypedTool[SearchKnowledgeInput, SearchKnowledgeOutput]):
    """Searches the collections of the caller."""

    name = "search_knowledge"
    description = "Search the user's own documents, read in by `stepgate ingest`, and return passages to cite."
    annotations = READ_ONLY
    tainted = True
    keywords = ("document", "documents", "knowledge", "collection", "policy", "manual", "report", "handbook", "files")
    Input = SearchKnowledgeInput
    Output = SearchKnowledgeOutput

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    async def run(self, args: SearchKnowledgeInput, context: ToolContext) -> SearchKnowledgeOutput:
        """The best passages of one collection, or of all."""
        return await search(self._library, args, context.owner)

    def text(self, output: SearchKnowledgeOutput) -> str:
        """The passages, numbered as their sources are."""
        if not output.results:
            return NOT_IN_DOCUMENTS
        numbers = {name: number for number, name in enumerate(dict.fromkeys(_name(p) for p in output.results), start=1)}
        return "\n\n".join(f"{_FOOTNOTE.sub('', p.text).strip()} [{numbers[_name(p)]}]" for p in output.results)

    def sources(self, output: SearchKnowledgeOutput) -> tuple[Source, ...]:
        """A source for each page that was found, with the words that were found there."""
        return tuple(
            Source(id=number, name=_name(passage), quotes=(passage.text[:QUOTE_CHARS],))
            for number, passage in enumerate(output.results, start=1)
        )


async def search(library: Library, args: SearchKnowledgeInput, owner: str) -> SearchKnowledgeOutput:
    """The best passages of one of the owner's collections, or of all. `ToolInputError` where there is nothing to
    search."""
    there = await library.collections(owner)
    if not there:
        raise ToolInputError("there are no documents yet; `stepgate ingest FOLDER --collection NAME` reads some")
    names = [args.collection] if args.collection else list(there)
    if args.collection and args.collection not in there:
        raise ToolInputError(f"there is no collection {args.collection!r}; there are {', '.join(there)}")
    query = MemoryQuery(query_text=args.query, top_k=args.top_k, min_relevance_score=args.min_relevance_score)
    found: list[tuple[str, RetrievedContext]] = []
    notes: list[str] = []
    for name in names:
        try:
            output = await library.search(owner, name, query)
        except MemoryNoResultsError:
            continue
        found += [(name, result) for result in output.results]
        notes += [output.note] if output.note and output.note not in notes else []
    found.sort(key=lambda one: -one[1].relevance_score)
    return SearchKnowledgeOutput(results=[_passage(*one) for one in found[: args.top_k]], note="; ".join(notes))


def _name(passage: FoundPassage) -> str:
    return f"{passage.source}, page {passage.page}" if passage.page else passage.source


def _passage(collection: str, found: RetrievedContext) -> FoundPassage:
    pages = found.metadata.get("pages")
    first = pages[0] if isinstance(pages, list) and pages else 0
    return FoundPassage(
        chunk_id=found.chunk_id,
        source_id=found.source_id,
        collection=collection,
        source=str(found.metadata.get("source") or found.metadata.get("title") or found.source_id),
        page=first if isinstance(first, int) else 0,
        text=found.content,
        relevance_score=round(found.relevance_score, 3),
        retrieval_mode=found.retrieval_mode,
        why_selected=found.why_selected,
        source_url=found.source_url,
        metadata={key: value for key, value in found.metadata.items() if key != "scores"},
    )
