"""`search_knowledge`: passages of the user's own documents, each with its place, to be cited."""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, Field

from agent.core.errors import BadRequestError, ToolInputError
from agent.core.models import JsonObject, RetrievalMode, Source
from agent.knowledge.errors_retrieval import MemoryNoResultsError
from agent.knowledge.library import Library
from agent.knowledge.llm_rerank import CANDIDATES, order_of
from agent.knowledge.models import NOT_IN_DOCUMENTS, MemoryQuery, RetrievedContext
from agent.knowledge.not_said import is_meant
from agent.knowledge.tailor.form_words import parts_of, without_form
from agent.tools import READ_ONLY, Asker, ToolContext, TypedTool

QUOTE_CHARS = 1_200
BROADER = 0.2
"""The least relevance of what a user may have meant: a passage that holds one word that says little."""
BROADENED = (
    "nothing was relevant enough (at least {least:g}, ERR_MEMORY_NO_RESULTS), so it was searched once more broadly"
)
SUBJECTS, SUBJECT_CHARS = 3, 80
_FOOTNOTE = re.compile(r"\[\d{1,3}\](?!\()")
"""A document's own footnote marks, which would be taken for our citations; the quotes keep them."""


class SearchKnowledgeInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=4_000, description="the question, or the words to look for")
    collection: str = Field(default="", max_length=200, description="where to look; empty for every collection")
    top_k: int = Field(default=5, ge=1, le=20, description="how many passages at most")
    min_relevance_score: float = Field(default=0.4, ge=0, le=1, description="least relevance, from 0 to 1")
    filters: JsonObject | None = Field(
        default=None, description="metadata that must be equal, e.g. source_type: gdrive, web or local"
    )
    mode: RetrievalMode | None = Field(
        default=None, description="how to search; unset: as the room or the settings say"
    )
    use_llm_rerank: bool = Field(default=False, description="have a model order the passages, where there is one")


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
    clarify: str = Field(default="", description="what to ask the user where nothing was relevant enough")


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
        return await search(self._library.preferring(context.retrieval_mode), args, context.owner, context.model)

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


async def search(
    library: Library, args: SearchKnowledgeInput, owner: str, model: Asker | None = None
) -> SearchKnowledgeOutput:
    """The best passages of one of the owner's collections, or of all. `ToolInputError` where there is nothing to
    search, or no collection has a field that is filtered by."""
    there = await library.collections(owner)
    if not there:
        raise ToolInputError("there are no documents yet; `stepgate ingest FOLDER --collection NAME` reads some")
    names = [args.collection] if args.collection else list(there)
    if args.collection and args.collection not in there:
        raise ToolInputError(f"there is no collection {args.collection!r}; there are {', '.join(there)}")
    found, notes = await _of_parts(library, args, owner, names)
    clarify = ""
    if not found:
        near, noted = await _found(library, args, owner, list(there), None, min(BROADER, args.min_relevance_score))
        # What is found beside the filters and the collection that were asked for is no answer, but it makes a question.
        notes = [*noted, BROADENED.format(least=args.min_relevance_score)]
        clarify = _clarifying(args.query, [result for _, result in near])
    if args.use_llm_rerank and found:
        order, told = await order_of(args.query, [one.content for _, one in found], model.ask if model else None)
        found = [found[at] for at in order]
        notes += [told] if told else []
    return SearchKnowledgeOutput(
        results=[_passage(*one) for one in found[: args.top_k]], note="; ".join(notes), clarify=clarify
    )


async def _of_parts(
    library: Library, args: SearchKnowledgeInput, owner: str, names: Sequence[str]
) -> tuple[list[tuple[str, RetrievedContext]], list[str]]:
    """The passages for each part of the query, without its wishes for the answer's form; the best of each part first,
    so that no part is crowded out."""
    searches = [
        await _found(
            library, args.model_copy(update={"query": part}), owner, names, args.filters, args.min_relevance_score
        )
        for part in parts_of(without_form(args.query))
    ]
    mixed: dict[tuple[str, str], tuple[str, RetrievedContext]] = {}
    for rank in zip_longest(*(found for found, _ in searches)):
        for one in rank:
            if one is not None:
                mixed.setdefault((one[0], one[1].chunk_id), one)
    return list(mixed.values()), list(dict.fromkeys(note for _, notes in searches for note in notes))


async def _found(
    library: Library,
    args: SearchKnowledgeInput,
    owner: str,
    names: Sequence[str],
    filters: JsonObject | None,
    least: float,
) -> tuple[list[tuple[str, RetrievedContext]], list[str]]:
    """The passages of these collections, best first, and what the searches had to note."""
    query = MemoryQuery(
        query_text=args.query,
        top_k=max(args.top_k, CANDIDATES) if args.use_llm_rerank else args.top_k,
        min_relevance_score=least,
        filters=filters,
    )
    unknown: list[BadRequestError] = []
    found: list[tuple[str, RetrievedContext]] = []
    notes: list[str] = []
    for name in names:
        try:
            output = await library.search(owner, name, query, mode=args.mode)
        except MemoryNoResultsError:
            continue
        except BadRequestError as error:  # a field that no passage there has
            unknown.append(error)
            continue
        found += [(name, result) for result in output.results]
        notes += [output.note] if output.note and output.note not in notes else []
    if len(unknown) == len(names):
        raise ToolInputError(unknown[0].message)
    found.sort(key=lambda one: -one[1].relevance_score)
    # A document that was read into two collections is found in both; its passages say it once.
    once: dict[tuple[str, str], tuple[str, RetrievedContext]] = {}
    for one in found:
        once.setdefault((str(one[1].metadata.get("file_checksum") or one[1].chunk_id), one[1].content), one)
    return list(once.values()), notes


def _clarifying(query: str, near: Sequence[RetrievedContext]) -> str:
    """A question by what comes nearest; none where nothing does."""
    subjects = dict.fromkeys(subject for one in near if (subject := _subject(one)))
    return is_meant(query, tuple(subjects)[:SUBJECTS]) if subjects else ""


def _subject(found: RetrievedContext) -> str:
    headings = found.metadata.get("heading_path")
    named = str(headings[-1]) if isinstance(headings, list) and headings else str(found.metadata.get("title") or "")
    return " ".join(named.split())[:SUBJECT_CHARS]


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
